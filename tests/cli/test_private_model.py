"""The models with a guarantee by name on the command line."""

from pathlib import Path

import pytest
from command_line import run_wrong

PRIVATE = ("audit", "karate", "--model", "private-sgc")


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "audit")
    assert "epsilon must be in [1e-09, 1e+09], got epsilon=0.0" in run_wrong(*PRIVATE, "--epsilon", 0, *out)
    assert "the native engine cannot train PrivateSGC with ε = 1: it needs engine='torch'" in run_wrong(
        *PRIVATE, "--engine", "native", *out
    )
    assert "--epsilon is for --model private-sgc or dp-mlp or dp-gcn, got --model gcn" in run_wrong(
        "audit", "karate", "--model", "gcn", "--epsilon", 1, *out
    )
    assert "the model PrivateSGC with ε = 1 is not trained by the plan: epochs does not apply" in run_wrong(
        *PRIVATE, "--epochs", 5, *out
    )


@pytest.mark.parametrize("name", ["dp-mlp", "dp-gcn"])
def test_so_is_what_dp_sgd_cannot_give(name: str, tmp_path: Path) -> None:
    given = ("audit", "demo", "--model", name, "--out", tmp_path / "audit")
    assert "one of epsilon and noise_multiplier sets the noise, got epsilon=1.0 and noise_multiplier=2.0" in run_wrong(
        *given, "--epsilon", 1, "--noise-multiplier", 2
    )
    impossible = ("--epsilon", 1e-6, "--delta", 1e-12, "--sampling-rate", 1, "--shadows", 8)
    assert "no noise_multiplier up to 10,000 gives epsilon=1e-06 with delta=1e-12 in 100 steps" in run_wrong(
        *given, *impossible
    )
