"""Estimation: from error counts to the posterior of ε."""

from bmpaudit.estimation.definitions import BMP, MP, BMPLeft, BMPRight, BMPSymmetric, DefinitionBase, Parameter
from bmpaudit.estimation.error_floor import ErrorFloor, error_floor
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.influence import DrivingNode, Influence
from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.estimation.marginal import CredibleInterval
from bmpaudit.estimation.mhaar import CorrelatedCounts
from bmpaudit.estimation.node_leakage import NodeLeakage, node_leakage
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.estimation.prior import NormalPrior, StrengthPrior
from bmpaudit.estimation.proven import ProvenEpsilon

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
