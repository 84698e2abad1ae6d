"""Proofs: what an attack shows beyond doubt, how many nodes it can name, and how far to believe it."""

from bmpaudit.proof.anytime import AnytimeBound, mean_bound
from bmpaudit.proof.bounds import epsilon_bound, mp_bound
from bmpaudit.proof.calibration import Recalibration, Reliability, recalibrate, reliability
from bmpaudit.proof.exposure import Exposure, ExposureCurve, NodeExposure, exposure
from bmpaudit.proof.guesses import Choice, Claims, Guesses, Threshold
from bmpaudit.proof.prove import default_num_fitting, prove, prove_scores
from bmpaudit.proof.result import Proof, ProvenBound
from bmpaudit.proof.scored_models import ScoredModels
from bmpaudit.proof.several import SeveralGuesses, several_guesses

__all__ = [
    "AnytimeBound",
    "Choice",
    "Claims",
    "Exposure",
    "ExposureCurve",
    "Guesses",
    "NodeExposure",
    "Proof",
    "ProvenBound",
    "Recalibration",
    "Reliability",
    "ScoredModels",
    "SeveralGuesses",
    "Threshold",
    "default_num_fitting",
    "epsilon_bound",
    "exposure",
    "mean_bound",
    "mp_bound",
    "prove",
    "prove_scores",
    "recalibrate",
    "reliability",
    "several_guesses",
]
