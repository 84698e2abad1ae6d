"""What the attack's errors say about ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.mhaar import MhaarRun
from bmpaudit.estimation.prior import LogDensity, NormalPrior
from bmpaudit.privacy import EpsilonPair

Floats = npt.NDArray[np.float64]


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


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior distribution of a definition's parameters, with what it was made from.

    It is calibrated under its own model (ε from the prior, error rates uniform on R); it is not a confidence statement
    about a mechanism whose attack is not uniform on R, and beyond the data its upper tail is the prior's.

    Attributes:
        definition: What was estimated.
        method: How.
        marginals: The distribution of each parameter: `epsilon`, or `epsilon_left` and `epsilon_right`.
        counts: The errors it was made from.
        left_out: Nodes whose certain prior rules out every finite ε; they do not count.
        likelihood: Of the nodes that count.
        prior: Log-density that was assumed.
        strength: Attack strength s that was assumed.
        floor: Prop. 1: what the sampler alone gives away, over the nodes that count.
        status: Whether to trust the computation, and if not, what to do.
        run: The Markov chains, if the method is `mhaar`.
    """

    definition: Definition
    method: str
    marginals: Mapping[str, Marginal]
    counts: ErrorCounts
    left_out: tuple[Any, ...]
    likelihood: Likelihood
    prior: LogDensity
    strength: float
    floor: EpsilonPair[float]
    status: str = "exact"
    run: MhaarRun | None = None

    @property
    def num_nodes(self) -> int:
        """Nodes that count."""
        return len(self.likelihood.counts)

    def quantile(self, probability: npt.ArrayLike, parameter: str | None = None) -> Floats:
        """Quantiles of a parameter; its name may be left out where there is only one."""
        return self._marginal(parameter).quantile(probability)

    def interval(self, level: float = 0.9, parameter: str | None = None) -> CredibleInterval:
        """The equal-tailed credible interval."""
        if not 0 < level < 1:
            raise InputError(f"level must be in (0, 1), got level={level}")
        low, high = self.quantile([(1 - level) / 2, (1 + level) / 2], parameter)
        return CredibleInterval(float(low), float(high), level)

    def mean(self, parameter: str | None = None) -> float:
        """The posterior mean."""
        return self._marginal(parameter).mean()

    def probability_above(self, threshold: float, parameter: str | None = None) -> float:
        """How probable it is that the parameter exceeds a threshold."""
        return 1.0 - float(self._marginal(parameter).cdf(np.array([threshold]))[0])

    def summary(self) -> dict[str, Any]:
        """p5, p50, p95 and mean of each parameter, with the settings, as plain values."""
        found: dict[str, Any] = {
            "definition": self.definition.name,
            "method": self.method,
            "num_nodes": self.num_nodes,
            "num_left_out": len(self.left_out),
            "num_constant": int(self.counts.is_constant.sum()),
            "prior": self.prior.describe() if isinstance(self.prior, NormalPrior) else "as given",
            "strength": self.strength,
            "status": self.status,
            "floor": {"left": self.floor.left, "right": self.floor.right},
        }
        for name, marginal in self.marginals.items():
            low, middle, high = (float(value) for value in marginal.quantile([0.05, 0.5, 0.95]))
            found[name] = {"p5": low, "p50": middle, "p95": high, "mean": marginal.mean()}
        return found

    def __str__(self) -> str:
        lines = [f"{self.definition.name}, {self.method}, {self.num_nodes:,} nodes"]
        for name, marginal in self.marginals.items():
            low, middle, high = marginal.quantile([0.05, 0.5, 0.95])
            lines.append(f"  {name:<14} {low:8.3f} {middle:8.3f} {high:8.3f}   (5 %, 50 %, 95 %)")
        return "\n".join(lines)

    def _marginal(self, parameter: str | None) -> Marginal:
        if parameter is None and len(self.marginals) == 1:
            return next(iter(self.marginals.values()))
        if parameter is None or parameter not in self.marginals:
            raise InputError(f"parameter must be one of {', '.join(self.marginals)}, got {parameter!r}")
        return self.marginals[parameter]
