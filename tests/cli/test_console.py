"""Where lines are broken in the terminal."""

import pytest
from rich.text import Text

from bmpaudit.cli.show import console

SENTENCE = "odds of 176 : 1 (ε_R ≥ 5.17), and 99 % of the names: all"


@pytest.mark.parametrize("width", range(13, 40))
def test_no_figure_is_broken(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    console(width).print(Text(SENTENCE))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert " ".join(lines) == SENTENCE
    assert len(lines) > 1
    for figure in ("176 : 1", "ε_R ≥ 5.17", "99 %"):
        assert any(figure in line for line in lines)
