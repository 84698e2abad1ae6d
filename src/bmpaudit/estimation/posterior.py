"""What the attack's errors say about ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition
from bmpaudit.estimation.influence import Influence, influence
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.lower_bound import LowerBound, ProvenEpsilon, lower_bound
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun
from bmpaudit.estimation.prior import LogDensity, NormalPrior, StrengthPrior, upper_end
from bmpaudit.estimation.support import support_low
from bmpaudit.privacy import EpsilonPair
from bmpaudit.streams import Purpose, stream

if TYPE_CHECKING:
    import arviz

Floats = npt.NDArray[np.float64]

# Drawing comes after estimation in the line, so its module is known by name only and loaded when asked for.
DRAWING = "bmpaudit.report.figures"
CHAINS_OF_EXACT = 4  # independent draws have none; ArviZ wants several
TAIL_POINTS = 2_001


class Marginal(Protocol):
    """The distribution of one parameter."""

    def quantile(self, probability: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def cdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def pdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def mean(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class CredibleInterval:
    """An interval that holds a parameter with a probability, the rest split equally on both sides."""

    low: float
    high: float
    level: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior distribution of a definition's parameters, with what it was made from.

    It is calibrated under its own model (ε from the prior, error rates uniform on R); it is not a confidence statement
    about a mechanism whose attack is not uniform on R, and beyond the data its upper tail is the prior's.

    Attributes:
        definition: What was estimated.
        method: How.
        marginals: The distribution of each parameter: `epsilon`, or `epsilon_left` and `epsilon_right`; `strength` if
            it was estimated, `tau` and `rho` of correlated counts.
        counts: The errors it was made from.
        is_used: Which of them count, shape (K,): not those whose certain prior rules out every finite ε.
        likelihood: Of the nodes that count.
        prior: Log-density that was assumed of each ε.
        strength: Attack strength s that was assumed, or its prior.
        floor: Prop. 1: what the sampler alone gives away, over the nodes that count.
        status: Whether to trust the answer, and if not, why and what to do.
        joint: The joint density of two parameters, if the method is `exact` and there are two.
        run: The Markov chains, if the method is `mhaar`.
    """

    definition: Definition
    method: str
    marginals: Mapping[str, Marginal]
    counts: ErrorCounts
    is_used: npt.NDArray[np.bool_]
    likelihood: Likelihood
    prior: LogDensity
    strength: float | StrengthPrior
    floor: EpsilonPair[float]
    status: str
    joint: JointDensity | None = None
    run: MhaarRun | None = None

    @property
    def num_nodes(self) -> int:
        """Nodes that count."""
        return len(self.likelihood.counts)

    @property
    def node(self) -> npt.NDArray[Any]:
        """Those nodes, shape (num_nodes,)."""
        return self.counts.node[self.is_used]

    @property
    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Whether the decision about each of them was the same for every model, shape (num_nodes,)."""
        return self.counts.is_constant[self.is_used]

    @property
    def left_out(self) -> tuple[Any, ...]:
        """Nodes whose certain prior rules out every finite ε."""
        return tuple(self.counts.node[~self.is_used].tolist())

    @property
    def correlated(self) -> CorrelatedCounts | None:
        """The model of correlated counts, if the chains had it."""
        return None if self.run is None else self.run.settings.correlated

    @property
    def typical_strength(self) -> float:
        """The attack strength that was assumed, or its posterior median."""
        return float(self.quantile(0.5, "strength")) if isinstance(self.strength, StrengthPrior) else self.strength

    def marginal(self, parameter: str | None = None) -> Marginal:
        """The distribution of a parameter; its name may be left out where there is only one ε.

        Raises:
            InputError: if there is no such parameter.
        """
        if parameter is None and not self.definition.is_joint:
            parameter = self.definition.parameter_names[0]
        if parameter is None or parameter not in self.marginals:
            raise InputError(f"parameter must be one of {', '.join(self.marginals)}, got {parameter!r}")
        return self.marginals[parameter]

    def support_low(self, parameter: str | None = None) -> float:
        """The lower end of a parameter's support (Prop. 1)."""
        self.marginal(parameter)
        name = self.definition.parameter_names[0] if parameter is None else parameter
        return support_low(self.definition, self.likelihood.log_prior_odds, self.prior, name)

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
        """How probable it is that the parameter exceeds a threshold."""
        return 1.0 - float(self.marginal(parameter).cdf(np.array([threshold]))[0])

    def sample(self, num_draws: int, seed: int = 0) -> dict[str, Floats]:
        """Joint draws of all parameters, arrays of shape (num_draws,) by name.

        Independent ones of an exact posterior; of Markov chains, draws chosen at random among those kept.
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
        ∫ min(p, π) of the two beyond the posterior's quantile `above`, each normalised there: 1 where nothing but the
        prior says how far up ε may be. From a histogram if the method is `mhaar`.
        """
        start, name = float(self.quantile(above, parameter)), parameter
        if name == "strength" or name in ("tau", "rho"):
            raise InputError(f"parameter must be an ε, got {name!r}")
        x = np.linspace(start, upper_end(self.prior, start), TAIL_POINTS)
        log_prior = self.prior(x)
        densities = [self.marginal(parameter).pdf(x), np.exp(log_prior - log_prior.max())]
        posterior, prior = (density / density.sum() for density in densities)
        return float(np.minimum(posterior, prior).sum())

    def influence(self, parameter: str | None = None) -> Influence:
        """Which nodes drive the posterior of a parameter."""
        return influence(self, parameter)

    @cached_property
    def lower_bound(self) -> LowerBound:
        """What the nodes that count prove with 95 % confidence, if the counts are Algorithm 4's.

        Those of Algorithm 1 prove nothing. Nodes left out, whose certain prior makes ε infinite, are not among them.
        """
        return lower_bound(self.counts.take(self.is_used))

    def proven(self, parameter: str) -> ProvenEpsilon:
        """The part of `lower_bound` that is about one parameter."""
        if parameter == "epsilon" and not self.definition.uses_prior:
            return self.lower_bound.mp
        if parameter == "epsilon":  # both sides at once: the larger of the two bounds holds
            return max(self.lower_bound.right, self.lower_bound.left, key=lambda side: side.bound)
        return self.lower_bound.left if parameter == "epsilon_left" else self.lower_bound.right

    def summary(self) -> dict[str, Any]:
        """p5, p50, p95 and mean of each parameter, with the settings, as plain values.

        `strength` is the number that was assumed, or, as of any parameter, what was found; then `strength_prior` tells
        what was assumed of it.
        """
        found: dict[str, Any] = {
            "definition": self.definition.name,
            "method": self.method,
            "num_nodes": self.num_nodes,
            "num_left_out": len(self.left_out),
            "num_constant": int(self.is_constant.sum()),
            "prior": self.prior.describe() if isinstance(self.prior, NormalPrior) else "as given",
            "strength": None if isinstance(self.strength, StrengthPrior) else self.strength,
            "strength_prior": dict(vars(self.strength)) if isinstance(self.strength, StrengthPrior) else None,
            "status": self.status,
            "floor": {"left": self.floor.left, "right": self.floor.right},
        }
        for name, marginal in self.marginals.items():
            low, middle, high = (float(value) for value in marginal.quantile([0.05, 0.5, 0.95]))
            found[name] = {"p5": low, "p50": middle, "p95": high, "mean": marginal.mean()}
            if name in self.definition.parameter_names:
                found[name]["proven_if_split"] = self.proven(name).bound
                found[name]["tail_prior_share"] = self.tail_prior_share(name)
        return found

    def plot(self, parameter: str | None = None, **options: Any) -> Any:
        """A picture of the density, as a matplotlib figure; options as of `bmpaudit.report.figures.posteriors`."""
        name = parameter or self.definition.parameter_names[0]
        return import_module(DRAWING).posteriors({self.definition.name: self}, name, **options)

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
        attributes = {"definition": self.definition.name, "method": self.method, "status": self.status}
        return arviz.from_dict(posterior=draws, attrs=attributes)

    def save(self, path: str | Path) -> None:
        """Writes everything to one `.npz` file (docs/estimation.md)."""
        from bmpaudit.estimation.posterior_file import save_posterior

        save_posterior(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Posterior:
        """Reads what `save` wrote; quantiles come out the same to the last digit.

        Raises:
            DataError: if the file is missing, damaged or of another kind.
        """
        from bmpaudit.estimation.posterior_file import load_posterior

        return load_posterior(Path(path))

    def __str__(self) -> str:
        lines = [
            f"{self.definition.name}, {self.method}, {self.num_nodes:,} nodes",
            f"  {'':<14} {'5 %':>8} {'50 %':>8} {'95 %':>8}   proven*",
        ]
        for name, marginal in self.marginals.items():
            low, middle, high = marginal.quantile([0.05, 0.5, 0.95])
            line = f"  {name:<14} {low:8.3f} {middle:8.3f} {high:8.3f}"
            if name in self.definition.parameter_names:
                line += f"  ≥ {self.proven(name).bound:6.3f}"
            lines.append(line)
        lines.append("  * with 95 % confidence, if these are counts of Algorithm 4")
        if self.status not in ("exact", "converged"):
            lines.append(f"  status: {self.status}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from html import escape

        rows = []
        for name, marginal in self.marginals.items():
            values = [f"{value:.3f}" for value in marginal.quantile([0.05, 0.5, 0.95])]
            proven = f"{self.proven(name).bound:.3f}" if name in self.definition.parameter_names else ""
            cells = "".join(f"<td>{value}</td>" for value in (*values, proven))
            rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
        told = f"{self.definition.name}, {self.method}, {self.num_nodes:,} nodes; status: {self.status}"
        head = "<tr><th></th><th>5 %</th><th>50 %</th><th>95 %</th><th>proven, if Algorithm 4</th></tr>"
        return f"<table><caption>{escape(told)}</caption>{head}{''.join(rows)}</table>"
