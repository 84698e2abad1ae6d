"""Memory that PyTorch frees is used again, instead of going back to the operating system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Of glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, MMAP_MAX = -1, -2, -3, -4
MEBIBYTE = 1 << 20


@contextmanager
def reused_memory() -> Iterator[None]:
    """Within the block, freed memory stays with the process; after it, what is free is given back.

    Each operation on a graph makes tensors of megabytes and frees them. glibc maps such memory anew every time, and the
    kernel fills it with zeros page by page, which takes up to two thirds of a training step. Without glibc, this does
    nothing.
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    _set(library, {MMAP_MAX: 0, TRIM_THRESHOLD: -1, TOP_PAD: 64 * MEBIBYTE})
    try:
        yield
    finally:
        # glibc's own defaults, with the thresholds as high as it would raise them in time.
        _set(
            library, {MMAP_MAX: 65_536, MMAP_THRESHOLD: 32 * MEBIBYTE, TRIM_THRESHOLD: 64 * MEBIBYTE, TOP_PAD: 131_072}
        )
        library.malloc_trim(0)


def _set(library: Any, settings: dict[int, int]) -> None:
    for name, value in settings.items():
        library.mallopt(name, value)
