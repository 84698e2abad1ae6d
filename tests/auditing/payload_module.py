"""A module that leaves a mark when it is imported: what a stranger's code could do as well."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

MODULE = "payload"
SOURCE = """
from dataclasses import dataclass
from pathlib import Path
import numpy as np

Path(__file__).with_name("was_run").touch()


def run():
    from small_audit import leaky_graph
    return leaky_graph()


def sample(graph, rng):
    return rng.permutation(graph.num_nodes)[: graph.num_nodes // 2]


def statistic(outputs, labels):
    from bmpaudit.releases import label_margin
    return label_margin(outputs, labels)


from bmpaudit.attack import Gaussian, Strong
from bmpaudit.estimation.definitions import DefinitionBase
from bmpaudit.models import MLP
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.releases import FullEdges
from bmpaudit.releases import Clean


class OwnEngine(NativeEngine):
    pass


@dataclass(frozen=True)
class OwnModel(MLP):
    hidden: int = 8


@dataclass(frozen=True)
class OwnRelease(Clean):
    pass


@dataclass(frozen=True)
class OwnQuery(FullEdges):
    pass


@dataclass(frozen=True)
class OwnAttack(Gaussian):
    pass


@dataclass(frozen=True)
class OwnRule(Strong):
    pass


@dataclass(frozen=True)
class OwnDefinition(DefinitionBase):
    ratio: float = 2.0

    def epsilons(self, epsilon):
        return self.ratio * epsilon, epsilon
"""

PARTS = {
    "sampler": "sample",
    "model": "OwnModel",
    "engine": "OwnEngine",
    "releases": "OwnRelease",
    "queries": "OwnQuery",
    "statistic": "statistic",
    "attack": "OwnAttack",
    "rules": "OwnRule",
    "definitions": "OwnDefinition",
}
"""By field of the plan, the part of that kind in the module."""


class Payload:
    """The module in a folder of its own, importable until it is hidden."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self.folder, self._patch = folder, patch
        (folder / f"{MODULE}.py").write_text(SOURCE)
        patch.syspath_prepend(folder)
        self.forget()

    def forget(self) -> None:
        """As in a new process: nothing is imported yet."""
        sys.modules.pop(MODULE, None)
        (self.folder / "was_run").unlink(missing_ok=True)

    def was_run(self) -> bool:
        return MODULE in sys.modules or (self.folder / "was_run").exists()

    def target(self, field: str) -> str:
        return f"{MODULE}:{PARTS[field]}"
