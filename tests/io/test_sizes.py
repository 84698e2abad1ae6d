"""Small files that declare gigabytes are refused, or what is not needed of them is not read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bombs import npz_bomb, repeated_numbers, repeated_text

# Half a gigabyte more than the process has when everything is imported.
LIMITED = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
import bmpaudit
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.graph.graph import Graph
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.inference import released as infer_inputs
from bmpaudit.pipeline import outside_runs
from bmpaudit.io.readers import read_archive
from bmpaudit.io.readers import read_table
from bmpaudit.io.readers import read_json, read_toml
from bmpaudit.shadow.released import read_named_arrays
import pyarrow.parquet, pyarrow.compute, pandas

path = Path(sys.argv[1])
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**29, in_use + 2**29))
try:
    print("read", {read})
except bmpaudit.DataError as refusal:
    print("refused", refusal)
"""


def run_limited(path: Path, read: str) -> str:
    program = LIMITED.replace("{read}", read)
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


GRAPH: dict[str, Any] = {"edges": np.array([(0, 1)]), "y": np.array([0, 1]), "x": np.eye(2, dtype=np.float32)}


def test_a_member_that_is_not_needed_is_not_read(tmp_path: Path) -> None:
    path = npz_bomb(tmp_path / "a.npz", "unused", **GRAPH)
    assert path.stat().st_size < 2**22
    assert run_limited(path, "Graph.from_npz(path)").startswith("read 2 nodes, 1 edges")


@pytest.mark.parametrize(
    ("name", "others", "read"),
    [
        ("x", {key: value for key, value in GRAPH.items() if key != "x"}, "Graph.from_npz(path)"),
        (
            "full_clean",
            {"memberships": np.eye(2)},
            "outside_runs.read_runs_file(path, bmpaudit.datasets.load('demo'))",
        ),
        ("about", {}, "Posterior.load(path)"),
        ("weight", {}, "read_named_arrays(path)"),
        ("memberships", {}, "infer_inputs.known_members(path, bmpaudit.datasets.load('demo'))"),
    ],
)
def test_an_archive_that_unpacks_to_gigabytes_is_refused(
    name: str, others: dict[str, Any], read: str, tmp_path: Path
) -> None:
    path = npz_bomb(tmp_path / "a.npz", name, **others)
    message = run_limited(path, read)
    assert message.startswith(f"refused {path}: its arrays must take at most 1,073,741,824 bytes of memory, got 3,355,")


def test_an_array_that_says_to_be_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }"
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.ljust(127) + b"\n" + bytes(80))
    message = run_limited(path, "read_archive(path)")
    assert message.endswith("x of shape (1099511627776,) and type float64 cannot be in 80 bytes")


def test_a_table_of_one_number_is_refused(tmp_path: Path) -> None:
    path = repeated_numbers(tmp_path / "a.parquet")
    assert path.stat().st_size < 2**21
    assert run_limited(path, "read_table(path)").startswith(
        f"refused {path}: the table must take at most 1,073,741,824 bytes of memory, got 1,34"
    )


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    path = repeated_numbers(tmp_path / "a.parquet", 2**23, **dict.fromkeys("bcdefghijklmnopqrst", "int64"))
    assert run_limited(path, "read_table(path)").startswith(f"refused {path}: the table must take")
    assert run_limited(path, "read_table(path, required=['b'], only=True).shape") == f"read ({2**23}, 1)"


def test_a_table_of_one_long_text_is_refused(tmp_path: Path) -> None:
    path = repeated_text(tmp_path / "a.parquet")
    assert run_limited(path, "read_table(path)").startswith(
        f"refused {path}: the table must take at most 1,073,741,824 bytes of memory, got 20,97"
    )
    counts = repeated_text(tmp_path / "counts.parquet", "node")
    assert run_limited(counts, "ErrorCounts.from_table(path)").startswith(f"refused {counts}: the table must take")


@pytest.mark.parametrize(("read", "most"), [("read_json", 2**28), ("read_toml", 2**16)])
def test_a_long_text_is_refused_unread(read: str, most: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(2**40)
    message = run_limited(path, f"{read}(path)")
    assert message == f"refused {path}: must have at most {most:,} bytes, got {2**40:,}"


def test_absurd_numbers_of_nodes_and_features_are_refused(tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "x_indptr": np.array([0, 1, 1]),
        "x_indices": np.array([0]),
        "x_shape": np.array([2, 2**31]),
    }
    parts = {key: value for key, value in GRAPH.items() if key != "x"}
    np.savez(tmp_path / "a.npz", **parts, **rows)
    message = run_limited(tmp_path / "a.npz", "Graph.from_npz(path)")
    assert message.endswith("features must have at most 4,194,304 columns, got 2,147,483,648")
    np.savez(tmp_path / "b.npz", **GRAPH, num_nodes=np.array(2**62))
    message = run_limited(tmp_path / "b.npz", "Graph.from_npz(path)")
    assert message.endswith(f"num_nodes must be 2, the length of y, got {2**62}")
    np.savez(tmp_path / "c.npz", **GRAPH | {"edges": np.array([(0, 2**62)])})
    assert "node ids must be in [0, 2)" in run_limited(tmp_path / "c.npz", "Graph.from_npz(path)")
