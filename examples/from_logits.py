"""Models that were trained elsewhere: memberships and logits are all that is needed.

    python examples/from_logits.py [runs.npz]

The archive holds `memberships` (models x nodes), `logits` (models x nodes x classes), `labels` and `prior_prob`
(nodes). Without one, logits are made up: those of members are a little surer of the label.
"""

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import Evidence, Student
from bmpaudit.proof import Proof, ReleaseExposure, expose, prove
from bmpaudit.shadow import ShadowRuns


@dataclass(frozen=True)
class FromLogits:
    """What the models give away.

    Attributes:
        proof: What is proven.
        exposure: How many nodes of one model can be named.
    """

    proof: Proof
    exposure: ReleaseExposure


def from_logits(
    memberships: npt.ArrayLike, logits: npt.ArrayLike, labels: npt.ArrayLike, prior_prob: npt.ArrayLike
) -> FromLogits:
    """Attacks models by their answers, each by a rule that was fitted on others."""
    runs = ShadowRuns.from_arrays(memberships, logits, labels)
    models = Evidence.of_runs(runs, release="clean", queries=["full"])
    attack = Student(neighbours=False)  # there is no graph
    return FromLogits(prove(attack, models, prior_prob), expose(attack, models, prior_prob))


def made_up(num_models: int = 300, num_nodes: int = 100, seed: int = 0) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays as an archive holds them."""
    rng = np.random.default_rng(seed)
    memberships = rng.random((num_models, num_nodes)) < 0.5
    labels = rng.integers(0, 3, num_nodes)
    logits = rng.normal(size=(num_models, num_nodes, 3))
    logits[np.arange(num_models)[:, None], np.arange(num_nodes), labels] += 2 + 2 * memberships
    return {"memberships": memberships, "logits": logits, "labels": labels, "prior_prob": np.full(num_nodes, 0.5)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", nargs="?")
    options = parser.parse_args()
    found = from_logits(**(np.load(options.archive) if options.archive else made_up()))
    print(found.proof)
    print(found.exposure)
