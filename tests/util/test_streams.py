from typing import Any

import numpy as np
import pytest

from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import MAX_SEED, Purpose, check_seed, stream

WORD = 2**64


def _philox_block(counter: tuple[int, int, int, int], key: tuple[int, int]) -> list[int]:
    """Philox4x64-10 of Salmon, Moraes, Dror and Shaw (2011), in plain Python."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * c0, WORD)
        high1, low1 = divmod(0xCA5A826395121157 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % WORD, (k1 + 0xBB67AE8584CAA73B) % WORD
    return [c0, c1, c2, c3]


@pytest.mark.parametrize("seed", [0, 1, MAX_SEED])
@pytest.mark.parametrize("index", [0, 7, 2**40])
@pytest.mark.parametrize("purpose", Purpose)
def test_streams_are_philox_with_the_documented_key_and_counter(seed: int, index: int, purpose: Purpose) -> None:
    # NumPy increments the counter before it makes a block, so the first block has counter 1.
    expected = [word for block in (1, 2, 3) for word in _philox_block((block, 0, index, 0), (seed, purpose))]
    assert stream(seed, index, purpose).bit_generator.random_raw(12).tolist() == expected


def test_equal_arguments_give_equal_streams() -> None:
    np.testing.assert_array_equal(stream(3, 5).random(100), stream(3, 5).random(100))


def test_streams_do_not_overlap() -> None:
    streams = [(seed, index, purpose) for seed in (0, 1, 2) for index in range(5) for purpose in Purpose]
    words = np.concatenate([stream(*which).bit_generator.random_raw(2_000) for which in streams])
    # Two of a few hundred thousand random words of 64 bits are equal with probability below 1e-8.
    assert len(np.unique(words)) == len(words)


def test_reading_one_stream_does_not_affect_another() -> None:
    other = stream(0, 0)
    other.random(10_000)
    expected = stream(0, 1).random(3)
    other.random(10_000)
    np.testing.assert_array_equal(stream(0, 1).random(3), expected)


def test_purposes_keep_their_numbers() -> None:
    assert [int(purpose) for purpose in Purpose] == list(range(14))
    assert (Purpose.SAMPLE, Purpose.PRIOR, Purpose.MHAAR, Purpose.MEMBERSHIP_FIT, Purpose.RELEASE) == (0, 1, 7, 9, 10)
    assert (Purpose.VALIDATION, Purpose.EDGES, Purpose.BATCHES) == (11, 12, 13)


@pytest.mark.parametrize("seed", [0, 5, MAX_SEED, np.int32(5), np.uint64(5)])
def test_valid_seeds(seed: Any) -> None:
    assert type(check_seed(seed)) is int
    assert check_seed(seed) == seed


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 1.0, True, "1", None, np.int64(-1)])
def test_invalid_seeds_raise(seed: Any) -> None:
    with pytest.raises(InputError, match=r"^seed must be a whole number in \[0, 2\*\*63\), got seed="):
        check_seed(seed)
    with pytest.raises(InputError):
        stream(seed, 0)
