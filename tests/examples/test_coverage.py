import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "coverage.py"


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    # Not under its own name, which is that of a well-known package.
    spec = importlib.util.spec_from_file_location("coverage_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_example"] = module
    spec.loader.exec_module(module)
    return module


def test_prints_a_line_for_every_setting(
    coverage: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["coverage.py", "--audits", "2"])
    monkeypatch.setattr(coverage, "NUM_NODES", (1, 3))
    monkeypatch.setattr(coverage, "NUM_TRIALS", (20,))
    coverage.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(coverage.EPSILONS) * 2
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| 0.5 | 1 | 20 |")


def test_the_mechanism_has_the_epsilon_it_is_said_to_have(coverage: ModuleType) -> None:
    for epsilon in coverage.EPSILONS:
        levels = coverage.privacy_levels(coverage.randomised_response(epsilon))
        assert levels.mp == pytest.approx(epsilon)
        assert levels.bmp.left == pytest.approx(epsilon)
        assert levels.bmp.right == pytest.approx(epsilon)


def test_the_same_seed_gives_the_same_line(coverage: ModuleType) -> None:
    assert coverage.measure(1.0, 2, 30, num_audits=3, seed=1) == coverage.measure(1.0, 2, 30, num_audits=3, seed=1)
