"""Pictures for papers: each function takes plain values and returns a matplotlib `Figure`, one or two columns wide.

Text from the user (labels, names of classes and columns) is shown as it is: `$` does not start a formula in it. Labels
of axes may be formulas. A figure displays in a notebook without pyplot.
"""

from bmpaudit.report.figures.estimates import (
    ErrorRates,
    joint_sample_panels,
    joint_samples,
    marginal_effects,
    posteriors,
    prior_against_epsilon,
    regions,
    shuffled_posteriors,
)
from bmpaudit.report.figures.exposures import (
    BinnedQuartiles,
    binned_quartiles,
    exposure,
    exposure_by,
    permutation_test,
    reliability,
    roc,
)
from bmpaudit.report.figures.style import SavedFigure, Width, render, save_figure

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
