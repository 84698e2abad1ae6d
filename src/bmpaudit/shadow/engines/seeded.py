"""The random generators that Python and NumPy share among all code of a process, seeded for one model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Within the block `random` and `numpy.random` start from a seed; afterwards they are as they were.

    What a model draws from them then depends on the model alone, in whichever process it is trained.
    """
    before, numpy_before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the state that others use
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)  # noqa: NPY002
