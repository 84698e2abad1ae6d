"""The exact likelihood and posterior: known values, identities, and a slow reference."""

from itertools import product

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import NormalPrior, estimate
from bmpaudit.estimation.density import approximate_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.privacy import Region
from bmpaudit.util.errors import InputError

INF = np.inf


def one_node(counts: tuple[int, int, int, int], eta: float = 1.0) -> Likelihood:
    return Likelihood(np.array([counts], dtype=np.float64), np.log([eta]))


def log_coefficients(counts: np.ndarray) -> float:
    """log of Π C(n0, A) C(n1, B) B(…) B(…): from the kernel to the likelihood with binomial coefficients."""
    return -float(np.log(counts[:, 0] + 1).sum() + np.log(counts[:, 1] + 1).sum())


# By independent high-precision quadrature, binomial coefficients included: counts (n0, n1, A, B), η, ε_L, ε_R, log L.
KNOWN_LIKELIHOODS = [
    ([(100, 100, 20, 30)], [1.0], 0.05, 0.05, -32.373524306708106),
    ([(100, 100, 20, 30)], [1.0], 1.0, 1.0, -10.594298071142063),
    ([(100, 100, 20, 30)], [1.0], 8.0, 8.0, -9.229570108401589),
    ([(1000, 1000, 10, 15)], [1.0], 0.001, 0.001, -1259.4817265556887),
    ([(1000, 1000, 10, 15)], [1.0], 4.0, 4.0, -18.535624745017742),
    ([(50, 0, 5, 0)], [1.0], 2.0, 2.0, -3.9842430628222125),
    ([(100, 100, 20, 30)], [0.001], 7.2, INF, -22.479746823496754),
    ([(100, 100, 20, 30)], [2.5], 0.93, 0.93, -33.668311496480726),
    ([(100, 80, 10, 30), (50, 60, 15, 3), (80, 20, 8, 2)], [0.4, 1.0, 2.5], 1.0, 3.0, -57.67124643256594),
    ([(100, 80, 10, 30), (50, 60, 15, 3), (80, 20, 8, 2)], [0.4, 1.0, 2.5], 6.0, 6.0, -24.471884519366107),
]


@pytest.mark.parametrize(("counts", "eta", "left", "right", "expected"), KNOWN_LIKELIHOODS)
def test_likelihood_has_its_known_value(
    counts: list[tuple[int, ...]], eta: list[float], left: float, right: float, expected: float
) -> None:
    table = np.array(counts, dtype=np.float64)
    value = float(Likelihood(table, np.log(eta))(left, right)) + log_coefficients(table)
    assert value == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("counts", "epsilon", "strength", "expected"),
    [
        ((100, 100, 20, 30), 1.0, 0.2, -10.35136385847882),
        ((100, 100, 20, 30), 4.0, 0.9, -39.87102585333511),
        ((100, 100, 20, 30), 6.0, 0.1, -8.879147054197873),
        # A difference of the two regions' integrals loses every digit here; the mass sits in two narrow peaks.
        ((100, 100, 50, 50), 4.0, 0.9, -147.64514002235362),
    ],
)
def test_ring_of_an_attack_strength_is_integrated_directly(
    counts: tuple[int, int, int, int], epsilon: float, strength: float, expected: float
) -> None:
    value = float(one_node(counts)(epsilon, epsilon, strength)) + log_coefficients(np.array([counts]))
    assert value == pytest.approx(expected, abs=1e-8)


# Percentiles 5, 50 and 95 by the same independent quadrature, prior N(0, 10).
KNOWN_POSTERIORS = [
    ("mp", [(100, 100, 20, 30)], [0.5], (1.2534902845895453, 2.6638679499739406, 6.4362454920922)),
    ("mp", [(1000, 1000, 10, 15)], [0.5], (4.497976596103316, 5.62536571982782, 8.44870105860216)),
    ("mp", [(50, 0, 5, 0)], [0.5], (0.35410818669515254, 2.620656655353177, 6.444620962889405)),
    (
        "bmp-r",
        [(100, 80, 20, 10), (50, 50, 5, 20), (60, 30, 6, 6), (20, 90, 3, 40), (200, 10, 40, 1)],
        [0.1 / 1.1, 0.5 / 1.5, 0.5, 2 / 3, 5 / 6],
        (3.018697248131141, 4.15034719765382, 7.3612944422961295),
    ),
    ("bmp-l", [(100, 100, 20, 30)], [0.001 / 1.001], (7.813721770918935, 8.492354357327287, 10.603605668144544)),
    ("bmp-s", [(100, 100, 20, 30)], [2.5 / 3.5], (2.1624902723848356, 3.4730140766400788, 6.944528906808827)),
]


def error_counts(counts: list[tuple[int, int, int, int]], prior_prob: list[float]) -> ErrorCounts:
    num_out, num_in, false_positives, false_negatives = np.array(counts).T
    return ErrorCounts.from_arrays(
        num_out=num_out,
        num_in=num_in,
        false_positives=false_positives,
        false_negatives=false_negatives,
        prior_prob=np.array(prior_prob),
    )


@pytest.mark.parametrize(("definition", "counts", "prior_prob", "expected"), KNOWN_POSTERIORS)
def test_percentiles_have_their_known_values(
    definition: str, counts: list[tuple[int, int, int, int]], prior_prob: list[float], expected: tuple[float, ...]
) -> None:
    posterior = estimate(error_counts(counts, prior_prob), definition)
    assert posterior.quantile([0.05, 0.5, 0.95]) == pytest.approx(expected, abs=1e-5)


def test_joint_percentiles_have_their_known_values() -> None:
    counts = error_counts([(100, 80, 10, 30), (50, 60, 15, 3), (80, 20, 8, 2)], [0.4 / 1.4, 0.5, 2.5 / 3.5])
    posterior = estimate(counts, "bmp")
    left = (2.2102224807978605, 3.7193507580795457, 7.10287652111093)
    right = (2.9104560453204282, 4.239604890951912, 7.456966470139939)
    assert posterior.quantile([0.05, 0.5, 0.95], "epsilon_left") == pytest.approx(left, abs=1e-5)
    assert posterior.quantile([0.05, 0.5, 0.95], "epsilon_right") == pytest.approx(right, abs=1e-5)


def test_a_decision_that_never_varies_looks_like_a_strong_attack() -> None:
    """The known artefact: 2,708 nodes of which every one is always taken for a non-member."""
    num_nodes = 2_708
    counts = error_counts([(750, 250, 0, 250)] * num_nodes, [0.25] * num_nodes)
    assert estimate(counts, "mp").quantile([0.05, 0.5, 0.95]) == pytest.approx((7.2, 8.7, 11.1), abs=0.05)
    assert counts.is_constant.all()


def slow_probability(counts: tuple[int, int, int, int], log_a: float, log_b: float) -> float:
    """Pr((α, β) ∈ R): for each α on a fine grid, the chance that 1 - β lies between the lines."""
    num_out, num_in, false_positives, false_negatives = counts
    a, b = np.exp(log_a), np.exp(log_b)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    corners = [b, 1 - b, (1 - 1 / b) / (1 / a - 1 / b), (1 - 1 / a) / (1 / b - 1 / a)]  # where the lines bend
    edges = np.unique(np.concatenate([np.linspace(0, 1, 801), corners]))
    alpha = ((edges[1:] + edges[:-1]) / 2)[:, None] + np.diff(edges)[:, None] / 2 * nodes
    log_density = false_positives * np.log(alpha) + (num_out - false_positives) * np.log1p(-alpha)
    density = np.exp(log_density - scipy.special.betaln(false_positives + 1, num_out - false_positives + 1))
    low = np.maximum(alpha / a, 1 - (1 - alpha) / b)
    high = np.minimum(alpha / b, 1 - (1 - alpha) / a)
    shape = (num_in - false_negatives + 1, false_negatives + 1)
    inside = scipy.special.betainc(*shape, np.clip(high, 0, 1)) - scipy.special.betainc(*shape, np.clip(low, 0, 1))
    return float((np.diff(edges)[:, None] / 2 * weights * density * np.maximum(inside, 0)).sum())


@settings(max_examples=60)
@given(
    st.integers(0, 300),
    st.integers(0, 300),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.1, 5),
    st.floats(0.1, 5),
)
def test_likelihood_is_the_slow_integral(
    n0: int, n1: int, u: float, v: float, log_a: float, minus_log_b: float
) -> None:
    counts = (n0, n1, round(u * n0), round(v * n1))
    expected = slow_probability(counts, log_a, -minus_log_b)
    value = float(one_node(counts)(log_a, minus_log_b)) + float(Region(1.0, log_a, minus_log_b).log_area)
    assert np.exp(value) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(
    ("counts", "epsilon"), [((10_000, 0, 1_000, 0), 1.0), ((1_000, 100, 900, 0), 0.3), ((3, 5_000, 1, 4_000), 0.7)]
)
def test_lopsided_counts_are_integrated_as_well(counts: tuple[int, int, int, int], epsilon: float) -> None:
    value = float(one_node(counts)(INF, epsilon)) + float(Region(1.0, INF, epsilon).log_area)
    assert np.exp(value) == pytest.approx(slow_probability(counts, 700.0, -epsilon), abs=1e-8)


SMALL = st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1), st.floats(0, 1))
EPSILONS = st.floats(0.2, 6)


@settings(max_examples=40)
@given(SMALL, EPSILONS, EPSILONS, st.floats(-0.15, 0.15))
def test_flip_and_duality(small: tuple[int, int, float, float], left: float, right: float, log_eta: float) -> None:
    n0, n1, false_positives, false_negatives = (
        small[0],
        small[1],
        round(small[2] * small[0]),
        round(small[3] * small[1]),
    )
    value = float(one_node((n0, n1, false_positives, false_negatives), np.exp(log_eta))(left, right))
    flipped = one_node((n0, n1, n0 - false_positives, n1 - false_negatives), np.exp(log_eta))
    dual = one_node((n1, n0, false_negatives, false_positives), np.exp(-log_eta))
    assert float(flipped(left, right)) == pytest.approx(value, abs=1e-9)
    assert float(dual(right, left)) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("left", "right", "eta"), [(1.0, 1.0, 1.0), (0.5, 2.0, 1.5), (INF, 0.3, 0.8), (3.0, INF, 0.1)])
def test_likelihoods_of_all_outcomes_sum_to_one(left: float, right: float, eta: float) -> None:
    n0, n1 = 5, 4
    logs = [
        float(one_node((n0, n1, a, b), eta)(left, right)) - np.log((n0 + 1) * (n1 + 1))
        for a, b in product(range(n0 + 1), range(n1 + 1))
    ]
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-10)


def test_likelihood_is_flat_beyond_the_data() -> None:
    """So the upper tail of every posterior is the prior's."""
    for counts in ((100, 100, 20, 30), (100, 100, 0, 0), (1000, 2, 5, 0)):
        assert float(one_node(counts)(60.0, 60.0)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("definition", "prior_prob", "low"),
    [("mp", 0.2, 0.0), ("bmp-r", 0.2, np.log(0.25)), ("bmp-l", 0.2, np.log(4)), ("bmp-s", 0.2, np.log(4))],
)
def test_without_trials_the_posterior_is_the_prior_on_the_support(
    definition: str, prior_prob: float, low: float
) -> None:
    posterior = estimate(error_counts([(0, 0, 0, 0)], [prior_prob]), definition)
    scale = np.sqrt(10)
    below = norm.cdf(low / scale)
    expected = norm.ppf(below + (1 - below) * np.array([0.05, 0.5, 0.95])) * scale
    assert posterior.quantile([0.05, 0.5, 0.95]) == pytest.approx(expected, abs=1e-6)


def test_likelihood_is_zero_below_the_support() -> None:
    likelihood = one_node((10, 10, 2, 3), eta=3.0)
    assert float(likelihood(INF, np.log(3) - 1e-9)) == -INF
    assert float(likelihood(-np.log(3) - 1e-9, INF)) == -INF
    assert float(likelihood(INF, np.log(3) + 1e-3)) > -INF


def test_grid_agrees_with_single_points() -> None:
    table = np.array([(100, 80, 10, 30), (50, 60, 0, 0), (80, 20, 8, 20)], dtype=np.float64)
    likelihood = Likelihood(table, np.log([0.4, 1.0, 2.5]))
    left, right = np.array([0.5, 1.0, 2.0, 5.0]), np.array([0.9, 1.5, 4.0])
    assert likelihood.on_grid(left, right) == pytest.approx(likelihood(left[:, None], right[None, :]), abs=1e-10)


def test_cutoff_only_drops_what_lies_below_it() -> None:
    table = np.array([(100, 100, 5, 10)] * 40, dtype=np.float64)
    likelihood = Likelihood(table, np.zeros(40))
    epsilon = np.linspace(0.5, 6, 12)
    values = likelihood(epsilon, epsilon)
    cut = likelihood(epsilon, epsilon, cutoff=-50.0)
    assert np.array_equal(cut, np.where(values >= -50, values, -INF))


def test_certain_nodes_that_rule_out_every_epsilon_are_left_out_and_named() -> None:
    counts = error_counts([(50, 50, 5, 10), (100, 0, 0, 0), (0, 100, 0, 10)], [0.5, 0.0, 1.0])
    assert estimate(counts, "bmp-r").left_out == (2,)
    assert estimate(counts, "bmp-l").left_out == (1,)
    assert estimate(counts, "bmp-s").left_out == (1, 2)
    assert estimate(counts, "mp").left_out == ()


def test_another_prior_gives_another_posterior() -> None:
    counts = error_counts([(100, 100, 20, 30)], [0.5])
    wide = estimate(counts, "mp", prior=NormalPrior(variance=100.0))
    assert wide.quantile(0.95) > estimate(counts, "mp").quantile(0.95) + 3
    uniform = estimate(counts, "mp", prior=lambda epsilon: np.where(np.abs(epsilon) < 4, 0.0, -1e3 * np.abs(epsilon)))
    assert uniform.quantile(0.999) < 4.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"definition": "mp", "strength": 1.0}, r"strength must be in \[0, 1\), got strength=1.0"),
        ({"definition": "bmp", "strength": 1.5}, r"strength must be in \[0, 1\), got strength=1.5"),
        ({"definition": "mp", "prior": lambda epsilon: 0 * epsilon}, "the prior must vanish for large ε"),
    ],
)
def test_what_cannot_be_estimated_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate(error_counts([(100, 100, 20, 30)], [0.5]), **options)  # type: ignore[arg-type]


def test_no_finite_epsilon_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="bmp-r has no finite ε for these priors"):
        estimate(error_counts([(0, 100, 0, 30)], [1.0]), "bmp-r")
    with pytest.raises(InputError, match="variance must be positive, got variance=0"):
        NormalPrior(variance=0)


def test_narrow_peak_at_the_floor_is_not_missed_for_a_wide_one() -> None:
    """Most of the mass lies within 1e-5 of the floor, behind a valley; the wide peak alone looks whole."""

    def log_density(x: np.ndarray, _: float) -> np.ndarray:
        return np.logaddexp(1_000.0 - 1e6 * x, -0.5 * (x - 9.0) ** 2)

    found = approximate_density(log_density, 0.0, 30.0)
    assert found.quantile([0.05, 0.5, 0.95]) == pytest.approx(-np.log1p(-np.array([0.05, 0.5, 0.95])) / 1e6, rel=1e-6)
    assert found.log_mass == pytest.approx(1_000.0 - np.log(1e6), abs=1e-8)
