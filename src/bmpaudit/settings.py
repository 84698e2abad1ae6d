"""Settings of a part from plain values: keys and types are checked, and what is wrong is said in one line."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

import pydantic

from bmpaudit.errors import InputError, did_you_mean

STRICT = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


def make(kind: type[Any], values: Mapping[str, Any], section: str, also: tuple[str, ...] = ("name",)) -> Any:
    """An object of a dataclass, or of any class whose fields are annotated, from the values of a file.

    Args:
        kind: The class.
        values: By field; lists stand for tuples.
        section: What messages call it, such as `sampler`.
        also: Further keys that are allowed there, for the list in messages.

    Raises:
        InputError: naming the key, what is allowed and the value.
    """
    if not dataclasses.is_dataclass(kind):
        if values:
            raise InputError(f"{section} {kind.__qualname__} is not a dataclass and takes no settings")
        return kind()
    wanted: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        if each.init:
            default = each.default if each.default is not dataclasses.MISSING else ...
            if each.default_factory is not dataclasses.MISSING:
                default = each.default_factory()
            wanted[each.name] = (hints[each.name], default)
    model = pydantic.create_model("Settings", __config__=STRICT, **wanted)
    # TOML has lists where we have tuples.
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        checked = dict(model(**plain))
    except pydantic.ValidationError as wrong:
        raise InputError(explain(section, wrong, [*also, *wanted])) from None
    try:
        return kind(**checked)
    except InputError as wrong:
        raise InputError(f"[{section}] {wrong}") from None


def unknown_key(section: str, name: str, allowed: typing.Sequence[str]) -> str:
    """What to say of a key that a section does not have; without a section, of one at the top of a file."""
    key, where = (f"{section}.{name}", f"in [{section}]") if section else (name, "here")
    return f"unknown key {key}; allowed {where}: {', '.join(allowed)}{did_you_mean(name, allowed)}"


def explain(section: str, wrong: pydantic.ValidationError, allowed: typing.Sequence[str]) -> str:
    """The first thing that pydantic found wrong, in one line."""
    # An unknown key comes first: it may be a misspelt one, which is then missing.
    first = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
    key = ".".join([*([section] if section else []), str(first["loc"][0])])
    if first["type"] == "extra_forbidden":
        return unknown_key(section, str(first["loc"][0]), allowed)
    if first["type"] == "missing":
        return f"{key} is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    message = first["msg"].removeprefix("Input should be ").replace("a valid ", "a ").replace("a integer", "an integer")
    return f"{key} must be {message.replace('a tuple', 'a list')}, got {first['input']!r}"
