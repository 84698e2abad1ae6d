"""Multilayer perceptron trained by DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.shadow.models.dp_model import DPModel


@dataclass(frozen=True)
class DPMLP(DPModel):
    """A perceptron on node features that is (ε, δ)-MDP by a proof: DP-SGD, one row for each node. It sees no edges.

    Formal guarantees:
        - The weights, and all that is computed from them, are (ε, δ)-MDP: for any two samples that differ in one node,
          added or removed, Pr(O) ≤ e^ε·Pr'(O) + δ for every set of outputs O. A node's data is one row.
        - ε is computed by dp-accounting from the noise, the sampling rate and the number of steps.
        - What follows for MP and BMP depends on the sampler (`guarantee`, docs/guarantees.md).
        - The proof is for real numbers and noise that nobody can predict. Opacus's secure mode is off, and the noise of
          a shadow model follows from its seed, which a model that is really released must keep secret.
    """
