"""Extreme counts, priors and strengths: a value that a slow reference confirms or one line, never an endless search."""

import contextlib
import signal
import warnings

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import NormalPrior, estimate, node_leakage
from bmpaudit.estimation.density import gauss_legendre
from bmpaudit.estimation.joint_density import MOST_PAIRS, approximate_joint_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.privacy import Region
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

INF = np.inf


def one_row(row: tuple[int, int, int, int], prior_prob: float = 0.5) -> ErrorCounts:
    return ErrorCounts.from_arrays([row[0]], [row[1]], [row[2]], [row[3]], prior_prob)


def likelihood_of_row(row: tuple[int, int, int, int], eta: float = 1.0) -> Likelihood:
    return Likelihood(np.array([row], dtype=np.float64), np.log([eta]))


def slow_ring(row: tuple[int, int, int, int], epsilon: float, strength: float) -> float:
    """Pr of the ring of MP under the error rates' laws: over log α, with differences of incomplete beta functions."""
    num_out, num_in, false_positives, false_negatives = row
    t, weights = gauss_legendre(np.linspace(-32.0, -8.0, 20_001), 6)
    alpha = np.exp(t)
    log_density = scipy.special.xlogy(false_positives, alpha) + scipy.special.xlog1py(num_out - false_positives, -alpha)
    mass = weights * np.exp(log_density + t - scipy.special.betaln(false_positives + 1, num_out - false_positives + 1))
    shape = (num_in - false_negatives + 1, false_negatives + 1)

    def ends(size: float) -> tuple[np.ndarray, np.ndarray]:
        low = np.maximum(alpha * np.exp(-size), 1 - (1 - alpha) * np.exp(size))
        return low, np.minimum(alpha * np.exp(size), 1 - (1 - alpha) * np.exp(-size))

    def below(x: np.ndarray) -> np.ndarray:
        return np.asarray(scipy.special.betainc(*shape, np.clip(x, 0, 1)))

    (low, high), (inner_low, inner_high) = ends(epsilon), ends(strength * epsilon)
    return float(mass @ (below(inner_low) - below(low) + below(high) - below(inner_high)))


@pytest.mark.parametrize("epsilon", [11.0, 13.0, 14.28, 16.8, 25.0])
def test_a_ring_of_a_million_trials_is_the_slow_integral(epsilon: float) -> None:
    row, strength = (1_000_000, 1_000_000, 1, 446_946), 0.9
    areas = [float(Region(1.0, size, size).area) for size in (epsilon, strength * epsilon)]
    expected = np.log(slow_ring(row, epsilon, strength)) - np.log(areas[0] - areas[1])
    assert float(likelihood_of_row(row)(epsilon, epsilon, strength)) == pytest.approx(expected, abs=1e-5)


def test_the_ring_of_a_million_trials_has_a_posterior() -> None:
    posterior = estimate(
        one_row((1_000_000, 1_000_000, 1, 446_946)), "mp", strength=0.9, prior=NormalPrior(variance=100.0)
    )
    grid = np.linspace(9, 40, 400)
    logs = likelihood_of_row((1_000_000, 1_000_000, 1, 446_946))(grid, grid, 0.9) - grid**2 / 200
    mass = np.exp(logs - logs.max())
    below = np.cumsum(mass) - mass / 2
    expected = np.interp([0.05, 0.5, 0.95], below / mass.sum(), grid)
    assert posterior.quantile([0.05, 0.5, 0.95]) == pytest.approx(expected, abs=0.01)


def slow_rare(row: tuple[int, int, int, int], log_a: float, log_b: float) -> float:
    """Log Pr((α, β) ∈ R) of a region below which the rates lie: in logarithms, on a fine grid of x = 1 - β."""
    num_out, num_in, false_positives, false_negatives = row
    a, b = np.exp(log_a), np.exp(log_b)
    kink = 1.0 if log_a == INF else (a - 1) / (a - b)
    x, weights = gauss_legendre(np.union1d(np.linspace(0, 1, 4_001), [kink, 1 - kink]), 16)
    with np.errstate(all="ignore"):
        low = b * x if log_a == INF else np.maximum(b * x, 1 - a * (1 - x))
        high = 1 - b * (1 - x) if log_a == INF else np.minimum(a * x, 1 - b * (1 - x))
        shape = (false_positives + 1, num_out - false_positives + 1)
        inside = scipy.special.betaincc(*shape, np.clip(low, 0, 1)) - scipy.special.betaincc(
            *shape, np.clip(high, 0, 1)
        )
        log_density = scipy.special.xlogy(num_in - false_negatives, x) + scipy.special.xlog1py(false_negatives, -x)
        log_density -= scipy.special.betaln(num_in - false_negatives + 1, false_negatives + 1)
        return float(scipy.special.logsumexp(log_density + np.log(weights) + np.log(np.maximum(inside, 0))))


@pytest.mark.parametrize(
    ("row", "log_a", "log_b"),
    [
        ((150, 50, 2, 20), INF, -0.5),
        ((150, 50, 0, 0), INF, -1.0),
        ((750, 250, 10, 40), INF, -1.5),
        ((750, 250, 75, 60), 1.0, -0.25),
        ((500, 500, 40, 60), 0.05, -0.02),  # a thin region
        ((300, 5, 1, 0), 2.0, -0.7),
        ((3_000, 1_000, 300, 500), INF, -0.6),
    ],
)
def test_rates_far_from_a_region_are_the_slow_integral(
    row: tuple[int, int, int, int], log_a: float, log_b: float
) -> None:
    expected = slow_rare(row, log_a, log_b)
    value = float(likelihood_of_row(row)(log_a, -log_b)) + float(Region(1.0, log_a, -log_b).log_area)
    assert expected < np.log(1e-5)  # so that no table knows it
    assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("excess", [22.0, 24.0, 27.0, 30.0])
def test_counts_of_two_to_the_forty_are_integrated(excess: float) -> None:
    """No error in 2^40 trials and none in 1,000: Pr(α ≥ b x) = E (1 - b x)^(n0 + 1), x ~ Beta(1001, 1)."""
    num_out, b = 2**40, np.exp(-excess)
    x, weights = gauss_legendre(np.linspace(0.9, 1, 200), 8)
    expected = np.log(weights @ (1001 * x**1000 * np.exp((num_out + 1) * np.log1p(-b * x))))
    value = float(likelihood_of_row((num_out, 1000, 0, 0))(INF, excess)) + np.log(-np.expm1(-excess))
    assert value == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1), st.floats(0, 1)),
    st.floats(0.01, 20),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 0.5, 0.999]),
)
def test_flip_and_duality_hold_far_in_the_tails(
    shape: tuple[int, int, float, float], left: float, right: float, strength: float
) -> None:
    n0, n1, a, b = shape[0], shape[1], round(shape[2] * shape[0]), round(shape[3] * shape[1])
    value = float(likelihood_of_row((n0, n1, a, b))(left, right, strength))
    assert np.isfinite(value)
    flipped = likelihood_of_row((n0, n1, n0 - a, n1 - b))
    dual = likelihood_of_row((n1, n0, b, a))
    assert float(flipped(left, right, strength)) == pytest.approx(value, rel=1e-9, abs=1e-6)
    assert float(dual(right, left, strength)) == pytest.approx(value, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("row", "epsilon"),
    [(row, epsilon) for row in ((100, 100, 20, 30), (50, 400, 25, 200), (3, 2, 0, 0)) for epsilon in (0.01, 0.5, 1.0)]
    + [((3, 2, 0, 0), 4.0)],
)
def test_a_thin_ring_is_the_difference_of_two_regions(row: tuple[int, int, int, int], epsilon: float) -> None:
    likelihood, strength = likelihood_of_row(row), 1 - 1e-3
    sizes = np.array([epsilon, strength * epsilon])
    areas = np.array([float(Region(1.0, size, size).area) for size in sizes])
    inside = np.exp(likelihood(sizes, sizes)) * areas
    thin = float(likelihood(epsilon, epsilon, strength))
    assert thin == pytest.approx(np.log(inside[0] - inside[1]) - np.log(areas[0] - areas[1]), abs=2e-3)
    # As thin as is allowed: smooth in what is left of s.
    thinner, thinnest = (float(likelihood(epsilon, epsilon, s)) for s in (1 - 1e-5, 1 - 1e-7))
    assert thinner == pytest.approx(thin, abs=2e-2)
    assert thinnest == pytest.approx(thinner, abs=2e-4)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ((1, 1, 0, 1), {"strength": 0.999999999}, "strength must be at most 1 - 1e-7.*got strength=0.999999999"),
        ((2**53, 1000, 0, 0), {}, r"num_out must be at most 2\^40, got num_out=9007199254740992 for node 0"),
        ((5, 2**41, 0, 0), {}, r"num_in must be at most 2\^40, got num_in=2199023255552 for node 0"),
        (
            (100, 100, 20, 30),
            {"prior": (0.0, 1e6), "strength": 0.5},
            "with an attack strength the prior must be negligible beyond ε = 600",
        ),
        ((100, 100, 20, 30), {"prior": (-1e5, 1.0)}, "the prior's log-density must be at least -1e[+]09"),
    ],
)
def test_what_has_no_value_is_refused_in_one_line(
    row: tuple[int, int, int, int], options: dict[str, object], message: str
) -> None:
    if "prior" in options:
        options = {**options, "prior": NormalPrior(*options["prior"])}  # type: ignore[misc]
    with pytest.raises(InputError, match=message):
        estimate(one_row(row), "mp", **options)  # type: ignore[arg-type]


def test_counts_that_are_too_large_have_no_leakage_either() -> None:
    with pytest.raises(InputError, match=r"num_out must be at most 2\^40"):
        node_leakage(one_row((2**53, 1000, 0, 0)))


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"variance": 1e-308}, r"variance must be in \[1e-12, 1e[+]12\], got variance=1e-308"),
        ({"variance": 1e308}, "variance must be in"),
        ({"mean": 1e9}, r"mean must be in \[-1e[+]06, 1e[+]06\], got mean=1000000000.0"),
    ],
)
def test_priors_that_no_double_tells_apart_are_refused(settings_: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NormalPrior(**settings_)


EXPONENTS = st.floats(0, 12)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(EXPONENTS, EXPONENTS, st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
    st.floats(-25, 25),
    st.sampled_from(["bmp-r", "bmp-l", "mp", "bmp-s"]),
    st.floats(-6, 6),
)
def test_any_counts_and_priors_have_ordered_percentiles(
    shapes: list[tuple[float, float, float, float]], log_odds: float, definition: str, log_variance: float
) -> None:
    n0, n1 = (np.floor(10.0 ** np.array([shape[side] for shape in shapes])) for side in (0, 1))
    counts = ErrorCounts.from_arrays(
        num_out=n0,
        num_in=n1,
        false_positives=np.floor(n0 * [shape[2] for shape in shapes]),
        false_negatives=np.floor(n1 * [shape[3] for shape in shapes]),
        prior_prob=1 / (1 + np.exp(-log_odds)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            posterior = estimate(counts, definition, prior=NormalPrior(variance=10**log_variance))
        except InputError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017
            return
    percentiles = posterior.quantile([0.05, 0.5, 0.95])
    assert np.isfinite(percentiles).all()
    assert (np.diff(percentiles) >= 0).all()


def test_an_interrupt_stops_the_slowest_likelihood() -> None:
    """Thin rings of thousands of nodes: minutes of work, of which a tenth of a second is done."""
    rng = np.random.default_rng(0)
    counts = ErrorCounts.from_arrays(
        num_out=10**6,
        num_in=10**6,
        false_positives=rng.integers(10**6, size=20_000),
        false_negatives=rng.integers(10**6, size=20_000),
        prior_prob=0.5,
    )

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            estimate(counts, "mp", strength=1 - 1e-7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_joint_density_with_a_ridge_takes_a_bounded_number_of_values() -> None:
    """No polynomial fits a ridge that lies askew: panels are halved again and again, until there are too many."""
    num_values = 0

    def ridge(x: Floats, y: Floats) -> Floats:
        nonlocal num_values
        num_values += len(x) * len(y)
        return -30.0 * np.abs(x[:, None] - y[None, :]) - (x**2)[:, None] - (y**2)[None, :]

    with contextlib.suppress(InputError):
        approximate_joint_density(ridge, (-5.0, -5.0), (5.0, 5.0))
    assert num_values < 3 * 144 * MOST_PAIRS
