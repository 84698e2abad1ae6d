import pytest

from bmpaudit.util.errors import InputError, thread_count


def test_threads_default_to_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert (thread_count(None), thread_count(2)) == (6, 2)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert thread_count(None) == 1


@pytest.mark.parametrize("num_threads", [0, -1, 1.5, True])
def test_the_number_of_threads_must_be_at_least_one(num_threads: int) -> None:
    with pytest.raises(InputError, match="num_threads must be a whole number of at least 1, got num_threads="):
        thread_count(num_threads)
