"""What the attack's errors say about ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import ProvenEpsilon, name_of, parameter_names
from bmpaudit.estimation.density import FINE_DEGREE, PiecewiseDensity, gauss_legendre
from bmpaudit.estimation.influence import Cuts, Influence
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import Likelihood, LogDensity, NormalPrior, StrengthPrior, upper_end
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun
from bmpaudit.interfaces import Definition
from bmpaudit.privacy import EpsilonPair, prior_floor
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats

if TYPE_CHECKING:
    import arviz

PERCENTILES = (0.05, 0.5, 0.95)
BINS = 60  # of a histogram of draws
CHAINS_OF_EXACT = 4  # independent draws form no chains, but ArviZ expects several
TAIL_POINTS = 2_001
# On a panel a density has degree 2 * FINE_DEGREE, its integral one more: so many points are exact for the product.
POINTS_PER_PANEL = 2 * FINE_DEGREE + 1
FURTHEST = 1e-9  # probability beyond which no quantile of a difference is computed


class Marginal(Protocol):
    """The distribution of one parameter, from quadrature or from Markov chains."""

    def quantile(self, probability: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def cdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def pdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def mean(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class CredibleInterval:
    """An interval that contains a parameter with a given probability, with equal tails on both sides."""

    low: float
    high: float
    level: float

    @property
    def width(self) -> float:
        """Distance between the ends."""
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class DrawsMarginal:
    """Draws of one parameter from all chains, with the methods of an exact density.

    Attributes:
        draws: Draws, shape (num_draws,).
    """

    draws: Floats

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """Quantiles of the draws."""
        return np.asarray(np.quantile(self.draws, np.asarray(probability, dtype=np.float64)))

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Share of draws up to x."""
        return np.searchsorted(np.sort(self.draws), np.asarray(x), side="right") / len(self.draws)

    def pdf(self, x: npt.ArrayLike) -> Floats:
        """The density by a histogram of the draws."""
        heights, edges = np.histogram(self.draws, bins=BINS, density=True)
        points = np.asarray(x, dtype=np.float64)
        bins = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, BINS - 1)
        return np.where((points >= edges[0]) & (points <= edges[-1]), heights[bins], 0.0)

    def mean(self) -> float:
        """Mean of the draws."""
        return float(self.draws.mean())


@dataclass(frozen=True, eq=False)
class DifferenceMarginal:
    """The distribution of ε₂ - ε₁ for independent ε₁ and ε₂.

    P(ε₂ - ε₁ ≤ t) = ∫ p₁(y) F₂(y + t) dy. Between the ends of both densities' panels the integrand is a polynomial, for
    which Gauss-Legendre quadrature is exact; for Markov chains it is the mean over the draws.

    Attributes:
        first: Distribution of ε₁, which is subtracted.
        second: Distribution of ε₂.
    """

    first: Marginal
    second: Marginal

    def cdf(self, t: npt.ArrayLike) -> Floats:
        """The distribution function."""
        return np.asarray(np.vectorize(self._cdf, otypes=[np.float64])(t))

    def pdf(self, t: npt.ArrayLike) -> Floats:
        """The density."""
        return np.asarray(np.vectorize(self._pdf, otypes=[np.float64])(t))

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """The inverse of `cdf`."""
        from scipy.optimize import brentq  # takes long to import, and only comparisons need it

        wanted = np.asarray(probability, dtype=np.float64)
        if not ((wanted > FURTHEST) & (wanted < 1 - FURTHEST)).all():
            raise InputError(f"a quantile's probability must be in (0, 1), got {probability!r}")
        (low_1, high_1), (low_2, high_2) = (
            marginal.quantile([FURTHEST / 4, 1 - FURTHEST / 4]) for marginal in (self.first, self.second)
        )
        low, high = float(low_2 - high_1) - 1e-9, float(high_2 - low_1) + 1e-9
        roots = [brentq(lambda t, level=level: self._cdf(t) - level, low, high, xtol=1e-10) for level in wanted.flat]
        return np.array(roots, dtype=np.float64).reshape(wanted.shape)

    def mean(self) -> float:
        """The expectation."""
        return self.second.mean() - self.first.mean()

    def probability_above(self, threshold: float = 0.0) -> float:
        """Probability that the second exceeds the first by more than a threshold."""
        return 1.0 - self._cdf(threshold)

    def _cdf(self, t: float) -> float:
        if isinstance(self.second, DrawsMarginal):
            return float(1 - self.first.cdf(self.second.draws - t).mean())
        points, weights = self._points(t)
        return float(np.clip(weights @ self.second.cdf(points + t), 0.0, 1.0))

    def _pdf(self, t: float) -> float:
        if isinstance(self.second, DrawsMarginal):
            return float(self.first.pdf(self.second.draws - t).mean())
        points, weights = self._points(t)
        return float(weights @ self.second.pdf(points + t))

    def _points(self, t: float) -> tuple[Floats, Floats]:
        """Values of the first parameter and their weights, which sum to 1."""
        if isinstance(self.first, DrawsMarginal):
            return self.first.draws, np.full(len(self.first.draws), 1 / len(self.first.draws))
        if not isinstance(self.first, PiecewiseDensity) or not isinstance(self.second, PiecewiseDensity):
            raise InputError("a difference needs marginals of exact posteriors or of Markov chains")
        own = self.first.edges
        shifted = self.second.edges - t
        edges = np.unique(np.concatenate([own, shifted[(shifted > own[0]) & (shifted < own[-1])]]))
        points, weights = gauss_legendre(edges, POINTS_PER_PANEL)
        return points, weights * self.first.pdf(points)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior distribution of a definition's parameters, with everything it was computed from.

    It is calibrated under its own model (ε from the prior, error rates uniform on R); it is not a confidence statement
    about a mechanism whose attack is not uniform on R, and beyond the data its upper tail is the prior's.

    Attributes:
        definition: Definition whose parameters were estimated.
        marginals: Distribution of each parameter, by name: those of the definition, `strength` if it was estimated,
            `tau` and `rho` of correlated counts.
        counts: Errors it was computed from.
        is_used: Which of them count, shape (K,): not those whose certain prior rules out every finite ε.
        likelihood: Likelihood of the nodes that count.
        prior: Log-density assumed for each ε.
        strength: Attack strength s that was assumed, or its prior.
        lows: Lower end of the support of each parameter of the definition, by name.
        status: Whether to trust the answer, and if not, why and what to do.
        prior_draws: Number of draws behind each prior probability; 0 if these are exact.
        joint: Joint density of two parameters, if the method is `exact` and there are two.
        run: Markov chains; None if the method is `exact`.
    """

    definition: Definition
    marginals: Mapping[str, Marginal]
    counts: ErrorCounts
    is_used: Flags
    likelihood: Likelihood
    prior: LogDensity
    strength: float | StrengthPrior
    lows: Mapping[str, float]
    status: str
    prior_draws: int = 0
    joint: JointDensity | None = None
    run: MhaarRun | None = None

    @property
    def name(self) -> str:
        """Short name of the definition."""
        return name_of(self.definition)

    @property
    def method(self) -> str:
        """`exact` or `mhaar`."""
        return "exact" if self.run is None else "mhaar"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the definition's parameters, one or two."""
        return parameter_names(self.definition)

    @property
    def num_nodes(self) -> int:
        """Number of nodes that count."""
        return len(self.likelihood.counts)

    @property
    def node(self) -> npt.NDArray[Any]:
        """Nodes that count, shape (num_nodes,)."""
        return self.counts.node[self.is_used]

    @property
    def is_constant(self) -> Flags:
        """Whether the decision about each of them was the same for every model, shape (num_nodes,)."""
        return self.counts.is_constant[self.is_used]

    @property
    def left_out(self) -> tuple[Any, ...]:
        """Nodes whose certain prior rules out every finite ε."""
        return tuple(self.counts.node[~self.is_used].tolist())

    @property
    def floor(self) -> EpsilonPair[float]:
        """What the sampler alone gives away, over the nodes that count (Prop. 1)."""
        return prior_floor(self.counts.prior_odds[self.is_used])

    @property
    def correlated(self) -> CorrelatedCounts | None:
        """The model of correlated counts, if the chains used one."""
        return None if self.run is None else self.run.settings.correlated

    @property
    def typical_strength(self) -> float:
        """The attack strength that was assumed, or its posterior median."""
        return float(self.quantile(0.5, "strength")) if isinstance(self.strength, StrengthPrior) else self.strength

    def marginal(self, parameter: str | None = None) -> Marginal:
        """The distribution of a parameter, whose name may be left out if the definition has only one.

        Raises:
            InputError: if there is no such parameter.
        """
        if parameter is None and len(self.parameter_names) == 1:
            parameter = self.parameter_names[0]
        if parameter is None or parameter not in self.marginals:
            raise InputError(f"parameter must be one of {', '.join(self.marginals)}, got {parameter!r}")
        return self.marginals[parameter]

    def support_low(self, parameter: str | None = None) -> float:
        """The lower end of a parameter's support (Prop. 1)."""
        self.marginal(parameter)
        lows = {**self.lows, "strength": 0.0}
        name = self.parameter_names[0] if parameter is None else parameter
        if name not in lows:
            raise InputError(f"parameter must be an ε or the strength, got {name!r}")
        return lows[name]

    def quantile(self, probability: npt.ArrayLike, parameter: str | None = None) -> Floats:
        """Quantiles of a parameter."""
        return self.marginal(parameter).quantile(probability)

    def interval(self, level: float = 0.9, parameter: str | None = None) -> CredibleInterval:
        """The equal-tailed credible interval."""
        if not 0 < level < 1:
            raise InputError(f"level must be in (0, 1), got level={level}")
        low, high = self.quantile([(1 - level) / 2, (1 + level) / 2], parameter)
        return CredibleInterval(float(low), float(high), level)

    def mean(self, parameter: str | None = None) -> float:
        """The posterior mean."""
        return self.marginal(parameter).mean()

    def probability_above(self, threshold: float, parameter: str | None = None) -> float:
        """The probability that a parameter exceeds a threshold."""
        return 1.0 - float(self.marginal(parameter).cdf(np.array([threshold]))[0])

    def sample(self, num_draws: int, seed: int = 0) -> dict[str, Floats]:
        """Joint draws of all parameters, arrays of shape (num_draws,) by name.

        From an exact posterior they are independent; from Markov chains they are picked at random among the draws kept.
        """
        check_at_least_one(num_draws=num_draws)
        rng = stream(seed, 0, Purpose.POSTERIOR)
        if self.run is not None:
            flat = self.run.draws.reshape(-1, len(self.run.parameter_names))
            chosen = flat[rng.integers(len(flat), size=num_draws)]
            return dict(zip(self.run.parameter_names, chosen.T, strict=True))
        if self.joint is not None:
            return dict(zip(self.marginals, self.joint.sample(num_draws, rng).T, strict=True))
        return {name: marginal.quantile(rng.uniform(1e-12, 1, num_draws)) for name, marginal in self.marginals.items()}

    def tail_prior_share(self, parameter: str | None = None, above: float = 0.95) -> float:
        """How much of the upper tail is simply the prior's.

        The likelihood is flat beyond the data, so there the posterior has the shape of the prior. This is the overlap
        ∫ min(p, π) of the two beyond the posterior's quantile `above`, each normalised there: 1 if nothing but the
        prior determines how large ε may be. It is computed from a histogram if the method is `mhaar`.
        """
        start = float(self.quantile(above, parameter))
        if parameter is not None and parameter not in self.parameter_names:
            raise InputError(f"parameter must be an ε, got {parameter!r}")
        x = np.linspace(start, upper_end(self.prior, start), TAIL_POINTS)
        log_prior = self.prior(x)
        densities = [self.marginal(parameter).pdf(x), np.exp(log_prior - log_prior.max())]
        posterior, prior = (density / density.sum() for density in densities)
        return float(np.minimum(posterior, prior).sum())

    def influence(self, parameter: str | None = None, *, num_threads: int | None = None) -> Influence:
        """Which nodes drive the posterior of a parameter: how far its mean moves without each of them.

        By quadrature with binomial counts, whatever the posterior's method. If there are two parameters, the other one
        is held at its median.

        Args:
            parameter: Name of the parameter; may be left out if there is one.
            num_threads: Number of threads; as many as `likelihood` has if None.

        Raises:
            InputError: if the posterior has no such parameter.
        """
        if num_threads is not None:
            return Cuts(self, parameter, replace(self.likelihood, num_threads=num_threads)).influence
        return self._cuts(parameter).influence

    def mean_without_constant(self, parameter: str | None = None) -> float:
        """The posterior mean without the nodes whose decision never varies; much faster than all of `influence`."""
        return self._cuts(parameter).mean_without_constant

    def _cuts(self, parameter: str | None) -> Cuts:
        if parameter not in self._known_cuts:
            self._known_cuts[parameter] = Cuts(self, parameter, self.likelihood)
        return self._known_cuts[parameter]

    @cached_property
    def _known_cuts(self) -> dict[str | None, Cuts]:
        return {}

    @cached_property
    def lower_bound(self) -> LowerBound:
        """What the counts prove with 95 % confidence, if they come from Algorithm 4; those of Algorithm 1 do not."""
        return lower_bound(self.counts, prior_draws=self.prior_draws)

    def proven(self, parameter: str) -> ProvenEpsilon:
        """What `lower_bound` says about one parameter of the definition."""
        return self.lower_bound.on(self.definition, parameter)

    def summary(self) -> dict[str, Any]:
        """Percentiles and mean of each parameter, with the settings, as plain values.

        `strength` is the number that was assumed or, if it was estimated, its summary; then `strength_prior` says what
        was assumed. `proven_if_split` is None if nothing is proven.
        """
        prior, strength = self.prior, self.strength
        values: dict[str, Any] = {
            "definition": self.name,
            "method": self.method,
            "num_nodes": self.num_nodes,
            "num_left_out": len(self.left_out),
            "num_constant": int(self.is_constant.sum()),
            "prior": prior.describe() if isinstance(prior, NormalPrior) else "user-defined",
            "strength": None if isinstance(strength, StrengthPrior) else strength,
            "strength_prior": dict(vars(strength)) if isinstance(strength, StrengthPrior) else None,
            "status": self.status,
            "floor": {"left": self.floor.left, "right": self.floor.right},
        }
        for name, marginal in self.marginals.items():
            low, middle, high = (float(value) for value in marginal.quantile(PERCENTILES))
            values[name] = {"p5": low, "p50": middle, "p95": high, "mean": marginal.mean()}
            if name in self.parameter_names:
                values[name]["proven_if_split"] = self.proven(name).bound
                values[name]["tail_prior_share"] = self.tail_prior_share(name)
        return values

    def plot(self, parameter: str | None = None, **options: Any) -> Any:
        """A matplotlib figure of the density; options as in `bmpaudit.report.figures.estimates`."""
        from bmpaudit.report import figures

        return figures.posteriors({self.name: self}, parameter or self.parameter_names[0], **options)

    def to_arviz(self, num_draws: int = 4_000, seed: int = 0) -> arviz.InferenceData:
        """The draws as an ArviZ `InferenceData`: the chains, or `num_draws` independent draws in four chains.

        Raises:
            InputError: if ArviZ is not installed.
        """
        try:
            import arviz
        except ImportError:
            raise InputError("to_arviz needs ArviZ: pip install 'bmpaudit[arviz]'") from None
        if self.run is not None:
            draws = {name: self.run.chains(name) for name in self.run.parameter_names}
        else:
            each = max(num_draws // CHAINS_OF_EXACT, 1)
            sample = self.sample(CHAINS_OF_EXACT * each, seed)
            draws = {name: values.reshape(CHAINS_OF_EXACT, each) for name, values in sample.items()}
        attributes = {"definition": self.name, "method": self.method, "status": self.status}
        return arviz.from_dict(posterior=draws, attrs=attributes)

    def save(self, path: str | Path) -> None:
        """Writes everything to one `.npz` file (docs/estimation.md)."""
        from bmpaudit.estimation.posterior_file import save_posterior

        save_posterior(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, trust_code: bool = False) -> Posterior:
        """Reads what `save` wrote; quantiles are the same to the last digit.

        Args:
            path: The file.
            trust_code: Whether a definition of somebody's own may be imported. Without it, everything that does not
                need `definition.epsilons` works; only `influence` does.

        Raises:
            DataError: if the file is missing, damaged or of another kind.
        """
        from bmpaudit.estimation.posterior_file import load_posterior

        return load_posterior(Path(path), trust_code)

    def __str__(self) -> str:
        lines = [self._title, f"  {'':<14} {'5 %':>8} {'50 %':>8} {'95 %':>8}"]
        for name, marginal in self.marginals.items():
            low, middle, high = marginal.quantile(PERCENTILES)
            lines.append(f"  {name:<14} {low:8.3f} {middle:8.3f} {high:8.3f}")
        if self.status not in ("exact", "converged"):
            lines.append(f"  status: {self.status}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = [
            [name, *(f"{value:.3f}" for value in marginal.quantile(PERCENTILES))]
            for name, marginal in self.marginals.items()
        ]
        return paragraphs([f"{self._title}; status: {self.status}"]) + html_table(["", "5 %", "50 %", "95 %"], rows)

    @property
    def _title(self) -> str:
        return f"{self.name}, {self.method}, {self.num_nodes:,} node{'' if self.num_nodes == 1 else 's'}"
