"""Samples are written some at a time, to the bytes of a file that is written at once."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.pipeline.pipeline import write_samples
from bmpaudit.samplers import Snowball, draw_memberships
from bmpaudit.util import matrices


def test_samples_in_blocks_are_those_drawn_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, sampler = datasets.load("demo"), Snowball(0.25)
    memberships = draw_memberships(graph, sampler, 50, seed=3)
    np.savez_compressed(tmp_path / "whole.npz", memberships=memberships)
    monkeypatch.setattr(matrices, "MAX_BLOCK", 7 * graph.num_nodes)
    write_samples(tmp_path / "blocks.npz", graph=graph, sampler=sampler, num_samples=50, seed=3, num_threads=2)
    with np.load(tmp_path / "blocks.npz") as archive:
        np.testing.assert_array_equal(archive["memberships"], memberships)
    whole, blocks = (zipfile.ZipFile(tmp_path / name).read("memberships.npy") for name in ("whole.npz", "blocks.npz"))
    assert blocks == whole
