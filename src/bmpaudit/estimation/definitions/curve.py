"""How a definition's parameters set ε_L and ε_R."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Definition

LARGEST = 1e6  # values of a parameter between -LARGEST and LARGEST are considered
BISECTIONS = 110  # from there down to the last digit
RESERVED_NAMES = ("strength", "tau", "rho")  # parameters of the estimator, not of a definition

# Irregular, so that no reasonable curve agrees with the identity at all of them by chance.
_MAGNITUDES = np.geomspace(1e-3, 1, 100) * np.sqrt(2) / 1.5
PROBES = np.unique(np.concatenate([scale * _MAGNITUDES for scale in (-LARGEST, -30.0, 30.0, LARGEST)]))


class Side(Enum):
    """What sets ε_L or ε_R."""

    PARAMETER = "the parameter itself"
    UNBOUNDED = "nothing: it is infinite"
    CURVE = "any other function of the parameter"


@dataclass(frozen=True)
class Curve:
    """What sets the two sides of a definition."""

    left: Side
    right: Side


def name_of(definition: Definition) -> str:
    """The short name of a definition, for titles, messages and file names."""
    return registry.label(registry.DEFINITION, definition)


def parameter_names(definition: Definition) -> tuple[str, ...]:
    """Names of the parameters, in order."""
    return tuple(parameter.name for parameter in definition.parameters)


def epsilons_of(definition: Definition, *values: Floats) -> tuple[Floats, Floats]:
    """(ε_L, ε_R), each with the shape of the values.

    Raises:
        InputError: if one is not a number.
    """
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


def curve_of(definition: Definition) -> Curve:
    """What sets the two sides, found by trying many values.

    Raises:
        InputError: if a side falls, neither side is bounded, or two parameters are not (ε_L, ε_R) themselves.
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
        return Curve(Side.PARAMETER, Side.PARAMETER)
    left, right = (
        _side(values, f"definition {name}: {symbol}")
        for symbol, values in zip(("ε_L", "ε_R"), epsilons_of(definition, PROBES), strict=True)
    )
    if left is right is Side.UNBOUNDED:
        raise InputError(f"definition {name} must bound ε_L or ε_R, got both infinite")
    return Curve(left, right)


def _side(values: Floats, what: str) -> Side:
    falls = np.flatnonzero(values[1:] < values[:-1])
    if falls.size:
        start, stop = PROBES[falls[0]], PROBES[falls[0] + 1]
        raise InputError(f"{what} must not fall as the parameter grows, got a fall between {start:g} and {stop:g}")
    if (values == np.inf).all():
        return Side.UNBOUNDED
    return Side.PARAMETER if np.array_equal(values, PROBES) else Side.CURVE


def smallest_values(
    definition: Definition, left: Floats, right: Floats, *, strictly: bool = False
) -> tuple[Floats, Floats]:
    """The smallest value of the one parameter at which ε_L reaches `left`, and at which ε_R reaches `right`.

    -∞ where a side is always that large, ∞ where it never is. With `strictly`, the side must exceed what is wanted.
    """
    curve = curve_of(definition)
    return (
        _smallest_value(definition, 0, curve.left, left, strictly),
        _smallest_value(definition, 1, curve.right, right, strictly),
    )


def _smallest_value(definition: Definition, number: int, side: Side, wanted: Floats, strictly: bool) -> Floats:
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
