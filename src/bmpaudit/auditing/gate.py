"""A gate: how much an audit may find before a model must not be released. It changes no answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic
from pydantic import BeforeValidator, Field, ValidationInfo

from bmpaudit.errors import InputError
from bmpaudit.proof.exposure import PRECISIONS
from bmpaudit.settings import STRICT, explain

LARGEST = 100.0  # e^100 : 1 is beyond anything that can be proven or estimated


@dataclass(frozen=True)
class ExposureLimit:
    """At most so many nodes may be named correctly from one released model, at a precision.

    Attributes:
        nodes: Number of nodes, on average over models.
        precision: How sure the adversary wants to be, one of the exposure curve's precisions.
    """

    nodes: float
    precision: float

    @classmethod
    def parse(cls, text: str) -> ExposureLimit:
        """From `N@P`.

        >>> ExposureLimit.parse("10@0.99")
        ExposureLimit(nodes=10.0, precision=0.99)

        Raises:
            InputError: if it is not of that form.
        """
        try:
            nodes, precision = map(float, text.split("@"))
        except ValueError:
            raise InputError(f"must be N@P, such as 10@0.99, got {text!r}") from None
        return cls(nodes, precision)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.nodes) and self.nodes >= 0):
            raise InputError(f"must allow a number of nodes of at least 0, got {self.nodes:g}")
        if self.precision not in PRECISIONS:
            listed = ", ".join(f"{precision:g}" for precision in PRECISIONS)
            raise InputError(f"must have a precision of the exposure curve ({listed}), got {self.precision:g}")

    def __str__(self) -> str:
        return f"{self.nodes:g}@{self.precision:g}"


def _limits(value: Any, info: ValidationInfo) -> tuple[ExposureLimit, ...]:
    try:
        limits = tuple(map(_limit, value if isinstance(value, (list, tuple)) else (value,)))
    except InputError as wrong:
        raise InputError(f"gate.{info.field_name} {wrong}") from None
    precisions = [limit.precision for limit in limits]
    for precision in precisions:
        if precisions.count(precision) > 1:
            raise InputError(f"gate.{info.field_name} must name each precision once, got {precision:g} twice")
    return limits


def _limit(value: Any) -> ExposureLimit:
    if isinstance(value, ExposureLimit):
        return value
    if not isinstance(value, str):
        raise InputError(f"must be N@P, such as 10@0.99, got {value!r}")
    return ExposureLimit.parse(value)


# Odds may be limited to less than 1 : 1; by how much they change, to a factor of at least 1.
Epsilon = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
MpEpsilon = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Limits = Annotated[tuple[ExposureLimit, ...], BeforeValidator(_limits)]


class Gate(pydantic.BaseModel):
    """Thresholds that `check` holds an audit against; docs/gate.md says which to choose.

    Attributes:
        release: Release that is checked, such as clean or noisy; the plan's first if empty.
        max_proven_right: Largest ε_R that may be proven.
        max_proven_left: Largest ε_L that may be proven.
        max_proven_mp: Largest ε of MP that may be proven.
        max_exposure: Most members named correctly per released model at a precision, N@P; or a list of these.
        max_exposure_non_members: Most non-members named correctly per released model at a precision, N@P; or a list.
        max_estimated_right: Largest ε_R that may be estimated.
        max_estimated_left: Largest ε_L that may be estimated.
        max_estimated_mp: Largest ε of MP that may be estimated.

    >>> Gate(max_proven_right=3, max_exposure="10@0.99").to_table()
    {'max_proven_right': 3.0, 'max_exposure': ['10@0.99']}
    """

    model_config = STRICT

    release: str = ""
    max_proven_right: Epsilon | None = None
    max_proven_left: Epsilon | None = None
    max_proven_mp: MpEpsilon | None = None
    max_exposure: Limits = ()
    max_exposure_non_members: Limits = ()
    max_estimated_right: Epsilon | None = None
    max_estimated_left: Epsilon | None = None
    max_estimated_mp: MpEpsilon | None = None

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except pydantic.ValidationError as wrong:
            raise InputError(explain("gate", wrong, list(type(self).model_fields))) from None

    def replace(self, **changes: Any) -> Gate:
        """The gate with other values, checked again."""
        return Gate(**{**dict(self), **changes})

    @property
    def has_thresholds(self) -> bool:
        """Whether there is anything to check."""
        return bool(self.replace(release="").to_table())

    def to_table(self) -> dict[str, Any]:
        """The values of a plan file's section `[gate]`; what is not limited is left out."""
        return {
            name: list(map(str, value)) if isinstance(value, tuple) else value
            for name, value in self
            if value not in (None, (), "")
        }
