"""An attack of your own: only models trained without the node are needed to fit it (the offline attack of LiRA).

bmpaudit audit demo --attack offline_attack:Offline --out offline-audit
"""

from dataclasses import dataclass

import numpy as np

from bmpaudit.attack import Evidence, Scores


@dataclass(frozen=True)
class Offline:
    """How many standard deviations a model's statistic lies above those of models without the node.

    Attributes:
        smallest_spread: Lower limit of the standard deviation.
    """

    smallest_spread: float = 0.1

    fuses_queries = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """One score per challenged model and node."""
        values = fitting.at_targets(fitting.only_statistic).astype(np.float64)
        is_out = ~fitting.at_targets(fitting.memberships)
        count = np.maximum(is_out.sum(axis=0), 1)
        mean = np.where(is_out, values, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(is_out, (values - mean) ** 2, 0.0).sum(axis=0) / count)
        asked = challenged.at_targets(challenged.only_statistic)
        return Scores((asked - mean) / np.maximum(spread, self.smallest_spread))
