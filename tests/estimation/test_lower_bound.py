import numpy as np
import pytest
import scipy.stats

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.privacy import FiniteMechanism, bayes_decision, independent_memberships, privacy_levels
from bmpaudit.privacy.membership_law import membership_table

LEVEL = 0.9


def slow_bound(counts: ErrorCounts, level: float) -> dict[str, float]:
    """Node by node, from scipy's Clopper-Pearson limits."""
    confidence = 1 - 2 * (1 - level) / (4 * counts.num_nodes)  # two-sided, so that each side fails with its share
    found = {"right": -np.inf, "left": -np.inf, "mp": -np.inf}
    for k in range(counts.num_nodes):
        pairs = (
            (counts.false_positives[k], counts.num_out[k]),
            (counts.false_negatives[k], counts.num_in[k]),
        )
        limits = [scipy.stats.binomtest(int(x), int(n)).proportion_ci(confidence, "exact") for x, n in pairs]
        (alpha_low, alpha_high), (beta_low, beta_high) = limits
        log_odds = np.log(counts.prior_odds[k])
        with np.errstate(divide="ignore"):
            right = np.log(max((1 - beta_high) / alpha_high, beta_low / (1 - alpha_low)))
            left = np.log(max((1 - alpha_high) / beta_high, alpha_low / (1 - beta_low)))
        found["right"] = max(found["right"], right + log_odds)
        found["left"] = max(found["left"], left - log_odds)
        found["mp"] = max(found["mp"], right, left)
    return found


def simulated_audit(mechanism: FiniteMechanism, num_models: int, rng: np.random.Generator) -> ErrorCounts:
    """Algorithm 4 with the best rule for a fitted one: whole samples are drawn, so nodes depend on each other."""
    joint = mechanism.joint.ravel()
    drawn = rng.choice(len(joint), size=num_models, p=joint / joint.sum())
    sample, output = np.divmod(drawn, mechanism.table.shape[1])
    member = membership_table(mechanism.num_nodes)[sample]
    decision = bayes_decision(mechanism.posterior_log_odds)[:, output].T
    return ErrorCounts.from_arrays(
        num_out=(~member).sum(axis=0),
        num_in=member.sum(axis=0),
        false_positives=(decision & ~member).sum(axis=0),
        false_negatives=(~decision & member).sum(axis=0),
        prior_prob=mechanism.prior_prob,
    )


def randomised_response(prior: float) -> FiniteMechanism:
    return FiniteMechanism(independent_memberships([prior]), [[0.8, 0.2], [0.2, 0.8]])


def noisy_sums(num_nodes: int) -> FiniteMechanism:
    """Tells how many nodes are in, or, one time in two, any number: every node is seen through the same output."""
    sizes = membership_table(num_nodes).sum(axis=1)
    table = np.full((len(sizes), num_nodes + 1), 0.5 / (num_nodes + 1))
    table[np.arange(len(sizes)), sizes] += 0.5
    return FiniteMechanism(independent_memberships([0.5] * num_nodes), table)


@pytest.mark.parametrize(
    "mechanism", [randomised_response(0.5), randomised_response(0.35), noisy_sums(4)], ids=["fair", "unfair", "sums"]
)
@pytest.mark.parametrize("num_models", [30, 400])
def test_the_bound_is_below_the_truth_at_least_at_its_level(mechanism: FiniteMechanism, num_models: int) -> None:
    rng = np.random.default_rng(3)
    truth = privacy_levels(mechanism)
    audits = 1_000
    wrong = 0
    for _ in range(audits):
        found = lower_bound(simulated_audit(mechanism, num_models, rng), level=LEVEL)
        wrong += (
            found.right.proven > truth.bmp.right
            or found.left.proven > truth.bmp.left
            or found.mp.proven > truth.mp
        )  # fmt: skip
    assert wrong <= scipy.stats.binom.isf(1e-6, audits, 1 - LEVEL)


@pytest.mark.parametrize("reverses", [False, True])
def test_each_node_holds_together_with_the_others(reverses: bool) -> None:
    rng = np.random.default_rng(5)
    alpha, beta = np.array([0.1, 0.3, 0.5]), np.array([0.4, 0.3, 0.5])
    if reverses:
        alpha, beta = 1 - alpha, 1 - beta
    true_right = np.log(np.maximum((1 - beta) / alpha, beta / (1 - alpha)))
    audits, wrong = 1_000, 0
    for _ in range(audits):
        counts = ErrorCounts.from_arrays(60, 40, rng.binomial(60, alpha), rng.binomial(40, beta), 0.5)
        wrong += bool((lower_bound(counts, LEVEL).right.per_node > true_right + 1e-12).any())
    assert wrong <= scipy.stats.binom.isf(1e-6, audits, 1 - LEVEL)


def test_plain_leakage_is_proven() -> None:
    found = lower_bound(simulated_audit(randomised_response(0.5), 2_000, np.random.default_rng(1)))
    assert found.right.is_beyond_floor
    assert found.left.is_beyond_floor
    assert 1.0 < found.mp.proven < np.log(4)


def test_agrees_with_a_slow_reference() -> None:
    rng = np.random.default_rng(2)
    num_out, num_in = rng.integers(1, 200, size=(2, 30))
    counts = ErrorCounts.from_arrays(
        num_out, num_in, rng.binomial(num_out, 0.05), rng.binomial(num_in, rng.uniform(size=30)), rng.uniform(size=30)
    )
    found = lower_bound(counts, 0.99)
    for name, value in slow_bound(counts, 0.99).items():
        assert getattr(found, name).proven == pytest.approx(value, abs=1e-9)


def test_flip_and_duality() -> None:
    counts = ErrorCounts.from_arrays([100, 300], [200, 50], [5, 100], [20, 3], [0.3, 0.6])
    flipped = ErrorCounts.from_arrays([100, 300], [200, 50], [95, 200], [180, 47], [0.3, 0.6])
    dual = ErrorCounts.from_arrays([200, 50], [100, 300], [20, 3], [5, 100], [0.7, 0.4])
    here, there, mirrored = lower_bound(counts), lower_bound(flipped), lower_bound(dual)
    np.testing.assert_allclose(here.right.per_node, there.right.per_node)
    np.testing.assert_allclose(here.left.per_node, there.left.per_node)
    np.testing.assert_allclose(here.right.per_node, mirrored.left.per_node)
    assert here.mp.proven == pytest.approx(mirrored.mp.proven)
    assert (here.right.term, there.right.term, mirrored.left.term) == ("(1-β)/α", "β/(1-α)", "(1-α)/β")


def test_the_node_that_proves_most_is_named() -> None:
    counts = ErrorCounts.from_arrays([500, 500], [500, 500], [250, 10], [250, 50], 0.5, node=["safe", "leaky"])
    found = lower_bound(counts)
    assert (found.right.node, found.left.node, found.mp.node) == ("leaky", "leaky", "leaky")
    assert "node leaky" in str(found)


@pytest.mark.parametrize(
    ("false_positives", "false_negatives"), [(0, 250), (750, 0)], ids=["never a member", "always a member"]
)
def test_a_constant_decision_proves_nothing(false_positives: int, false_negatives: int) -> None:
    found = lower_bound(ErrorCounts.from_arrays([750], [250], [false_positives], [false_negatives], [0.25]))
    assert not found.right.is_beyond_floor
    assert not found.left.is_beyond_floor
    assert found.right.bound == pytest.approx(-np.log(3))
    assert found.left.bound == pytest.approx(np.log(3))
    assert found.mp.bound == 0
    assert "nothing is proven beyond it" in str(found)


def test_without_trials_nothing_is_proven() -> None:
    found = lower_bound(ErrorCounts.from_arrays([0, 0], [0, 0], [0, 0], [0, 0], [0.2, 0.5]))
    assert found.right.proven == -np.inf
    assert found.right.node is None
    assert found.right.term is None
    assert found.right.bound == 0


def test_a_certain_prior_gives_no_nan() -> None:
    counts = ErrorCounts.from_arrays([10, 100], [0, 100], [0, 5], [0, 5], [0.0, 0.5])
    found = lower_bound(counts)
    assert found.right.node == 1
    assert found.right.floor == 0
    assert found.left.floor == np.inf  # ε_L is infinite: that node is known to be out
    assert not np.isnan(np.concatenate([found.right.per_node, found.left.per_node, found.mp.per_node])).any()


def test_more_nodes_or_more_confidence_prove_less() -> None:
    def proven(copies: int, level: float) -> LowerBound:
        ones = np.ones(copies, dtype=np.int64)
        return lower_bound(ErrorCounts.from_arrays(100 * ones, 100 * ones, 5 * ones, 10 * ones, 0.5), level)

    assert proven(1, 0.95).mp.proven > proven(10, 0.95).mp.proven > proven(10, 0.999).mp.proven


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="level must be in"):
        lower_bound(ErrorCounts.from_arrays([1], [1], [0], [0], [0.5]), level)
