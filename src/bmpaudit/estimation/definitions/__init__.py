"""Privacy definitions: which ε is estimated, one file for each."""

from bmpaudit.estimation.definitions.base import DefinitionBase, Parameter
from bmpaudit.estimation.definitions.bmp import BMP
from bmpaudit.estimation.definitions.bmp_l import BMPLeft
from bmpaudit.estimation.definitions.bmp_r import BMPRight
from bmpaudit.estimation.definitions.bmp_s import BMPSymmetric
from bmpaudit.estimation.definitions.mp import MP
from bmpaudit.estimation.definitions.stored import StoredDefinition

__all__ = ["BMP", "MP", "BMPLeft", "BMPRight", "BMPSymmetric", "DefinitionBase", "Parameter", "StoredDefinition"]
