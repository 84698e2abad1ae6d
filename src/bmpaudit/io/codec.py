"""Results in files and back: trees of dataclasses as JSON, checked against their own types, or as flat arrays."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from bmpaudit.io.readers import damage_in, read_json
from bmpaudit.registry import field_help
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import plain

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

Tree = TypeVar("Tree")
SCALARS = (bool, int, float, str)


def _number(value: Any) -> Any:
    """JSON has no infinity: it is a text there, as `plain` writes it."""
    return float(value) if value in ("inf", "-inf") else value


Number = Annotated[
    float,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}),
]
"""A number that may be infinite."""


class Record:
    """A base for dataclasses of a tree: whoever reads one refuses unknown keys, and takes no text for a number."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def encode(tree: Any) -> Any:
    """Nested values as JSON can hold them; what is not a number becomes None."""
    return plain(dataclasses.asdict(tree))


def decode(kind: type[Tree], values: Any) -> Tree:
    """The tree of nested values.

    Raises:
        ValueError: naming the first place that does not fit, and why.
    """
    try:
        return _adapter(cast(Hashable, kind)).validate_json(json.dumps(values))
    except ValidationError as wrong:
        first = wrong.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


def read_record(path: Path, kind: type[Tree], *, remedy: str = "") -> Tree:
    """The tree in a JSON file.

    Args:
        path: The file.
        kind: What it holds.
        remedy: What to do if it is damaged, such as "; remove it to have it made again".

    Raises:
        DataError: if the file is missing, too large, damaged, or holds something else.
    """
    values = read_json(path, remedy=remedy)
    with damage_in(path, "a JSON file", remedy):
        return decode(kind, values)


def normal(tree: Tree) -> Tree:
    """The tree as it is after it was written and read: plain numbers, and None for what is not a number."""
    return decode(type(tree), encode(tree))


def json_schema(kind: type[Any], title: str, description: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a tree, with what the docstrings say of each key."""
    schema: JsonSchemaValue = _adapter(cast(Hashable, kind)).json_schema()
    documented = {part.__name__: part for part in _records(kind)}
    for name, part in {kind.__name__: schema, **schema.get("$defs", {})}.items():
        for key, about in field_help(documented[name]).items():
            if key in part["properties"]:
                part["properties"][key]["description"] = f"{about}."
        part["description"] = part["description"].partition("\n")[0]
        part.pop("title", None)
        for each in part["properties"].values():
            each.pop("title", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description}
    return {**head, **{key: value for key, value in schema.items() if key != "description"}}


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def _records(kind: type[Any]) -> list[type[Any]]:
    """A dataclass and all that it is made of."""
    found, left = list[type[Any]](), [kind]
    while left:
        each = left.pop()
        if isinstance(each, type) and dataclasses.is_dataclass(each):
            if each not in found:
                found.append(each)
                left += typing.get_type_hints(each).values()
        else:
            left += typing.get_args(each)
    return found


# Results that are mostly arrays, as one flat mapping that `numpy.savez` can hold


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


def from_arrays(kind: type[Tree], arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Tree:
    """The dataclass that `to_arrays` has taken apart; names that it does not have are ignored.

    Raises:
        InputError: if an array is missing, or is not a number or text where there should be one.
    """
    values = {name: _value(hint, arrays, prefix + name) for name, hint in typing.get_type_hints(kind).items()}
    return kind(**values)


def _value(hint: Any, arrays: Mapping[str, npt.NDArray[Any]], key: str) -> Any:
    if NoneType in typing.get_args(hint):
        (hint,) = (each for each in typing.get_args(hint) if each is not NoneType)
        if key not in arrays and not any(name.startswith(f"{key}.") for name in arrays):
            return None
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_arrays(hint, arrays, f"{key}.")
    if key not in arrays:
        raise InputError(f"array {key} is missing")
    array = np.asarray(arrays[key])
    if typing.get_origin(hint) is tuple:
        return tuple(array.tolist())
    kind = str if typing.get_origin(hint) is typing.Literal else hint
    if kind not in SCALARS:
        return array
    if array.ndim:
        raise InputError(f"array {key} must be a single value, got shape {array.shape}")
    return kind(array.item())
