"""Kinds of arrays, and values as JSON can hold them."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[np.floating[Any]]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


def as_bytes(flags: Flags) -> Bytes:
    """Flags as the kernels take them, copied only if they do not lie together."""
    return np.ascontiguousarray(flags).view(np.uint8)


def plain(value: Any) -> Any:
    """Nested values without NumPy types; infinity becomes "inf" or "-inf" and NaN becomes None, as JSON has neither.

    >>> plain({"a": np.float64(1.5), "b": (np.inf, np.nan), "c": np.arange(2)})
    {'a': 1.5, 'b': ['inf', None], 'c': [0, 1]}
    """
    if value is None or type(value) in (str, int, bool):  # as most are, and telling a mapping takes long
        return value
    if isinstance(value, Mapping):
        return dict(zip(map(str, value), map(plain, value.values()), strict=True))
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def to_json(value: Any) -> str:
    """Indented JSON of any nested value, non-ASCII characters as they are.

    >>> print(to_json({"ε": np.inf}))
    {
      "ε": "inf"
    }
    """
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
