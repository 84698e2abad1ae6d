"""What PyTorch frees stays with the process only while models are trained."""

import ctypes
import resource

import numpy as np
import pytest

from bmpaudit.shadow.engines.processes import reused_memory

NUM_BYTES = 40 << 20  # more than glibc ever keeps by itself
PAGES = NUM_BYTES // resource.getpagesize()


def page_faults(times: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        np.ones(NUM_BYTES, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc only")
def test_freed_memory_is_used_again_within_the_block_and_given_back_after_it() -> None:
    with reused_memory():
        page_faults(2)
        assert page_faults(10) < PAGES  # of 10 * PAGES
        held = np.ones(NUM_BYTES, dtype=np.uint8)
        del held
        before = resident_pages()
    assert resident_pages() < before - PAGES // 2


def resident_pages() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1])


def test_an_error_passes_through() -> None:
    with pytest.raises(KeyError), reused_memory():
        raise KeyError
