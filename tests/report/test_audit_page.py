"""The page of a real audit: its data by the page's contract, and in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_page
from page_browser import Browser
from page_fixture import page_data as made_up_data
from page_fixture_nodes import HOSTILE_CLASS, HOSTILE_NAMES

from bmpaudit.auditing import Audit
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.graph.graph import Graph
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.report import page_data
from bmpaudit.report.page_data import latex_table, markdown_table
from bmpaudit.samplers import Snowball
from bmpaudit.util.text import visible

NUM_NODES = 40
PLAN = AuditPlan(
    sampler=Snowball(0.4),
    model=MLP(hidden=8, dropout=0.0),
    training=Training(epochs=15, learning_rate=0.1),
    shadows=40,
    queries="full",
    releases="clean",
    release_as="scores",
    prior_draws=500,
    definitions=("bmp", "mp"),
)


def hostile_graph(
    hostile: Sequence[str] = HOSTILE_NAMES,
    classes: Sequence[str] = ("<script>alert(3)</script>", HOSTILE_CLASS, "\"quoted' class"),
) -> Graph:
    """Names that are scripts, tags and quotes, or others; some nodes are isolated."""
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, NUM_NODES - 3, size=(2 * NUM_NODES, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    labels = np.concatenate([np.arange(3), rng.integers(0, 3, NUM_NODES - 3)])
    names = [*hostile, *(f"paper {node}" for node in range(len(hostile), NUM_NODES))]
    features = np.eye(NUM_NODES, dtype=np.float32)
    return Graph.from_edges(pairs, features, labels, node_names=names, class_names=classes)


@pytest.fixture(scope="module")
def audited() -> Audit:
    return audit(hostile_graph(), PLAN)


@pytest.fixture(scope="module")
def data(audited: Audit) -> dict[str, Any]:
    return page_data.page_data(audited)


def shape_of(value: Any, place: str = "") -> dict[str, set[str]]:
    """The keys of every mapping in nested values, by where it is; lists of mappings by the first that is there."""
    if isinstance(value, dict):
        shapes = {place: set(value)}
        for key, part in value.items():
            shapes |= shape_of(part, f"{place}.{key}" if place else key)
        return shapes
    there = [part for part in value if part is not None] if isinstance(value, list) else []
    return shape_of(there[0], place) if there else {}


def test_data_keep_the_contract_of_the_page(data: dict[str, Any]) -> None:
    made_up = made_up_data() | {"guarantee": None}  # the audited model has none
    # Lesser access has what a release has.
    expected, mine = (
        {key: shape for key, shape in shape_of(each).items() if not key.startswith("releases.lesser")}
        for each in (made_up, data)
    )
    assert mine == expected
    page = (Path(__file__).parents[2] / "docs" / "report-page.md").read_text()
    for key in (
        *data,
        *data["nodes"],
        *data["margins"],
        *data["posteriors"][0],
        *data["groups"],
        *data["groups"]["class"],
        *data["groups"]["class"]["boxes"],
        *data["groups"]["class"]["boxes"]["accuracy"][0],
        *data["thresholds"],
        *data["edges"],
    ):
        assert f"`{key}`" in page, f"docs/report-page.md says nothing of {key}"


def test_data_are_plain_and_finite(data: dict[str, Any]) -> None:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    assert json.loads(json.dumps(data), parse_constant=refuse) == data
    texts = {"name", "class", "flag"}
    for name, column in data["nodes"].items():
        assert len(column) == NUM_NODES
        assert all(value is None or isinstance(value, str if name in texts else (int, float)) for value in column), name


def test_data_agree_with_the_audit(audited: Audit, data: dict[str, Any]) -> None:
    nodes = audited.nodes
    assert data["nodes"]["name"] == list(hostile_graph().node_names or ())
    assert data["answer"]["exposure"] == audited.answer.exposure
    assert data["nodes"]["member_named"] == nodes["member_named"].tolist()
    np.testing.assert_allclose(np.array(data["nodes"]["right_low"], dtype=float), nodes["right_low"], rtol=1e-5)
    test = audited.attacks.permutation_test
    assert data["nodes"]["is_leaking"] == test.is_leaking.tolist()
    np.testing.assert_allclose(data["nodes"]["p_value"], test.node_p_value, rtol=1e-5)
    assert [data["nodes"]["id"][k] for k in np.argsort(data["nodes"]["rank"])] == ranked_nodes(nodes)["node"].tolist()
    source, target = np.array(data["edges"]["source"]), np.array(data["edges"]["target"])
    assert sorted(zip(source, target, strict=True)) == sorted(
        map(tuple, np.sort(audited.graph.edges, axis=-1).reshape(-1, 2))
    )
    margins, memberships = audited.runs.statistics["full_clean"].astype(float), audited.runs.memberships
    for side, is_in in (("out", ~memberships), ("in", memberships)):
        np.testing.assert_array_equal(np.sum(data["margins"][side], axis=1), is_in.sum(axis=0))
        for node in (0, 5, 17):
            mine = margins[is_in[:, node], node]
            assert data["margins"][f"mean_{side}"][node] == pytest.approx(mine.mean(), abs=1e-5)
            assert data["margins"][f"std_{side}"][node] == pytest.approx(mine.std(), abs=1e-5)
            limits = (margins[:, node].min(), margins[:, node].max())
            expected = np.histogram(mine, data["margins"]["num_bins"], limits)[0]
            # A value on the border of two bins may fall to either.
            assert np.abs(np.cumsum(expected) - np.cumsum(data["margins"][side][node])).max() <= 1
    for curve in data["posteriors"]:
        x, density = np.array(curve["x"]), np.array(curve["density"])
        assert np.trapezoid(density, x) == pytest.approx(1, abs=0.02)
        assert x[0] <= curve["p5"] < curve["p50"] < curve["p95"] <= x[-1]


def test_releases_agree_with_what_was_found(audited: Audit, data: dict[str, Any]) -> None:
    (release,) = data["releases"]
    findings = audited.findings[release["name"]]
    exposure, members = findings.exposure.exposure, release["exposure"]["members"]
    assert [row["correct"] for row in members] == exposure.members.correct.mean.tolist()
    assert [row["correct_low"] for row in members] == exposure.members.correct.low.tolist()
    assert [row["correct_high"] for row in members] == exposure.members.correct.high.tolist()
    assert [row["is_settled"] for row in members] == exposure.members.is_settled.tolist()
    # Without a model, whoever has a prior of at least 75 % is named, and is in with that probability.
    prior = audited.priors.prob
    assert members[1]["precision"] == 0.75
    assert members[1]["by_prior"] == pytest.approx(prior[prior >= 0.75].sum())
    others = release["exposure"]["non_members"]
    assert others[1]["by_prior"] == pytest.approx((1 - prior)[prior <= 0.25].sum())
    assert release["auc"] == audited.attacks.performance[audited.attacks.main].auc
    assert findings.certified is not None
    for side in ("members", "non_members"):
        names = [row.names for row in getattr(findings.certified, side)]
        assert [row["names"] for row in release["certified"][side]] == names
    assert release["exposed_by"] == findings.exposed_by
    assert findings.proof is not None
    for stored in findings.proof.bounds:
        bound = release["proof"][stored.parameter]
        assert bound["proven"] == stored.proven
        is_beyond = stored.proven is not None and stored.proven >= stored.floor_high + 0.05
        assert bound["is_shown"] == (is_beyond and findings.proof.is_leakage_proven)
    reliability = release["exposure"]["reliability"]
    assert reliability["num_challenges"] == findings.exposure.reliability.num_challenges.tolist()
    assert [value is None for value in reliability["stated"]] == np.isnan(findings.exposure.reliability.stated).tolist()


def test_tables_lead_with_what_is_proven_and_exposed(audited: Audit) -> None:
    releases, estimates = (part.splitlines() for part in markdown_table(audited).split("\n\n"))
    assert len({line.count("|") for line in releases}) == len({line.count("|") for line in estimates}) == 1
    head, cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in (releases[0], releases[-1]))
    (release,) = audited.findings
    curve = audited.main_findings.exposure.exposure.members
    k = curve.at(0.99)
    row = dict(zip(head, cells, strict=True))
    assert head[0] == "release"
    assert cells[0] == f"{release}, scores"
    named = row["members named at 99 % (95 % interval)"]
    assert named.startswith(f"{curve.correct.mean[k]:.1f} ({curve.correct.low[k]:.1f} to {curve.correct.high[k]:.1f})")
    assert named.endswith("too few models") == (not curve.is_settled[k])
    proof = audited.main_findings.proof
    assert proof is not None
    is_proven = "mp" in proof.shown
    assert row["MP ε proven (95 %)"] == (f"≥ {proof.mp.proven:.2f}" if is_proven else "nothing")
    assert estimates[0].startswith("| attack | bmp ε_L | bmp ε_R |")
    latex = latex_table(audited)
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    assert r"members named at 99 \% (95 \% interval)" in latex
    assert not re.search(r"(?<!\\)%|[≥−ε]", latex)


browser = sample_page.browser


def test_names_of_an_audited_graph_are_shown_and_not_run(browser: Browser, tmp_path: Path) -> None:
    verdict = audit(hostile_graph(), PLAN, folder=tmp_path, pictures="none").verdict
    browser.open(tmp_path / "report.html")
    assert browser.text(".verdict").replace("\u00a0", " ") == verdict.replace("ε_R", "εR")
    assert len(browser.rows()) == NUM_NODES
    for node in range(len(HOSTILE_NAMES)):
        browser.run("location.hash = arguments[0]", f"#node={node}")
        browser.wait_until_selected(node)
        assert visible(HOSTILE_NAMES[node].split("\n")[0][:60]) in browser.text("#node-panel summary")
    table = browser.text("#node-table")
    for name in (*HOSTILE_NAMES[:4], "<script>alert(3)</script>", HOSTILE_CLASS):
        assert visible(name) in table
    assert browser.run("return document.scripts.length") == 4
    assert browser.run("return document.querySelectorAll('img, b:not(.never)').length") == 0
    assert browser.console() == []
    assert browser.requests() == [(tmp_path / "report.html").as_uri()]
