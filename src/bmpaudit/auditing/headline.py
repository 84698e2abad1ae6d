"""What is estimated: the paper's ε of the main variant, and where not to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.estimate_step import SIDES, Estimates, headline_parameters
from bmpaudit.auditing.proof_step import Findings
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import StoredDefinition
from bmpaudit.estimation.definitions.curve import smallest_values
from bmpaudit.interfaces import Definition
from bmpaudit.proof import Proof
from bmpaudit.registry import DEFINITION, ENTRIES
from bmpaudit.report.words import number
from bmpaudit.samplers import Priors

MOVED = 0.1  # nats that the median may move by without a warning
DRIVEN = 0.5  # nats by which nodes of constant decision may raise the mean before a warning is due


@dataclass(frozen=True)
class HeadlineRow:
    """One estimated ε.

    Attributes:
        name: Its symbol.
        meaning: In words.
        definition: The definition it is a parameter of.
        parameter: Which of the definition's parameters.
        multiplies_odds: Whether ε bounds by how much the odds change, as in MP, and not the odds themselves.
        p5: 5th percentile of the posterior.
        p50: Median of the posterior.
        p95: 95th percentile of the posterior.
        floor: What the sampler alone gives away, at least (Prop. 1).
        floor_is_exact: Whether the floor comes from a formula.
        floor_level: Confidence of the floor otherwise.
        proven: What is proven of it; None if nothing, or if the definition is none that a proof is about.
        proof_level: Confidence of what is proven.
        half_median: Median with half of the models; None if that is too few.
        mean: Mean of the posterior.
        mean_without_constant: Mean without the nodes whose decision never varies.
        tail_prior_share: How much of the upper tail is the prior's.
        warnings: Why not to trust the estimate, in words.
    """

    name: str
    meaning: str
    definition: str
    parameter: str
    multiplies_odds: bool
    p5: float
    p50: float
    p95: float
    floor: float
    floor_is_exact: bool
    floor_level: float | None
    proven: float | None
    proof_level: float
    half_median: float | None
    mean: float
    mean_without_constant: float
    tail_prior_share: float
    warnings: tuple[str, ...] = ()


def headline(
    priors: Priors, attacks: Attacks, findings: Findings, estimates: Estimates, proof_level: float
) -> tuple[HeadlineRow, ...]:
    """The ε of the main variant."""
    posteriors, proof = estimates.posteriors[attacks.main], findings[attacks.releases[0]].proof
    rows = []
    for place in headline_parameters(posteriors):
        name, parameter_name = place
        posterior = posteriors[name]
        definition = posterior.definition
        parameter = next(each for each in definition.parameters if each.name == parameter_name)
        p5, p50, p95 = (float(value) for value in posterior.quantile([0.05, 0.5, 0.95], parameter_name))
        influence = estimates.influences[place]
        values: dict[str, Any] = {
            "name": parameter.symbol if parameter_name in SIDES else f"{_short_title(definition)} {parameter.symbol}",
            "p5": p5,
            "p50": p50,
            "p95": p95,
            "proven": proven_of(proof, posterior, parameter_name),
            "half_median": estimates.half_medians.get(place),
            "mean": influence.mean,
            "mean_without_constant": influence.mean_without_constant,
        }
        rows.append(
            HeadlineRow(
                meaning=parameter.meaning,
                definition=name,
                parameter=parameter_name,
                multiplies_odds=not definition.uses_prior,
                floor=floor_of(posterior, parameter_name, priors),
                floor_is_exact=priors.floor.is_exact or not definition.uses_prior,
                floor_level=priors.floor.level if definition.uses_prior else None,
                proof_level=proof_level,
                tail_prior_share=posterior.tail_prior_share(parameter_name),
                warnings=_warnings(int(attacks.main_counts.is_constant.sum()), posterior, **values),
                **values,
            )
        )
    return tuple(rows)


def _warnings(
    num_constant: int,
    posterior: Posterior,
    *,
    name: str,
    p5: float,
    p50: float,
    p95: float,
    proven: float | None,
    half_median: float | None,
    mean: float,
    mean_without_constant: float,
) -> tuple[str, ...]:
    messages = []
    if proven is not None and proven > p95:
        messages.append(f"{name} lies below what is proven, {number(proven, 1)}: trust the proof")
    if num_constant == posterior.num_nodes:
        messages.append(f"{name} means nothing: the decision about every node is the same for every model")
    elif mean - mean_without_constant > DRIVEN:
        messages.append(
            f"{name} is driven by {num_constant:,} nodes whose decision never varies; without them it is "
            f"{number(mean_without_constant, 1)} on average, not {number(mean, 1)}"
        )
    if half_median is not None and not p5 <= half_median <= p95 and abs(half_median - p50) > MOVED:
        messages.append(
            f"{name} moves with the number of models: with half of them its median is {number(half_median, 1)}, not "
            f"{number(p50, 1)}"
        )
    if posterior.run is not None and not posterior.status.startswith("converged"):
        messages.append(f"{name}: {posterior.status}")
    return tuple(messages)


def stored_headline(summary: Mapping[str, Any]) -> tuple[HeadlineRow, ...]:
    """The headline as a summary has it, which needs none of the code that made it."""
    # Infinite numbers are texts there.
    numbers = ("p5", "p50", "p95", "floor", "proven", "half_median", "mean", "mean_without_constant")
    return tuple(
        HeadlineRow(
            **row
            | {name: None if row[name] is None else float(row[name]) for name in numbers}
            | {"warnings": tuple(row["warnings"])}
        )
        for row in summary["headline"]
    )


def proven_of(proof: Proof | None, posterior: Posterior, parameter: str) -> float | None:
    """What a proof says about a parameter of a definition; None if nothing."""
    if proof is None:
        return None
    if parameter in SIDES and posterior.definition.uses_prior:
        return proof.epsilon_right.proven if parameter == "epsilon_right" else proof.epsilon_left.proven
    is_mp = registry.name_of(DEFINITION, posterior.definition) == "mp"
    return proof.mp.proven if is_mp else None


def _short_title(definition: Definition) -> str:
    name = registry.name_of(DEFINITION, definition)
    return name.upper() if name in ENTRIES[DEFINITION] else name.rpartition(":")[2]


def floor_of(posterior: Posterior, parameter: str, priors: Priors) -> float:
    """What the sampler alone gives away of a parameter: the smallest value that its floor leaves possible."""
    definition, floor = posterior.definition, priors.floor
    if not definition.uses_prior or isinstance(definition, StoredDefinition):
        return posterior.lows[parameter]
    left, right = smallest_values(definition, np.array([floor.left]), np.array([floor.right]))
    if len(definition.parameters) > 1:
        return floor.left if parameter == definition.parameters[0].name else floor.right
    return float(max(left[0], right[0]))


def driving_nodes(estimates: Estimates, num_nodes: int = 5) -> dict[str, list[dict[str, Any]]]:
    """The nodes that move each ε of the headline most, as plain values."""
    return {
        f"{definition} {parameter}": [vars(node) for node in influence.drivers(num_nodes)]
        for (definition, parameter), influence in estimates.influences.items()
    }
