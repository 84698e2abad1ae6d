"""What an adversary sees of a model: scores, answers to any query, or weights, each attacked by itself."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from sklearn.linear_model import LogisticRegression
from torch import nn

import bmpaudit
from bmpaudit import datasets
from bmpaudit.auditing import Audit, Runtime, stages
from bmpaudit.auditing.stages import bound_level
from bmpaudit.cli.show import print_result
from bmpaudit.comparison.compare import compare, side_by_side
from bmpaudit.gate import check
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.infer import infer
from bmpaudit.models import GCN, Training
from bmpaudit.pipeline.outside_runs import ProofSettings, prove_folder
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean, LabelOnly
from bmpaudit.report.page_data import page_data
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.errors import InputError

QUIET = Runtime(quiet=True)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("access") / "audit"
    return bmpaudit.audit(
        "demo",
        sampler="uniform",
        shadows=96,
        definitions="bmp-r",
        release_as="weights",
        releases=("clean", "label-only"),
        folder=folder,
        pictures="none",
        runtime=QUIET,
    )


def test_more_access_names_more(audited: Audit) -> None:
    release = audited.result.releases["clean"]
    assert (release.access, list(release.lesser)) == ("weights", ["labels", "scores", "queries"])
    labels, scores, queries, weights = release.ladder.values()
    assert labels.exposed_by.startswith("right-or-wrong")
    assert labels.exposure.named(0.9).correct < scores.exposure.named(0.9).correct
    named = [part.exposure.named(0.99) for part in (scores, queries, weights)]
    assert named[1].correct_low > 3 * named[0].correct
    assert named[2].correct_low > named[1].correct
    assert "rows" in weights.exposed_by
    assert weights.certified is not None
    assert scores.certified is not None
    right = [max(row.certainty * row.names for row in part.members) for part in (scores.certified, weights.certified)]
    assert right[1] > 2 * right[0]


def test_no_access_is_shown_to_give_away_less_than_a_lesser_one(audited: Audit) -> None:
    for release in audited.result.releases.values():
        ladder = list(release.ladder.values())
        for less, more in pairwise(ladder):
            assert more.proof is not None
            assert less.proof is not None
            for parameter, bound in less.proof.bounds.items():
                assert (more.proof.bounds[parameter].proven or -np.inf) >= (bound.proven or -np.inf)
            for certainty in (0.5, 0.9, 0.99):
                mine, theirs = more.exposure.named(certainty), less.exposure.named(certainty)
                assert mine.correct >= theirs.correct
                assert mine.correct_high >= theirs.correct_high
            assert more.certified is not None
            assert less.certified is not None
            for mine_row, their_row in zip(more.certified.members, less.certified.members, strict=True):
                assert mine_row.names >= their_row.names
            for loose, strict in pairwise(more.certified.members):  # what is right so often is so for less, too
                assert loose.names >= strict.names
                assert loose.certainty < strict.certainty


def test_answers_alone_do_not_make_a_model_with_noise_on_its_weights() -> None:
    """What is found on `noisy` holds for whoever has the weights of `clean`, and not for whoever may only ask it."""
    settings: dict[str, Any] = {"sampler": "snowball", "shadows": 48, "definitions": "bmp-r", "runtime": QUIET}
    made = bmpaudit.audit("demo", release_as="weights", releases=("clean", "noisy"), **settings)
    sources = {}
    for access, part in made.result.releases["clean"].ladder.items():
        assert part.certified is not None
        assert part.proof is not None
        bounds = [bound.source for bound in part.proof.bounds.values()]
        sources[access] = " ".join([part.exposed_by, part.certified.source, *bounds])
    assert not any("noisy" in sources[access] for access in ("labels", "scores", "queries"))
    clean, noisy = (made.result.releases[name].exposure.members for name in ("clean", "noisy"))
    for mine, theirs in zip(clean, noisy, strict=True):
        assert mine.correct >= theirs.correct
        assert mine.correct_high >= theirs.correct_high
    # Whatever little is found on `clean` itself: what noise on its weights gives away counts for the weights alone.
    weak, strong = made.findings.ladders["clean"]["labels"], made.findings.ladders["noisy"]["weights"]
    own = {(name, access): strong if name == "noisy" else weak for name in ("clean", "noisy") for access in sources}
    for access in sources:
        inherited = stages._inherited(made.plan, "clean", access, own)
        assert ("on the noisy release" in inherited.exposed_by) == (access == "weights")


def test_all_bounds_hold_together(audited: Audit) -> None:
    # Four kinds of access to the one release and one to the other, with five bounds each. Half of the failures are for
    # what the answer is about.
    levels = [
        bound_level(audited.plan, release, access)
        for release, part in audited.result.releases.items()
        for access in part.ladder
    ]
    assert len(levels) == 5
    assert sum(5 * (1 - level) for level in levels) == pytest.approx(0.05)
    assert bound_level(audited.plan, "clean", "weights") == max(1 - 0.05 / 10, min(levels)) == pytest.approx(0.995)
    weights = audited.result.releases["clean"]
    assert weights.proof is not None
    assert weights.proof.mp.level == pytest.approx(0.995)


def test_the_verdict_and_the_nodes_are_about_the_access_that_is_released(audited: Audit) -> None:
    weights = audited.result.releases["clean"]
    assert weights.certified is not None
    leading = weights.certified.leading()
    assert leading is not None
    assert audited.verdict.startswith(
        f"From the weights of one released model an adversary can name at least {int(leading.names)} nodes"
    )
    shown = dict(zip(audited.nodes["node"], audited.nodes["member_named"], strict=True))
    released = audited.main_findings.exposure.exposure.member_nodes
    assert [shown[node] for node in released.node.tolist()] == released.num_named.tolist()


def test_nodes_say_in_how_many_models_logic_alone_is_enough(audited: Audit) -> None:
    nodes, members = audited.nodes, np.asarray(audited.runs.memberships)
    assert 0 < nodes["member_certain"].sum() < members.sum()
    assert 0 < nodes["non_member_certain"].sum() < (~members).sum()
    assert nodes["certain_wrong"].sum() == 0
    feature = nodes["telling_feature"].to_numpy(dtype=np.int64)
    assert (audited.graph.dense_features[np.arange(len(nodes)), feature] > 0).all()


def test_what_is_proven_later_is_about_the_released_access(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"shadows": 48, "definitions": "bmp-r", "releases": "clean", "runtime": QUIET}
    made = bmpaudit.audit("demo", release_as="queries", folder=tmp_path, pictures="none", **settings)
    sources = {}
    for access in (None, "scores"):
        proof = prove_folder(tmp_path, ProofSettings(access=access), QUIET)
        sources[access] = {bound.choice.source for bound in proof.bounds}
    assert sources[None] == {"rows, full and none"}
    assert not any("rows" in source for source in sources["scores"])
    with pytest.raises(InputError, match="access must be one of labels, scores, queries, got 'weights'"):
        prove_folder(tmp_path, ProofSettings(access="weights"), QUIET)
    both = compare([(made, "clean"), (made, "clean")])
    assert list(both.to_dict()["audits"][0]["named_99_from"]) == ["labels", "scores", "queries"]
    assert "named with 99 % certainty, from scores" in str(side_by_side(both))


def test_it_is_read_back_and_shown_everywhere(audited: Audit, capsys: pytest.CaptureFixture[str]) -> None:
    print_result(audited.result)
    shown = capsys.readouterr().out
    for row in ("clean, labels", "clean, scores", "clean, queries", "clean, weights", "label-only"):
        assert row in shown
    (clean, _) = page_data(audited)["releases"]
    assert list(clean["lesser"]) == ["labels", "scores", "queries"]


def test_a_folder_has_each_access_and_reads_it_back(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"shadows": 16, "definitions": "bmp-r", "releases": "clean", "runtime": QUIET}
    made = bmpaudit.audit("demo", release_as="queries", folder=tmp_path / "a", pictures="none", **settings)
    assert (tmp_path / "a" / "proof" / "clean@labels.npz").exists()
    assert (tmp_path / "a" / "proof" / "clean@scores.npz").exists()
    assert (tmp_path / "a" / "proof" / "clean.npz").exists()
    assert Audit.load(tmp_path / "a").result == made.result
    again = bmpaudit.audit("demo", release_as="queries", folder=tmp_path / "a", pictures="none", **settings)
    assert again.result.fingerprint == made.result.fingerprint
    with pytest.raises(InputError, match="rows"):
        bmpaudit.audit("demo", release_as="weights", folder=tmp_path / "a", pictures="none", **settings)


def test_scores_alone_say_what_they_are_about() -> None:
    settings: dict[str, Any] = {"shadows": 16, "definitions": "bmp-r", "releases": "clean", "runtime": QUIET}
    made = bmpaudit.audit("demo", release_as="scores", **settings)
    assert list(made.result.releases["clean"].lesser) == ["labels"]
    assert any("--release-as weights" in step for step in made.result.next)
    labels = bmpaudit.audit("demo", shadows=16, definitions="bmp-r", releases="label-only", runtime=QUIET)
    assert not any("--release-as" in step for step in labels.result.next)


def test_only_releases_of_the_model_itself_have_more_access() -> None:
    plan = AuditPlan(release_as="weights", releases=("clean", "label-only"))
    assert AuditPlan().release_as == "weights"
    assert plan.accesses(Clean()) == ("labels", "scores", "queries", "weights")
    assert plan.accesses(LabelOnly()) == ("labels",)
    assert AuditPlan(release_as="queries").accesses(Clean()) == ("labels", "scores", "queries")
    assert AuditPlan(release_as="labels").accesses(Clean()) == ("labels",)
    with pytest.raises(InputError, match="attack rows needs more than scores: with release_as queries"):
        AuditPlan(attack="rows", release_as="weights")
    with pytest.raises(InputError, match=r"release_as .*'scores', 'queries' or 'weights'"):
        AuditPlan(release_as="everything")


class Own(nn.Module):
    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + 0 * edge_index.sum()


def test_an_own_module_is_asked_and_what_is_not_known_is_said() -> None:
    made = bmpaudit.audit(
        "demo", model=Own, shadows=8, definitions="bmp-r", release_as="weights", releases="clean", runtime=QUIET
    )
    release = made.result.releases["clean"]
    assert list(release.ladder) == ["labels", "scores", "queries"]
    assert any(
        "plan releases access to weights; what was attacked is access to queries" in c for c in made.result.cautions
    )


def test_a_table_is_asked_too() -> None:
    rng = np.random.default_rng(0)
    table = Graph.from_table(rng.normal(size=(80, 30)), rng.integers(0, 2, 80))
    made = bmpaudit.audit(
        table, model=LogisticRegression, shadows=24, definitions="bmp-r", release_as="queries", runtime=QUIET
    )
    assert list(made.result.releases["clean"].ladder) == ["labels", "scores", "queries"]


def test_noise_is_not_exposed_by_more_access() -> None:
    """A model that learns nothing: whatever is seen of it, nobody is named."""
    still = Training(epochs=1, learning_rate=1e-6)
    settings: dict[str, Any] = {"shadows": 48, "definitions": "bmp-r", "releases": "clean", "training": still}
    made = bmpaudit.audit("demo", release_as="weights", runtime=QUIET, **settings)
    for _, _, access in made.result.rungs:
        assert access.certified is not None
        assert access.certified.leading() is None
        assert access.exposure.named(0.99).correct < 1


def test_a_gate_holds_the_access_that_is_released(audited: Audit) -> None:
    release = audited.result.releases["clean"]
    limit = (release.lesser["scores"].exposure.named(0.99).correct_high + release.exposure.named(0.99).correct_low) / 2
    assert check(audited, max_exposure=f"{limit:.0f}@0.99").outcome == "exceeded"


def test_one_released_model_is_read_by_its_weights(audited: Audit, tmp_path: Path) -> None:
    graph = datasets.load("demo")
    runs = train_shadows(graph, ShadowPlan(Uniform(0.25), seed=77), 1, tmp_path, keep_weights=True)
    flat = np.asarray(zarr.open_group(tmp_path / "shadows", mode="r")["weights_0"][0])  # type: ignore[index]
    hidden, features, classes = GCN().hidden, graph.num_features, graph.num_classes
    first, bias, last, last_bias = np.split(flat, np.cumsum([hidden * features, hidden, classes * hidden]))
    weights = {
        "layers.0.weight": first.reshape(hidden, features),
        "layers.0.bias": bias,
        "layers.1.weight": last.reshape(classes, hidden),
        "layers.1.bias": last_bias,
    }
    truth = np.flatnonzero(runs.memberships[0])
    by_weights = infer(audited, weights, truth=truth)
    assert by_weights.source.startswith("rows")
    members = next(row for row in by_weights.named if row.certainty == 0.99)
    assert members.members > 100
    assert members.members_right is not None
    assert members.members_right >= 0.97 * members.members
