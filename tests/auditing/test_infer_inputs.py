"""Declared priors and known members, in every form they may come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bmpaudit.graph.graph import Graph
from bmpaudit.inference.released import declared_prior, known_members
from bmpaudit.util.errors import DataError, InputError

NAMES = ["Rex", "Tom", "7", "Bo"]
GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3)], np.eye(4), [0, 1, 0, 1], node_names=NAMES)
PRIORS = np.array([0.1, 0.2, 0.3, 0.4])
MEMBERS = np.array([True, False, True, False])


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    if isinstance(value, str):
        path.write_text(value)
    elif path.suffix == ".npy":
        np.save(path, value)
    elif path.suffix == ".npz":
        np.savez(path, **value)
    else:
        pd.DataFrame(value).to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.npy", PRIORS),
        ("a.csv", "prior_prob\n0.1\n0.2\n0.3\n0.4\n"),
        ("a.csv", "node,prior_prob,sampler\nBo,0.4,x\nTom,0.2,x\nRex,0.1,x\n7,0.3,x\n"),
        ("a.csv", "node,prior_prob\n3,0.4\n1,0.2\n0,0.1\n7,0.3\n"),
        ("a.parquet", {"node": ["Tom", "Rex", "Bo", "7"], "prior_prob": PRIORS[[1, 0, 3, 2]]}),
    ],
)
def test_priors_of_a_file(tmp_path: Path, name: str, value: Any) -> None:
    path = written(tmp_path, name, value)
    assert declared_prior(path, GRAPH).tolist() == PRIORS.tolist()
    assert declared_prior(str(path), GRAPH).tolist() == PRIORS.tolist()


def test_priors_of_a_number_and_an_array() -> None:
    for one in (0.25, "0.25", np.float32(0.25)):
        assert declared_prior(one, GRAPH).tolist() == [0.25] * 4
    assert declared_prior([0, 1, 0.5, 0.25], GRAPH).tolist() == [0, 1, 0.5, 0.25]


@pytest.mark.parametrize("prior", [0, 1, 1.5, -0.1, "1", "inf", float("nan")])
def test_one_prior_for_all_must_be_inside(prior: Any) -> None:
    with pytest.raises(InputError, match=r"prior must be in \(0, 1\), got"):
        declared_prior(prior, GRAPH)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a.npy", np.array([0.1, 0.2, 1.3, 0.4]), r"priors must be in \[0, 1\], got 1.3 for node '7'"),
        ("a.npy", np.array([0.1, np.nan, 0.3, 0.4]), r"priors must be in \[0, 1\], got nan for node 'Tom'"),
        (
            "a.npy",
            PRIORS[:3],
            r"priors must be numbers of shape \(4,\), one for each node, got float64 of shape \(3,\)",
        ),
        ("a.npy", "text", "damaged or not an .npy array"),
        ("a.csv", "node,prior\nRex,0.1\n", "column 'prior_prob' is missing; the first columns are node, prior"),
        ("a.csv", "node,prior_prob\nRex,0.1\n", "must have a row for each of 4 nodes, got 1"),
        ("a.csv", "node,prior_prob\nRex,0.1\nTom,0.1\nMax,0.1\nBo,0.1\n", "there is no node 'Max' among the graph's 4"),
        ("a.csv", "node,prior_prob\nRex,0.1\nTom,0.1\nTom,0.1\nBo,0.1\n", "node 'Tom' is there twice"),
        ("a.csv", "prior_prob\n0.1\nhalf\n0.3\n0.4\n", r"priors must be numbers of shape \(4,\)"),
        ("a.csv", "", "damaged or not a csv table"),
        ("a.parquet", "text", "damaged or not a parquet table"),
        ("a.json", "[0.1]", "priors must be a number, or a file .npy, .csv or .parquet"),
    ],
)
def test_wrong_priors(tmp_path: Path, name: str, value: Any, message: str) -> None:
    path = written(tmp_path, name, value)
    with pytest.raises(InputError, match=message) as refusal:
        declared_prior(path, GRAPH)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.npy", MEMBERS),
        ("a.npy", MEMBERS.astype(np.int64)),
        ("a.npy", np.array([2, 0])),
        ("a.npy", np.array(["7", "Rex"])),
        ("a.npy", MEMBERS[None]),
        ("a.npz", {"memberships": MEMBERS, "other": PRIORS}),
        ("a.npz", {"anything": np.array([0, 2])}),
        ("a.txt", "Rex\n\n7\n"),
        ("a.txt", "0\r\n2\r\n"),
        ("a.csv", "node\n7\nRex\n"),
        ("a.csv", "member\n1\n0\n1\n0\n"),
        ("a.csv", "node,member\nBo,False\nTom,false\nRex,true\n7,True\n"),
        ("a.parquet", {"node": ["Rex", "7"]}),
        ("a.parquet", {"node": ["Bo", "7", "Rex", "Tom"], "member": [False, True, True, False]}),
    ],
)
def test_members_of_a_file(tmp_path: Path, name: str, value: Any) -> None:
    assert known_members(written(tmp_path, name, value), GRAPH).tolist() == MEMBERS.tolist()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a.npy", np.zeros(4, dtype=bool), "there must be members and non-members, got 0 of 4"),
        ("a.npy", np.ones(4, dtype=bool), "there must be members and non-members, got 4 of 4"),
        ("a.npy", np.ones(3, dtype=bool), "must have a flag for each of 4 nodes, got 3"),
        ("a.npy", np.array([0, 9]), "there is no node 9 among the graph's 4"),
        ("a.npy", np.array([-1]), "there is no node -1"),
        ("a.npy", np.array([3, 3]), "node 3 is there twice"),
        ("a.npy", np.zeros((2, 4)), r"must be a flag for each of 4 nodes, or the members, got shape \(2, 4\)"),
        ("a.npz", {"a": MEMBERS, "b": MEMBERS}, "must hold one array, or memberships, got a, b"),
        ("a.npz", {}, "must hold one array, or memberships, got nothing"),
        ("a.txt", "Rex\nMax\n", "there is no node 'Max'"),
        ("a.txt", "", "there must be members and non-members, got 0 of 4"),
        ("a.csv", "name\nRex\n", "must have a column node or member, got name"),
        ("a.csv", "member\n1\n2\n1\n0\n", "member must be 0 or 1, or true or false"),
        ("a.toml", "", "who was in must be told by a file .npy, .npz, .csv, .parquet or .txt"),
    ],
)
def test_wrong_members(tmp_path: Path, name: str, value: Any, message: str) -> None:
    path = written(tmp_path, name, value)
    with pytest.raises(InputError, match=message) as refusal:
        known_members(path, GRAPH)
    assert str(refusal.value).startswith(f"{path}: ")


def test_missing_files(tmp_path: Path) -> None:
    for suffix in ("npy", "npz", "csv", "parquet", "txt"):
        with pytest.raises(DataError, match=f"no.{suffix}: no such file"):
            known_members(tmp_path / f"no.{suffix}", GRAPH)
    for suffix in ("npy", "csv", "parquet"):
        with pytest.raises(DataError, match=f"no.{suffix}: no such file"):
            declared_prior(tmp_path / f"no.{suffix}", GRAPH)
