"""Audits side by side."""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compare_fixture import SNOWBALL, UNIFORM, counts_of, made_audit, posterior_of, strong, weak, write_folder

from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import BoundResult, CertificateResult, CertifiedResult, ProofResult
from bmpaudit.comparison.compare import EstimatedComparison, compare, side_by_side
from bmpaudit.comparison.page import write_comparison
from bmpaudit.comparison.sides import NAMED_99
from bmpaudit.estimation.posterior import DifferenceMarginal, DrawsMarginal
from bmpaudit.models import GAT
from bmpaudit.samplers import Snowball
from bmpaudit.util.errors import DataError, InputError

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


def test_comparison_of_two_folders(pair: list[Path]) -> None:
    result = compare(pair)
    wanted = DifferenceMarginal(posterior_of(weak()).marginal(), posterior_of(strong()).marginal())
    estimated = result.estimated
    assert estimated is not None
    assert estimated.differences[0].more_prob == pytest.approx(wanted.probability_above(), abs=1e-12)
    assert estimated.sentences[0].startswith("ε_R is estimated larger in two than in one: ")
    assert [audit.label for audit in result.audits] == ["one", "two"]
    assert result.differences[0].nodes.matched_by == "id"
    assert [setting.key for setting in result.settings] == ["sampler.name"]  # fan_out and restart go with it
    assert "independent models, 24 and 24" in str(result)
    content = json.loads(json.dumps(result.to_dict(top=2), allow_nan=False))
    assert len(content["nodes"][0]["changed_most"]) == 2
    assert content["estimated"]["audits"][0]["floor"] == pytest.approx(-np.log(3))
    # Folders without models: neither their accuracy nor their samples are known.
    assert content["audits"][0]["figures"]["held_out_accuracy"] is None
    assert sum("its shadow models cannot be read" in caution for caution in result.cautions) == 2


def certificate(certainty: float, names: float, by_prior: int = 0) -> CertificateResult:
    return CertificateResult(certainty, names, by_prior, names, 1.0, 40)


def bound(proven: float, *, is_ceiling: bool) -> BoundResult:
    hits = 50 if is_ceiling else 49
    return BoundResult(proven, True, is_ceiling, 0.0, 0.99, "one-guess", 20, 50, 50, hits, "student, full")


def with_findings(audit: Audit, members: list[CertificateResult], bounds: list[BoundResult]) -> Audit:
    """The audit with these certificates and these bounds on ε_R, ε_L and MP of every release."""
    certified = CertifiedResult(0.99, 20, 50, "student, full", members, [])
    changes: dict[str, Any] = {"certified": certified, "proof": ProofResult(True, *bounds)}
    releases = {name: replace(release, **changes) for name, release in audit.result.releases.items()}
    audit._result = replace(audit.result, releases=releases)
    del audit.result  # the one that was computed
    return audit


def test_certified_names_come_first_and_ceilings_rank_nothing() -> None:
    bounds = [bound(3.0, is_ceiling=True), bound(2.0, is_ceiling=True), bound(4.0, is_ceiling=False)]
    others = [bound(2.5, is_ceiling=True), bound(2.6, is_ceiling=False), bound(4.0, is_ceiling=False)]
    first = with_findings(made_audit(weak()), [certificate(0.9, 50.9), certificate(0.99, 31.97)], bounds)
    other = with_findings(
        made_audit(strong(), plan=SNOWBALL), [certificate(0.9, 12.0, 4), certificate(0.99, 2.0, 2)], others
    )
    (difference,) = (result := compare([first, other])).differences
    labels = [audit.label for audit in result.audits]
    # At 99 % the second has no names but those of the sampling: the certainty that both have is 90 %.
    assert difference.verdict.startswith(
        f"Certified names of training nodes per released model, 90 % of them right: at least 50 in {labels[0]} and at "
        f"least 12 in {labels[1]}. "
    )
    rows = {row[0]: row[1:] for row in side_by_side(result)[1]}
    assert rows["certified names, 90 % right"] == ["≥ 50", "≥ 12"]
    assert rows["certified names, 99 % right"] == ["≥ 31", "–"]
    assert rows["proven ε_R"] == ["≥ 3.00^", "≥ 2.50^"]
    assert difference.more_proven == {"epsilon_right": "", "epsilon_left": labels[1], "mp": ""}
    assert difference.proven == (
        f"Proven: ε_L more in {labels[1]}, MP ε as much in both. Of ε_R both have proven the most that so many guesses "
        "can show, which ranks neither. These are lower bounds: that less is proven is no sign of less leakage."
    )
    assert result.to_dict()["differences"][0]["at_ceiling"] == ["epsilon_right"]
    none = compare([with_findings(made_audit(weak()), [certificate(0.9, 0.0)], bounds), other]).verdicts[0]
    assert "90 % of them right: none in tiny, Uniform 25 %, GCN and at least 12 in " in none
    nobody = compare([made_audit(weak()), made_audit(weak())]).verdicts[0]
    assert "ertified" not in nobody


def test_a_difference_is_no_further_than_the_limits_of_both_audits() -> None:
    result = compare([made_audit(weak(), leakage=4.0), made_audit(weak(), leakage=0.0)])
    for each in (*result.differences[0].models, *result.differences[0].curve):
        first, other = (audit.mean(each.quantity) for audit in result.audits)
        assert first is not None
        assert other is not None
        if each.quantity.name.startswith("named_"):
            change = each.change
            assert change.mean - change.low <= np.hypot(other.mean - other.low, first.high - first.mean) + 1e-12
            assert change.high - change.mean <= np.hypot(other.high - other.mean, first.mean - first.low) + 1e-12


def test_what_is_open_is_said_without_a_forecast() -> None:
    result = compare([made_audit(weak(), leakage=0.0), made_audit(weak(), leakage=0.0)])
    one, two = (audit.named_surely for audit in result.audits)
    assert (one.correct, two.correct, one.is_settled, two.is_settled) == (0, 0, False, False)
    (verdict,), (first, other) = result.verdicts, (audit.label for audit in result.audits)
    # That nobody was named has an upper end too.
    assert verdict == (
        f"At most {max(one.correct_high, two.correct_high):.1f} training nodes of one released model can be named with "
        f"99 % certainty, in {first} and in {other}, and held-out accuracy is the same. How many can be named in "
        f"{first} and {other} is open: more models would narrow it down."
    )


def test_the_same_folder_twice_is_even_and_said(pair: list[Path]) -> None:
    result = compare([pair[0], pair[0]])
    assert result.estimated is not None
    assert result.estimated.differences[0].more_prob == pytest.approx(0.5, abs=1e-12)
    assert all(each.change.mean == 0 for each in result.differences[0].models)
    assert result.settings == ()
    assert any("compared with itself" in caution for caution in result.cautions)
    assert len({audit.label for audit in result.audits}) == 2
    assert "cannot be told apart" in result.estimated.sentences[0]


def test_prior_domination_is_told_and_only_then(tmp_path: Path) -> None:
    # With hardly a trial the posterior is the prior restricted to the support.
    empty = counts_of([0, 0], [0, 0], num_out=0, num_in=0)
    folders = [write_folder(tmp_path / name, empty) for name in ("p", "q")]
    result = compare(folders).estimated
    assert result is not None
    assert all(each.prior_share == pytest.approx(1, abs=1e-3) for each in result.audits)
    assert any(caution.startswith("Both posteriors are prior-dominated") for caution in result.cautions)
    known = write_folder(tmp_path / "known", counts_of([100] * 40, [60] * 40))
    mixed = compare([folders[0], known]).estimated
    assert mixed is not None
    assert mixed.audits[1].prior_share < 0.3
    assert any(caution.startswith("The posterior of p is prior-dominated") for caution in mixed.cautions)
    sharp = compare([known, write_folder(tmp_path / "other", counts_of([99] * 40, [60] * 40))]).estimated
    assert sharp is not None
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
    turned = write_folder(tmp_path / "b", weak(), names=names[::-1], graph_hash="other")
    result = compare([first, turned]).differences[0].nodes
    assert result.matched_by == "name"
    table = result.table.set_index("name")
    assert sorted(table.index) == names
    # The same models, but x is the first node of the one and the last of the other.
    exposed = Audit.load(first).main_findings.exposure.exposure.member_nodes
    assert table.loc[names, "first_models"].tolist() == exposed.num_models.tolist()
    assert table.loc[names, "second_models"].tolist() == exposed.num_models.tolist()[::-1]
    for name, folder in (("numbers", None), ("twice", ["x", "x", "y"])):
        other = write_folder(tmp_path / name, strong(), names=folder, graph_hash="other")
        lost = compare([first, other])
        assert lost.differences[0].nodes.matched_by == ""
        assert lost.differences[0].nodes.table.empty
        assert any("not comparable" in caution for caution in lost.cautions)
    strangers = write_folder(tmp_path / "strangers", strong(), names=["u", "v", "w"], graph_hash="other")
    lost = compare([first, strangers])
    assert "No node was audited" in lost.differences[0].nodes.sentence
    assert "No node was audited" in write_comparison(lost, tmp_path / "out").read_text(encoding="utf-8")


def test_definitions_with_one_and_two_parameters(tmp_path: Path) -> None:
    every = ("bmp", "bmp-r", "bmp-l", "bmp-s", "mp")
    folders = [
        write_folder(tmp_path / name, counts, definitions=every) for name, counts in (("a", weak()), ("b", strong()))
    ]

    def epsilon(*chosen: str, **options: str) -> EstimatedComparison:
        estimated = compare(folders, *chosen, **options).estimated
        assert estimated is not None
        return estimated

    assert epsilon("bmp").parameter == "epsilon_right"
    assert epsilon("bmp", side="left").parameter == "epsilon_left"
    assert (epsilon().definition, epsilon(side="left").definition) == ("bmp-r", "bmp-l")
    assert epsilon("mp").audits[0].floor == 0
    assert epsilon("bmp-s").parameter == "epsilon"
    with pytest.raises(InputError, match="bmp-l is about the other side"):
        compare(folders, "bmp-l", side="right")


def test_a_definition_that_all_audits_have_is_chosen() -> None:
    estimated = (("bmp-l", "bmp-s", "mp"), ("mp", "bmp-l"), ("bmp-r", "bmp-s"))
    audits = [made_audit(strong(), definitions=each) for each in estimated]

    def chosen(*which: int, side: str | None = None) -> str | None:
        estimated = compare([audits[number] for number in which], side=side).estimated
        return None if estimated is None else estimated.definition

    assert chosen(0, 1) == "bmp-l"
    assert chosen(0, 1, side="right") == "mp"
    assert chosen(0, 2) == "bmp-s"
    assert chosen(1, 2) is None
    with_none = compare([audits[1], audits[2]])
    assert "No ε of this side was estimated in all of the audits" in with_none.cautions[-1]
    assert with_none.to_dict()["estimated"] is None


def test_the_left_side_is_about_non_members() -> None:
    audit = made_audit(weak(), definitions=("bmp-r", "bmp-l"))
    result = compare([audit, audit], side="left")
    table = audit.main_findings.exposure.models
    wanted = table.non_members_correct[:, list(table.precision).index(0.99)].mean()
    mean = result.audits[0].models.mean(NAMED_99)
    assert mean is not None
    assert mean.mean == pytest.approx(wanted)
    exposed = audit.main_findings.exposure.exposure.non_member_nodes
    assert result.differences[0].nodes.table.set_index("node")["first_models"].to_dict() == dict(
        zip(exposed.node.tolist(), exposed.num_models.tolist(), strict=True)
    )


def test_releases_of_one_audit_and_of_folders(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "one", weak())
    result = compare([f"{folder}:clean", f"{folder}:noisy"])
    assert [audit.label for audit in result.audits] == ["clean", "noisy"]
    assert [audit.variant.name for audit in result.audits] == ["full_clean_strong", "full_noisy_strong"]
    assert result.settings == ()
    other = write_folder(tmp_path / "two", weak(), plan=SNOWBALL)
    mixed = compare([folder, f"{other}:noisy"])
    assert [(audit.label, audit.release) for audit in mixed.audits] == [("one", "clean"), ("two:noisy", "noisy")]
    assert any("in 2 settings" in caution and "the release" in caution for caution in mixed.cautions)
    chosen = compare([folder, other], variant="full_noisy_strong")
    assert [audit.release for audit in chosen.audits] == ["noisy", "noisy"]
    # A folder whose name has a colon is a folder.
    colon = write_folder(tmp_path / "a:noisy", weak())
    assert compare([folder, colon]).audits[1].release == "clean"
    audit = made_audit(weak())
    assert compare([(audit, "clean"), (audit, "noisy")]).audits[1].release == "noisy"


def test_what_cannot_be_compared_is_refused_in_one_line(pair: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a comparison takes at least two audits or releases, got 1"):
        compare(pair[:1])
    with pytest.raises(InputError, match="one has no release 'silent'; it has clean, noisy"):
        compare([pair[0], f"{pair[0]}:silent"])
    with pytest.raises(
        InputError, match="full_clean_strong is an attack on the release clean, got the release 'noisy'"
    ):
        compare([pair[0], f"{pair[0]}:noisy"], variant="full_clean_strong")
    with pytest.raises(InputError, match="side must be 'right' or 'left', got side='up'"):
        compare(pair, side="up")
    with pytest.raises(DataError, match="is not an audit folder"):
        compare([pair[0], tmp_path])
    with pytest.raises(InputError, match="mp was not estimated for full_clean_strong in one; it has bmp-r"):
        compare(pair, "mp")
    with pytest.raises(InputError, match="has no attack 'none'; it has full_clean_strong, full_noisy_strong"):
        compare(pair, variant="none")
    (pair[1] / "summary.json").write_text('{"format": 3}')
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
    assert result.estimated is not None
    assert of_folders.estimated is not None
    more_prob = of_folders.estimated.differences[0].more_prob
    assert result.estimated.differences[0].more_prob == pytest.approx(more_prob, abs=1e-12)
    assert result.audits[0].path == ""


def test_an_audit_of_two_plans_is_not_compared(pair: list[Path]) -> None:
    """The errors of one plan and the estimates of another, as a copied file or a crash may leave them."""
    text = (pair[1] / "plan.toml").read_text()
    (pair[1] / "plan.toml").write_text(text.replace("seed = 0", "seed = 1"))
    with pytest.raises(DataError, match="its estimate step was made with another plan: run bmpaudit estimate again"):
        compare(pair)


def test_names_on_the_page_are_short_and_do_not_turn_its_direction(tmp_path: Path) -> None:
    names = ["\u202egnp.exe", "a" * 1_000_000, "bell\x07"]
    folders = [write_folder(tmp_path / name, weak(), names=names) for name in ("one", "two")]
    page = write_comparison(compare(folders), tmp_path / "out").read_text(encoding="utf-8")
    assert "\u202e" not in page
    assert "\x07" not in page
    assert "a" * 79 + "…" in page
    assert len(page.encode()) < 1e6


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
    assert len(addresses) == 4  # skip link, icon, two pictures
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
    assert content["format"] == 2
    assert {row["name"] for row in content["nodes"][0]["changed_most"]} == set(names)
    table = pd.read_parquet(tmp_path / "out" / "compare_nodes.parquet")
    assert table["audit"].tolist() == ["c $x$"] * 3
    assert write_comparison(result, tmp_path / "again").read_text(encoding="utf-8") == page
