"""What the attack's errors say about ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import ProvenEpsilon, epsilons_of, name_of, parameter_names
from bmpaudit.estimation.density import FINE_DEGREE, NOTHING, PiecewiseDensity, gauss_legendre
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import Likelihood, LogDensity, NormalPrior, StrengthPrior, upper_end
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.estimation.mhaar import MhaarRun
from bmpaudit.interfaces import Definition
from bmpaudit.privacy import EpsilonPair, prior_floor
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats, Ints
from bmpaudit.util.words import count

if TYPE_CHECKING:
    import arviz

PERCENTILES = (0.05, 0.5, 0.95)
BINS = 60  # of a histogram of draws
CHAINS_OF_EXACT = 4  # independent draws form no chains, but ArviZ expects several
TAIL_POINTS = 2_001
# On a panel a density has degree 2 * FINE_DEGREE, its integral one more: so many points are exact for the product.
POINTS_PER_PANEL = 2 * FINE_DEGREE + 1
FURTHEST = 1e-9  # probability beyond which no quantile of a difference is computed
CUT_POINTS = 12  # on each panel of a cut
PANELS_BELOW = 4  # between the floor and the bulk, where the posterior falls to without the nodes that hold it up
BULK = (1e-5, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)
SLID = 1e-3  # share of a posterior below the bulk of the full one from which on it is computed there too
FEW_POINTS = 24  # of a Gauss rule whose weight is the posterior: enough for a likelihood that varies little
LITTLE = 0.3  # nats


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
    """Draws of one parameter from all chains, with the methods of an exact density."""

    draws: Floats  # shape (num_draws,)

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
    """

    first: Marginal  # of ε₁, which is subtracted
    second: Marginal  # of ε₂

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

    def marginal(self, parameter: str | None = None) -> Marginal:
        """The distribution of a parameter, whose name may be left out if the definition has only one."""
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
            flat = self.run.draws.reshape(-1, len(self.marginals))
            chosen = flat[rng.integers(len(flat), size=num_draws)]
            return dict(zip(self.marginals, chosen.T, strict=True))
        if self.joint is not None:
            return dict(zip(self.marginals, self.joint.sample(num_draws, rng).T, strict=True))
        return {name: marginal.quantile(rng.uniform(1e-12, 1, num_draws)) for name, marginal in self.marginals.items()}

    def tail_prior_share(self, parameter: str | None = None, above: float = 0.95) -> float:
        """How much of the upper tail is simply the prior's: 1 if nothing else determines how large ε may be.

        The overlap ∫ min(p, π) of posterior and prior beyond the posterior's quantile `above`, each normalised there;
        from a histogram if the method is `mhaar`.
        """
        start = float(self.quantile(above, parameter))
        if parameter is not None and parameter not in self.parameter_names:
            raise InputError(f"parameter must be an ε, got {parameter!r}")
        x = np.linspace(start, upper_end(self.prior, start), TAIL_POINTS)
        log_prior = self.prior(x)
        densities = [self.marginal(parameter).pdf(x), np.exp(log_prior - log_prior.max())]
        posterior, prior = (density / density.sum() for density in densities)
        return float(np.minimum(posterior, prior).sum())

    def influence(self, parameter: str | None = None) -> Influence:
        """Which nodes drive the posterior of a parameter: how far its mean moves without each of them.

        By quadrature with binomial counts, whatever the posterior's method; a second parameter is held at its median.
        """
        return self._cuts(parameter).influence

    def mean_without_constant(self, parameter: str | None = None) -> float:
        """The posterior mean without the nodes whose decision never varies; much faster than all of `influence`."""
        return self._cuts(parameter).mean_without_constant

    def _cuts(self, parameter: str | None) -> Cuts:
        if parameter not in self._known_cuts:
            self._known_cuts[parameter] = Cuts(self, parameter)
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
            "prior": f"normal, mean {prior.mean:g}, variance {prior.variance:g}"
            if isinstance(prior, NormalPrior)
            else "user-defined",
            "strength": None if isinstance(strength, StrengthPrior) else strength,
            "strength_prior": dict(vars(strength)) if isinstance(strength, StrengthPrior) else None,
            "status": self.status,
            "floor": dict(vars(self.floor)),
        }
        for name, marginal in self.marginals.items():
            low, middle, high = (float(value) for value in marginal.quantile(PERCENTILES))
            values[name] = {"p5": low, "p50": middle, "p95": high, "mean": marginal.mean()}
            if name in self.parameter_names:
                values[name]["proven_if_split"] = self.proven(name).bound
                values[name]["tail_prior_share"] = self.tail_prior_share(name)
        return values

    def plot(self, parameter: str | None = None, **options: Any) -> Any:
        """A matplotlib figure of the density; options as in `bmpaudit.report.figures.posteriors`."""
        from bmpaudit.report import figures

        return figures.posteriors({self.name: self}, parameter or self.parameter_names[0], **options)

    def to_arviz(self, num_draws: int = 4_000, seed: int = 0) -> arviz.InferenceData:
        """The draws as an ArviZ `InferenceData`: the chains, or `num_draws` independent draws in four chains."""
        try:
            import arviz
        except ImportError:
            raise InputError("to_arviz needs ArviZ: pip install 'bmpaudit[arviz]'") from None
        if self.run is not None:
            draws = {name: self.run.chains(name) for name in self.marginals}
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

        A definition of somebody's own is imported with `trust_code` only; without it, all works but `influence`. A
        `DataError` says that the file is missing, damaged or of another kind.
        """
        from bmpaudit.estimation.posterior_file import load_posterior

        return load_posterior(Path(path), trust_code)

    def __str__(self) -> str:
        lines = [self._title, f"  {'':<14} {'5 %':>8} {'50 %':>8} {'95 %':>8}"]
        lines += ["  {:<14} {:>8} {:>8} {:>8}".format(*row) for row in self._rows]
        if self.status not in ("exact", "converged"):
            lines.append(f"  status: {self.status}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = ["", "5 %", "50 %", "95 %"]
        return paragraphs([f"{self._title}; status: {self.status}"]) + html_table(head, self._rows)

    @property
    def _rows(self) -> list[list[str]]:
        return [[name, *(f"{x:.3f}" for x in each.quantile(PERCENTILES))] for name, each in self.marginals.items()]

    @property
    def _title(self) -> str:
        return f"{self.name}, {self.method}, {count(self.num_nodes, 'node')}"


@dataclass(frozen=True)
class DrivingNode:
    """A node that the posterior depends on."""

    node: Any  # id or name
    shift: float  # how far it raises the posterior mean: the mean with it minus the mean without it
    is_constant: bool  # whether the decision about it never varies, so that it says nothing


@dataclass(frozen=True, eq=False)
class Influence:
    """How the posterior mean of one parameter changes without each node, and without all nodes of constant decision.

    Leaving node k out divides the posterior by its likelihood L_k. The support stays that of all nodes.
    """

    mean: float  # with all nodes
    node: npt.NDArray[Any]  # that count, shape (K,)
    shift: Floats  # `mean` minus the mean without the node, shape (K,)
    is_constant: Flags  # whether the decision about a node never varies, shape (K,)
    mean_without_constant: float  # without all nodes whose decision never varies

    def drivers(self, num_nodes: int = 10) -> tuple[DrivingNode, ...]:
        """The nodes that move the mean most, in either direction, strongest first."""
        order = np.argsort(-np.abs(self.shift), kind="stable")[:num_nodes]
        return tuple(
            DrivingNode(self.node[k].item(), float(self.shift[k]), bool(self.is_constant[k])) for k in order.tolist()
        )


class Cuts:
    """The posterior along one parameter, from which follows where its mean would be without some of the nodes.

    It is computed over its bulk; below that, down to the lower end of its support, only where the posterior without
    these nodes reaches so far. Few nodes hold a posterior up like that, and the likelihood takes long to compute there.
    """

    def __init__(self, posterior: Posterior, parameter: str | None) -> None:
        self._posterior, self._parameter, self._likelihood = posterior, parameter, posterior.likelihood
        self._low = posterior.support_low(parameter)
        self._bulk = np.maximum(posterior.quantile(BULK, parameter), self._low)
        # Above it, panels that are each twice as wide as the one below.
        start, end = float(self._bulk[-1]), upper_end(posterior.prior, self._low)
        width = max(start - float(self._bulk[-2]), 1e-3 * (end - start))
        num_panels = max(int(np.ceil(np.log2((end - start) / width + 1))), 1)
        above = np.minimum(start + width * (2.0 ** np.arange(1, num_panels + 1) - 1), end)
        marginal, edges = posterior.marginal(parameter), self._bulk
        if isinstance(marginal, PiecewiseDensity):  # it may have several peaks, each with panels of its own
            edges = np.union1d(edges, np.clip(marginal.edges, edges[0], edges[-1]))
        points, weights = gauss_legendre(np.concatenate([edges, above]), CUT_POINTS)
        with np.errstate(divide="ignore"):
            logs = np.log(marginal.pdf(points)) if posterior.run is None else self._log_posterior(points)
        self._whole = _Cut(points, weights, logs)  # with all nodes

    @cached_property
    def influence(self) -> Influence:
        """How far the mean moves without each of the nodes."""
        points, mass = gauss_of_measure(self._whole.points, self._whole.mass, FEW_POINTS)
        logs = self._likelihood.of_rows(*self._ends(points))
        rest = np.exp(logs.min(axis=1, keepdims=True) - logs) * mass
        shifts = mass @ points / mass.sum() - rest @ points / rest.sum(axis=1)
        for row in np.flatnonzero(~(np.ptp(logs, axis=1) < LITTLE)).tolist():
            shifts[row] = self._shift_without(np.array([row]))
        return Influence(
            mean=self._posterior.mean(self._parameter),
            node=self._posterior.node,
            shift=shifts[self._likelihood.rows.of_node],
            is_constant=self._posterior.is_constant,
            mean_without_constant=self.mean_without_constant,
        )

    @cached_property
    def mean_without_constant(self) -> float:
        """The posterior mean without the nodes whose decision never varies."""
        mean, is_constant = self._posterior.mean(self._parameter), self._posterior.is_constant
        if not is_constant.any():
            return mean
        return mean - self._shift_without(self._likelihood.rows.of_node[is_constant])

    def _shift_without(self, rows: Ints) -> float:
        """The mean minus the mean without a node of each of these rows."""
        times, points = self._likelihood.rows.times, self._whole.points
        without = np.bincount(rows, minlength=len(times)).astype(np.float64)
        log_likelihood = self._likelihood(*self._ends(points), times=without)  # of the nodes that are left out
        is_possible = self._whole.log_density > -np.inf
        logs = np.where(is_possible, self._whole.log_density - np.where(is_possible, log_likelihood, 0.0), -np.inf)
        others = _Cut(points, self._whole.weights, logs)
        if others.share_below(self._low) < SLID:
            return self._whole.mean() - others.mean()
        below, weights = gauss_legendre(np.linspace(self._low, self._bulk[0], PANELS_BELOW + 1), CUT_POINTS)
        # Joined to the cut above by the value at its highest point.
        highest, rest = int(logs.argmax()), times - without
        scale = float(self._log_posterior(points[[highest]], rest)[0])
        cutoff = scale - NOTHING - self._posterior.prior(below)
        below_logs = self._log_posterior(below, rest, cutoff) - scale + logs[highest]
        joined = zip((below, weights, below_logs), (points, self._whole.weights, logs), strict=True)
        return self._posterior.mean(self._parameter) - _Cut(*map(np.concatenate, joined)).mean()

    def _log_posterior(self, points: Floats, times: Floats | None = None, cutoff: npt.ArrayLike = -np.inf) -> Floats:
        return self._likelihood(*self._ends(points), cutoff, times=times) + self._posterior.prior(points)

    def _ends(self, points: Floats) -> tuple[Floats, Floats, float]:
        """ε_L, ε_R and s where the parameter takes some values; another ε, or an unknown s, is held at its median."""
        names = self._posterior.parameter_names
        values = [
            points if len(names) == 1 or name == self._parameter else np.full_like(points, self._medians[name])
            for name in names
        ]
        strength = self._posterior.strength
        assumed = self._medians["strength"] if isinstance(strength, StrengthPrior) else strength
        return *epsilons_of(self._posterior.definition, *values), assumed

    @cached_property
    def _medians(self) -> dict[str, float]:
        return {name: float(marginal.quantile(0.5)) for name, marginal in self._posterior.marginals.items()}


@dataclass(frozen=True, eq=False)
class _Cut:
    """A density at the points of a quadrature rule, given by its logarithm up to a constant."""

    points: Floats
    weights: Floats
    log_density: Floats

    @property
    def mass(self) -> Floats:
        """What the points stand for, up to a factor."""
        return np.exp(self.log_density - self.log_density.max()) * self.weights

    def mean(self) -> float:
        return float((self.mass * self.points).sum() / self.mass.sum())

    def share_below(self, low: float) -> float:
        """How much mass may lie between `low` and the first point: no more, if the logarithm is concave there."""
        start = float(self.points[0])
        rise = (self.log_density[1] - self.log_density[0]) / max(float(self.points[1]) - start, 1e-300)
        length = min(start - low, 1 / rise) if rise > 0 else start - low
        return float(length * np.exp(self.log_density[0] - self.log_density.max()) / self.mass.sum())


def gauss_of_measure(points: Floats, mass: Floats, num_points: int) -> tuple[Floats, Floats]:
    """The Gauss rule of a measure that is given by points and their mass: right for polynomials of degree 2n - 1.

    By Lanczos' method: the rule's points are the eigenvalues of a tridiagonal matrix.

    >>> points, weights = gauss_of_measure(np.linspace(-1, 1, 101), np.full(101, 1.0), 2)
    >>> bool(abs(weights @ points**2 - (np.linspace(-1, 1, 101) ** 2).sum()) < 1e-12)
    True
    """
    centre, scale = float(points.mean()), float(np.ptp(points)) or 1.0
    x = (points - centre) / scale
    num_points = min(num_points, int(np.count_nonzero(mass)))
    basis = np.zeros((num_points, len(x)))
    diagonal, beside = np.zeros(num_points), np.zeros(num_points)
    vector = np.sqrt(mass / mass.sum())
    for n in range(num_points):
        basis[n] = vector
        vector = x * basis[n]
        diagonal[n] = vector @ basis[n]
        for _ in range(2):  # once is not enough to keep them orthogonal
            vector = vector - basis[: n + 1].T @ (basis[: n + 1] @ vector)
        beside[n] = float(np.linalg.norm(vector))
        vector = vector / max(beside[n], 1e-300)
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return centre + scale * values, vectors[0] ** 2 * mass.sum()
