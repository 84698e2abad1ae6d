"""bmpaudit: how surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""

from importlib.metadata import version

from bmpaudit import datasets, privacy, samplers
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph, GraphCleanedWarning
from bmpaudit.samplers import prior_probabilities

__version__ = version("bmpaudit")

__all__ = [
    "DataError",
    "Graph",
    "GraphCleanedWarning",
    "InputError",
    "__version__",
    "datasets",
    "prior_probabilities",
    "privacy",
    "samplers",
]
