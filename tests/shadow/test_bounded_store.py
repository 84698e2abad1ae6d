"""A chunk that unpacks to more than it may is refused before anything of that size is allocated."""

import json
import resource
from pathlib import Path

import pytest
import stored_models
from numcodecs.zstd import Zstd  # type: ignore[import-untyped]
from stored_models import PLAN

from bmpaudit.graph.graph import Graph
from bmpaudit.shadow import ShadowStore
from bmpaudit.shadow.bounded_store import unpacked_size
from bmpaudit.util.errors import DataError

graph, whole, copy = stored_models.graph, stored_models.whole, stored_models.copy


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300, 65_535, 65_791, 65_792, 2**20])
def test_the_size_that_a_frame_declares(size: int) -> None:
    assert unpacked_size(bytes(Zstd(1).encode(bytes(size)))[:18]) == size


@pytest.mark.parametrize("start", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x00\x58", b"PK\x03\x04" + bytes(14)])
def test_frames_that_do_not_say(start: bytes) -> None:
    with pytest.raises(ValueError, match=r"a chunk (is not a Zstandard frame|does not say to how many bytes)"):
        unpacked_size(start)


def test_a_chunk_that_unpacks_to_gigabytes(graph: Graph, copy: Path) -> None:
    chunk = copy / "shadows" / "statistic_full_clean" / "c" / "0" / "0"
    # As a frame of 4 GB begins; nothing looks at the rest.
    chunk.write_bytes(b"\x28\xb5\x2f\xfd\xe0" + (2**32).to_bytes(8, "little") + bytes(100))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"statistic_full_clean/c/0/0 must unpack to 128,000 bytes, got 4,294,967,296"):
        ShadowStore(copy, graph, PLAN, read_only=True).read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**19  # kilobytes


def test_other_codecs_are_refused(graph: Graph, copy: Path) -> None:
    """Two of them, one after the other, would unpack what the first has unpacked."""
    path = copy / "shadows" / "statistic_full_clean" / "zarr.json"
    about = json.loads(path.read_text())
    about["codecs"].insert(1, about["codecs"][1])
    path.write_text(json.dumps(about))
    with pytest.raises(DataError, match="must be encoded by bytes, zstd, crc32c, got bytes, zstd, zstd, crc32c"):
        ShadowStore(copy, graph, PLAN, read_only=True)
