"""Pictures for papers: each function takes plain values and returns a matplotlib `Figure`, one or two columns wide.

Text from the user (labels, names of classes and columns) is shown as it is: `$` does not start a formula in it. Labels
of axes may be formulas. A figure displays in a notebook without pyplot.
"""

from bmpaudit.report.figures.estimates import joint_samples, posteriors, prior_against_epsilon, regions
from bmpaudit.report.figures.exposures import exposure, exposure_by, permutation_test, reliability, roc
from bmpaudit.report.figures.style import Width, render, save_figure

__all__ = [
    "Width",
    "exposure",
    "exposure_by",
    "joint_samples",
    "permutation_test",
    "posteriors",
    "prior_against_epsilon",
    "regions",
    "reliability",
    "render",
    "roc",
    "save_figure",
]
