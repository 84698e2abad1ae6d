"""Random streams: one independent, counter-based stream for each (seed, purpose, index), and no global state."""

from enum import IntEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bmpaudit.util.errors import InputError

MAX_SEED = 2**63 - 1


class Purpose(IntEnum):
    """What a stream is used for; the number is part of its key."""

    SAMPLE = 0
    PRIOR = 1
    DEMO_GRAPH = 2
    WEIGHTS = 3
    DROPOUT = 4
    NOISE = 5
    PERMUTATION_TEST = 6
    MHAAR = 7
    POSTERIOR = 8
    MEMBERSHIP_FIT = 9
    RELEASE = 10
    VALIDATION = 11
    EDGES = 12
    BATCHES = 13


def check_seed(seed: int) -> int:
    """Returns the seed, which must be a whole number from 0 to 2⁶³ - 1."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed must be a whole number in [0, 2**63), got seed={seed!r}")
    return int(seed)


def stream(seed: int, index: int, purpose: Purpose = Purpose.SAMPLE) -> np.random.Generator:
    """The random stream number `index` of a seed.

    A Philox4x64-10 generator with key (seed, purpose) whose counter starts at (0, 0, index, 0): streams of one key
    never overlap, and different keys give independent sequences. The native kernels produce the same bits.

    >>> stream(1, 0).random() == stream(1, 0).random()
    True
    >>> stream(1, 0).random() == stream(1, 1).random()
    False
    """
    key = np.array([check_seed(seed), int(purpose)], dtype=np.uint64)
    counter = np.array([0, 0, index, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


Index = TypeVar("Index", int, npt.NDArray[np.int64])
REPEAT = 2**40  # between the streams of a model's repeats; there are far fewer models


def repeat_index(index: Index, repeat: int) -> Index:
    """Which stream a repeat of a model has: another model trained on the same sample; the model itself is repeat 0.

    >>> repeat_index(7, 0), repeat_index(7, 1) == 7 + 2**40
    (7, True)
    """
    return index + repeat * REPEAT
