"""What the owner gives out of a trained model: one file for each release."""

from bmpaudit.shadow.releases.base import OutputRelease
from bmpaudit.shadow.releases.clean import Clean
from bmpaudit.shadow.releases.noisy import NoisyLastLayer

__all__ = ["Clean", "NoisyLastLayer", "OutputRelease"]
