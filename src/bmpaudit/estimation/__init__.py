"""Estimation: from error counts to the posterior of ε."""

from bmpaudit.estimation.error_floor import ErrorFloor, error_floor
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.influence import DrivingNode, Influence
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.estimation.mhaar import CorrelatedCounts
from bmpaudit.estimation.node_leakage import NodeLeakage, node_leakage
from bmpaudit.estimation.posterior import CredibleInterval, Posterior
from bmpaudit.estimation.prior import NormalPrior, StrengthPrior

__all__ = [
    "CorrelatedCounts",
    "CredibleInterval",
    "DrivingNode",
    "ErrorFloor",
    "Influence",
    "LowerBound",
    "NodeLeakage",
    "NormalPrior",
    "Posterior",
    "StrengthPrior",
    "error_floor",
    "estimate",
    "lower_bound",
    "node_leakage",
]
