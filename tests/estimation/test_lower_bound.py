"""Lower confidence bounds: they hold at their level, and nothing but errors counts as proof."""

import numpy as np
import pytest
import scipy.stats

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import estimate, lower_bound
from bmpaudit.privacy import FiniteMechanism, bayes_decision, independent_memberships, privacy_levels
from bmpaudit.privacy.membership_law import membership_table
from bmpaudit.util.errors import InputError

LEVEL = 0.9


def slow_bound(counts: ErrorCounts, level: float, prior_draws: int = 0) -> dict[str, float | None]:
    """Node by node, from scipy's Clopper-Pearson limits."""
    # Two-sided intervals, so that each side fails with its share.
    confidence = 1 - 2 * (1 - level) / ((6 if prior_draws else 4) * counts.num_nodes)
    bounds: dict[str, float | None] = {"right": None, "left": None, "mp": None}

    def raise_to(name: str, value: float) -> None:
        bounds[name] = max(value, -np.inf if (known := bounds[name]) is None else known)

    for k in range(counts.num_nodes):
        pairs = (
            (counts.false_positives[k], counts.num_out[k]),
            (counts.false_negatives[k], counts.num_in[k]),
        )
        limits = [scipy.stats.binomtest(int(x), int(n)).proportion_ci(confidence, "exact") for x, n in pairs]
        (alpha_low, alpha_high), (beta_low, beta_high) = limits
        if alpha_high + beta_high >= 1 and alpha_low + beta_low <= 1:
            continue
        prior = counts.prior_prob[k]
        prior_low, prior_high = prior, prior
        if prior_draws:
            interval = scipy.stats.binomtest(round(prior * prior_draws), prior_draws)
            prior_low, prior_high = interval.proportion_ci(confidence, "exact")
        right = np.log(max((1 - beta_high) / alpha_high, beta_low / (1 - alpha_low)))
        left = np.log(max((1 - alpha_high) / beta_high, alpha_low / (1 - beta_low)))
        raise_to("right", right + np.log(prior_low / (1 - prior_low)))
        raise_to("left", left - np.log(prior_high / (1 - prior_high)))
        raise_to("mp", max(right, left))
    return bounds


def exceeds(bound: float | None, truth: float) -> bool:
    return bound is not None and bound > truth


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
        bound = lower_bound(simulated_audit(mechanism, num_models, rng), level=LEVEL)
        wrong += (
            exceeds(bound.right.bound, truth.bmp.right)
            or exceeds(bound.left.bound, truth.bmp.left)
            or exceeds(bound.mp.bound, truth.mp)
        )
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


def snowball_like_priors(num_nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Very unequal: a few nodes are nearly always in, most are hardly ever."""
    return np.clip(rng.beta(0.4, 1.5, num_nodes), 0.002, 0.998)


def decisions_without_information(
    prior: np.ndarray, num_models: int, prior_draws: int, rng: np.random.Generator
) -> ErrorCounts:
    """Each decision is a coin, with a bias of the node's own, whatever the membership."""
    member_prob = rng.uniform(0, 1, len(prior))
    num_in = rng.binomial(num_models, prior)
    return ErrorCounts.from_arrays(
        num_models - num_in,
        num_in,
        rng.binomial(num_models - num_in, member_prob),
        rng.binomial(num_in, 1 - member_prob),
        prior if prior_draws == 0 else rng.binomial(prior_draws, prior) / prior_draws,
    )


@pytest.mark.parametrize("prior_draws", [0, 200])
@pytest.mark.parametrize("num_models", [40, 500])
def test_noise_proves_nothing_however_unequal_the_priors(num_models: int, prior_draws: int) -> None:
    rng = np.random.default_rng(7)
    audits, claims = 400, 0
    for _ in range(audits):
        counts = decisions_without_information(snowball_like_priors(150, rng), num_models, prior_draws, rng)
        bound = lower_bound(counts, LEVEL, prior_draws=prior_draws)
        claims += any(side.bound is not None for side in (bound.right, bound.left, bound.mp))
    assert claims <= scipy.stats.binom.isf(1e-6, audits, 1 - LEVEL)


def test_a_large_prior_does_not_make_a_proof() -> None:
    """The node that says nothing has the larger log η; the one that proves something has the larger bound for MP."""
    counts = ErrorCounts.from_arrays([100, 500], [900, 500], [50, 50], [450, 100], [0.9, 0.5])
    bound = lower_bound(counts)
    assert bound.right.node == 1
    assert bound.right.bound is not None
    assert bound.right.bound < bound.right.floor == pytest.approx(np.log(9))
    assert bound.right.per_node[0] == -np.inf
    nothing = lower_bound(counts.take([0]))
    assert (nothing.right.bound, nothing.left.bound, nothing.mp.bound) == (None, None, None)
    assert str(nothing).count("nothing proven") == 3


def leaky_audit(
    prior: np.ndarray, alpha: np.ndarray, beta: np.ndarray, prior_draws: int, rng: np.random.Generator
) -> ErrorCounts:
    return ErrorCounts.from_arrays(
        400,
        300,
        rng.binomial(400, alpha),
        rng.binomial(300, beta),
        rng.binomial(prior_draws, prior) / prior_draws,
    )


def test_sampled_priors_are_not_taken_as_known() -> None:
    """With the same known leak for 60 nodes, the largest frequency over 50 draws lies far above the largest prior.

    The bound that takes frequencies for exact priors fails far more often than it says; the other one does not, and its
    floor holds as well.
    """
    rng = np.random.default_rng(11)
    audits, draws = 300, 50
    prior = rng.uniform(0.2, 0.5, 60)
    alpha, beta = np.full(60, 0.05), np.full(60, 0.2)
    log_odds = np.log(prior / (1 - prior))
    true_right = float(log_odds.max() + np.log(0.8 / 0.05))
    true_left = float(-log_odds.min() + np.log(0.95 / 0.2))
    wrong = {0: 0, draws: 0}
    for _ in range(audits):
        counts = leaky_audit(prior, alpha, beta, draws, rng)
        for prior_draws in wrong:
            bound = lower_bound(counts, LEVEL, prior_draws=prior_draws)
            assert bound.right.bound is not None
            assert bound.left.bound is not None
            wrong[prior_draws] += (
                bound.right.bound > true_right
                or bound.left.bound > true_left
                or bound.right.floor > log_odds.max()
                or bound.left.floor > -log_odds.min()
            )
    allowed = scipy.stats.binom.isf(1e-6, audits, 1 - LEVEL)
    assert wrong[draws] <= allowed < wrong[0]


def test_sampled_priors_keep_the_level_for_one_node() -> None:
    """One node, so that the confidence is shared by six limits only and the bound is as tight as it can be."""
    rng = np.random.default_rng(13)
    audits, draws, wrong = 600, 30, 0
    truth = np.log(0.7 / 0.3) + np.log(0.8 / 0.05), -np.log(0.7 / 0.3) + np.log(0.95 / 0.2)
    prior, alpha, beta = np.array([0.7]), np.array([0.05]), np.array([0.2])
    for _ in range(audits):
        bound = lower_bound(leaky_audit(prior, alpha, beta, draws, rng), LEVEL, prior_draws=draws)
        wrong += exceeds(bound.right.bound, truth[0]) or exceeds(bound.left.bound, truth[1])
    assert wrong <= scipy.stats.binom.isf(1e-6, audits, 1 - LEVEL)


def test_more_draws_approach_exact_priors() -> None:
    counts = ErrorCounts.from_arrays([500, 400], [500, 400], [10, 100], [100, 20], [0.25, 0.5])
    exact = lower_bound(counts)
    assert exact.right.bound is not None
    few, many, most = (lower_bound(counts, prior_draws=draws).right.bound for draws in (100, 10_000, 10**8))
    assert few is not None
    assert many is not None
    assert most is not None
    # Six limits share the confidence in place of four.
    shared = lower_bound(counts, 1 - 0.05 * 4 / 6).right.bound
    assert few < many < most < exact.right.bound
    assert most == pytest.approx(shared, abs=1e-3)


def test_mp_needs_no_prior() -> None:
    counts = ErrorCounts.from_arrays([500, 400], [500, 400], [10, 100], [100, 20], [0.25, 0.5])
    for draws in (4, 1_000):
        assert lower_bound(counts, prior_draws=draws).mp.bound == lower_bound(counts).mp.bound


def test_a_node_that_was_never_drawn_may_still_be_in() -> None:
    counts = ErrorCounts.from_arrays([500, 500], [50, 50], [10, 10], [5, 5], [0.0, 1.0])
    bound = lower_bound(counts, prior_draws=100)
    assert bound.right.node == 1
    assert bound.left.node == 0
    assert bound.right.bound is not None
    assert bound.right.bound < np.inf
    assert bound.right.per_node[0] == bound.left.per_node[1] == -np.inf
    certain = lower_bound(counts)  # taken as exact, the sampler alone tells, and errors add nothing
    assert certain.right.bound is None
    assert certain.left.bound is None
    assert certain.right.floor == certain.left.floor == np.inf


@pytest.mark.parametrize(
    ("prior_draws", "message"),
    [
        (-1, "prior_draws must be a whole number of at least 0, got prior_draws=-1"),
        (1.5, "prior_draws must be a whole number of at least 0"),
        (10, r"prior_prob must be a frequency over prior_draws=10 draws, got 0.25 for node b"),
    ],
)
def test_wrong_numbers_of_draws_are_refused(prior_draws: int, message: str) -> None:
    counts = ErrorCounts.from_arrays([10, 10], [10, 10], [1, 1], [1, 1], [0.5, 0.25], node=["a", "b"])
    with pytest.raises(InputError, match=message):
        lower_bound(counts, prior_draws=prior_draws)
    with pytest.raises(InputError, match=message):
        estimate(counts, prior_draws=prior_draws)


def test_plain_leakage_is_proven() -> None:
    bound = lower_bound(simulated_audit(randomised_response(0.5), 2_000, np.random.default_rng(1)))
    for side in (bound.right, bound.left):
        assert side.bound is not None
        assert side.bound > side.floor
    assert bound.mp.bound is not None
    assert 1.0 < bound.mp.bound < np.log(4)


@pytest.mark.parametrize("prior_draws", [0, 1_000])
def test_agrees_with_a_slow_reference(prior_draws: int) -> None:
    rng = np.random.default_rng(2)
    num_out, num_in = rng.integers(1, 200, size=(2, 30))
    counts = ErrorCounts.from_arrays(
        num_out,
        num_in,
        rng.binomial(num_out, 0.05),
        rng.binomial(num_in, rng.uniform(size=30)),
        np.round(rng.uniform(size=30), 3),
    )
    bound = lower_bound(counts, 0.99, prior_draws=prior_draws)
    expected = slow_bound(counts, 0.99, prior_draws) | {"mp": slow_bound(counts, 0.99)["mp"]}
    for name, value in expected.items():
        assert value is not None
        assert getattr(bound, name).bound == pytest.approx(value, abs=1e-9)


def test_flip_and_duality() -> None:
    counts = ErrorCounts.from_arrays([100, 300], [200, 50], [5, 100], [20, 3], [0.3, 0.6])
    flipped = ErrorCounts.from_arrays([100, 300], [200, 50], [95, 200], [180, 47], [0.3, 0.6])
    dual = ErrorCounts.from_arrays([200, 50], [100, 300], [20, 3], [5, 100], [0.7, 0.4])
    here, there, mirrored = lower_bound(counts), lower_bound(flipped), lower_bound(dual)
    np.testing.assert_allclose(here.right.per_node, there.right.per_node)
    np.testing.assert_allclose(here.left.per_node, there.left.per_node)
    np.testing.assert_allclose(here.right.per_node, mirrored.left.per_node)
    assert here.mp.bound == pytest.approx(mirrored.mp.bound)
    assert (here.right.term, there.right.term, mirrored.left.term) == ("(1-β)/α", "β/(1-α)", "(1-α)/β")


def test_the_node_that_proves_most_is_named() -> None:
    counts = ErrorCounts.from_arrays([500, 500], [500, 500], [250, 10], [250, 50], 0.5, node=["safe", "leaky"])
    bound = lower_bound(counts)
    assert (bound.right.node, bound.left.node, bound.mp.node) == ("leaky", "leaky", "leaky")
    assert "node leaky" in str(bound)


@pytest.mark.parametrize(
    ("false_positives", "false_negatives"), [(0, 250), (750, 0)], ids=["never a member", "always a member"]
)
def test_a_constant_decision_proves_nothing(false_positives: int, false_negatives: int) -> None:
    bound = lower_bound(ErrorCounts.from_arrays([750], [250], [false_positives], [false_negatives], [0.25]))
    for side, floor in ((bound.right, -np.log(3)), (bound.left, np.log(3)), (bound.mp, 0.0)):
        assert (side.bound, side.node, side.term) == (None, None, None)
        assert side.floor == pytest.approx(floor)
    assert str(bound).count("nothing proven") == 3


def test_without_trials_nothing_is_proven() -> None:
    bound = lower_bound(ErrorCounts.from_arrays([0, 0], [0, 0], [0, 0], [0, 0], [0.2, 0.5]))
    assert bound.right.bound is None
    assert bound.right.node is None
    assert bound.right.term is None
    assert bound.right.floor == 0


def test_a_certain_prior_gives_no_nan() -> None:
    counts = ErrorCounts.from_arrays([10, 100], [0, 100], [0, 5], [0, 5], [0.0, 0.5])
    bound = lower_bound(counts)
    assert bound.right.node == bound.left.node == 1
    assert bound.right.floor == 0
    assert bound.left.floor == np.inf  # ε_L is infinite: that node is known to be out
    assert not np.isnan(np.concatenate([bound.right.per_node, bound.left.per_node, bound.mp.per_node])).any()


def test_more_nodes_or_more_confidence_prove_less() -> None:
    def proven(copies: int, level: float) -> float:
        ones = np.ones(copies, dtype=np.int64)
        bound = lower_bound(ErrorCounts.from_arrays(100 * ones, 100 * ones, 5 * ones, 10 * ones, 0.5), level).mp.bound
        assert bound is not None
        return bound

    assert proven(1, 0.95) > proven(10, 0.95) > proven(10, 0.999)


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="level must be in"):
        lower_bound(ErrorCounts.from_arrays([1], [1], [0], [0], [0.5]), level)
