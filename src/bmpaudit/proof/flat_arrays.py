"""Results as one flat mapping of arrays, which `numpy.savez` can hold, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from bmpaudit.util.errors import InputError

Result = TypeVar("Result")
SCALARS = (bool, int, float, str)


def to_arrays(result: Any, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Fields of a dataclass, and of those inside it, by their dotted names.

    Numbers and texts become arrays without axes; what is None has no array.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in dataclasses.fields(result):
        value, name = getattr(result, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            arrays.update(to_arrays(value, f"{name}."))
        elif value is not None:
            arrays[name] = np.asarray(value)
    return arrays


def from_arrays(kind: type[Result], arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Result:
    """The dataclass that `to_arrays` has taken apart; names that it does not have are ignored.

    Raises:
        InputError: if an array is missing, or is not a number or text where there should be one.
    """
    values = {name: _value(hint, arrays, prefix + name) for name, hint in get_type_hints(kind).items()}
    return kind(**values)


def _value(hint: Any, arrays: Mapping[str, npt.NDArray[Any]], key: str) -> Any:
    if NoneType in get_args(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
        if key not in arrays and not any(name.startswith(f"{key}.") for name in arrays):
            return None
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_arrays(hint, arrays, f"{key}.")
    if key not in arrays:
        raise InputError(f"array {key} is missing")
    array = np.asarray(arrays[key])
    if get_origin(hint) is tuple:
        return tuple(array.tolist())
    kind = str if get_origin(hint) is Literal else hint
    if kind not in SCALARS:
        return array
    if array.ndim:
        raise InputError(f"array {key} must be a single value, got shape {array.shape}")
    return kind(array.item())
