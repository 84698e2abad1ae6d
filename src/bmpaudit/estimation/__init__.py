"""Estimation: from error counts to the posterior of ε."""

from bmpaudit.estimation.definitions import (
    BMP,
    MP,
    BMPLeft,
    BMPRight,
    BMPSymmetric,
    DefinitionBase,
    Parameter,
    ProvenEpsilon,
)
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.likelihood import NormalPrior, StrengthPrior
from bmpaudit.estimation.lower_bound import ErrorFloor, LowerBound, NodeLeakage, error_floor, lower_bound, node_leakage
from bmpaudit.estimation.mhaar import CorrelatedCounts
from bmpaudit.estimation.posterior import CredibleInterval, DrivingNode, Influence, Posterior

__all__ = [
    "BMP",
    "MP",
    "BMPLeft",
    "BMPRight",
    "BMPSymmetric",
    "CorrelatedCounts",
    "CredibleInterval",
    "DefinitionBase",
    "DrivingNode",
    "ErrorFloor",
    "Influence",
    "LowerBound",
    "NodeLeakage",
    "NormalPrior",
    "Parameter",
    "Posterior",
    "ProvenEpsilon",
    "StrengthPrior",
    "error_floor",
    "estimate",
    "lower_bound",
    "node_leakage",
]
