"""Pictures for papers: each function takes plain values and returns a matplotlib `Figure`, one or two columns wide.

Text from the user (labels, names of classes and columns) is shown as it is: `$` does not start a formula in it. Labels
of axes may be formulas. A figure displays in a notebook without pyplot.
"""

from bmpaudit.report.figures.exposure import exposure
from bmpaudit.report.figures.exposure_by import BinnedQuartiles, binned_quartiles, exposure_by
from bmpaudit.report.figures.joint_samples import joint_sample_panels, joint_samples
from bmpaudit.report.figures.marginal_effects import marginal_effects
from bmpaudit.report.figures.permutation_test import permutation_test
from bmpaudit.report.figures.posteriors import posteriors, shuffled_posteriors
from bmpaudit.report.figures.prior_against_epsilon import prior_against_epsilon
from bmpaudit.report.figures.regions import ErrorRates, regions
from bmpaudit.report.figures.reliability import reliability
from bmpaudit.report.figures.render import SavedFigure, render, save_figure
from bmpaudit.report.figures.roc import roc
from bmpaudit.report.figures.style import Width

__all__ = [
    "BinnedQuartiles",
    "ErrorRates",
    "SavedFigure",
    "Width",
    "binned_quartiles",
    "exposure",
    "exposure_by",
    "joint_sample_panels",
    "joint_samples",
    "marginal_effects",
    "permutation_test",
    "posteriors",
    "prior_against_epsilon",
    "regions",
    "reliability",
    "render",
    "roc",
    "save_figure",
    "shuffled_posteriors",
]
