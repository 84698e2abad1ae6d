"""Results as one flat mapping of arrays, which `numpy.savez` can hold, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError

Result = TypeVar("Result")
SCALARS = (bool, int, float)


def to_arrays(result: Any, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Fields of a dataclass, and of those inside it, by their dotted names; numbers become arrays without axes."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in dataclasses.fields(result):
        value, name = getattr(result, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            arrays.update(to_arrays(value, f"{name}."))
        else:
            arrays[name] = np.asarray(value)
    return arrays


def from_arrays(kind: type[Result], arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Result:
    """The dataclass that `to_arrays` has taken apart; names that it does not have are ignored.

    Raises:
        DataError: if an array is missing, or is not a number where there should be one.
    """
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        key = prefix + name
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            values[name] = from_arrays(hint, arrays, f"{key}.")
            continue
        if key not in arrays:
            raise DataError(f"exposure: array {key} is missing")
        array = np.asarray(arrays[key])
        if hint in SCALARS:
            if array.ndim:
                raise DataError(f"exposure: array {key} must be a single number, got shape {array.shape}")
            values[name] = hint(array.item())
        else:
            values[name] = array
    return kind(**values)
