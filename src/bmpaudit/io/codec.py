"""Results in files and back: trees of dataclasses as JSON, checked against their own types, or as flat arrays."""

import dataclasses
import json
from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from bmpaudit.io.readers import damage_in, read_json
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import plain

Tree = TypeVar("Tree")
SCALARS = (bool, int, float, str)

Number = Annotated[
    float,
    # JSON has no infinity: it is a text there, as `plain` writes it.
    BeforeValidator(lambda value: float(value) if value in ("inf", "-inf") else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}),
]
"""A number that may be infinite."""


class Record:
    """A base for dataclasses of a tree: whoever reads one refuses unknown keys, and takes no text for a number.

    A text in a field's annotation, `Annotated[int, "Number of models"]`, says in the schema what the field holds.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def encode(tree: Any) -> Any:
    """Nested values as JSON can hold them; what is not a number becomes None."""
    return plain(dataclasses.asdict(tree))


def decode(kind: type[Tree], values: Any) -> Tree:
    """The tree of nested values; a `ValueError` names the first place that does not fit, and why."""
    try:
        return _adapter(cast(Hashable, kind)).validate_json(json.dumps(values))
    except ValidationError as wrong:
        first = wrong.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


def read_record(path: Path, kind: type[Tree], *, remedy: str = "") -> Tree:
    """The tree of this kind in a JSON file; `DataError` if that holds something else. See `read_json`."""
    values = read_json(path, remedy=remedy)
    with damage_in(path, "a JSON file", remedy):
        return decode(kind, values)


def filled(kind: type[Tree], *sources: Any, **values: Any) -> Tree:
    """A dataclass with these values; its other fields are those of the first source that has any of the same name."""
    for name in {field.name for field in dataclasses.fields(cast(Any, kind))} - values.keys():
        for source in sources:
            if hasattr(source, name):
                values[name] = getattr(source, name)
                break
    return kind(**values)


def normal(tree: Tree) -> Tree:
    """The tree as it is after it was written and read: plain numbers, and None for what is not a number."""
    return decode(type(tree), encode(tree))


def json_schema(kind: type[Any], title: str, description: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a tree, with what the annotations say of each key."""
    schema = _adapter(cast(Hashable, kind)).json_schema()
    documented, left = dict[str, type[Any]](), [kind]  # the dataclass and all that it is made of
    while left:
        each = left.pop()
        if not (isinstance(each, type) and dataclasses.is_dataclass(each)):
            left += get_args(each)
        elif each.__name__ not in documented:
            documented[each.__name__] = each
            left += get_type_hints(each).values()
    for name, part in {kind.__name__: schema, **schema.get("$defs", {})}.items():
        for key, hint in get_type_hints(documented[name], include_extras=True).items():
            for about in (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)):
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


# Results that are mostly arrays, as one flat mapping that `numpy.savez` can hold


def to_arrays(result: Any, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Fields of a dataclass, and of those inside it, by their dotted names.

    Numbers and texts become arrays without axes, equal fields of several dataclasses in a tuple one array; what is None
    has no array.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in dataclasses.fields(result):
        value, name = getattr(result, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            arrays.update(to_arrays(value, f"{name}."))
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            rows = [to_arrays(row, f"{name}.") for row in value]
            arrays.update({key: np.stack([row[key] for row in rows]) for key in rows[0]})
        elif value is not None:
            arrays[name] = np.asarray(value)
    return arrays


def from_arrays(kind: type[Tree], arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Tree:
    """The dataclass that `to_arrays` has taken apart; names that it does not have are ignored."""
    values = {name: _value(hint, arrays, prefix + name) for name, hint in get_type_hints(kind).items()}
    return kind(**values)


def _value(hint: Any, arrays: Mapping[str, npt.NDArray[Any]], key: str) -> Any:
    if NoneType in get_args(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
        if key not in arrays and not any(name.startswith(f"{key}.") for name in arrays):
            return None
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_arrays(hint, arrays, f"{key}.")
    row = get_args(hint)[0] if get_origin(hint) is tuple else None
    if dataclasses.is_dataclass(row) and isinstance(row, type):
        columns = {name: arrays[name] for name in arrays if name.startswith(f"{key}.")}
        num_rows = min((len(column) for column in columns.values()), default=0)
        each = ({name: column[k] for name, column in columns.items()} for k in range(num_rows))
        return tuple(from_arrays(row, values, f"{key}.") for values in each)
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
