"""The process that trains models for another one, which sends them through stdin and reads them from stdout.

Both ways go whole pickles: first a `Setup` as bytes, answered by a `Reply` with the trial model, then one `Task` after
another, each answered by a `Reply`. Whoever starts this process has imported all the code that its pickles name.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError, one_line
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.reused_memory import reused_memory
from bmpaudit.shadow.engines.trainer import Recipe, Trainer


@dataclass(frozen=True, eq=False)
class Task:
    """A model to train.

    Attributes:
        batch: A batch of one model.
        initial: See `Trainer.fill`.
    """

    batch: ShadowBatch
    initial: Floats32 | None


@dataclass(frozen=True, eq=False)
class Reply:
    """What became of a task.

    Attributes:
        batch: The batch, filled; None if something was raised.
        error: What was raised, in one line.
        trace: Where it was raised.
    """

    batch: ShadowBatch | None
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, eq=False)
class Setup:
    """What a process needs before its first task.

    Attributes:
        recipe: How to make what trains models.
        trial: A model that the other process trains too, with `Trainer.for_trial`.
    """

    recipe: Recipe[Any]
    trial: Task


def _unpickle(payload: bytes) -> Any:
    """Loads what may name modules of the current folder, in which `registry.import_target` looks for them too."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return pickle.loads(payload)  # noqa: S301 - from the process that started this one
    finally:
        sys.path.remove(here)


def in_one_line(failure: Exception) -> str:
    """What the user's code, or bmpaudit's own checks of it, have raised."""
    if isinstance(failure, ImportError):
        return f"its training needs what is not installed ({one_line(failure)})"
    return str(failure) if isinstance(failure, InputError) else one_line(failure)


def _answer(trainer: Trainer, task: Task) -> Reply:
    try:
        trainer.fill(task.batch, task.initial)
    except Exception as failure:
        return _failed(failure)
    return Reply(task.batch)


def _failed(failure: Exception) -> Reply:
    return Reply(None, in_one_line(failure), "".join(traceback.format_exception(failure)))


def _channels() -> tuple[BinaryIO, BinaryIO]:
    """Pipes of this process's own; what the user's code prints goes to stderr, and it has nothing to read."""
    tasks, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return tasks, replies


def _receive_all(tasks: BinaryIO, received: queue.SimpleQueue[Any], folder: Path) -> None:
    """Passes on what comes in, and ends the process as soon as the other one has ended, however that was."""
    while True:
        try:
            received.put(pickle.load(tasks))  # noqa: S301 - from the process that started this one
        except (EOFError, OSError, pickle.UnpicklingError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)


def main(folder: Path) -> None:
    """Trains until the other process ends."""
    tasks, replies = _channels()
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(tasks, received, folder), daemon=True).start()

    def send(reply: Reply) -> None:
        pickle.dump(reply, replies, protocol=pickle.HIGHEST_PROTOCOL)
        replies.flush()

    try:
        setup: Setup = _unpickle(received.get())
        trainer: Trainer = setup.recipe.load(folder)
    except Exception as failure:
        send(_failed(failure))
        return
    with reused_memory():
        send(_answer(trainer.for_trial(), setup.trial))
        while True:
            send(_answer(trainer, received.get()))
