"""The paper's Figures 2 and 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from reproduction.paper_figures import joint_sample_panels, marginal_effects

from bmpaudit.report.figures import Width, style

RNG = np.random.default_rng(5)
CLOUDS = {"random": RNG.normal([2, 3], 0.2, (300, 2)), "snowball": RNG.normal([5, 4], 0.4, (300, 2))}


def make_table() -> pd.DataFrame:
    rows = [
        {"dataset": dataset, "fraction": fraction, "sampling": sampling, "epsilon_right": 2 + 4 * fraction + extra}
        for dataset in ("cora", "citeseer")
        for fraction in (0.5, 0.25)
        for sampling, extra in (("random", 0.0), ("snowball", 3.0 if dataset == "cora" else -0.5))
    ]
    return pd.DataFrame(rows)


def scatters(axes: Any) -> list[PathCollection]:
    return [item for item in axes.collections if isinstance(item, PathCollection)]


def points(item: PathCollection) -> np.ndarray[Any, Any]:
    return np.asarray(item.get_offsets())


def assert_inside(axes: Any, across: np.ndarray[Any, Any], up: np.ndarray[Any, Any]) -> None:
    for values, ends in ((across, axes.get_xlim()), (up, axes.get_ylim())):
        assert min(ends) <= np.min(values)
        assert np.max(values) <= max(ends)


@pytest.mark.parametrize("width", ["one", "two"])
def test_nothing_leaves_the_figure(width: Width) -> None:
    panels = {"full edges, weak": CLOUDS, "no edges, weak": CLOUDS, "full edges, strong": CLOUDS}
    for figure in (
        joint_sample_panels(panels, width=width),
        marginal_effects(make_table(), ["fraction", "sampling"], by="dataset", width=width),
    ):
        across, up = figure.get_size_inches()
        box = figure.get_tightbbox()
        assert across == style.INCHES[width]
        assert min(box.x0, box.y0) >= 0
        assert (box.x1, box.y1) <= (across, up)


def test_joint_panels_have_epsilon_right_across_and_share_axes_and_colours() -> None:
    first, second = joint_sample_panels({"a": CLOUDS, "b": {"snowball": CLOUDS["snowball"]}}).axes
    assert (first.get_xlabel(), first.get_ylabel()) == (r"$\varepsilon_R$ [nats]", r"$\varepsilon_L$ [nats]")
    for cloud, draws in zip(scatters(first), CLOUDS.values(), strict=True):
        np.testing.assert_array_equal(points(cloud), draws[:, ::-1])
        assert_inside(first, draws[:, 1], draws[:, 0])
    assert first.get_xlim() == second.get_xlim()
    assert (first.get_title(), second.get_title()) == ("a", "b")
    assert np.array_equal(scatters(first)[1].get_facecolor(), scatters(second)[0].get_facecolor())


def test_many_draws_are_one_picture_in_the_file() -> None:
    many = np.random.default_rng(0).normal(size=(style.RASTERIZE_ABOVE + 1, 2))
    (axes,) = joint_sample_panels({"": {"few": CLOUDS["random"], "many": many}}).axes
    assert [cloud.get_rasterized() for cloud in scatters(axes)] == [False, True]


def test_marginal_effects_show_means_and_differences() -> None:
    figure = marginal_effects(make_table(), ["fraction", "sampling"], by="dataset")
    cora, citeseer = figure.axes
    assert (cora.get_title(), citeseer.get_title()) == ("cora", "citeseer")
    labels = [label.get_text() for label in cora.get_yticklabels()]
    assert labels == ["fraction", "0.25", "0.5", "sampling", "random", "snowball"]
    means = [points(item)[0] for item in scatters(cora) if item.get_gid() == "mean"]
    # Fractions 0.25 and 0.5 add 1 and 2 to 2, snowball half of the time 3; the same by sampling.
    np.testing.assert_allclose(means, [[4.5, 1], [5.5, 2], [3.5, 4], [6.5, 5]])
    assert [text.get_text() for text in cora.texts] == ["Δ +1.00", "Δ +3.00"]
    assert [text.get_text() for text in citeseer.texts] == ["Δ +1.00", "Δ −0.50"]
    dots = np.concatenate([points(item) for item in scatters(cora) if item.get_gid() != "mean"])
    assert len(dots) == 2 * 4
    assert_inside(cora, dots[:, 0], dots[:, 1])
    assert figure.get_supxlabel() == r"$\varepsilon_R$ [nats]"


def test_levels_of_a_categorical_keep_their_order() -> None:
    table = make_table()
    table["sampling"] = pd.Categorical(table["sampling"], ["snowball", "random", "unused"])
    axes = marginal_effects(table, ["sampling"], by="dataset").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["sampling", "snowball", "random"]
