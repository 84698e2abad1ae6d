"""Shadow models in scikit-learn, which see the features of each node and no edges."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.engines.processes import ProcessEngine
from bmpaudit.shadow.engines.sklearn_trainer import SklearnTrainer
from bmpaudit.shadow.models import SklearnModel
from bmpaudit.shadow.plan import ShadowPlan

DENSE_FILE, SPARSE_FILE, LABELS_FILE = "features.npy", "features.npz", "labels.npy"


@dataclass(frozen=True, eq=False)
class SklearnRecipe:
    """See `Recipe`.

    Attributes:
        plan: What to train.
        num_classes: Number of classes.
    """

    plan: ShadowPlan
    num_classes: int

    def save(self, trainer: SklearnTrainer, folder: Path) -> None:
        """Writes the table to files."""
        np.save(folder / LABELS_FILE, trainer.labels, allow_pickle=False)
        if isinstance(trainer.features, np.ndarray):
            np.save(folder / DENSE_FILE, trainer.features, allow_pickle=False)
        else:
            scipy.sparse.save_npz(folder / SPARSE_FILE, trainer.features, compressed=False)

    def load(self, folder: Path) -> SklearnTrainer:
        """Uses one thread from now on, and leaves warnings to the first process, which has trained models already."""
        warnings.simplefilter("ignore")
        threadpool_limits(limits=1)
        features = (
            np.load(folder / DENSE_FILE, mmap_mode="r")
            if (folder / DENSE_FILE).exists()
            else scipy.sparse.load_npz(folder / SPARSE_FILE)
        )
        return SklearnTrainer(self.plan, features, np.load(folder / LABELS_FILE), self.num_classes)


class SklearnEngine(ProcessEngine[SklearnTrainer]):
    """Trains scikit-learn classifiers in several processes of one thread each.

    All that a model draws comes from its own random stream: the `random_state` of every estimator in it, and the
    generators of NumPy and Python, which are restored afterwards.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, SklearnModel):
            raise InputError(f"the sklearn engine cannot train {plan.model}: it is no scikit-learn classifier")
        super().__init__(plan, SklearnTrainer.from_graph(graph, plan))

    def _recipe(self) -> SklearnRecipe:
        return SklearnRecipe(self.plan, self._trainer.num_classes)

    def _one_thread(self) -> AbstractContextManager[object]:
        limits: AbstractContextManager[object] = threadpool_limits(limits=1)
        return limits
