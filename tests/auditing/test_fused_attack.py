"""An attack that takes all queries of a release together goes through the whole pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from small_audit import run_audit, run_step, small_plan, times

from bmpaudit.attack import Evidence, Scores
from bmpaudit.auditing.finished import Audit
from bmpaudit.comparison.compare import compare

NAMES = ["full+none_clean_strong", "full+none_clean_weak", "full+none_noisy_strong", "full+none_noisy_weak"]


@dataclass(frozen=True)
class Together:
    """How far above the mean of models without the node a model is, over all queries."""

    fuses_queries: ClassVar[bool] = True

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        is_out = ~fitting.at_targets(fitting.memberships)
        count = np.maximum(is_out.sum(axis=0), 1)
        total = np.zeros((challenged.num_models, len(challenged.nodes)))
        assert challenged.queries == ("full", "none")
        for query in challenged.queries:
            values = fitting.at_targets(fitting.statistics[query]).astype(np.float64)
            mean = np.where(is_out, values, 0.0).sum(axis=0) / count
            total += challenged.at_targets(challenged.statistics[query]) - mean
        return Scores(total)


def test_variants_of_all_queries_together(tmp_path: Path) -> None:
    plan = small_plan(attack=Together(), releases=("clean", "noisy"), definitions=("bmp-r", "mp"))
    result = run_audit(tmp_path, plan, pictures=True)
    assert [variant.name for variant in result.attacks.variants] == NAMES
    assert result.attacks.variants[0].label == "full edges and no edges, clean output, strong decision"
    assert list(result.summary["variants"]) == NAMES
    assert {f"counts/{name}.parquet" for name in NAMES} <= set(times(tmp_path))
    assert {f"posteriors/{name}_mp.npz" for name in NAMES} <= set(times(tmp_path))
    assert result.attacks.permutation_test.is_leakage_found
    loaded = Audit.load(tmp_path)
    assert loaded.headline == result.headline
    assert loaded.attacks.variants == result.attacks.variants
    assert "full edges and no edges, noisy output" in (tmp_path / "tables.md").read_text()
    before = times(tmp_path)
    run_step(tmp_path, "report", pictures=True)
    run_audit(tmp_path, plan, pictures=True)
    assert times(tmp_path) == before
    other = compare([tmp_path, result], variant="full+none_noisy_weak", definition="mp")
    assert other.audits[0].variant.name == "full+none_noisy_weak"
