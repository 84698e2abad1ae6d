"""Trees of dataclasses as JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from bmpaudit.io.codec import Number, Record, decode, encode, json_schema, normal, read_record
from bmpaudit.util.errors import DataError


@dataclass(frozen=True)
class Leaf(Record):
    """A leaf."""

    size: Annotated[float | None, "How large it is; null if unknown"]
    limit: Annotated[Number, "How large it may be"]


@dataclass(frozen=True)
class Tree(Record):
    """A tree."""

    name: Annotated[str, "What it is called"]
    leaves: Annotated[dict[str, Leaf], "By place"]
    rings: Annotated[list[int], "Numbers"]


TREE = Tree("oak", {"top": Leaf(1.5, math.inf), "low": Leaf(None, -math.inf)}, [1, 2])
VALUES = {
    "name": "oak",
    "leaves": {"top": {"size": 1.5, "limit": "inf"}, "low": {"size": None, "limit": "-inf"}},
    "rings": [1, 2],
}


def test_a_tree_comes_back() -> None:
    assert encode(TREE) == VALUES
    assert decode(Tree, VALUES) == TREE
    assert json.loads(json.dumps(encode(TREE))) == VALUES


def test_numpy_values_become_plain_and_what_is_no_number_becomes_none() -> None:
    made = normal(Tree("oak", {"a": Leaf(np.float64("nan"), float(np.float32(0.5)))}, list(np.arange(2))))
    assert made == Tree("oak", {"a": Leaf(None, 0.5)}, [0, 1])
    assert type(made.rings[0]) is int


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 3}, "height: unexpected"),
        ({"name": 3}, "name: input should be a valid string"),
        ({"rings": [1, "2"]}, "rings.1: input should be a valid integer"),
        ({"rings": [1.5]}, "rings.0: input should be a valid integer"),
        ({"leaves": {"top": {"size": "1.5", "limit": 1}}}, "leaves.top.size: input should be a valid number"),
        ({"leaves": {"top": {"size": 1.5, "limit": "infinite"}}}, "leaves.top.limit: input should be a valid number"),
        ({"leaves": {"top": {"size": 1.5}}}, "leaves.top.limit: "),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change: dict[str, object], message: str, tmp_path: Path) -> None:
    changed = {**VALUES, **change}
    with pytest.raises(ValueError, match=f"^{message}"):
        decode(Tree, changed)
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(changed))
    with pytest.raises(DataError, match=f"tree.json: damaged or not a JSON file: {message}.*; grow another$"):
        read_record(path, Tree, remedy="; grow another")
    assert list(Draft202012Validator(json_schema(Tree, "tree", "")).iter_errors(changed))


def test_the_schema_describes_every_key() -> None:
    schema = json_schema(Tree, "tree", "What grows.")
    Draft202012Validator.check_schema(schema)
    assert (schema["title"], schema["description"]) == ("tree", "What grows.")
    assert schema["properties"]["rings"]["description"] == "Numbers."
    leaf = schema["$defs"]["Leaf"]
    assert leaf["description"] == "A leaf."
    assert leaf["properties"]["size"]["description"] == "How large it is; null if unknown."
    assert list(Draft202012Validator(schema).iter_errors(VALUES)) == []
