"""Estimation: from error counts to the posterior of ε."""

from bmpaudit.estimation.error_floor import ErrorFloor, error_floor
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.estimation.node_leakage import NodeLeakage, node_leakage
from bmpaudit.estimation.posterior import CredibleInterval, Posterior
from bmpaudit.estimation.prior import NormalPrior

__all__ = [
    "CredibleInterval",
    "ErrorFloor",
    "LowerBound",
    "NodeLeakage",
    "NormalPrior",
    "Posterior",
    "error_floor",
    "estimate",
    "lower_bound",
    "node_leakage",
]
