import pytest

from bmpaudit.progress import progress_bar


def test_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("samples", 10) as progress:
        progress(5)
        progress(10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("quiet", [False, True])
def test_drawn_on_a_terminal_unless_quiet(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes any stream for a terminal then
    with progress_bar("samples", 10, quiet=quiet) as progress:
        progress(10)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("samples" in captured.err) == (not quiet)
    assert ("10/10" in captured.err) == (not quiet)
