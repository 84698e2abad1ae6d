"""The page of a graph with more nodes than a browser can show: it shows some of them, counts all, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sample_page
from made_up_table import NUM_MODELS, made_up_graph, made_up_nodes
from page_browser import Browser
from page_fixture import page_data
from sample_page import text_of

from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.graph import Graph
from bmpaudit.report import page_data as page_nodes
from bmpaudit.report.page import render_page
from bmpaudit.report.page_data import finite, margin_histograms, nodes_part, shown_nodes

browser = sample_page.browser


@pytest.fixture(scope="module")
def small() -> tuple[Graph, pd.DataFrame]:
    graph = made_up_graph(400, 900)
    return graph, made_up_nodes(graph)


def large_page(num_nodes: int, num_edges: int) -> dict[str, Any]:
    """A page of so many nodes: the part about nodes is made as of an audit, the rest is made up."""
    graph = made_up_graph(num_nodes, num_edges)
    nodes = made_up_nodes(graph)
    shown, rng = shown_nodes(nodes), np.random.default_rng(5)
    margins = margin_histograms(rng.normal(size=(NUM_MODELS, len(shown))), rng.random((NUM_MODELS, len(shown))) < 0.25)
    data = page_data(num_nodes=20, num_edges=20)
    data["graph"] |= {"num_nodes": num_nodes, "num_edges": len(graph.edges)}
    return data | finite({**nodes_part(nodes, graph), "margins": {"view": "full_clean", **margins}})


def test_a_hundred_thousand_nodes_fit_into_six_megabytes(browser: Browser, tmp_path: Path) -> None:
    data = large_page(100_000, 300_000)
    page = render_page(data)
    assert len(page.encode()) < 6e6
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    browser.open(tmp_path / "report.html")
    sample = "Shown here are 5,000 of the graph’s 100,000 nodes: the 3,000 most at risk, and 2,000 others taken evenly"
    for place in ("#nodes-shown", "#graph figcaption", "#groups figcaption", "#prior-scatter figcaption"):
        assert sample in text_of(browser, place)
    assert browser.find("#nodes-shown a").get_attribute("href") == (tmp_path / "nodes.parquet").as_uri()
    thresholds = data["thresholds"]
    above, counted = thresholds["num_above"][10], thresholds["num_counted"]
    assert counted > 90_000
    assert text_of(browser, "#threshold-count").startswith(f"{above:,} of {counted:,} nodes ")
    sizes = browser.run("return document.getElementById('chart-groups').layout.xaxis.ticktext")
    assert sum(int(label.split("n = ")[1].replace(",", "")) for label in sizes) == counted
    assert browser.console() == []


def test_many_nodes_are_thinned(small: tuple[Graph, pd.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_nodes, "MOST_NODES", 20)
    monkeypatch.setattr(page_nodes, "MOST_EXPOSED", 12)
    monkeypatch.setattr(page_nodes, "MOST_EDGES", 5)
    graph, nodes = small
    data = finite(nodes_part(nodes, graph))
    shown, ranking = data["nodes"]["id"], ranked_nodes(nodes)["node"].tolist()
    assert len(shown) == len(set(shown)) == 20
    assert shown == sorted(shown)
    leaking = np.flatnonzero(nodes["is_leaking"]).tolist()  # whether they are named or not
    assert len(leaking) == 5
    assert not set(leaking) <= set(ranking[:200])
    others = [node for node in ranking if node not in leaking]
    assert {*leaking, *others[:7]} <= set(shown)
    assert data["num_most_exposed"] == 12
    assert data["nodes"]["rank"] == [ranking.index(node) + 1 for node in shown]
    assert {len(column) for column in data["nodes"].values()} == {20}
    pairs = {tuple(sorted(pair)) for pair in graph.edges.reshape(-1, 2).tolist()}
    between = [pair for pair in pairs if set(pair) <= set(shown)]
    assert data["edges"]["num_between"] == len(between)
    drawn = list(zip(data["edges"]["source"], data["edges"]["target"], strict=True))
    assert len(set(drawn)) == min(5, len(between))
    assert {tuple(sorted((shown[source], shown[target]))) for source, target in drawn} <= set(between)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_thresholds_count_every_node(small: tuple[Graph, pd.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_nodes, "MOST_NODES", 20)
    monkeypatch.setattr(page_nodes, "MOST_EXPOSED", 12)
    graph, nodes = small
    thresholds = nodes_part(nodes, graph)["thresholds"]
    lows = nodes["member_exposure_low"].dropna().tolist()
    assert thresholds["num_counted"] == len(lows)
    for threshold, above in zip(thresholds["threshold"], thresholds["num_above"], strict=True):
        assert above == sum(low > threshold for low in lows)
