"""The guarantee beside the audit: what is said of it, and that a broken mechanism is caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonschema import Draft202012Validator
from small_audit import QUIET, leaky_graph, tiny_plan

from bmpaudit import Audit, Graph, audit, summary_schema
from bmpaudit.auditing.guaranteed import guaranteed
from bmpaudit.errors import InputError
from bmpaudit.privacy import Guarantee
from bmpaudit.samplers import Bernoulli, Uniform, prior_probabilities
from bmpaudit.shadow import PrivateSGC
from bmpaudit.shadow.models.private_module import PrivateModule

torch.set_num_threads(1)

# Four nodes without edges, each with a feature of its own: what is learnt of a node is in its own two weights.
ISLANDS = Graph.from_edges(np.zeros((0, 2), dtype=np.int64), np.eye(4, dtype=np.float32), [0, 1, 0, 1])
SHARP = PrivateSGC(epsilon=1.0, hops=0, regularization=1.0, max_norm=50.0)


@dataclass(frozen=True)
class TooLittleNoise(PrivateSGC):
    """A mechanism that adds a share of the noise that it should."""

    share: float = 0.0

    @property
    def noise_scale(self) -> float:
        return self.share * super().noise_scale


class UnclippedModule(PrivateModule):
    def features(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return 30 * super().features(x, edge_index)


class WithoutClipping(PrivateSGC):
    """A mechanism that forgets to scale features to length 1; these have length 30."""

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        return UnclippedModule(self, num_features, num_classes)


@dataclass(frozen=True)
class Says(PrivateSGC):
    """A model that says what it is told to of its guarantee."""

    said: Any = None

    def guarantee(self, graph: Graph, sampler: Any) -> Any:  # noqa: ARG002
        return self.said


def audit_of(model: Any, *, shadows: int = 120, seed: int = 0, **settings: Any) -> Audit:
    usual = {"sampler": Bernoulli(0.5), "engine": "torch", "permutations": 19}
    plan = tiny_plan(model=model, shadows=shadows, seed=seed, **usual | settings)
    return audit(ISLANDS, plan, runtime=QUIET)


def contradictions(result: Audit) -> list[str]:
    return [caution for caution in result.summary["cautions"] if "the mechanism is broken" in caution]


class TestBrokenMechanisms:
    @pytest.mark.parametrize(
        "model",
        [
            TooLittleNoise(1.0, hops=0, regularization=1.0, max_norm=50.0, share=0.0),
            TooLittleNoise(1.0, hops=0, regularization=1.0, max_norm=50.0, share=0.05),
            WithoutClipping(1.0, hops=0, regularization=1e4, max_norm=50.0),  # a weak penalty would even it out
        ],
        ids=["no noise", "a twentieth of the noise", "no clipping"],
    )
    def test_are_caught(self, model: PrivateSGC) -> None:
        result = audit_of(model)
        found = contradictions(result)
        assert any(caution.startswith("ε_R ≥ ") for caution in found)
        assert all("but PrivateSGC guarantees 1.00 at most" in caution for caution in found)
        proof = result.main_findings.proof
        assert proof is not None
        assert proof.epsilon_right.proven is not None
        assert proof.epsilon_right.proven > 1

    def test_the_mechanism_as_it_is_is_not(self) -> None:
        """At a confidence of 95 % and with a true ε far below the guarantee, chance alone would have to go far."""
        for seed in range(6):
            assert contradictions(audit_of(replace(SHARP, epsilon=0.5), shadows=60, seed=seed)) == []


class TestWhatIsSaid:
    def test_beside_the_lower_bounds(self, tmp_path: Path) -> None:
        plan = tiny_plan(model=SHARP, engine="torch", sampler=Uniform(0.5), shadows=60)
        made = audit(ISLANDS, plan, folder=tmp_path / "audit", pictures="none", runtime=QUIET)
        assert made.answer.guaranteed.startswith("By the proof of PrivateSGC, ε_R ≤ 2.00, ε_L ≤ 2.00 and MP ε ≤ 2.00.")
        assert "With the lower bounds of this audit: ε_R between " in made.answer.guaranteed
        assert made.summary["guarantee"] == {
            "mechanism": "PrivateSGC",
            "epsilon": 1.0,
            "delta": 0.0,
            "distance": 2,
            "epsilon_right": 2.0,
            "epsilon_left": 2.0,
            "mp": 2.0,
        }
        assert "guaranteed:" in str(made)
        assert list(Draft202012Validator(summary_schema()).iter_errors(made.summary)) == []
        loaded = Audit.load(tmp_path / "audit")
        assert loaded.answer == made.answer
        assert made.answer.guaranteed in (tmp_path / "audit" / "summary.json").read_text(encoding="utf-8")

    def test_a_model_without_a_guarantee_says_nothing(self) -> None:
        result = audit(leaky_graph(), tiny_plan(), runtime=QUIET)
        assert result.guaranteed is None
        assert result.summary["guarantee"] is None
        assert result.answer.guaranteed == ""
        assert "guaranteed" not in dict(result.answer.lines)

    def test_a_delta_is_not_compared_with_what_is_proven(self) -> None:
        result = audit_of(TooLittleNoise(1.0, hops=0, regularization=1.0, max_norm=50.0))
        assert result.guaranteed is not None
        loose = replace(result.guaranteed, guarantee=Guarantee("Gaussian", 1.0, delta=1e-6))
        assert list(loose.contradictions(result.findings)) == []
        assert loose.sentence(result.main_findings.proof).endswith("each with δ = 1e-06 of MDP.")

    def test_what_a_model_of_ones_own_says_is_checked(self) -> None:
        def said(value: Any) -> Any:
            plan = tiny_plan(model=Says(said=value), engine="torch", sampler=Bernoulli(0.5)).shadow_plan
            return guaranteed(plan, ISLANDS, prior_probabilities(ISLANDS, Bernoulli(0.5)))

        assert said(None) is None
        assert said(Guarantee("mine", 0.5)).limits["mp"] == 0.5
        with pytest.raises(InputError, match=r"guarantee of .* must return a Guarantee or None, got 0.5"):
            said(0.5)
