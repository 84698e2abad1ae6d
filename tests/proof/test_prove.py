import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.special
import scipy.stats
from finite_models import Memorising, leaky_models, noise_models

from bmpaudit.attack import Evidence, Gaussian, Raw, Scores
from bmpaudit.io.codec import from_arrays, to_arrays
from bmpaudit.proof import Proof, ProvenBound, default_num_fitting, prove
from bmpaudit.proof.prove import FIRST_FIT, Method, refits
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats, to_json

NUM_NODES = 12
PRIOR = np.full(NUM_NODES, 0.25)
ONE_THREAD = 1


def scored(scores: Floats, memberships: Flags) -> Evidence:
    return Evidence({"scores": scores.astype(np.float32)}, memberships, np.arange(len(scores)))


def random_memberships(num_models: int, seed: int = 0, num_nodes: int = 4) -> Flags:
    return np.random.default_rng(seed).random((num_models, num_nodes)) < 0.4


def is_beyond_floor(bound: ProvenBound) -> bool:
    return bound.proven is not None and bound.proven > bound.floor_high


def test_what_is_shown_as_proven() -> None:
    proof = prove(Gaussian(), leaky_models(100, NUM_NODES, np.random.default_rng(0)), PRIOR, num_threads=ONE_THREAD)
    assert set(proof.shown) == {"epsilon_right", "epsilon_left", "mp"}
    assert replace(proof, is_leakage_proven=False).shown == {}
    for proven, is_shown in ((None, False), (1.0, False), (1.04, False), (1.06, True)):
        mp = replace(proof.mp, proven=proven, floor_high=1.0)
        assert ("mp" in replace(proof, mp=mp).shown) == is_shown
        assert replace(proof, mp=mp).to_plain()["mp"]["is_shown"] == is_shown


def test_a_leak_is_proven_from_the_query_that_shows_it() -> None:
    models = leaky_models(300, NUM_NODES, np.random.default_rng(0))
    proof = prove(Gaussian(), models, PRIOR, num_threads=ONE_THREAD)
    for bound in proof.bounds:
        assert bound.choice.source == "gaussian, none"
        assert bound.num_fitting == 100
        assert bound.num_challenged == 200
        assert bound.parameter in proof.shown
    assert proof.epsilon_right.proven is not None
    assert proof.epsilon_right.proven > 3.5
    assert proof.epsilon_right.floor == pytest.approx(np.log(1 / 3))
    assert proof.epsilon_left.floor == pytest.approx(np.log(3))
    assert proof.mp.floor == 0.0
    assert proof.mp.proven is not None
    assert proof.mp.proven > proof.epsilon_right.proven + 0.9  # members had odds of 1 to 3


def test_prequential_guesses_nearly_all_models_and_continues_with_more() -> None:
    models = leaky_models(300, NUM_NODES, np.random.default_rng(0))
    fewer, more = (
        prove(Gaussian(), models.take(slice(number)), PRIOR, method="prequential", num_threads=ONE_THREAD)
        for number in (144, 300)
    )
    assert more.epsilon_right.num_challenged == 300 - FIRST_FIT
    number = fewer.epsilon_right.num_guesses
    assert np.array_equal(fewer.epsilon_right.guesses.model, more.epsilon_right.guesses.model[:number])
    assert fewer.epsilon_right.proven is not None
    assert more.epsilon_right.proven is not None
    assert 3.0 < fewer.epsilon_right.proven < more.epsilon_right.proven
    assert list(refits(300))[:3] == list(refits(10_000))[:3]


@pytest.mark.parametrize("method", ["one-guess", "prequential"])
def test_shuffled_memberships_prove_nothing_beyond_the_floor(method: str) -> None:
    rng, above, audits = np.random.default_rng(1), np.zeros(3, dtype=int), 60
    largest = np.full(3, -np.inf)
    for _ in range(audits):
        models = leaky_models(120, NUM_NODES, rng)
        shuffled = replace(models, memberships=models.memberships[rng.permutation(120)])
        proof = prove(Gaussian(), shuffled, PRIOR, method=method, num_threads=ONE_THREAD)  # type: ignore[arg-type]
        proven = [-np.inf if bound.proven is None else bound.proven for bound in proof.bounds]
        above += [value > bound.floor + 1e-9 for value, bound in zip(proven, proof.bounds, strict=True)]
        largest = np.maximum(largest, proven)
    assert above.max() <= scipy.stats.binom.isf(1e-5, audits, 0.05)
    assert (largest < np.array([np.log(1 / 3), np.log(3), 0]) + 1.0).all()


def test_no_challenged_model_is_in_the_fit() -> None:
    """An attack that memorises the models it was fitted on proves nothing where nothing leaks."""
    rng, audits, above, caught = np.random.default_rng(2), 40, 0, 0
    for _ in range(audits):
        models = noise_models(60, NUM_NODES, rng)
        proof = prove(Memorising(), models, PRIOR, num_threads=ONE_THREAD)
        above += is_beyond_floor(proof.mp)
        # The fault that this guards against: every challenged model is in the fit.
        everything = Memorising().score(
            *[Evidence({"full": models.statistics["full"]}, models.memberships, models.indices)] * 2, num_threads=1
        )
        scores = everything.log_likelihood_ratio
        faulty = prove(Raw(), scored(scores, models.memberships), PRIOR, num_fitting=30, num_threads=ONE_THREAD)
        caught += is_beyond_floor(faulty.mp)
    allowed = scipy.stats.binom.isf(1e-5, audits, 0.05)
    assert above <= allowed
    assert caught > allowed


def test_an_attack_that_fits_on_models_it_should_leave_out_still_proves_nothing_wrong() -> None:
    class InItsOwnFit(Memorising):
        def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
            return self.score(models, models, num_threads=num_threads)

    rng, audits = np.random.default_rng(3), 40
    above = sum(
        is_beyond_floor(prove(InItsOwnFit(), noise_models(60, NUM_NODES, rng), PRIOR, num_threads=ONE_THREAD).mp)
        for _ in range(audits)
    )
    assert above <= scipy.stats.binom.isf(1e-5, audits, 0.05)


def test_memberships_of_challenged_models_are_withheld() -> None:
    class Cheating(Memorising):
        def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
            return Scores(challenged.memberships.astype(np.float64))

    with pytest.raises(InputError, match="withheld from the attack"):
        prove(Cheating(), noise_models(60, NUM_NODES, np.random.default_rng(0)), PRIOR)


def test_sampled_priors_cost_a_little_of_mp_and_nothing_of_bmp() -> None:
    models = leaky_models(300, NUM_NODES, np.random.default_rng(4))
    exact = prove(Gaussian(), models, PRIOR, num_threads=ONE_THREAD)
    sampled = prove(Gaussian(), models, PRIOR, prior_draws=100_000, num_threads=ONE_THREAD)
    assert sampled.epsilon_right.proven == exact.epsilon_right.proven
    assert exact.mp.proven is not None
    assert sampled.mp.proven is not None
    assert exact.mp.proven - 0.2 < sampled.mp.proven < exact.mp.proven
    assert exact.epsilon_right.floor - 0.1 < sampled.epsilon_right.floor < exact.epsilon_right.floor


def test_nothing_about_the_guesses_depends_on_challenged_memberships() -> None:
    memberships = random_memberships(90)
    scores = np.where(memberships, 1.0, -1.0) + np.random.default_rng(1).normal(size=memberships.shape)
    first, second = (
        prove(Raw(), scored(scores, np.concatenate([memberships[:30], truth])), np.full(4, 0.4), num_fitting=30)
        for truth in (memberships[30:], ~memberships[30:])
    )
    for mine, other in zip(first.bounds, second.bounds, strict=True):
        assert np.array_equal(mine.guesses.model, other.guesses.model)
        assert np.array_equal(mine.guesses.node, other.guesses.node)
        assert mine.choice == other.choice
        assert mine.num_hits == other.num_guesses - other.num_hits


def test_a_node_of_certain_prior_is_never_guessed_and_makes_the_floor_infinite() -> None:
    memberships = random_memberships(90)
    memberships[:, 0] = True
    scores = np.where(memberships, 3.0, -3.0) + np.random.default_rng(1).normal(size=memberships.shape)
    prior = np.array([1.0, 0.4, 0.4, 0.4])
    proof = prove(Raw(), scored(scores, memberships), prior, num_fitting=30)
    assert 0 not in proof.epsilon_right.guesses.node
    assert proof.epsilon_right.floor == np.inf
    assert proof.to_plain()["epsilon_right"]["floor"] == "inf"


def test_results_are_plain_values_and_a_table() -> None:
    proof = prove(Gaussian(), leaky_models(60, NUM_NODES, np.random.default_rng(0)), PRIOR, num_threads=ONE_THREAD)
    values = json.loads(to_json(proof.to_plain()))
    assert list(values) == ["epsilon_right", "epsilon_left", "mp"]
    for value in values.values():
        assert {"proven", "floor", "level", "method", "num_fitting", "num_guesses", "num_hits"} <= set(value)
        assert value["method"] == "one guess per model"
    lines = str(proof).splitlines()
    assert lines[0] == ("proven with 95 % confidence each, one guess per model, fitted on 30 models, 30 challenged")
    assert len(lines) == 4
    assert "guesses right, gaussian, none; the sampler alone gives ≥ -1.10" in lines[1]


def test_the_number_of_fitting_models() -> None:
    assert [default_num_fitting(number) for number in (8, 100, 128, 1_000, 10_000)] == [4, 50, 42, 333, 1_000]


def test_bad_models() -> None:
    models = noise_models(60, NUM_NODES, np.random.default_rng(0))
    cases: list[tuple[dict[str, object], str]] = [
        (
            {"models": models.take(slice(7))},
            "there must be at least 8 models to fit on some and challenge others, got 7",
        ),
        (
            {"models": models.take(slice(60)), "method": "prequential"},
            "the prequential method needs more than 64 models, got 60",
        ),
        ({"method": "guess"}, "method must be one-guess or prequential, got method='guess'"),
        ({"method": "prequential", "num_fitting": 3}, "takes no fitting models"),
        ({"fitting": models, "num_fitting": 3}, "only one of fitting and num_fitting can be given, got both"),
        ({"fitting": models.take(slice(10, 20))}, "model 10 is among both the fitting and the challenged models"),
        ({"num_fitting": 60}, "num_fitting must be below the number of models, 60"),
        ({"num_fitting": 3}, "attack gaussian, full: no node can be attacked with 3 models to fit on"),
        (
            {"prior_prob": np.full(3, 0.5)},
            r"prior_prob must have shape \(12,\), one for each node of the graph, got \(3,\)",
        ),
        ({"prior_prob": np.full(NUM_NODES, 1.5)}, r"prior_prob must be in \[0, 1\], got prior_prob=1.5 for node 0"),
        ({"prior_prob": np.full(NUM_NODES, np.nan)}, r"prior_prob must be in \[0, 1\], got prior_prob=nan for node 0"),
        ({"prior_prob": np.ones(NUM_NODES)}, r"prior_prob must be in \(0, 1\) for at least one node, got only 0 and 1"),
        (
            {"prior_prob": np.append(np.zeros(1), PRIOR[1:])},
            "prior_prob is 0 for node 0, but memberships say otherwise",
        ),
        ({"prior_draws": 10}, "prior_prob must be a frequency over prior_draws=10 draws, got 0.25 for node 0"),
        ({"prior_draws": -1}, "prior_draws must be a whole number of at least 0, got prior_draws=-1"),
        ({"level": 1.0}, "level must be in"),
        ({"attack": []}, "there must be at least one attack, got none"),
        ({"attack": [3]}, r"attack must have fuses_queries and score\(...\), got 3"),
    ]
    for changes, message in cases:
        arguments: dict[str, object] = {"attack": Gaussian(), "models": models, "prior_prob": PRIOR, **changes}
        with pytest.raises(InputError, match=message):
            prove(**arguments)  # type: ignore[arg-type]


def test_models_without_members_or_non_members() -> None:
    memberships = random_memberships(40)
    scores = np.random.default_rng(1).normal(size=memberships.shape)
    for value, name in ((False, "member"), (True, "non-member")):
        for rows, models in ((slice(20), "fitting"), (slice(20, None), "challenged")):
            truth = memberships.copy()
            truth[rows] = value
            with pytest.raises(
                InputError, match=f"memberships of the {models} models must hold both sides, got no {name}"
            ):
                prove(Raw(), scored(scores, truth), np.full(4, 0.4), num_fitting=20)


def test_of_several_scores_from_elsewhere_the_better_ones_are_chosen() -> None:
    memberships, rng = random_memberships(90), np.random.default_rng(1)
    good, bad = (shift * memberships + rng.normal(size=memberships.shape) for shift in (8.0, 0.0))
    scores = {"bad": bad.astype(np.float32), "good": np.where(good > 9, 1e30, good).astype(np.float32)}
    models = Evidence(scores, memberships, np.arange(90))
    proof = prove(Raw(), models, np.full(4, 0.4))
    assert proof.epsilon_right.choice.source == "raw, good"
    halves = models.take(slice(45)), models.take(slice(45, None))
    same = prove(Raw(), models, np.full(4, 0.4), num_fitting=45)
    assert str(prove(Raw(), halves[1], np.full(4, 0.4), fitting=halves[0])) == str(same)


def test_scores_that_are_all_the_same_say_nothing() -> None:
    with pytest.raises(InputError, match="attack raw, scores: scores must differ, got 0 for all models and nodes"):
        prove(Raw(), scored(np.zeros((40, 4)), random_memberships(40)), np.full(4, 0.4))


def test_attacks_that_return_nonsense() -> None:
    class Constant(Memorising):
        def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
            return Scores(np.full((challenged.num_models, len(challenged.nodes)), self.value))

        value = 0.0

    class NotANumber(Constant):
        value = np.nan

    models = noise_models(60, NUM_NODES, np.random.default_rng(0))
    with pytest.raises(InputError, match="scores must differ, got 0 for all models and nodes"):
        prove(Constant(), models, PRIOR)
    with pytest.raises(InputError, match="attack NotANumber must not return NaN, got one for model 0, node 0"):
        prove(NotANumber(), models, PRIOR)


def test_scores_are_not_stretched_to_the_right_shape() -> None:
    class OneForAll(Memorising):
        def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
            return Scores(np.full((1, 1), float(challenged.num_models)))

    models = noise_models(60, NUM_NODES, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"^attack OneForAll must return scores of shape \(\d+, \d+\), got \(1, 1\)$"):
        prove(OneForAll(), models, PRIOR)


def test_nodes_whose_prior_is_certain_may_have_any_score() -> None:
    class NotANumberThere(Memorising):
        def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
            values = super().score(fitting, challenged, num_threads=num_threads).log_likelihood_ratio.copy()
            values[:, challenged.nodes == 0] = np.nan
            return Scores(values)

    models = leaky_models(60, NUM_NODES, np.random.default_rng(0))
    memberships = models.memberships.copy()
    memberships[:, 0] = False
    models = Evidence(models.statistics, memberships, models.indices)
    prior = np.array(PRIOR)
    prior[0] = 0.0
    assert prove(NotANumberThere(), models, prior).epsilon_right.num_guesses > 0


def test_a_node_that_is_hardly_ever_in_a_sample_is_not_guessed() -> None:
    """The attack is wildly sure of it, on the strength of two models; it would be wrong most of the time."""
    rng = np.random.default_rng(5)
    memberships = random_memberships(400)
    memberships[:, 0] = np.arange(400) % 130 == 0
    scores = np.where(memberships, 4.0, -4.0) + rng.normal(size=memberships.shape)
    scores[:, 0] = np.where(rng.random(400) < 0.2, 50.0, -50.0)
    prior = np.array([0.01, 0.4, 0.4, 0.4])
    proof = prove(Raw(), scored(scores, memberships), prior, num_fitting=130)
    assert all(0 not in bound.guesses.node for bound in proof.bounds)


def test_if_no_node_is_in_enough_models_all_may_be_guessed() -> None:
    memberships = np.zeros((60, 4), dtype=bool)
    memberships[[0, 30]] = True
    scores = np.random.default_rng(0).normal(size=memberships.shape)
    assert prove(Raw(), scored(scores, memberships), np.full(4, 0.1)).epsilon_left.num_guesses > 0


@pytest.mark.parametrize("method", ["one-guess", "prequential"])
def test_arrays_hold_the_whole_proof(method: Method) -> None:
    models = leaky_models(100, NUM_NODES, np.random.default_rng(3))
    proof = prove(Gaussian(), models, PRIOR, method=method, num_threads=ONE_THREAD)
    proof = replace(proof, epsilon_left=replace(proof.epsilon_left, proven=None))
    loaded = from_arrays(Proof, to_arrays(proof))
    assert str(loaded) == str(proof)
    assert loaded.to_plain() == proof.to_plain()
    assert loaded.is_leakage_proven is proof.is_leakage_proven
    assert loaded.epsilon_left.proven is None
    assert loaded.mp.choice == proof.mp.choice
    for mine, theirs in zip(loaded.bounds, proof.bounds, strict=True):
        assert (mine.parameter, mine.floor_high) == (theirs.parameter, theirs.floor_high)
        for name in ("model", "node", "says_member", "is_hit", "log_odds"):
            np.testing.assert_array_equal(getattr(mine.guesses, name), getattr(theirs.guesses, name))
