"""PyTorch Lightning without its messages: one line for each of a thousand models would bury everything else."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bmpaudit.files import uninterrupted

LOGGERS = ("pytorch_lightning", "lightning", "lightning.pytorch", "lightning.fabric", "lightning_fabric")


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Within the block the loggers of Lightning, if it was imported, say nothing below an error."""
    if not {"lightning", "pytorch_lightning"} & sys.modules.keys():
        yield
        return
    before = _set_levels([logging.ERROR] * len(LOGGERS))
    try:
        yield
    finally:
        _set_levels(before)


def _set_levels(levels: Sequence[int]) -> list[int]:
    """Sets the levels of the loggers, and returns those before.

    Ctrl-C waits: between taking and releasing the lock of `logging` it would leave every other thread waiting.
    """

    def set_all() -> list[int]:
        loggers = [logging.getLogger(name) for name in LOGGERS]
        before = [logger.level for logger in loggers]
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        return before

    return uninterrupted(set_all)
