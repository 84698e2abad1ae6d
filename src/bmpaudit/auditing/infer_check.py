"""Does one model behave like the shadow models? Ranks among them, which need no assumption about any distribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bmpaudit.arrays import Flags, Floats, Floats32
from bmpaudit.tables import FloatTable, node_blocks

LEVEL = 0.01
"""Share of the models trained as the plan says that may fail the check."""
MAX_LEVEL = 0.05
"""The same where there are too few models for that: only the oddest of all can fail then."""
QUANTILES = (0.05, 0.95)
SHOWN = (0.01, 0.99)
POSITIVE = "share of positive margins"


@dataclass(frozen=True)
class Standing:
    """One quantity of a released model among those of the shadow models of its group.

    Attributes:
        name: What it is.
        value: That of the released model.
        low: 1 % quantile of the shadow models.
        high: 99 % quantile of the shadow models.
        p_value: Twice the share of models, this one among them, that are at least as low, or as high.
        deviation: Distance from the median in units of the distance from the median to the 5 % or 95 % quantile,
            whichever is on the same side.
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float
    deviation: float


@dataclass(frozen=True)
class BehaviourCheck:
    """Whether a model can be one more of the shadow models.

    The released model and the J shadow models are treated alike: the deviation of each quantity is measured within the
    J + 1 of them, and each model counts with its largest deviation. If the released model was trained as the plan says,
    they are exchangeable, and all ranks are equally likely. Some samplers now and then draw a sample that teaches
    hardly anything, and such models differ from the others in every respect. So there are two groups: a model that has
    learnt as usual is ranked among its like; one that has learnt little is ranked among all, its group first. Where
    both groups have models, p-values are doubled.

    Formal guarantee: of models trained as the plan says, at most a share a has `p_value` ≤ a, for every a, whatever the
    quantities and however they depend on each other. (Given the J + 1 models without their order, each is equally
    likely to be the released one. So it is a usual one with a rank of at most a/2 with probability at most a/2, and one
    that has learnt little with a rank of at most a/2 with probability at most a/2.) No correction for the number of
    quantities is needed, as their largest deviation is ranked.

    What it does not promise: a model that passes may have been trained otherwise, in ways these quantities do not show.

    Attributes:
        standings: Each quantity, the largest deviation first.
        p_value: Share of models, this one among them, that deviate at least as much, as described above.
        smallest_p: Smallest p-value that there can be with so many models.
        num_models: J.
    """

    standings: tuple[Standing, ...]
    p_value: float
    smallest_p: float
    num_models: int

    @property
    def level(self) -> float:
        """Share of the models trained as the plan says that fail; 0 if there are too few to tell."""
        return max(LEVEL, self.smallest_p) if self.smallest_p <= MAX_LEVEL else 0.0

    @property
    def is_like_shadows(self) -> bool:
        """Whether nothing speaks against it."""
        return self.p_value > self.level

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {
            "is_like_shadows": self.is_like_shadows,
            "p_value": self.p_value,
            "level": self.level,
            "num_models": self.num_models,
            "standings": [asdict(each) for each in self.standings],
        }


def compare_with_shadows(
    shadows: Mapping[str, Floats], released: Mapping[str, float], has_learnt_little: Flags | None = None
) -> BehaviourCheck:
    """Ranks a released model among shadow models.

    Args:
        shadows: By name of a quantity, its value for each of J shadow models, shape (J,).
        released: The same for the released model.
        has_learnt_little: Group of each shadow model and of the released one, which comes last, shape (J + 1,).

    >>> rng = np.random.default_rng(0)
    >>> shadows = {"loss": rng.normal(size=99), "accuracy": rng.normal(size=99)}
    >>> check = compare_with_shadows(shadows, {"loss": 0.2, "accuracy": 7.0})
    >>> check.standings[0].name, check.p_value, check.is_like_shadows
    ('accuracy', 0.01, False)
    """
    names = list(shadows)
    everyone = np.stack([np.append(shadows[name], released[name]) for name in names], axis=1)
    num_models = len(everyone) - 1
    is_little = np.zeros(len(everyone), dtype=np.bool_) if has_learnt_little is None else has_learnt_little
    is_like = is_little == is_little[-1]
    group = everyone[is_like]
    deviations = _deviations(everyone)[is_like] if is_little[-1] else _deviations(group)
    largest = deviations.max(axis=1)
    num_ranked = len(everyone) if is_little[-1] else len(group)
    factor = 2 if is_little.any() and not is_little.all() else 1
    mine = group[-1]
    below, above = (group <= mine).mean(axis=0), (group >= mine).mean(axis=0)
    standings = []
    for k, name in enumerate(names):
        others = group[:-1, k] if len(group) > 1 else everyone[:-1, k]
        low, high = np.quantile(others, SHOWN)
        p_value = min(1.0, 2 * min(below[k], above[k]))
        standings.append(
            Standing(name, float(mine[k]), float(low), float(high), float(p_value), float(deviations[-1, k]))
        )
    standings.sort(key=lambda each: -each.deviation)
    return BehaviourCheck(
        standings=tuple(standings),
        p_value=min(1.0, factor * float((largest >= largest[-1]).sum()) / num_ranked),
        smallest_p=factor / num_ranked,
        num_models=num_models,
    )


def _deviations(values: Floats) -> Floats:
    """Distances from the median, each side in its own units: samplers make some models odd in one direction only.

    Where the quantile is the median, as among small counts, the unit is the largest distance on that side.
    """
    middle = np.median(values, axis=0)
    distance = values - middle
    low, high = np.quantile(values, QUANTILES, axis=0)
    below = np.where(middle > low, middle - low, -distance.min(axis=0))
    above = np.where(high > middle, high - middle, distance.max(axis=0))
    unit = np.where(distance < 0, below, above)
    return np.abs(distance) / np.where(unit > 0, unit, 1.0)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How a released model and the shadow models behave, memberships unseen.

    Attributes:
        check: Whether they behave alike.
        has_learnt_little: Which of them have fewer than half as many positive margins as the median, the released one
            last, shape (J + 1,).
    """

    check: BehaviourCheck
    has_learnt_little: Flags


def behaviour(shadows: Mapping[str, FloatTable], released: Mapping[str, Floats32]) -> Behaviour:
    """Compares the statistics of a released model with those of the shadow models.

    Args:
        shadows: By query, the statistic of every node under every shadow model, shape (J, N).
        released: By query, that under the released model, shape (N,).
    """
    quantities: dict[str, Floats] = {}
    num_models = len(next(iter(shadows.values())))
    is_little = np.zeros(num_models + 1, dtype=np.bool_)
    for query, statistics in shadows.items():
        summary = _quantities(statistics, released[query])
        is_little |= summary[POSITIVE] < np.median(summary[POSITIVE]) / 2
        quantities |= {f"{name} (query {query})": values for name, values in summary.items()}
    check = compare_with_shadows(
        {name: values[:-1] for name, values in quantities.items()},
        {name: float(values[-1]) for name, values in quantities.items()},
        is_little,
    )
    return Behaviour(check, is_little)


class _Part(NamedTuple):
    """Some nodes: their number, and of each model the mean, variance and share of positive margins about them.

    Attributes:
        num_varying: Number of nodes whose margin varies, whichever model is left out.
        deviation: Sum over these of squared deviations, shape (J + 1,).
    """

    num_nodes: int
    mean: Floats
    variance: Floats
    positive: Floats
    num_varying: int
    deviation: Floats


def _quantities(shadows: FloatTable, released: Floats32) -> dict[str, Floats]:
    """Summaries of each model, the released one last, shape (J + 1,), which treat all models alike."""
    num_models, num_nodes = shadows.shape
    parts = []
    for block in node_blocks(num_nodes, num_models + 1):
        margins = np.concatenate([shadows[:, block], released[None, block]]).astype(np.float64)
        num_varying, deviation = _squared_deviation(margins)
        parts.append(
            _Part(
                margins.shape[1],
                margins.mean(axis=1),
                margins.var(axis=1),
                (margins > 0).mean(axis=1),
                num_varying,
                deviation,
            )
        )
    weights = [part.num_nodes / num_nodes for part in parts]

    def weighted(values: Iterable[Floats]) -> Floats:
        return np.sum([weight * each for weight, each in zip(weights, values, strict=True)], axis=0)

    mean = weighted(part.mean for part in parts)
    variance = weighted(part.variance + (part.mean - mean) ** 2 for part in parts)
    return {
        "mean margin": mean,
        "spread of margins": np.sqrt(variance),
        POSITIVE: weighted(part.positive for part in parts),
        "squared deviation from the others": np.sum([part.deviation for part in parts], axis=0)
        / max(sum(part.num_varying for part in parts), 1),
    }


def _squared_deviation(statistics: Floats) -> tuple[int, Floats]:
    """Sum over nodes of ((z - mean)/sd)², with mean and standard deviation of all other models, and of how many."""
    num_others = len(statistics) - 1
    centred = statistics - statistics.mean(axis=0)  # so that sums of squares lose no digits
    squares = (centred**2).sum(axis=0)
    mean = -centred / num_others
    variance = (squares - centred**2) / num_others - mean**2
    varies: Flags = (variance > 0).all(axis=0)
    total: Floats = ((centred - mean)[:, varies] ** 2 / variance[:, varies]).sum(axis=1)
    return int(varies.sum()), total
