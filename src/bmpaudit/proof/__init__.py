"""What is beyond doubt (`prove`, `certify`), how many nodes can be named (`expose`), and how far to believe it."""

from bmpaudit.proof.bounds import AnytimeBound, epsilon_bound, mp_bound, surest_hits
from bmpaudit.proof.calibration import Recalibration, Reliability, recalibrate, reliability
from bmpaudit.proof.certified import Certificate, CertifiedExposure, certify
from bmpaudit.proof.exposure import (
    Band,
    Exposure,
    ExposureCurve,
    NodeExposure,
    ReleaseExposure,
    expose,
    expose_log_odds,
)
from bmpaudit.proof.prove import (
    Proof,
    ProvenBound,
    default_num_fitting,
    guesses_to_prove_more,
    models_to_prove_more,
    provable,
    prove,
)

__all__ = [
    "AnytimeBound",
    "Band",
    "Certificate",
    "CertifiedExposure",
    "Exposure",
    "ExposureCurve",
    "NodeExposure",
    "Proof",
    "ProvenBound",
    "Recalibration",
    "ReleaseExposure",
    "Reliability",
    "certify",
    "default_num_fitting",
    "epsilon_bound",
    "expose",
    "expose_log_odds",
    "guesses_to_prove_more",
    "models_to_prove_more",
    "mp_bound",
    "provable",
    "prove",
    "recalibrate",
    "reliability",
    "surest_hits",
]
