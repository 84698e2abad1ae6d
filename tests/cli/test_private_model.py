"""The model with a guarantee by name on the command line."""

from pathlib import Path

from command_line import run_wrong

PRIVATE = ("audit", "karate", "--model", "private-sgc")


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "audit")
    assert "epsilon must be in (0, 1e+09], got epsilon=0.0" in run_wrong(*PRIVATE, "--epsilon", 0, *out)
    assert "the native engine cannot train PrivateSGC with ε = 1: it needs engine='torch'" in run_wrong(
        *PRIVATE, "--engine", "native", *out
    )
    assert "--epsilon is for --model private-sgc, got --model gcn" in run_wrong(
        "audit", "karate", "--model", "gcn", "--epsilon", 1, *out
    )
