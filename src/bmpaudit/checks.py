"""Bounds that many settings share."""

import os

import numpy as np

from bmpaudit.errors import InputError

LARGEST = 2**31 - 1  # what compiled code counts with


def check_at_least_one(**settings: int) -> None:
    """Raises `InputError` unless each setting is a whole number of at least 1.

    >>> check_at_least_one(fan_out=0)
    Traceback (most recent call last):
    ...
    bmpaudit.errors.InputError: fan_out must be a whole number of at least 1, got fan_out=0
    """
    for name, value in settings.items():
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {name}={value}")
        if value > LARGEST:
            raise InputError(f"{name} must be at most {LARGEST}, got {name}={value}")


def thread_count(num_threads: int | None) -> int:
    """The number of threads to use: as many as there are processors if `num_threads` is None.

    Raises:
        InputError: if `num_threads` is not a whole number of at least 1.
    """
    if num_threads is None:
        return os.cpu_count() or 1
    check_at_least_one(num_threads=num_threads)
    return int(num_threads)
