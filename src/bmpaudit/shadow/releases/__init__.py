"""What the owner gives out of a trained model: one file for each release."""

from bmpaudit.shadow.releases.base import OutputRelease
from bmpaudit.shadow.releases.clean import Clean
from bmpaudit.shadow.releases.embeddings import Embeddings
from bmpaudit.shadow.releases.ensemble import Ensemble
from bmpaudit.shadow.releases.label_only import LabelOnly
from bmpaudit.shadow.releases.noisy import NoisyLastLayer
from bmpaudit.shadow.releases.noisy_outputs import NoisyOutputs
from bmpaudit.shadow.releases.rounded import Rounded
from bmpaudit.shadow.releases.temperature import Temperature
from bmpaudit.shadow.releases.top import TopClasses

__all__ = [
    "Clean",
    "Embeddings",
    "Ensemble",
    "LabelOnly",
    "NoisyLastLayer",
    "NoisyOutputs",
    "OutputRelease",
    "Rounded",
    "Temperature",
    "TopClasses",
]
