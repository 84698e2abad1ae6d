import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "theory_slack.py"

FAILS_AS_PRINTED = {
    "Prop. 4: BMP then MP",
    "Prop. 4: the same, sequential",
    "Prop. 4: MP under another sampler",
    "Theorem 7: wrong decision",
    "Section III: MDP is stronger than MP",
    "Section III: BMDP-R is identifiability",
    "Section IV: one test in R, so BMP",
}


@pytest.fixture(scope="module")
def theory_slack() -> ModuleType:
    spec = importlib.util.spec_from_file_location("theory_slack", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["theory_slack"] = module
    spec.loader.exec_module(module)
    return module


def test_what_holds_is_not_violated_and_what_fails_is(theory_slack: ModuleType) -> None:
    assert set(theory_slack.PRINTED) >= FAILS_AS_PRINTED
    for name in theory_slack.PRINTED | theory_slack.HOLDS_INSTEAD:
        finding = theory_slack.search(name, num_mechanisms=30, seed=1, num_climbs=1, num_steps=40)
        if name in FAILS_AS_PRINTED:
            assert finding.largest_violation > 0.01, name
        else:
            assert finding.largest_violation <= 1e-9, name


def test_the_tempting_repair_fails(theory_slack: ModuleType) -> None:
    (name,) = theory_slack.TEMPTING
    assert theory_slack.search(name, num_mechanisms=100, seed=0, num_climbs=1, num_steps=100).largest_violation > 0.01


def test_prints_a_line_for_every_statement(
    theory_slack: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["theory_slack.py", "--mechanisms", "3"])
    monkeypatch.setattr(theory_slack.search, "__defaults__", (1, 2))
    theory_slack.main()
    printed = capsys.readouterr().out
    assert all(name in printed for name in theory_slack.STATEMENTS)
