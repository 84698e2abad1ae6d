"""Models drawn from finite mechanisms, an attack that learns from them, and the example that tabulates validity."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from bmpaudit.attack import Evidence, Scores
from bmpaudit.util.values import Flags

EXAMPLE = Path(__file__).parents[2] / "examples" / "proof_validity.py"


def load_example() -> ModuleType:
    name = "proof_validity_example"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLE)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def noise_models(num_models: int, num_nodes: int, rng: np.random.Generator, fraction: float = 0.25) -> Evidence:
    """Statistics that have nothing to do with the memberships, which are dependent: samples of fixed size."""
    memberships = np.zeros((num_models, num_nodes), dtype=bool)
    for row in memberships:
        row[rng.choice(num_nodes, int(fraction * num_nodes), replace=False)] = True
    statistics = {query: rng.normal(size=memberships.shape).astype(np.float32) for query in ("full", "none")}
    return Evidence(statistics, memberships, np.arange(num_models))


def leaky_models(num_models: int, num_nodes: int, rng: np.random.Generator, shift: float = 6.0) -> Evidence:
    """The same, but members have a higher statistic under the query `none`."""
    models = noise_models(num_models, num_nodes, rng)
    statistics = {
        "full": models.statistics["full"],
        "none": models.statistics["none"] + shift * models.memberships.astype(np.float32),
    }
    return Evidence(statistics, models.memberships, models.indices)


class Memorising:
    """Knows each fitting model by its statistics, and says of it exactly who was in; guesses at random of others."""

    fuses_queries = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        z, known = challenged.only_statistic, fitting.only_statistic
        distance = np.abs(z[:, None, :] - known[None, :, :]).max(axis=2)
        nearest = distance.argmin(axis=1)
        truth: Flags = fitting.memberships[nearest]
        sure = np.where(truth, 10.0, -10.0) + z / 10
        scores = np.where((distance.min(axis=1) == 0)[:, None], sure, z / 10)
        return Scores(challenged.at_targets(scores.astype(np.float64)))
