"""Posteriors of every kind of counts, null-like and constant ones included, against a plain quadrature."""

import numpy as np
import pytest
import scipy.special

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import BMP, BMPLeft, BMPRight, estimate
from bmpaudit.estimation.density import gauss_legendre
from bmpaudit.estimation.estimate import PARTS, Steps
from bmpaudit.estimation.likelihood import Likelihood, likelihood_of
from bmpaudit.estimation.posterior import gauss_of_measure

NUM_NODES = 700
KINDS = ("spread", "alike", "few errors", "null", "null, priors vary", "constant", "half constant")


def table(kind: str, num_models: int, num_nodes: int = NUM_NODES) -> ErrorCounts:
    rng = np.random.default_rng(5)
    prior = np.full(num_nodes, 0.25) if "vary" not in kind else rng.beta(2, 6, num_nodes).clip(0.05, 0.9)
    num_in = rng.binomial(num_models, prior)
    num_out = num_models - num_in
    alpha, beta = {
        "alike": (np.full(num_nodes, 0.2), np.full(num_nodes, 0.6)),
        "few errors": (np.full(num_nodes, 0.002), np.full(num_nodes, 0.98)),
        "constant": (np.zeros(num_nodes), np.ones(num_nodes)),
    }.get(kind, (rng.beta(8, 40, num_nodes), rng.beta(20, 15, num_nodes)))
    if kind.startswith("null"):
        alpha = rng.beta(8, 8, num_nodes)
        beta = 1 - alpha
    if kind == "half constant":
        alpha[::2], beta[::2] = 0.0, 1.0
    return ErrorCounts.from_arrays(
        num_out=num_out,
        num_in=num_in,
        false_positives=rng.binomial(num_out, alpha),
        false_negatives=rng.binomial(num_in, beta),
        prior_prob=prior,
    )


def almost_no_errors(seed: int) -> ErrorCounts:
    """40 models, priors from 50 draws: the likelihood falls off a cliff on the left and ends nowhere on the right."""
    rng = np.random.default_rng(seed)
    num_in = rng.binomial(40, 0.5, 48)
    return ErrorCounts.from_arrays(
        num_out=40 - num_in,
        num_in=num_in,
        false_positives=rng.binomial(40 - num_in, 0.002),
        false_negatives=rng.binomial(num_in, 0.002),
        prior_prob=rng.binomial(50, 0.5, 48) / 50,
    )


@pytest.mark.parametrize(
    "counts",
    [table(kind, num_models) for kind in KINDS for num_models in (24, 1_000)]
    + [almost_no_errors(seed) for seed in (25, 36, 42)],
    ids=[f"{kind}-{num_models}" for kind in KINDS for num_models in (24, 1_000)]
    + [f"almost no errors-{seed}" for seed in (25, 36, 42)],
)
def test_percentiles_agree_with_a_plain_quadrature(counts: ErrorCounts) -> None:
    for definition, sides in ((BMPRight(), (0, 1)), (BMPLeft(), (1, 0))):
        posterior = estimate(counts, definition)
        low = posterior.support_low()
        likelihood = likelihood_of(counts, definition)
        # Panels that crowd at the floor and about the median, and the likelihood of all nodes at every point.
        middle = float(posterior.quantile(0.5))
        near = (middle - low) * np.geomspace(1e-3, 1e3, 60)
        edges = np.unique(np.clip(np.concatenate([low + near, middle + near, middle - near, [low]]), low, 45.0))
        x, weights = gauss_legendre(edges, 8)
        left, right = (np.where(side, x, np.inf) for side in sides)
        logs = likelihood(left, right) - x**2 / 20
        mass = (np.exp(logs - logs.max()) * weights).reshape(-1, 8).sum(axis=1)
        below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
        # A hair next to the floor is left out, where R is too thin for double precision.
        assert posterior.marginal().cdf(edges) == pytest.approx(below, abs=3e-6)


@pytest.mark.parametrize("definition", ["bmp-r", "bmp"])
def test_the_higher_of_two_peaks_decides(definition: str) -> None:
    """Few errors: a needle at the floor, and 140 nats above it a hill."""
    rng = np.random.default_rng(0)
    num_nodes = 1_000
    num_in = rng.binomial(1_000, np.full(num_nodes, 0.25))
    alpha, beta = rng.beta(2e3, 9.98e5, num_nodes), rng.beta(9.8e5, 2e4, num_nodes)
    counts = ErrorCounts.from_arrays(
        num_out=1_000 - num_in,
        num_in=num_in,
        false_positives=rng.binomial(1_000 - num_in, alpha),
        false_negatives=rng.binomial(num_in, beta),
        prior_prob=0.25,
    )
    posterior = estimate(counts, definition)
    x = np.linspace(3, 30, 2_000)
    left = np.inf if definition == "bmp-r" else float(posterior.quantile(0.5, "epsilon_left"))
    logs = likelihood_of(counts, BMPRight())(left, x) - x**2 / 20
    below = np.cumsum(np.exp(logs - logs.max()))
    expected = np.interp([0.05, 0.5, 0.95], below / below[-1], x)
    assert posterior.quantile([0.05, 0.5, 0.95], "epsilon_right") == pytest.approx(expected, abs=0.02)


def test_a_joint_posterior_of_many_nodes_is_not_cut_off() -> None:
    """Nodes that are nearly alike, whose posterior is a narrow hill: the trapezoidal rule is right to many digits.

    A search with a sample of these nodes cut the hill off at one side.
    """
    rng, num_nodes, num_models = np.random.default_rng(0), 19_717, 200
    num_in = rng.binomial(num_models, np.full(num_nodes, 0.25))
    alpha, beta = rng.beta(2e5, 8e5, num_nodes), rng.beta(6e5, 4e5, num_nodes)
    counts = ErrorCounts.from_arrays(
        num_out=num_models - num_in,
        num_in=num_in,
        false_positives=rng.binomial(num_models - num_in, alpha),
        false_negatives=rng.binomial(num_in, beta),
        prior_prob=0.25,
    )
    posterior, likelihood = estimate(counts, "bmp"), likelihood_of(counts, BMP())
    axes = []
    for name in posterior.parameter_names:
        low, middle, high = posterior.quantile([0.001, 0.5, 0.999], name)
        axes.append(np.linspace(middle - 1.3 * (high - low), middle + 1.3 * (high - low), 61))
    logs = likelihood.on_grid(axes[0], axes[1], depth=np.inf) - axes[0][:, None] ** 2 / 20 - axes[1] ** 2 / 20
    mass = np.exp(logs - logs.max())
    for axis, name in enumerate(posterior.parameter_names):
        expected = mass.sum(axis=1 - axis) @ axes[axis] / mass.sum()
        assert posterior.mean(name) == pytest.approx(expected, abs=1e-8)


def tail_by_series(num_out: int, num_in: int, false_positives: int, found: int, b: float) -> float:
    """Pr(α < b x) as a plain sum over the binomial law of an integer Beta law: no quadrature."""
    j = np.arange(false_positives + 1, num_out + 2)
    # Pr(α < u) = Σ_j C(n+1, j) u^j (1-u)^(n+1-j), and x^j (1-bx)^m is integrated over x by a fine rule.
    x, weights = gauss_legendre(np.linspace(0, 1, 400), 8)
    u = b * x
    log_terms = (
        (scipy.special.gammaln(num_out + 2) - scipy.special.gammaln(j + 1) - scipy.special.gammaln(num_out + 2 - j))[
            :, None
        ]
        + scipy.special.xlogy(j[:, None], u)
        + scipy.special.xlog1py((num_out + 1 - j)[:, None], -u)
    )
    density = np.exp(
        scipy.special.xlogy(found, x)
        + scipy.special.xlog1py(num_in - found, -x)
        - scipy.special.betaln(found + 1, num_in - found + 1)
    )
    return float((np.exp(log_terms).sum(axis=0) * density) @ weights)


@pytest.mark.parametrize("epsilon", [1e-7, 1e-4, 0.01, 0.3, 1.0, 3.0])
def test_likelihood_agrees_with_sums_over_binomial_laws(epsilon: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        num_out, num_in = (int(n) for n in rng.integers(1, 60, 2))
        false_positives, found = int(rng.integers(0, num_out + 1)), int(rng.integers(0, num_in + 1))
        b = np.exp(-epsilon)
        outside = tail_by_series(num_out, num_in, false_positives, found, b) + tail_by_series(
            num_out, num_in, num_out - false_positives, num_in - found, b
        )
        row = np.array([[num_out, num_in, false_positives, num_in - found]], dtype=np.float64)
        inside = np.exp(float(Likelihood(row, np.zeros(1))(np.inf, epsilon))) * -np.expm1(-epsilon)
        assert inside == pytest.approx(1 - outside, abs=2e-10)


def test_a_thin_region_has_the_density_on_the_diagonal() -> None:
    """As ε → 0, Pr(R)/|R| tends to the density of α = x, averaged along the diagonal: smoothly, to the very floor."""
    row = np.array([[750.0, 250.0, 390.0, 118.0]])
    epsilon = np.geomspace(3e-8, 1e-4, 40)
    for sides in ((np.inf, epsilon), (epsilon, np.inf), (epsilon, epsilon)):
        values = Likelihood(row, np.zeros(1))(*sides)
        assert np.abs(values - values[0] - np.polyval(np.polyfit(epsilon, values - values[0], 2), epsilon)).max() < 1e-9


def test_rows_alone_add_up_to_all() -> None:
    counts = table("null, priors vary", 100, 60)
    likelihood = likelihood_of(counts, BMPRight())
    epsilon = np.array([2.6, 3.0, 5.0])
    rows = likelihood.of_rows(np.full(3, np.inf), epsilon)
    assert likelihood.rows.times @ rows == pytest.approx(likelihood(np.inf, epsilon), abs=1e-9)
    assert rows[likelihood.rows.of_node].sum(axis=0) == pytest.approx(likelihood(np.inf, epsilon), abs=1e-9)
    # Rows may stand for other numbers of nodes, also for none.
    one = np.eye(len(rows))[3]
    alone, others = (likelihood(np.inf, epsilon, times=each) for each in (one, likelihood.rows.times - one))
    assert alone == pytest.approx(rows[3], abs=1e-9)
    assert alone + others == pytest.approx(likelihood(np.inf, epsilon), abs=1e-9)


def test_distinct_rows_are_all_there() -> None:
    rng = np.random.default_rng(0)
    counts, odds = rng.integers(0, 3, (200, 4)).astype(np.float64), rng.integers(0, 2, 200).astype(np.float64)
    likelihood = Likelihood(counts, odds)
    rows = likelihood.rows
    assert np.array_equal(rows.counts[likelihood.rows.of_node], counts)
    assert np.array_equal(rows.log_prior_odds[likelihood.rows.of_node], odds)
    assert len(np.unique(np.column_stack([rows.counts, rows.log_prior_odds]), axis=0)) == len(rows)
    assert rows.times.sum() == 200


def test_a_gauss_rule_of_a_measure_is_right_for_polynomials() -> None:
    rng = np.random.default_rng(1)
    points, mass = np.sort(rng.normal(3, 1, 300)), rng.random(300)
    x, weights = gauss_of_measure(points, mass, 6)
    for degree in range(12):
        assert weights @ x**degree == pytest.approx(mass @ points**degree, rel=1e-9)


@pytest.mark.parametrize("definition", ["mp", "bmp"])
def test_progress_moves_within_a_posterior_and_never_back(definition: str) -> None:
    seen: list[int] = []
    estimate(table("spread", 200, 150), definition, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == PARTS


def test_each_step_takes_a_share_of_what_is_left() -> None:
    seen: list[int] = []
    steps = Steps(seen.append, num_rows=10, typical_points=60)
    first, second = steps.step(60), steps.step(60)
    first(5)
    second(10)
    first(10)
    assert seen == [250, 750, 750]


def test_leaving_all_but_some_nodes_out_gives_their_posterior() -> None:
    """Influence and the mean without constant nodes against posteriors of the other nodes alone."""
    counts = table("half constant", 100, 40)
    posterior = estimate(counts, "bmp-r")
    rest = estimate(counts.take(np.flatnonzero(~counts.is_constant)), "bmp-r")
    assert posterior.mean_without_constant() == pytest.approx(rest.mean(), abs=1e-4)
    influence = posterior.influence()
    for k in (0, 1, int(np.abs(influence.shift).argmax())):
        without = estimate(counts.take(np.delete(np.arange(40), k)), "bmp-r")
        assert influence.shift[k] == pytest.approx(posterior.mean() - without.mean(), abs=1e-4)
