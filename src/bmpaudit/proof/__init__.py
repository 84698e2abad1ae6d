"""Proofs: what an attack shows beyond doubt, how many nodes it can name, and how far to believe it."""

from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.proof.bounds import (
    AnytimeBound,
    SeveralGuesses,
    epsilon_bound,
    guesses_needed,
    mean_bound,
    mp_bound,
    several_guesses,
)
from bmpaudit.proof.calibration import Recalibration, Reliability, recalibrate, reliability
from bmpaudit.proof.exposure import (
    Band,
    Exposure,
    ExposureCurve,
    ModelTable,
    NodeExposure,
    ReleaseExposure,
    expose,
    exposure,
)
from bmpaudit.proof.guesses import Choice, Claims, Guesses, ScoredModels, Threshold
from bmpaudit.proof.prove import (
    Proof,
    ProvenBound,
    default_num_fitting,
    models_to_prove_more,
    provable,
    prove,
    prove_scores,
)

__all__ = [
    "AnytimeBound",
    "Band",
    "Choice",
    "Claims",
    "Exposure",
    "ExposureCurve",
    "Guesses",
    "LowerBound",
    "ModelTable",
    "NodeExposure",
    "Proof",
    "ProvenBound",
    "Recalibration",
    "ReleaseExposure",
    "Reliability",
    "ScoredModels",
    "SeveralGuesses",
    "Threshold",
    "default_num_fitting",
    "epsilon_bound",
    "expose",
    "exposure",
    "guesses_needed",
    "lower_bound",
    "mean_bound",
    "models_to_prove_more",
    "mp_bound",
    "provable",
    "prove",
    "prove_scores",
    "recalibrate",
    "reliability",
    "several_guesses",
]
