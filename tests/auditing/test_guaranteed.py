"""The guarantee beside the audit: what is said of it, and that a broken mechanism is caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from jsonschema import Draft202012Validator
from small_audit import QUIET, leaky_graph, tiny_plan

from bmpaudit.attack import Evidence, Raw
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import summary_schema
from bmpaudit.auditing.stages import guaranteed
from bmpaudit.graph.graph import Graph
from bmpaudit.models import torch_modules as dp_module
from bmpaudit.models.private import DPGCN, DPMLP, DPModel, PrivateSGC
from bmpaudit.models.torch_modules import PrivateModule
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.privacy import Guarantee
from bmpaudit.proof import prove
from bmpaudit.releases import Ensemble
from bmpaudit.report.page_data import page_data
from bmpaudit.samplers import Bernoulli, Priors, Uniform, draw_memberships, prior_probabilities
from bmpaudit.util.errors import InputError
from bmpaudit.util.words import number

torch.set_num_threads(1)

# Four nodes without edges, each with a feature of its own: what is learnt of a node is in its own two weights.
ISLANDS = Graph.from_edges(np.zeros((0, 2), dtype=np.int64), np.eye(4, dtype=np.float32), [0, 1, 0, 1])
# Every row in every batch, and lengths so short that leaving out the clipping shows.
FULL_BATCH: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-7,
    "steps": 10,
    "sampling_rate": 1.0,
    "clip": 0.01,
    "step_size": 0.1,
    "hidden": 64,
}
PAIRS = Graph.from_edges([(0, 1), (2, 3)], np.eye(4, dtype=np.float32), [0, 1, 0, 1])
# Of half of four nodes with ε = 1, a model that exists says that one of them was in.
EXISTING = 1.0 - np.log(1 - (1 + np.exp(-1.0)) ** -3)
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


def break_training(
    monkeypatch: pytest.MonkeyPatch, *, noise_multiplier: float = 1.0, max_grad_norm: float = 1.0
) -> None:
    """Opacus is told of a share of the noise, or of a multiple of the length, that is accounted for."""
    usual = dp_module.private_optimizer

    def wrong(optimizer: Any, model: Any, draws: Any) -> Any:
        made = usual(optimizer, model, draws)
        made.noise_multiplier *= noise_multiplier / max_grad_norm  # the noise itself does not grow with the length
        made.max_grad_norm *= max_grad_norm
        return made

    monkeypatch.setattr(dp_module, "private_optimizer", wrong)


@dataclass(frozen=True)
class Says(PrivateSGC):
    """A model that says what it is told to of its guarantee."""

    said: Any = None

    def guarantee(self, graph: Graph, sampler: Any) -> Any:  # noqa: ARG002
        return self.said


def audit_of(model: Any, *, graph: Graph = ISLANDS, shadows: int = 120, seed: int = 0, **settings: Any) -> Audit:
    usual = {"sampler": Bernoulli(0.5), "engine": "torch"}
    plan = tiny_plan(model=model, shadows=shadows, seed=seed, **usual | settings)
    return audit(graph, plan, runtime=QUIET)


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
        assert all(
            f"but PrivateSGC guarantees {1.00 if caution.startswith('ε_L') else EXISTING:.2f} at most" in caution
            for caution in found
        )
        proof = result.main_findings.proof
        assert proof is not None
        assert proof.epsilon_right.proven is not None
        assert proof.epsilon_right.proven > EXISTING

    @pytest.mark.parametrize(
        ("model", "changed"),
        [
            (DPMLP(**FULL_BATCH), {"noise_multiplier": 0.0}),
            (DPMLP(**FULL_BATCH), {"noise_multiplier": 0.02}),
            (DPMLP(**FULL_BATCH), {"max_grad_norm": 100.0}),
            (DPGCN(**FULL_BATCH, max_degree=1), {"noise_multiplier": 0.0}),
            # Clipped so short that a row is many times as long.
            (DPGCN(**FULL_BATCH | {"clip": 1e-4}, max_degree=1), {"max_grad_norm": 100.0}),
        ],
        ids=["no noise", "a fiftieth of the noise", "no clipping", "GCN, no noise", "GCN, no clipping"],
    )
    def test_of_dp_sgd_are_caught(
        self, model: DPModel, changed: dict[str, float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        break_training(monkeypatch, **changed)
        found = contradictions(audit_of(model, graph=PAIRS, shadows=130, queries=("none",)))
        assert any(caution.startswith("ε_R ≥ ") for caution in found)

    @pytest.mark.parametrize("model", [DPMLP(**FULL_BATCH), DPGCN(**FULL_BATCH, max_degree=1)])
    def test_dp_sgd_as_it_is_is_not(self, model: DPModel) -> None:
        assert contradictions(audit_of(model, graph=PAIRS, shadows=90, queries=("none",))) == []

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
        assert page_data(made)["guarantee"] == {
            "mechanism": "PrivateSGC",
            "corners": Guarantee("PrivateSGC", 2.0).mp.corners.tolist(),
        }
        loaded = Audit.load(tmp_path / "audit")
        assert loaded.answer == made.answer
        assert made.answer.guaranteed in (tmp_path / "audit" / "summary.json").read_text(encoding="utf-8")

    def test_an_ensemble_of_several_models_is_guaranteed_as_many_times_as_much(self) -> None:
        plan = tiny_plan(model=SHARP, engine="torch", sampler=Bernoulli(0.5), releases=("clean", Ensemble(3)))
        made = audit(ISLANDS, plan, runtime=QUIET)
        assert made.answer.guaranteed.startswith(
            f"By the proof of PrivateSGC, 3 times, ε_R ≤ {3 - np.log(1 - (1 + np.exp(-3.0)) ** -3):.2f}, ε_L ≤ 3.00"
        )

    def test_a_model_without_a_guarantee_says_nothing(self) -> None:
        result = audit(leaky_graph(), tiny_plan(), runtime=QUIET)
        assert result.guaranteed is None
        assert result.summary["guarantee"] is None
        assert result.answer.guaranteed == ""
        assert "guaranteed" not in dict(result.answer.lines)

    def test_a_small_delta_costs_some_confidence_and_a_large_one_all(self) -> None:
        result = audit_of(TooLittleNoise(1.0, hops=0, regularization=1.0, max_norm=50.0))
        proof = result.main_findings.proof
        assert result.guaranteed is not None
        assert proof is not None
        small, large = (
            replace(
                result.guaranteed,
                guarantee=Guarantee("Gaussian", 1.0, delta=delta),
                deltas=dict.fromkeys(result.guaranteed.deltas, delta / 2),
            )
            for delta in (1e-6, 1e-3)
        )
        cost = proof.epsilon_right.num_challenged * ISLANDS.num_nodes * 1e-6 / 2
        level = proof.epsilon_right.level
        assert level - cost - 1e-3 <= (small.level_of(proof.epsilon_right) or 0) <= level - cost
        assert large.level_of(proof.epsilon_right) is None
        assert len(list(small.contradictions(result.findings))) == len(contradictions(result)) > 0
        assert list(large.contradictions(result.findings)) == []
        assert "each with δ = 1e-06 of MDP." in small.sentence(proof)
        assert "each with δ = 0.001 of MDP." in large.sentence(proof)
        too_large = " That δ is too large for the lower bounds of this audit to be set against it."
        assert large.sentence(proof).endswith(too_large)

    def test_with_a_small_delta_between_what_is_proven_and_what_is_guaranteed(self) -> None:
        model = DPMLP(noise_multiplier=1.0, steps=3, sampling_rate=1.0, delta=1e-7, dimensions=4)
        result = audit_of(model, shadows=60)
        assert result.guaranteed is not None
        epsilon = result.guaranteed.limits["mp"]
        sentence = result.answer.guaranteed
        assert f"MP ε ≤ {epsilon:.2f}, each with δ = 1e-07 of MDP." in sentence
        symbols = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP ε"}
        for bound in result.main_findings.proof.bounds:  # type: ignore[union-attr]
            is_set_against_it = bound.proven is not None and result.guaranteed.level_of(bound) is not None
            between = f"{symbols[bound.parameter]} between {number(bound.proven or 0.0, 2)} and "
            assert (between in sentence) == is_set_against_it
        assert result.summary["guarantee"]["delta"] == 1e-7
        assert list(Draft202012Validator(summary_schema()).iter_errors(result.summary)) == []

    def test_what_a_model_of_ones_own_says_is_checked(self) -> None:
        def said(value: Any) -> Any:
            plan = tiny_plan(model=Says(said=value), engine="torch", sampler=Bernoulli(0.5)).shadow_plan
            return guaranteed(plan, ISLANDS, prior_probabilities(ISLANDS, Bernoulli(0.5)))

        assert said(None) is None
        found = said(Guarantee("mine", 0.5, distance=2))
        assert found.limits == {"epsilon_right": 1.0, "epsilon_left": 1.0, "mp": 1.0}
        assert found.level == 1.0
        with pytest.raises(InputError, match=r"guarantee of .* must return a Guarantee or None, got 0.5"):
            said(0.5)


EXACT = Priors.from_formula(Bernoulli(0.1), np.full(6, 0.1))


class TestWhatTheLimitsAllowFor:
    def test_that_there_is_a_model_says_that_its_sample_is_not_empty(self) -> None:
        """Of 6 nodes with prior 0.1, a model that says nothing else still doubles the odds of each."""
        graph = Graph.from_edges(np.zeros((0, 2), dtype=np.int64), np.eye(6, dtype=np.float32), np.arange(6) % 2)
        sampler, model = Bernoulli(0.1), PrivateSGC(epsilon=0.05)
        found = guaranteed(tiny_plan(model=model, sampler=sampler, engine="torch").shadow_plan, graph, EXACT)
        assert found is not None
        existence = -np.log(1 - (1 + np.exp(-0.05) / 9) ** -5)
        assert found.limits == pytest.approx(
            {"epsilon_right": 0.05 + existence - np.log(9), "epsilon_left": 0.05 + np.log(9), "mp": 0.05 + existence}
        )
        assert ". The limits allow for what the existence of a model says: its sample is not" in found.sentence(None)
        samples = draw_memberships(graph, sampler, 9_000, seed=0)
        samples = samples[samples.any(axis=1)]
        score = np.random.default_rng(0).random(samples.shape, dtype=np.float32)  # member, whoever it is
        models = Evidence({"scores": score}, samples, np.arange(len(samples)))
        proof = prove(Raw(), models, EXACT.prob, level=0.999, num_fitting=len(samples) // 2)
        assert proof.mp.proven is not None
        assert 0.05 < proof.mp.proven < -np.log(1 - 0.9**5)
        findings: Any = {"clean": SimpleNamespace(proof=proof)}
        assert list(found.contradictions(findings)) == []
        forgotten = replace(found, limits=found.limits | {"mp": 0.05})
        assert len(list(forgotten.contradictions(findings))) == 1

    def test_estimated_priors_by_their_limits_and_at_their_confidence(self) -> None:
        """Clopper-Pearson limits of all nodes together; contradictions are said at what confidence is left."""

        def odds(share: float) -> float:
            return share / (1 - share)

        counts = np.array([500, 480, 510, 505])
        priors = Priors.from_counts(Uniform(0.5), counts, np.zeros(4, dtype=np.int64), 1_000)
        plan = tiny_plan(model=SHARP, engine="torch", sampler=Uniform(0.5)).shadow_plan
        found = guaranteed(plan, ISLANDS, priors)
        assert found is not None
        assert found.level == 0.999
        failure = 0.001 / 8
        high = scipy.stats.beta.isf(failure, 511, 490)
        low = scipy.stats.beta.ppf(failure, 480, 521)
        assert found.limits == pytest.approx(
            {"epsilon_right": 2 + np.log(odds(high)), "epsilon_left": 2 - np.log(odds(low)), "mp": 2.0}
        )
        assert "Priors are estimated: these limits hold with 99.9 % confidence." in found.sentence(None)
        result = audit_of(TooLittleNoise(1.0, hops=0, regularization=1.0, max_norm=50.0))
        proof = result.main_findings.proof
        assert proof is not None
        assert found.level_of(proof.epsilon_right) == pytest.approx(0.994)  # 0.999, less 0.005
        with_priors = replace(found, limits=dict.fromkeys(found.limits, 0.0))
        sentences = list(with_priors.contradictions(result.findings))
        assert sentences
        assert all(sentence.endswith("or the confidence of 99.4 % failed.") for sentence in sentences)
        assert with_priors.level_of(replace(proof.epsilon_right, level=0.9995)) is None
