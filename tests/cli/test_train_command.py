"""The command `bmpaudit train`."""

import json
from pathlib import Path

import pytest
from command_line import Outcome, run_here


def run(*arguments: object) -> Outcome:
    return run_here("train", *arguments)


def test_trains_resumes_and_extends(tmp_path: Path) -> None:
    settings = ("demo", "--sampler", "snowball", "--epochs", 20, "--out", tmp_path / "audit", "--json")
    first = run(*settings, "--shadows", 40)
    assert first.exit_code == 0, first.stderr
    summary = json.loads(first.stdout)
    assert summary["num_models"] == 40
    assert summary["failed"] == []
    assert summary["train_accuracy"] > summary["held_out_accuracy"] > 0.5
    assert summary["views"]["none_clean"]["mean_margin_in"] > summary["views"]["none_clean"]["mean_margin_out"]
    assert json.loads(run(*settings, "--shadows", 40).stdout) == summary
    assert json.loads(run(*settings, "--shadows", 50).stdout)["num_models"] == 50
    # Without a graph, the folder's plan is resumed.
    assert json.loads(run("--out", tmp_path / "audit", "--json").stdout)["num_models"] == 50
    assert json.loads((tmp_path / "audit" / "shadows.json").read_text())["sampler"]["name"] == "snowball"


def test_prints_a_table_and_nothing_on_stderr_when_nobody_watches(tmp_path: Path) -> None:
    done = run("demo", "--model", "mlp", "--epochs", 5, "--shadows", 9, "--out", tmp_path)
    assert f"9 shadow models in {tmp_path}\n" in done.stdout
    assert "none_noisy" in done.stdout
    assert done.stderr == ""


def test_every_model_and_engine(tmp_path: Path) -> None:
    settings = ("demo", "--epochs", 2, "--shadows", 8, "--json")
    for number, options in enumerate(
        (("--model", "gat", "--heads", 3, "--hidden", 5), ("--layers", 3), ("--engine", "torch", "--keep-logits"))
    ):
        done = run(*settings, *options, "--out", tmp_path / str(number))
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["num_models"] == 8


def test_cost_trains_nothing_into_the_folder(tmp_path: Path) -> None:
    done = run("demo", "--cost", "--json", "--shadows", 500, "--out", tmp_path / "audit")
    assert json.loads(done.stdout)["num_models"] == 500
    assert not (tmp_path / "audit").exists()


def test_damage_is_reported_on_stderr(tmp_path: Path) -> None:
    settings = ("demo", "--epochs", 2, "--shadows", 9, "--out", tmp_path, "--json")
    before = run(*settings).stdout
    (tmp_path / "shadows" / "statistic_full_clean" / "c" / "0" / "0").write_bytes(b"nonsense")
    after = run(*settings)
    assert after.stdout == before
    assert after.stderr.startswith("bmpaudit: models 0 to 8: damaged")


def test_failed_models_are_listed(tmp_path: Path) -> None:
    done = run("demo", "--learning-rate", 1e38, "--shadows", 8, "--out", tmp_path)
    assert done.exit_code == 1
    assert "8 models failed (seed 0; empty sample, or not finite): 0, 1, 2, 3, 4, 5, 6, 7" in done.stdout
    assert json.loads(run("demo", "--learning-rate", 1e38, "--shadows", 8, "--out", tmp_path, "--json").stdout) == {
        "folder": str(tmp_path),
        "seed": 0,
        "num_models": 0,
        "failed": [0, 1, 2, 3, 4, 5, 6, 7],
        "train_accuracy": None,
        "held_out_accuracy": None,
        "views": {
            view: {"mean_margin_in": None, "mean_margin_out": None}
            for view in ("full_clean", "full_noisy", "none_clean", "none_noisy")
        },
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learning-rate", 0), "[training] learning_rate must be positive, got learning_rate=0.0"),
        (
            ("--sampler", "snowball", "--fan-out", 0),
            "[sampler] fan_out must be a whole number of at least 1, got fan_out=0",
        ),
        (("--heads", 4), "--heads is for --model gat, got --model gcn"),
        (("--threads", 0), "Invalid value for '--threads': 0 is not in the range x>=1."),
        (("--shadows", 0), "shadows must be greater than or equal to 8, got 0"),
        (("--dropout", 1), "[model] dropout must be in [0, 1), got dropout=1.0"),
        (
            ("--keep-logit",),
            "No such option '--keep-logit'. (Did you mean one of: '--keep-logits', '--keep-weights', "
            "'--no-keep-weights'?)",
        ),
    ],
)
def test_what_is_wrong_is_reported_in_one_line(options: tuple[object, ...], message: str, tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "audit", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"bmpaudit: {message}\n"
    assert not (tmp_path / "audit").exists()
