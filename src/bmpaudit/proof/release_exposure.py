"""All that is known of the exposure of one release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.notebook_html import paragraphs
from bmpaudit.plain import plain
from bmpaudit.proof.calibration import Recalibration
from bmpaudit.proof.exposure import Exposure
from bmpaudit.proof.reliability import Reliability


@dataclass(frozen=True, eq=False)
class ModelTable:
    """What is found out about each of J models, so that two audits with the same samples can be compared in pairs.

    Attributes:
        index: Number of each model in its plan, shape (J,).
        num_members: Number of its members that could be named, shape (J,).
        auc: Probability that a member's posterior exceeds a non-member's, within the model, shape (J,); NaN if the
            model has no member or no non-member that could be named.
        true_positive_rate: Share of members above all but 1 % of the non-members, within the model, shape (J,); NaN
            as `auc`.
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        members_named: Number of nodes named as members, shape (J, P).
        members_correct: Number of them that are members, shape (J, P).
        members_effect: What each model has done to the mean of `members_correct` through the recalibration, times J,
            shape (J, P); 0 on average.
        non_members_named: Number of nodes named as non-members, shape (J, P).
        non_members_correct: Number of them that are not members, shape (J, P).
        non_members_effect: As `members_effect`, of `non_members_correct`.
    """

    index: Ints
    num_members: Ints
    auc: Floats
    true_positive_rate: Floats
    precision: Floats
    members_named: Ints
    members_correct: Ints
    members_effect: Floats
    non_members_named: Ints
    non_members_correct: Ints
    non_members_effect: Floats


@dataclass(frozen=True, eq=False)
class ReleaseExposure:
    """What one release gives away, by one attack.

    Attributes:
        exposure: How many nodes of one model can be named, and how often each node is.
        recalibration: Map from the attack's posterior log-odds to calibrated ones, learnt on all models, for a model
            that is none of them.
        reliability: Stated against observed probabilities, each model recalibrated on others.
        models: One row for each model.
        num_nodes: Number of nodes that can be named.
        num_left_out: Number of nodes that cannot: their prior is 0 or 1, or the attack cannot score them.
        num_fitting: Number of models that each model's attack was fitted on.
    """

    exposure: Exposure
    recalibration: Recalibration
    reliability: Reliability
    models: ModelTable
    num_nodes: int
    num_left_out: int
    num_fitting: int

    def to_plain(self) -> dict[str, Any]:
        """Curves and calibration, values as JSON can hold them; not what is about single nodes and models."""
        values: dict[str, Any] = plain(
            {
                **self.exposure.to_plain(),
                "num_nodes": self.num_nodes,
                "num_left_out": self.num_left_out,
                "num_fitting": self.num_fitting,
                "mean_auc": np.nanmean(self.models.auc),
                "expected_calibration_error": self.reliability.expected_calibration_error,
                "reliability": self.reliability.to_plain(),
                "statement": self.exposure.statement(),
            }
        )
        return values

    def __str__(self) -> str:
        return f"{self.exposure}\n{self.reliability}"

    def _repr_html_(self) -> str:
        """What is exposed, and how far to believe it, for notebooks."""
        return self.exposure._repr_html_() + paragraphs([str(self.reliability).partition("\n")[0]])
