import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bmpaudit.util.progress import Rate, in_notebook, progress_bar


def test_nothing_is_shown_when_stderr_is_not_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("samples", 10) as progress:
        progress(5)
        progress(10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("quiet", [False, True])
def test_terminal_shows_a_bar_on_stderr_unless_quiet(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then takes any stream for a terminal
    with progress_bar("samples [1/2]", 10, quiet=quiet) as progress:
        progress(10)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("samples [1/2]" in captured.err) == (not quiet)
    assert ("10/10" in captured.err) == (not quiet)


class FakeNotebook:
    """Stands for IPython and its display in a kernel; keeps every text that was shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: object) -> None:
        self.shown: list[dict[str, str]] = []
        shell = SimpleNamespace(kernel=kernel) if kernel else SimpleNamespace()
        modules: dict[str, Any] = {
            "IPython": SimpleNamespace(get_ipython=lambda: shell),
            "IPython.display": SimpleNamespace(display=self.display),
        }
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.shown.append(data)
        return SimpleNamespace(update=self.update)

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data)


def test_notebook_shows_a_bar_that_is_updated_in_place_and_cleared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = FakeNotebook(monkeypatch, kernel=object())
    assert in_notebook()
    with progress_bar("samples <b>", 2_000) as progress:
        progress(1_000)
        progress(1_001)  # too soon after the last one to be shown
        progress(2_000)
    assert [data["text/plain"].split("/s")[0].rstrip("0123456789.,") for data in notebook.shown[:2]] == [
        "samples <b> 0/",
        "samples <b> 1,000/",
    ]
    assert "samples &lt;b&gt; <progress" in notebook.shown[1]["text/html"]
    assert 'value="2000" max="2000"' in notebook.shown[2]["text/html"]
    assert notebook.shown[3] == {"text/plain": "", "text/html": ""}
    assert len(notebook.shown) == 4
    assert capsys.readouterr() == ("", "")


def test_notebook_bar_is_cleared_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = FakeNotebook(monkeypatch, kernel=object())
    with pytest.raises(RuntimeError), progress_bar("samples", 10):
        raise RuntimeError
    assert notebook.shown[-1]["text/plain"] == ""


def test_quiet_notebook_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = FakeNotebook(monkeypatch, kernel=object())
    with progress_bar("samples", 10, quiet=True) as progress:
        progress(10)
    assert notebook.shown == []


def test_ipython_in_a_terminal_is_not_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNotebook(monkeypatch, kernel=None)
    assert not in_notebook()


def test_rate_counts_what_was_done_since_the_first_call() -> None:
    times = iter([0.0, 1.0, 1.0, 3.0, 5.0])
    rate = Rate(clock=lambda: next(times))
    assert [rate(500), rate(503), rate(4_500)] == ["", "1.5/s", "1,000/s"]


def test_importing_the_module_loads_neither_rich_nor_ipython() -> None:
    code = "import sys, bmpaudit.util.progress; print([name for name in ('rich', 'IPython') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_full_disk_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    is_finished = False
    """The bar of a terminal that cannot be written to is lost, nothing else."""
    with suppress(OSError), Path("/dev/full").open("w") as full:  # closing it fails, too
        monkeypatch.setattr(sys, "stderr", full)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with progress_bar("things", 3) as progress:
            for done in range(4):
                progress(done)
        is_finished = True
    assert is_finished
