from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from quantile_errors import mcse_quantile

from bmpaudit import registry
from bmpaudit.estimation.definitions import epsilons_of
from bmpaudit.estimation.density import PiecewiseDensity, approximate_density
from bmpaudit.estimation.likelihood import Likelihood, NormalPrior, StrengthPrior, support_lows
from bmpaudit.estimation.mhaar import (
    DEFAULT_ITERATIONS,
    CorrelatedCounts,
    MhaarRun,
    MhaarSettings,
    run_mhaar,
)
from bmpaudit.interfaces import Definition
from bmpaudit.privacy.region import Region, implied_epsilon
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

DEFINITIONS: dict[str, Definition] = {
    name: registry.build(registry.DEFINITION, name) for name in registry.ENTRIES[registry.DEFINITION]
}
PRIOR = NormalPrior()
PROBS = (0.05, 0.25, 0.5, 0.75, 0.95)
ONE_PARAMETER = ("mp", "bmp-r", "bmp-l", "bmp-s")


def exact_density(
    counts: Floats, log_odds: Floats, definition: Definition, prior: NormalPrior, strength: float = 0.0
) -> PiecewiseDensity:
    likelihood = Likelihood(counts, log_odds)
    (low,) = support_lows(definition, log_odds, prior).values()

    def log_density(x: Floats, cutoff: float) -> Floats:
        left, right = epsilons_of(definition, x)
        return likelihood(left, right, strength, cutoff - prior(x)) + prior(x)

    return approximate_density(log_density, low, max(low, 0.0) + 50)


def run_chains(
    counts: Floats,
    log_prior_odds: Floats,
    definition: Definition,
    prior: NormalPrior = PRIOR,
    *,
    num_iterations: int = DEFAULT_ITERATIONS,
    num_threads: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
    strength: float | StrengthPrior = 0.0,
    correlated: CorrelatedCounts | None = None,
    **changes: Any,
) -> MhaarRun:
    tau_variance = None if correlated is None else correlated.tau_variance
    settings = MhaarSettings(
        **{"num_iterations": num_iterations, "burn_in": num_iterations // 2, "tau_variance": tau_variance, **changes}
    )
    likelihood = Likelihood(counts, log_prior_odds, num_threads)
    return run_mhaar(likelihood, definition, prior, strength, settings, progress)


def odds_for(definition: Definition, log_odds: Floats) -> Floats:
    return log_odds if definition.uses_prior else np.zeros_like(log_odds)


def some_counts(num_nodes: int, seed: int, prior_log_odds: float = -0.8) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    num_out, num_in = rng.integers(20, 200, num_nodes), rng.integers(20, 100, num_nodes)
    errors = (
        rng.binomial(num_out, rng.uniform(0.05, 0.5, num_nodes)),
        rng.binomial(num_in, rng.uniform(0.2, 0.6, num_nodes)),
    )
    log_odds = rng.normal(prior_log_odds, 0.3, num_nodes)
    return np.column_stack([num_out, num_in, *errors]).astype(np.float64), log_odds


def assert_quantiles_agree(run: MhaarRun, name: str, expected: Floats, errors: npt.ArrayLike = 0.0) -> None:
    """Within 4 standard errors, those of the expected values included."""
    quantiles = np.array([float(np.quantile(run.chains(name), prob)) for prob in PROBS])
    own_errors = np.array([mcse_quantile(run.chains(name), prob) for prob in PROBS])
    assert (np.abs(quantiles - expected) < 4 * np.hypot(own_errors, errors)).all(), (name, quantiles, expected)


@pytest.mark.parametrize("name", ONE_PARAMETER)
@pytest.mark.parametrize("num_nodes", [1, 20])
def test_agrees_with_the_exact_posterior(name: str, num_nodes: int) -> None:
    definition = DEFINITIONS[name]
    counts, log_odds = some_counts(num_nodes, seed=num_nodes)
    log_odds = odds_for(definition, log_odds)
    run = run_chains(counts, log_odds, definition, PRIOR, seed=5)
    assert run.has_converged, run.status
    assert run.draws.shape == (4, 5000, 1)
    assert (np.abs(run.acceptance_rate - 0.23) < 0.06).all()
    assert_quantiles_agree(
        run, run.parameter_names[0], exact_density(counts, log_odds, definition, PRIOR).quantile(PROBS)
    )


@pytest.mark.parametrize(
    ("row", "log_odds"),
    [
        ((0, 0, 0, 0), -1.0),  # no trials: the prior
        ((1, 0, 1, 0), 0.5),
        ((100, 100, 0, 0), 0.0),
        ((100, 100, 0, 100), 0.0),
        ((50_000, 50_000, 24_900, 25_200), 0.0),
    ],
)
def test_single_nodes_of_every_kind(row: tuple[int, ...], log_odds: float) -> None:
    definition = DEFINITIONS["bmp-s"]
    counts, odds = np.array([row], dtype=np.float64), np.array([log_odds])
    run = run_chains(counts, odds, definition, NormalPrior(1.0, 4.0), seed=1)
    exact = exact_density(counts, odds, definition, NormalPrior(1.0, 4.0))
    assert_quantiles_agree(run, "epsilon", exact.quantile(PROBS))


def test_more_auxiliary_points_change_nothing_but_the_mixing() -> None:
    counts, _ = some_counts(5, seed=9)
    odds = np.zeros(5)
    exact = exact_density(counts, odds, DEFINITIONS["mp"], PRIOR).quantile(PROBS)
    for num_auxiliary in (2, 200):
        run = run_chains(counts, odds, DEFINITIONS["mp"], PRIOR, num_auxiliary=num_auxiliary)
        assert_quantiles_agree(run, "epsilon", exact)


def test_nodes_that_bound_nothing() -> None:
    # η = 0: with ε_L free the region is everything, whatever ε_R.
    counts, _ = some_counts(2, seed=3)
    odds = np.array([-np.inf, -0.5])
    run = run_chains(counts, odds, DEFINITIONS["bmp-r"], PRIOR, seed=1)
    exact = exact_density(counts[1:], odds[1:], DEFINITIONS["bmp-r"], PRIOR)
    assert_quantiles_agree(run, "epsilon_right", exact.quantile(PROBS))


@dataclass(frozen=True)
class ModelDraws:
    """Draws from the prior and, for each, error rates uniform on R of one node; weights make them a posterior."""

    parameters: dict[str, Floats]
    alpha: Floats
    beta: Floats
    weight: Floats

    def quantiles(self, name: str, likelihood: Floats) -> tuple[Floats, Floats]:
        """Posterior quantiles and their standard errors."""
        weight = self.weight * likelihood
        order = np.argsort(self.parameters[name])
        below = np.cumsum(weight[order]) / weight.sum()
        size = weight.sum() ** 2 / (weight**2).sum()
        probs = np.array(PROBS)
        spread = np.sqrt(probs * (1 - probs) / size)
        values = [np.interp(p, below, self.parameters[name][order]) for p in (probs, probs - spread, probs + spread)]
        return values[0], (values[2] - values[1]) / 2


def model_draws(
    definition: Definition, log_odds: float, size: int, seed: int, strength: Callable[[np.random.Generator], Floats]
) -> ModelDraws:
    rng = np.random.default_rng(seed)
    lowest = {"epsilon_left": -log_odds, "epsilon_right": log_odds}
    if len(definition.parameters) == 1:
        lowest = {"epsilon": max(lowest.values())}
    parameters = {name: rng.normal(PRIOR.mean, PRIOR.variance**0.5, size) for name in lowest}
    weight = np.prod([parameters[name] > low for name, low in lowest.items()], axis=0).astype(np.float64)
    for name, low in lowest.items():  # these have weight 0
        parameters[name] = np.maximum(parameters[name], low + 1e-3)
    left = parameters.get("epsilon_left", parameters.get("epsilon"))
    right = parameters.get("epsilon_right", parameters.get("epsilon"))
    assert left is not None
    assert right is not None
    region = Region(np.exp(log_odds), left, right)
    corners = region.vertices
    u, v = rng.random((2, size))
    # The corner (0, 1) plus a share of each of the two sides that meet there.
    place = corners[:, 0] + u[:, None] * (corners[:, 1] - corners[:, 0]) + v[:, None] * (corners[:, 3] - corners[:, 0])
    alpha, beta = np.clip(place, 0, 1).T
    s = strength(rng)
    if s.any():
        inner = Region(np.exp(s * log_odds), s * left, s * right)
        weight *= ~inner.contains(alpha, beta)
        weight *= region.area / np.maximum(region.area - inner.area, 1e-300)
    parameters["strength"] = s
    return ModelDraws(parameters, alpha, beta, weight)


def binomial_likelihood(row: tuple[int, int, int, int], draws: ModelDraws) -> Floats:
    n0, n1, a, b = row
    alpha, beta = draws.alpha, draws.beta
    return alpha**a * (1 - alpha) ** (n0 - a) * beta**b * (1 - beta) ** (n1 - b) * 2.0 ** (n0 + n1)


SIZE = 200_000


def test_joint_posterior() -> None:
    row, definition = (20, 15, 4, 6), DEFINITIONS["bmp"]
    run = run_chains(np.array([row], dtype=np.float64), np.array([-0.7]), definition, PRIOR, num_iterations=20_000)
    assert run.parameter_names == ("epsilon_left", "epsilon_right")
    draws = model_draws(definition, -0.7, SIZE, seed=1, strength=lambda _: np.zeros(SIZE))
    for name in run.parameter_names:
        assert_quantiles_agree(run, name, *draws.quantiles(name, binomial_likelihood(row, draws)))


def test_fixed_strength() -> None:
    counts = np.array([[60, 40, 6, 10], [50, 50, 5, 12], [80, 30, 10, 7]], dtype=np.float64)
    odds = np.array([-0.4, 0.1, -0.9])
    for name in ONE_PARAMETER:
        definition = DEFINITIONS[name]
        log_odds = odds_for(definition, odds)
        run = run_chains(counts, log_odds, definition, PRIOR, strength=0.3, seed=2)
        exact = exact_density(counts, log_odds, definition, PRIOR, strength=0.3)
        assert_quantiles_agree(run, run.parameter_names[0], exact.quantile(PROBS))


def test_fixed_strength_of_the_joint_posterior() -> None:
    row, definition = (20, 15, 2, 4), DEFINITIONS["bmp"]
    counts, odds = np.array([row], dtype=np.float64), np.array([-0.4])
    run = run_chains(counts, odds, definition, PRIOR, strength=0.4, num_iterations=20_000)
    draws = model_draws(definition, -0.4, SIZE, seed=2, strength=lambda _: np.full(SIZE, 0.4))
    for name in run.parameter_names:
        assert_quantiles_agree(run, name, *draws.quantiles(name, binomial_likelihood(row, draws)))


def test_unknown_strength() -> None:
    row, definition = (20, 15, 3, 4), DEFINITIONS["bmp-s"]
    counts, odds = np.array([row], dtype=np.float64), np.array([-0.3])
    run = run_chains(counts, odds, definition, PRIOR, strength=StrengthPrior(2.0, 3.0), num_iterations=20_000)
    assert run.parameter_names == ("epsilon", "strength")
    draws = model_draws(definition, -0.3, SIZE, seed=3, strength=lambda rng: rng.beta(2.0, 3.0, SIZE))
    for name in run.parameter_names:
        assert_quantiles_agree(run, name, *draws.quantiles(name, binomial_likelihood(row, draws)))


def test_correlated_counts() -> None:
    n0, n1, a, b = row = (20, 15, 4, 6)
    definition, correlated = DEFINITIONS["mp"], CorrelatedCounts(tau_variance=0.01)
    run = run_chains(
        np.array([row], dtype=np.float64), np.zeros(1), definition, PRIOR, correlated=correlated, num_iterations=20_000
    )
    assert run.parameter_names == ("epsilon", "tau", "rho")
    draws = model_draws(definition, 0.0, SIZE, seed=4, strength=lambda _: np.zeros(SIZE))
    rng = np.random.default_rng(5)
    tau = rng.normal(0, 0.1, SIZE)
    is_admissible = (tau > -1 / (n0 - 1)) & (tau < 1)
    tau = np.where(is_admissible, tau, 0.0)
    out, within = 1 + (n0 - 1) * tau, 1 + (n1 - 1) * tau
    rho = rng.uniform(-1, 1, SIZE) * np.sqrt(out * within / (n0 * n1))
    alpha, beta = np.clip(draws.alpha, 1e-12, 1 - 1e-12), np.clip(draws.beta, 1e-12, 1 - 1e-12)
    covariance = np.empty((SIZE, 2, 2))
    covariance[:, 0, 0] = n0 * alpha * (1 - alpha) * out
    covariance[:, 1, 1] = n1 * beta * (1 - beta) * within
    covariance[:, 0, 1] = rho * n0 * n1 * np.sqrt(alpha * (1 - alpha) * beta * (1 - beta))
    covariance[:, 1, 0] = covariance[:, 0, 1]
    apart = np.column_stack([a - n0 * alpha, b - n1 * beta])
    determinant = np.linalg.det(covariance)
    with np.errstate(over="ignore"):
        distance = (
            apart[:, 0] ** 2 * covariance[:, 1, 1]
            - 2 * apart[:, 0] * apart[:, 1] * covariance[:, 0, 1]
            + apart[:, 1] ** 2 * covariance[:, 0, 0]
        ) / np.maximum(determinant, 1e-300)
    likelihood = np.exp(-distance / 2) / np.sqrt(np.maximum(determinant, 1e-300)) * is_admissible
    draws.parameters.update(tau=tau, rho=rho)
    for name in run.parameter_names:
        assert_quantiles_agree(run, name, *draws.quantiles(name, likelihood))


def test_correlated_counts_without_correlation_are_nearly_binomial() -> None:
    counts, _ = some_counts(3, seed=8)
    counts[:, :] = [[2000, 1500, 600, 700], [1800, 2500, 500, 1300], [3000, 2000, 900, 900]]
    exact = exact_density(counts, np.zeros(3), DEFINITIONS["mp"], PRIOR)
    run = run_chains(counts, np.zeros(3), DEFINITIONS["mp"], PRIOR, correlated=CorrelatedCounts(1e-12), seed=2)
    for prob in (0.25, 0.5, 0.75):
        assert float(np.quantile(run.chains("epsilon"), prob)) == pytest.approx(
            float(exact.quantile(prob)), abs=4 * mcse_quantile(run.chains("epsilon"), prob) + 0.01
        )


def test_draws_depend_on_the_seed_alone() -> None:
    counts, _ = some_counts(30, seed=4)

    def draws(**settings: Any) -> Floats:
        return run_chains(counts, np.zeros(30), DEFINITIONS["mp"], PRIOR, num_iterations=200, **settings).draws

    one = draws(seed=1, num_threads=1)
    assert (one == draws(seed=1, num_threads=3)).all()
    assert (one == draws(seed=1, num_threads=4)).all()
    assert (one[:2] == draws(seed=1, num_chains=2)).all()
    assert (one != draws(seed=2)).any()
    assert len({chain.tobytes() for chain in one}) == 4


@pytest.mark.parametrize("name", ["mp", "bmp-r", "bmp"])
def test_simulation_based_calibration(name: str) -> None:
    """Ranks of the truth among thinned draws are uniform if truth and counts follow the model (Talts et al. 2018)."""
    definition, num_simulations, num_thinned = DEFINITIONS[name], 150, 19
    rng = np.random.default_rng(11)
    log_odds = odds_for(definition, np.array([-0.5, 0.2, -1.0]))
    lowest = list(support_lows(definition, log_odds, PRIOR).values())
    ranks: list[list[int]] = []
    while len(ranks) < num_simulations:
        truth = rng.normal(PRIOR.mean, PRIOR.variance**0.5, len(lowest))
        if (truth <= lowest).any():
            continue
        corners = Region(np.exp(log_odds), *epsilons_of(definition, *truth)).vertices
        u, v = rng.random((2, 3, 1))
        place = corners[:, 0] + u * (corners[:, 1] - corners[:, 0]) + v * (corners[:, 3] - corners[:, 0])
        counts = np.column_stack([np.full((3, 2), 40), rng.binomial(40, np.clip(place, 0, 1))]).astype(np.float64)
        run = run_chains(
            counts, log_odds, definition, PRIOR, num_chains=1, num_iterations=2500, burn_in=500, seed=len(ranks)
        )
        thinned = run.draws[0, :: 2000 // num_thinned][:num_thinned]
        ranks.append([int((thinned[:, j] < value).sum()) for j, value in enumerate(truth)])
    for parameter_ranks in np.array(ranks).T:
        observed = np.bincount(parameter_ranks // 2, minlength=10)
        expected = num_simulations / 10
        assert ((observed - expected) ** 2 / expected).sum() < 27.88  # chi-square with 9 degrees, 0.1 %


def test_start_lies_in_the_support() -> None:
    counts, log_odds = some_counts(50, seed=6)
    run = run_chains(counts, log_odds, DEFINITIONS["bmp"], PRIOR, num_iterations=10, burn_in=0)
    for name, low in support_lows(DEFINITIONS["bmp"], log_odds, PRIOR).items():
        assert (run.chains(name) > low).all()


def test_posterior_is_beyond_what_many_trials_imply() -> None:
    # n → ∞: prior restricted to ε ≥ max_k e_k, times Π 1/|R_k|.
    counts = np.array([[1e6, 1e6, 1e5, 3e5]])
    least = float(implied_epsilon(0.1, 0.3, 1.0).right)
    run = run_chains(counts, np.zeros(1), DEFINITIONS["mp"], PRIOR, num_iterations=2000)
    assert run.draws.min() > least - 0.02
    assert float(np.quantile(run.chains("epsilon"), 0.01)) < least + 0.2


def test_status_says_what_to_do() -> None:
    counts, _ = some_counts(20, seed=1)
    short = run_chains(counts, np.zeros(20), DEFINITIONS["mp"], PRIOR, num_iterations=100)
    assert not short.has_converged
    assert "not converged: epsilon has R-hat" in short.status
    assert "num_iterations=" in short.status


def test_interruption_is_raised() -> None:
    counts, _ = some_counts(200, seed=1)
    seen: list[int] = []

    def interrupt(done: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_chains(
            counts, np.zeros(200), DEFINITIONS["mp"], PRIOR, num_iterations=10**7, num_chains=1, progress=interrupt
        )
    assert len(seen) == 1
    assert 0 <= seen[0] < 10**7


GOOD = {"counts": np.array([[10.0, 10, 2, 3]]), "log_prior_odds": np.zeros(1), "definition": DEFINITIONS["bmp-r"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_prior_odds": np.array([-np.inf]), "strength": 0.5}, "with an attack strength the prior odds"),
        ({"num_iterations": 0}, "num_iterations must be a whole number of at least 1"),
        ({"num_iterations": 100, "burn_in": 100}, "num_iterations must exceed burn_in"),
        ({"burn_in": -1}, "burn_in must be a whole number of at least 0"),
        ({"num_auxiliary": 1}, "num_auxiliary must be at least 2"),
        ({"num_chains": 0}, "num_chains must be a whole number of at least 1"),
        ({"num_threads": 0}, "num_threads must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run_chains(**{**GOOD, **changes})
    assert "\n" not in str(caught.value)


def test_bad_priors_are_refused() -> None:
    with pytest.raises(InputError, match="the strength prior's b must be positive, got b=0"):
        StrengthPrior(1, 0)
    with pytest.raises(InputError, match="tau_variance must be positive"):
        CorrelatedCounts(0.0)


def test_unknown_parameter_is_refused() -> None:
    run = run_chains(**GOOD, num_iterations=20)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="parameter must be one of epsilon_right, got 'epsilon'"):
        run.chains("epsilon")
