"""Privacy definitions: which ε is estimated, and how its parameters set ε_L and ε_R."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from bmpaudit import registry
from bmpaudit.interfaces import Definition
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats

LARGEST = 1e6  # values of a parameter between -LARGEST and LARGEST are considered
BISECTIONS = 110  # from there down to the last digit
RESERVED_NAMES = ("strength", "tau", "rho")  # parameters of the estimator, not of a definition

# Irregular, so that no reasonable curve agrees with the identity at all of them by chance.
_MAGNITUDES = np.geomspace(1e-3, 1, 100) * np.sqrt(2) / 1.5
PROBES = np.unique(np.concatenate([scale * _MAGNITUDES for scale in (-LARGEST, -30.0, 30.0, LARGEST)]))


@dataclass(frozen=True)
class Parameter:
    """One ε of a definition."""

    name: str  # in code, files and tables, such as `epsilon_right`
    symbol: str  # in text, such as `ε_R`
    latex: str  # in LaTeX's math mode, without dollar signs
    meaning: str  # in a few words


EPSILON = Parameter("epsilon", "ε", r"\varepsilon", "how sure an adversary can become, either way")
_SURE = "how sure an adversary can become that a node was"
EPSILON_LEFT = Parameter("epsilon_left", "ε_L", r"\varepsilon_L", f"{_SURE} not in")
EPSILON_RIGHT = Parameter("epsilon_right", "ε_R", r"\varepsilon_R", f"{_SURE} in")


class DefinitionBase:
    """A definition with one parameter ε that takes the prior odds into account; subclasses add `epsilons`.

    Your own definition is any continuous curve (ε_L(t), ε_R(t)), neither side of which falls as t grows:

    >>> class BMPRatio(DefinitionBase):
    ...     def epsilons(self, epsilon):
    ...         return 2 * epsilon, epsilon
    >>> registry.label(registry.DEFINITION, BMPRatio())
    'bmpratio'
    """

    parameters: ClassVar[Sequence[Parameter]] = (EPSILON,)
    uses_prior: ClassVar[bool] = True

    def empties_support(self, log_prior_odds: Floats) -> Flags:
        """Nodes whose certain prior rules out every finite value: η = 0 where ε_L is bounded, η = ∞ where ε_R is."""
        left, right = sides_of(cast(Definition, self))
        is_never_in = (log_prior_odds == -np.inf) & (left is not Side.UNBOUNDED)
        is_always_in = (log_prior_odds == np.inf) & (right is not Side.UNBOUNDED)
        return self.uses_prior & (is_never_in | is_always_in)


@dataclass(frozen=True)
class BMP(DefinitionBase):
    """(ε_L, ε_R)-Bayesian membership privacy: the region R_η(ε_L, ε_R) (Definition 3)."""

    parameters = (EPSILON_LEFT, EPSILON_RIGHT)

    def epsilons(self, epsilon_left: Floats, epsilon_right: Floats) -> tuple[Floats, Floats]:
        """The parameters themselves."""
        return epsilon_left, epsilon_right


@dataclass(frozen=True)
class BMPLeft(DefinitionBase):
    """ε_L of BMP, ε_R being unbounded: the region R_η(ε_L, ∞) (Definition 4)."""

    parameters = (EPSILON_LEFT,)

    def epsilons(self, epsilon_left: Floats) -> tuple[Floats, float]:
        """ε_R = ∞."""
        return epsilon_left, np.inf


@dataclass(frozen=True)
class BMPRight(DefinitionBase):
    """ε_R of BMP, ε_L being unbounded: the region R_η(∞, ε_R) (Definition 4)."""

    parameters = (EPSILON_RIGHT,)

    def epsilons(self, epsilon_right: Floats) -> tuple[float, Floats]:
        """ε_L = ∞."""
        return np.inf, epsilon_right


@dataclass(frozen=True)
class BMPSymmetric(DefinitionBase):
    """BMP with ε_L = ε_R: the region R_η(ε, ε)."""

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """ε_L = ε_R = ε."""
        return epsilon, epsilon


@dataclass(frozen=True)
class MP(BMPSymmetric):
    """ε-membership privacy: the region R_1(ε, ε) (Definition 1)."""

    parameters = (Parameter("epsilon", "ε", r"\varepsilon", "how far the odds move, whatever the prior"),)
    uses_prior = False


def name_of(definition: Definition) -> str:
    """The short name of a definition, for titles, messages and file names."""
    return registry.label(registry.DEFINITION, definition)


def parameter_names(definition: Definition) -> tuple[str, ...]:
    """Names of the parameters, in order."""
    return tuple(parameter.name for parameter in definition.parameters)


def epsilons_of(definition: Definition, *values: Floats) -> tuple[Floats, Floats]:
    """(ε_L, ε_R), each with the shape of the values; an `InputError` if one is not a number."""
    shape = np.broadcast_shapes(*(np.shape(value) for value in values))
    with np.errstate(all="ignore"):
        left, right = (
            np.broadcast_to(np.asarray(side, dtype=np.float64), shape) for side in definition.epsilons(*values)
        )
    for symbol, side in (("ε_L", left), ("ε_R", right)):
        if np.isnan(side).any():
            first = float(np.broadcast_to(values[0], shape)[np.isnan(side)][0])
            raise InputError(f"definition {name_of(definition)}: {symbol} must be a number, got nan at {first:g}")
    return left, right


class Side(Enum):
    """What sets ε_L or ε_R."""

    PARAMETER = "the parameter itself"
    UNBOUNDED = "nothing: it is infinite"
    CURVE = "any other function of the parameter"


def sides_of(definition: Definition) -> tuple[Side, Side]:
    """What sets ε_L and ε_R, found by trying many values.

    An `InputError` if a side falls, neither side is bounded, or two parameters are not (ε_L, ε_R) themselves.
    """
    name, names = name_of(definition), parameter_names(definition)
    if len(names) not in (1, 2) or len({*names, *RESERVED_NAMES}) != len(names) + len(RESERVED_NAMES):
        raise InputError(
            f"definition {name} must have one or two parameters, named differently and not "
            f"{', '.join(RESERVED_NAMES)}; got {', '.join(names) or 'none'}"
        )
    if len(names) == 2:
        both = epsilons_of(definition, PROBES, PROBES[::-1])
        if not (np.array_equal(both[0], PROBES) and np.array_equal(both[1], PROBES[::-1])):
            raise InputError(f"definition {name} has two parameters, so its epsilons must return them as (ε_L, ε_R)")
        return Side.PARAMETER, Side.PARAMETER
    sides = []
    for symbol, values in zip(("ε_L", "ε_R"), epsilons_of(definition, PROBES), strict=True):
        falls = np.flatnonzero(values[1:] < values[:-1])
        if falls.size:
            raise InputError(
                f"definition {name}: {symbol} must not fall as the parameter grows, got a fall between "
                f"{PROBES[falls[0]]:g} and {PROBES[falls[0] + 1]:g}"
            )
        bounded = Side.PARAMETER if np.array_equal(values, PROBES) else Side.CURVE
        sides.append(Side.UNBOUNDED if (values == np.inf).all() else bounded)
    if sides == [Side.UNBOUNDED, Side.UNBOUNDED]:
        raise InputError(f"definition {name} must bound ε_L or ε_R, got both infinite")
    return sides[0], sides[1]


def smallest_values(
    definition: Definition, left: Floats, right: Floats, *, strictly: bool = False
) -> tuple[Floats, Floats]:
    """The smallest value of the one parameter at which ε_L reaches `left`, and at which ε_R reaches `right`.

    -∞ where a side is always that large, ∞ where it never is. With `strictly`, the side must exceed what is wanted.
    """

    def smallest(number: int, side: Side, wanted: Floats) -> Floats:
        if side is Side.PARAMETER:
            return wanted
        if side is Side.UNBOUNDED:
            return np.full_like(wanted, -np.inf)

        def is_reached(values: Floats) -> Flags:
            epsilon = epsilons_of(definition, values)[number]
            return (epsilon > wanted) | (epsilon == np.inf) if strictly else epsilon >= wanted

        low, high = np.full_like(wanted, -LARGEST), np.full_like(wanted, LARGEST)
        is_always, is_never = is_reached(low), ~is_reached(high)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            is_enough = is_reached(middle)
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return np.where(is_always, -np.inf, np.where(is_never, np.inf, high))

    sides = sides_of(definition)
    return smallest(0, sides[0], left), smallest(1, sides[1], right)


@dataclass(frozen=True, eq=False)
class ProvenEpsilon:
    """The lower confidence bound on one parameter."""

    bound: float | None  # largest value that the errors prove, over all nodes; None if they prove nothing
    floor: float  # what holds whatever the attack and the model (Prop. 1); a confidence bound if priors were sampled
    node: Any  # that attains `bound`; None if nothing is proven
    term: str | None  # ratio of error rates that attains it; None if nothing is proven
    per_node: Floats  # what each node's errors prove, shape (K,); -∞ where nothing; all of them hold together

    def __str__(self) -> str:
        return "nothing" if self.bound is None else f"≥ {self.bound:6.3f}"

    def __or__(self, other: ProvenEpsilon) -> ProvenEpsilon:
        """Both statements as one, about a parameter that each of them bounds."""
        is_larger = other.bound is not None and (self.bound is None or other.bound > self.bound)
        floor, per_node = max(self.floor, other.floor), np.maximum(self.per_node, other.per_node)
        return replace(other if is_larger else self, floor=floor, per_node=per_node)


@dataclass(frozen=True)
class StoredDefinition(registry.UntrustedPart):
    """A definition of somebody's own, as a file describes it: enough to read a posterior, not to estimate another."""

    parameters: tuple[Parameter, ...] = ()
    uses_prior: bool = True
    proven: Mapping[str, ProvenEpsilon] = field(default_factory=dict)  # what was proven about each parameter, by name

    def epsilons(self, *_: Any) -> NoReturn:
        """Needs the code of the definition, which nobody has said may be run."""
        raise registry.untrusted(self.kind, self.target)

    empties_support = epsilons
