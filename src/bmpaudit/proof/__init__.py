"""Proofs: what an attack shows beyond doubt, how many nodes it can name, and how far to believe it."""

from bmpaudit.estimation.lower_bound import LowerBound, lower_bound
from bmpaudit.proof.anytime import AnytimeBound, mean_bound
from bmpaudit.proof.bands import Band
from bmpaudit.proof.bounds import epsilon_bound, guesses_needed, most_provable, mp_bound
from bmpaudit.proof.calibration import Recalibration, recalibrate
from bmpaudit.proof.expose import expose
from bmpaudit.proof.exposure import Exposure, ExposureCurve, exposure
from bmpaudit.proof.guesses import Choice, Claims, Guesses, Threshold
from bmpaudit.proof.node_exposure import NodeExposure
from bmpaudit.proof.provable import models_to_prove_more, provable
from bmpaudit.proof.prove import default_num_fitting, prove
from bmpaudit.proof.prove_scores import prove_scores
from bmpaudit.proof.release_exposure import ModelTable, ReleaseExposure
from bmpaudit.proof.reliability import Reliability, reliability
from bmpaudit.proof.result import Proof, ProvenBound
from bmpaudit.proof.scored_models import ScoredModels
from bmpaudit.proof.several import SeveralGuesses, several_guesses

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
    "most_provable",
    "mp_bound",
    "provable",
    "prove",
    "prove_scores",
    "recalibrate",
    "reliability",
    "several_guesses",
]
