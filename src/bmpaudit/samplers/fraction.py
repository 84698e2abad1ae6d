"""The train fraction that all samplers share."""

import math
from decimal import Decimal

from bmpaudit.errors import InputError


def check_fraction(train_fraction: float) -> None:
    """Raises `InputError` unless the fraction lies strictly between 0 and 1."""
    if isinstance(train_fraction, bool) or not 0 < train_fraction < 1:
        raise InputError(f"train_fraction must be in (0, 1), got train_fraction={train_fraction}")


def target_size(train_fraction: float, num_nodes: int) -> int:
    """floor(f·N) in decimal arithmetic: 0.29 of 100 is 29, although 0.29 * 100 < 29 in floating point.

    >>> target_size(0.29, 100)
    29
    """
    return math.floor(Decimal(repr(float(train_fraction))) * num_nodes)


def positive_target_size(train_fraction: float, num_nodes: int) -> int:
    """The same as `target_size`; raises `InputError` if it is 0."""
    size = target_size(train_fraction, num_nodes)
    if size == 0:
        raise InputError(f"train_fraction={train_fraction} of {num_nodes} nodes is less than one node")
    return size
