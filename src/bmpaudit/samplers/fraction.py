"""Settings that several samplers share, and their bounds."""

import math
from decimal import Decimal

from bmpaudit.errors import InputError


def check_fraction(train_fraction: float) -> None:
    """Raises `InputError` unless the fraction lies strictly between 0 and 1."""
    if isinstance(train_fraction, bool) or not 0 < train_fraction < 1:
        raise InputError(f"train_fraction must be in (0, 1), got train_fraction={train_fraction}")


def check_at_least_one(**settings: int) -> None:
    """Raises `InputError` unless each setting is a whole number of at least 1."""
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {name}={value}")


def target_size(train_fraction: float, num_nodes: int) -> int:
    """floor(f·N) for the fraction as it is written: 0.29 of 100 is 29, though 0.29 * 100 < 29 in binary.

    >>> target_size(0.29, 100)
    29
    """
    return math.floor(Decimal(repr(float(train_fraction))) * num_nodes)


def positive_target_size(train_fraction: float, num_nodes: int) -> int:
    """`target_size`, which must be at least 1."""
    size = target_size(train_fraction, num_nodes)
    if size == 0:
        raise InputError(f"train_fraction={train_fraction} of {num_nodes} nodes is less than one node")
    return size
