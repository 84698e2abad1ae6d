"""What runs prove and expose: computed while the models are there, once, and resumed."""

from pathlib import Path
from typing import Any

import pytest
from reproduction import beyond as growth
from reproduction import run as run_module
from reproduction.beyond import growth_records, growth_run, study_growth
from reproduction.experiments import VARIANTS, Configuration
from reproduction.records import exposure_records, proof_records
from reproduction.run import ADVERSARIES, Run, known_priors, not_proven, prove_and_expose, train_and_attack

from bmpaudit.attack import Evidence
from bmpaudit.auditing import Runtime, Workspace
from bmpaudit.auditing.finished import read_runs, stored_subject
from bmpaudit.proof import prove
from bmpaudit.registry import ATTACK, build

QUIET = Runtime(num_threads=1, quiet=True)
DEMO = Configuration("demo", 0.5, "uniform", "gcn")
NUM_MODELS = 30


def without_times(results: Any) -> dict[str, Any]:
    times = ("seconds", "processor_seconds")
    return {name: {key: value for key, value in each.items() if key not in times} for name, each in results.items()}


def test_proofs_are_made_once_and_resumed_and_are_those_of_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Run(DEMO, 0, NUM_MODELS, tmp_path / "whole")
    train_and_attack([whole], QUIET, proven=[whole], keep_shadows=True)
    assert not_proven(whole) == []
    workspace = Workspace(whole.audit_folder)
    subject = stored_subject(workspace)
    shadows = read_runs(workspace, subject.graph, subject.plan)
    priors = known_priors("demo", subject.plan.sampler)
    for release in ("clean", "noisy"):
        evidence = Evidence.of_runs(shadows, release, ("full", "none"), subject.graph)
        proof = prove(build(ATTACK, "student"), evidence, priors.prob)
        stored = whole.results[f"proof/{release}/all"]
        assert stored["epsilon_right"] == proof.to_plain()["epsilon_right"]
        assert stored["mp"]["proven"] == proof.mp.proven

    made = 0

    def stop_at_third(*arguments: Any) -> dict[str, Any]:
        nonlocal made
        made += 1
        if made == 3:
            raise KeyboardInterrupt
        return prove_and_expose(*arguments)

    stopped = Run(DEMO, 0, NUM_MODELS, tmp_path / "stopped")
    monkeypatch.setattr(run_module, "prove_and_expose", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        train_and_attack([stopped], QUIET, proven=[stopped])
    assert len(not_proven(stopped)) == 4
    train_and_attack([stopped], QUIET, proven=[stopped])
    assert made == 7
    assert without_times(stopped.results) == without_times(whole.results)
    assert not stopped.audit_folder.exists()
    train_and_attack([stopped], QUIET, proven=[stopped])
    assert made == 7

    rows = proof_records([whole])
    assert list(rows["adversary"]) == [*ADVERSARIES, *ADVERSARIES]
    assert rows["num_challenged"].unique().tolist() == [NUM_MODELS // 2]
    exposures = exposure_records([whole])
    assert len(exposures) == 6 * 7
    assert (exposures["correct_mean"] <= exposures["named"]).all()
    assert (exposures["named"] <= 2 * exposures["total"]).all()


def test_growth_uses_the_first_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "GROWN", DEMO)
    monkeypatch.setattr(growth, "GROWTH_SIZES", (NUM_MODELS, 99))
    monkeypatch.setattr(growth, "VARIANTS", VARIANTS[:1])
    monkeypatch.setattr(growth, "RELEASES", ("clean",))
    grown = growth_run(tmp_path, NUM_MODELS + 6)
    study_growth(grown, QUIET)
    assert not grown.audit_folder.exists()
    alone = Run(DEMO, 0, NUM_MODELS, tmp_path)
    train_and_attack([alone], QUIET, proven=[alone])
    for adversary in ADVERSARIES:
        first = without_times({"": grown.results[f"growth/{NUM_MODELS}/proof/clean/{adversary}"]})
        assert first == without_times({"": alone.results[f"proof/clean/{adversary}"]})
    tables = growth_records(grown)
    assert sorted(set(tables["growth_proofs"]["num_models"])) == [NUM_MODELS, NUM_MODELS + 6]
    assert len(tables["growth_cells"]) == 2 * 2
    before = grown.results_path.read_bytes()
    study_growth(grown, QUIET)
    assert grown.results_path.read_bytes() == before
