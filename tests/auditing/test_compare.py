"""Audits side by side."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from compare_fixture import SNOWBALL, UNIFORM, counts_of, made_audit, posterior_of, strong, weak, write_folder

from bmpaudit import ErrorCounts, compare
from bmpaudit.auditing.compare_report import write_comparison
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation import lower_bound
from bmpaudit.estimation.difference import DifferenceMarginal
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.node_change import node_change
from bmpaudit.samplers import Snowball
from bmpaudit.shadow import GAT

HOSTILE = "<script>alert(1)<script>{{style}}"


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    return [write_folder(tmp_path / "one", weak()), write_folder(tmp_path / "two", strong(), plan=SNOWBALL)]


def test_difference_agrees_with_independent_quadrature() -> None:
    first, second = (posterior_of(counts).marginal() for counts in (weak(), counts_of([95, 90, 100], [58, 65, 55])))
    difference = DifferenceMarginal(first, second)

    # The two densities alone on a fine grid, and their sums: nothing of the panels and polynomials behind them.
    step = 2e-4
    x = np.arange(-np.log(3) + step / 2, 20, step)  # from the floor, where both begin
    p_first, p_second = (marginal.pdf(x) for marginal in (first, second))
    assert p_first.sum() * step == pytest.approx(1, abs=1e-6)
    beyond = np.cumsum(p_second[::-1])[::-1] * step - p_second * step / 2
    for t in (-0.2, 0.0, 0.3):
        wanted = float((p_first * np.interp(x + t, x, beyond)).sum() * step)
        assert difference.probability_above(t) == pytest.approx(wanted, abs=1e-5)
        height = float((p_first * np.interp(x + t, x, p_second, left=0.0, right=0.0)).sum() * step)
        assert float(difference.pdf(t)) == pytest.approx(height, abs=1e-4)
    p = [0.05, 0.5, 0.95]
    np.testing.assert_allclose(difference.cdf(difference.quantile(p)), p, atol=1e-9)
    assert difference.mean() == pytest.approx(second.mean() - first.mean())


def test_difference_to_itself_is_even_and_turned_round_is_the_rest() -> None:
    first, second = posterior_of(weak()).marginal(), posterior_of(strong()).marginal()
    assert DifferenceMarginal(first, first).probability_above() == pytest.approx(0.5, abs=1e-12)
    assert float(DifferenceMarginal(first, first).quantile(0.5)) == pytest.approx(0, abs=1e-8)
    there, back = DifferenceMarginal(first, second), DifferenceMarginal(second, first)
    assert there.probability_above() + back.probability_above() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(there.quantile([0.05, 0.5]), -back.quantile([0.95, 0.5]), atol=1e-7)
    with pytest.raises(InputError, match="probability must be in"):
        there.quantile(1.0)


def test_draws_agree_with_densities() -> None:
    exact = [posterior_of(counts) for counts in (weak(), strong())]
    draws = [DrawsMarginal(found.sample(40_000, seed)["epsilon_right"]) for seed, found in enumerate(exact)]
    densities = [found.marginal() for found in exact]
    wanted = DifferenceMarginal(densities[0], densities[1])
    for first, second in ((draws[0], densities[1]), (densities[0], draws[1]), (draws[0], draws[1])):
        found = DifferenceMarginal(first, second)
        t = float(wanted.quantile(0.3))
        # 40,000 draws: standard error at most 0.0025 each.
        assert found.cdf(t) == pytest.approx(0.3, abs=0.012)
        assert found.pdf(t) == pytest.approx(float(wanted.pdf(t)), rel=0.1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_change_of_nodes_agrees_with_draws_of_error_rates(side: str) -> None:
    first, second = weak(), counts_of([70, 92, 20], [60, 60, 70], prior_prob=0.4)
    found = node_change(first, second, side)
    rng = np.random.default_rng(1)

    def implied(counts: ErrorCounts) -> np.ndarray:
        shape = (200_000, counts.num_nodes)
        a, b = counts.false_positives, counts.false_negatives
        alpha = rng.beta(a + 1, counts.num_out - a + 1, shape)
        beta = rng.beta(b + 1, counts.num_in - b + 1, shape)
        odds = np.log(counts.prior_prob / (1 - counts.prior_prob))
        if side == "right":
            return odds + np.log(np.maximum((1 - beta) / alpha, beta / (1 - alpha)))
        return -odds + np.log(np.maximum((1 - alpha) / beta, alpha / (1 - beta)))

    apart = implied(second) - implied(first)
    np.testing.assert_allclose(found.more_prob, (apart > 0).mean(axis=0), atol=0.015)
    spread = apart.std(axis=0)
    for end, probability in ((found.low, 0.05), (found.median, 0.5), (found.high, 0.95)):
        assert (np.abs(end - np.quantile(apart, probability, axis=0)) < 0.08 * spread).all()


def test_change_of_the_same_nodes_is_even_and_constant_decisions_come_last() -> None:
    same = node_change(weak(), weak())
    np.testing.assert_allclose(same.more_prob, 0.5, atol=1e-12)
    assert not (same.is_more | same.is_less).any()
    changed = node_change(weak(), strong())
    assert changed.is_more.tolist() == [True, False, False]
    assert changed.is_constant.tolist() == [False, False, True]
    assert changed.ranked().tolist() == [0, 1, 2]
    for bad in ({"side": "up"}, {"level": 1.0}):
        with pytest.raises(InputError, match="must be"):
            node_change(weak(), weak(), **bad)
    with pytest.raises(InputError, match="same nodes"):
        node_change(weak(), weak().take(np.arange(2)))


def test_comparison_of_two_folders(pair: list[Path]) -> None:
    result = compare(pair)
    wanted = DifferenceMarginal(posterior_of(weak()).marginal(), posterior_of(strong()).marginal())
    (difference,) = result.differences
    assert difference.more_prob == pytest.approx(wanted.probability_above(), abs=1e-12)
    assert difference.more_prob > 0.95
    assert [audit.label for audit in result.audits] == ["one", "two"]
    assert result.verdicts[0].startswith("two leaks more than one: ")
    assert result.nodes[0].matched_by == "id"
    assert (result.nodes[0].num_more, result.nodes[0].num_less, result.nodes[0].num_constant) == (1, 0, 1)
    assert [setting.key for setting in result.settings] == ["sampler.name"]  # fan_out and restart go with it
    text = str(result)
    assert "one" in text
    assert f"{difference.more_prob:.2f}" in text
    content = json.loads(json.dumps(result.to_dict(top=2), allow_nan=False))
    assert len(content["nodes"][0]["changed_most"]) == 2
    assert content["audits"][0]["floor"] == pytest.approx(-np.log(3))


def test_the_same_folder_twice_is_even_and_said(pair: list[Path]) -> None:
    result = compare([pair[0], pair[0]])
    assert result.differences[0].more_prob == pytest.approx(0.5, abs=1e-12)
    assert result.settings == ()
    assert any("compared with itself" in caution for caution in result.cautions)
    assert len({audit.label for audit in result.audits}) == 2
    assert "cannot be told apart" in result.verdicts[0]


def test_prior_domination_is_told_and_only_then(tmp_path: Path) -> None:
    # With hardly a trial the posterior is the prior restricted to the support.
    empty = counts_of([0, 0], [0, 0], num_out=0, num_in=0)
    folders = [write_folder(tmp_path / name, empty) for name in ("p", "q")]
    result = compare(folders)
    assert all(audit.prior_share == pytest.approx(1, abs=1e-3) for audit in result.audits)
    assert result.to_dict()["both_prior_dominated"]
    assert any(caution.startswith("Both posteriors are prior-dominated") for caution in result.cautions)
    known = write_folder(tmp_path / "known", counts_of([100] * 40, [60] * 40))
    mixed = compare([folders[0], known])
    assert mixed.audits[1].prior_share < 0.3
    assert any(caution.startswith("The posterior of p is prior-dominated") for caution in mixed.cautions)
    sharp = compare([known, write_folder(tmp_path / "other", counts_of([99] * 40, [60] * 40))])
    assert not any("prior-dominated" in caution for caution in sharp.cautions)


def test_more_than_one_differing_setting_is_told(tmp_path: Path) -> None:
    plan = UNIFORM.replace(sampler=Snowball(0.5), model=GAT(), seed=7)
    folders = [write_folder(tmp_path / "a", weak()), write_folder(tmp_path / "b", weak(), plan=plan)]
    result = compare(folders)
    keys = [setting.key for setting in result.settings]
    assert keys[:3] == ["seed", "sampler.name", "sampler.train_fraction"]
    assert "model.name" in keys
    assert "sampler.fan_out" not in keys
    (message,) = [caution for caution in result.cautions if "settings" in caution]
    assert "sampler.name, sampler.train_fraction, model.name" in message
    assert "seed" not in message


def test_nodes_of_other_graphs_match_by_name_or_not_at_all(tmp_path: Path) -> None:
    names = ["x", "y", "z"]
    first = write_folder(tmp_path / "a", weak(), names=names)
    turned = write_folder(tmp_path / "b", strong(), names=["z", "y", "x"], graph_hash="other")
    result = compare([first, turned]).nodes[0]
    assert result.matched_by == "name"
    table = result.table.set_index("name")
    assert sorted(table.index) == names
    # x is the first node of the one and the last of the other, whose decision is constant.
    assert table["is_constant"].to_dict() == {"x": True, "y": False, "z": False}
    for name, folder in (("numbers", None), ("twice", ["x", "x", "y"])):
        other = write_folder(tmp_path / name, strong(), names=folder, graph_hash="other")
        lost = compare([first, other])
        assert lost.nodes[0].matched_by == ""
        assert lost.nodes[0].table.empty
        assert any("not comparable" in caution for caution in lost.cautions)
    strangers = write_folder(tmp_path / "strangers", strong(), names=["u", "v", "w"], graph_hash="other")
    assert "no node was audited" in compare([first, strangers]).nodes[0].sentence
    page = write_comparison(compare([first, strangers]), tmp_path / "out").read_text(encoding="utf-8")
    assert page.count("<img") == 2  # no picture of nodes


def test_definitions_with_one_and_two_parameters(tmp_path: Path) -> None:
    every = ("bmp", "bmp-l", "bmp-s", "mp")
    folders = [
        write_folder(tmp_path / name, counts, definitions=every) for name, counts in (("a", weak()), ("b", strong()))
    ]
    assert compare(folders, "bmp").parameter == "epsilon_right"
    left = compare(folders, "bmp", side="left")
    bounds = lower_bound(weak())
    assert (left.parameter, left.nodes[0].symbol) == ("epsilon_left", "e_L")
    assert left.audits[0].proven == left.to_dict()["audits"][0]["proven"] == bounds.left.bound
    assert compare(folders, "bmp-l").nodes[0].symbol == "e_L"
    mp = compare(folders, "mp")
    assert (mp.audits[0].floor, mp.audits[0].proven) == (0, bounds.mp.bound)
    assert mp.nodes[0].symbol == "e_R above the floor"
    assert compare(folders, "bmp-s").parameter == "epsilon"
    with pytest.raises(InputError, match="bmp-l is about the other side"):
        compare(folders, "bmp-l", side="right")


def test_what_cannot_be_compared_is_refused_in_one_line(pair: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a comparison takes at least two audits, got 1"):
        compare(pair[:1])
    with pytest.raises(DataError, match="is not an audit folder"):
        compare([pair[0], tmp_path])
    with pytest.raises(InputError, match="mp was not estimated for full_clean_strong in one; it has bmp-r"):
        compare(pair, "mp")
    with pytest.raises(InputError, match="has no attack 'none'; it has full_clean_strong"):
        compare(pair, variant="none")
    (pair[1] / "summary.json").write_text('{"format": 2}')
    with pytest.raises(DataError, match=r"summary\.json is missing or damaged: run bmpaudit estimate again"):
        compare(pair)


def test_objects_and_folders_mix(pair: list[Path]) -> None:
    result = compare([made_audit(weak()), pair[1], made_audit(weak())])
    assert [audit.label for audit in result.audits] == [
        "tiny, Uniform 25 %, GCN (1)",
        str(pair[1]),
        "tiny, Uniform 25 %, GCN (2)",
    ]
    of_folders = compare(pair)
    assert result.differences[0].more_prob == pytest.approx(of_folders.differences[0].more_prob, abs=1e-12)
    assert result.audits[0].path == ""


def test_an_audit_of_two_plans_is_not_compared(pair: list[Path]) -> None:
    """The errors of one plan and the estimates of another, as a copied file or a crash may leave them."""
    text = (pair[1] / "plan.toml").read_text()
    (pair[1] / "plan.toml").write_text(text.replace("seed = 0", "seed = 1"))
    with pytest.raises(DataError, match="its estimate step was made with another plan: run bmpaudit estimate again"):
        compare(pair)


def test_page_escapes_names_and_asks_for_nothing(tmp_path: Path) -> None:
    names = [HOSTILE, "<img src=x onerror=alert(2)>", "{{policy}}"]
    folders = [
        write_folder(tmp_path / "a & <b>", weak(), names=names, source=HOSTILE, is_leakage_found=False),
        write_folder(tmp_path / "c $x$", strong(), plan=SNOWBALL, names=names, source=HOSTILE),
    ]
    result = compare(folders)
    path = write_comparison(result, tmp_path / "out")
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "onerror=alert(2)>" not in page.replace(html.escape(names[1]), "")
    for name in (*names, "a & <b>", "c $x$"):
        assert html.escape(name) in page
    assert "default-src 'none'" in page
    assert "script-src" not in page
    addresses = re.findall(r"<[^>]*\s(?:src|href|action|srcset)=\"([^\"]*)\"", page)
    assert len(addresses) == 5
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert "url(" not in page
    assert "@import" not in page
    for picture in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page):
        svg = base64.b64decode(picture).decode()
        assert "<script" not in svg
        assert re.search(r"href=\"(?!#|data:)", svg) is None
    assert len(page.encode()) < 1e6
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        *("compare.html", "compare.json", "compare.pdf", "compare.png", "compare_nodes.parquet"),
    ]
    content = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert content["format"] == 1
    assert content["nodes"][0]["changed_most"][0]["name"] == HOSTILE
    table = pd.read_parquet(tmp_path / "out" / "compare_nodes.parquet")
    assert table["audit"].tolist() == ["c $x$"] * 3
    assert write_comparison(result, tmp_path / "again").read_text(encoding="utf-8") == page
