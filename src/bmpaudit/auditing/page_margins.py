"""Each node's margins without and with it in the sample, as histograms for the page (docs/report-page.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags

NUM_BINS = 24


def margin_histograms(statistics: npt.NDArray[np.floating], is_in: Flags) -> dict[str, Any]:
    """Counts by bin, on bins of each node's own, with the mean and standard deviation of either side.

    Args:
        statistics: Margins of each model and node, shape (J, K).
        is_in: Whether the node was in the model's sample, shape (J, K).
    """
    margins = statistics.astype(np.float64)
    num_nodes = margins.shape[1]
    low, high = margins.min(axis=0), margins.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins = np.minimum((NUM_BINS * (margins - low) / width).astype(np.int64), NUM_BINS - 1)
    place = bins + NUM_BINS * np.arange(num_nodes)
    histograms: dict[str, Any] = {"num_bins": NUM_BINS, "low": np.round(low, 4), "high": np.round(high, 4)}
    for name, chosen in (("out", ~is_in), ("in", is_in)):
        counts = np.bincount(place[chosen], minlength=NUM_BINS * num_nodes)
        histograms[name] = counts.reshape(num_nodes, NUM_BINS)
        number = chosen.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(chosen, margins, 0.0).sum(axis=0) / number
            spread = np.sqrt(np.where(chosen, (margins - mean) ** 2, 0.0).sum(axis=0) / number)
        histograms[f"mean_{name}"], histograms[f"std_{name}"] = np.round(mean, 5), np.round(spread, 5)
    return histograms
