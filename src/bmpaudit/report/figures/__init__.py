"""Pictures for papers: each function takes plain values and returns a matplotlib `Figure`, one or two columns wide.

Texts of the user's (labels, names of classes and columns) are shown as they are: `$` starts no formula in them. Labels
of axes may be formulas.
"""

from bmpaudit.report.figures.joint_samples import joint_sample_panels, joint_samples
from bmpaudit.report.figures.leakage_by import BinnedQuartiles, binned_quartiles, leakage_by
from bmpaudit.report.figures.marginal_effects import marginal_effects
from bmpaudit.report.figures.null_control import null_control
from bmpaudit.report.figures.posteriors import null_posteriors, posteriors
from bmpaudit.report.figures.prior_against_epsilon import prior_against_epsilon
from bmpaudit.report.figures.regions import ErrorRates, regions
from bmpaudit.report.figures.roc import roc
from bmpaudit.report.figures.style import SavedFigure, Width, save_figure

__all__ = [
    "BinnedQuartiles",
    "ErrorRates",
    "SavedFigure",
    "Width",
    "binned_quartiles",
    "joint_sample_panels",
    "joint_samples",
    "leakage_by",
    "marginal_effects",
    "null_control",
    "null_posteriors",
    "posteriors",
    "prior_against_epsilon",
    "regions",
    "roc",
    "save_figure",
]
