"""Releases and queries added to finished models, from kept weights or logits."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import random_graph
from own_parts import SomeEdges

from bmpaudit.models import GCN, GIN, Training
from bmpaudit.releases import (
    Clean,
    Ensemble,
    FullEdges,
    LabelOnly,
    NoEdges,
    NoisyLastLayer,
    NoisyOutputs,
    OutputRelease,
    Rounded,
)
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, ShadowStore, train_shadows
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.util.errors import InputError

GRAPH = random_graph()
PLAN = ShadowPlan(
    Uniform(0.5), GCN(hidden=8), Training(epochs=6), releases=(Clean(),), queries=(FullEdges(), NoEdges()), seed=3
)
MORE = replace(PLAN, releases=(NoisyLastLayer(), Clean(), Rounded(1), NoisyOutputs(), LabelOnly()))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> Any:
    """After `untrained()` the native engine may only ask models whose weights it has."""
    ask = NativeEngine._train_and_ask

    def forbid() -> None:
        def checked(self: NativeEngine, batch: Any, repeat: int, *others: Any, **answers: Any) -> None:
            assert not np.isnan(batch.weights[repeat]).any()
            ask(self, batch, repeat, *others, **answers)

        monkeypatch.setattr(NativeEngine, "_train_and_ask", checked)

    return forbid


@pytest.mark.parametrize("model", [GCN(hidden=8), GIN(hidden=8)], ids=["gcn", "gin"])
def test_what_is_added_from_weights_is_as_if_it_had_been_there(model: Any, tmp_path: Path, untrained: Any) -> None:
    """All files of the folder; 40 models are one whole chunk and a part of one."""
    first, more = replace(PLAN, model=model), replace(MORE, model=model, queries=(*PLAN.queries, SomeEdges(20)))
    train_shadows(GRAPH, more, 40, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, first, 40, tmp_path / "added", keep_weights=True)
    untrained()
    runs = train_shadows(GRAPH, more, 40, tmp_path / "added")
    assert list(runs.statistics) == [view.name for view in more.views]
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


def test_the_torch_engine_asks_its_own_weights_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bmpaudit.shadow.engines.torch import TorchTrainer

    first, more = (replace(plan, engine="torch", model=GIN(hidden=8)) for plan in (PLAN, MORE))
    train_shadows(GRAPH, more, 4, tmp_path / "whole", keep_weights=True, num_threads=1)
    train_shadows(GRAPH, first, 4, tmp_path / "added", keep_weights=True, num_threads=1)
    monkeypatch.setattr(TorchTrainer, "_trained", None)
    train_shadows(GRAPH, more, 4, tmp_path / "added", num_threads=1)
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


def test_an_added_ensemble_trains_only_its_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = replace(PLAN, releases=(Clean(), Ensemble(2)))
    train_shadows(GRAPH, more, 5, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, PLAN, 5, tmp_path / "added", keep_weights=True)
    trained = []
    ask = NativeEngine._train_and_ask

    def watched(self: NativeEngine, batch: Any, repeat: int, *others: Any, **answers: Any) -> None:
        trained.append((repeat, bool(np.isnan(batch.weights[repeat]).all())))
        ask(self, batch, repeat, *others, **answers)

    monkeypatch.setattr(NativeEngine, "_train_and_ask", watched)
    train_shadows(GRAPH, more, 5, tmp_path / "added")
    assert trained == [(0, False), (1, True)]
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


def test_outputs_can_be_added_from_logits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = replace(PLAN, releases=(Clean(), Rounded(1), NoisyOutputs(), LabelOnly()))
    train_shadows(GRAPH, more, 5, tmp_path / "whole", keep_logits=True)
    train_shadows(GRAPH, PLAN, 5, tmp_path / "added", keep_logits=True)
    monkeypatch.setattr(NativeEngine, "fill", None)
    train_shadows(GRAPH, more, 5, tmp_path / "added")
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")
    with pytest.raises(InputError, match=r"full_noisy, none_noisy cannot be added .* of which no weights, and not"):
        train_shadows(GRAPH, replace(more, releases=(*more.releases, NoisyLastLayer())), 5, tmp_path / "added")


def test_without_weights_or_logits_nothing_is_added_and_nothing_changes(tmp_path: Path) -> None:
    train_shadows(GRAPH, PLAN, 5, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="neither weights nor logits were kept; use a new folder, with --keep"):
        train_shadows(GRAPH, replace(PLAN, releases=(Clean(), Rounded(1))), 5, tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("seed", range(3))
def test_a_stop_on_the_way_costs_nothing(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at some write: the old plan still finds its models, and the new one resumes."""
    from bmpaudit.shadow.store import ArrayGroup

    train_shadows(GRAPH, MORE, 70, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, PLAN, 70, tmp_path / "added", keep_weights=True)
    old = ShadowStore(tmp_path / "added", GRAPH, PLAN, read_only=True).read()
    write, left = ArrayGroup.write, [int(np.random.default_rng(seed).integers(1, 90))]

    def stops(self: ArrayGroup, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        write(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ArrayGroup, "write", stops)
        with pytest.raises(KeyboardInterrupt):
            train_shadows(GRAPH, MORE, 70, tmp_path / "added")
    again = ShadowStore(tmp_path / "added", GRAPH, PLAN, read_only=True).read()
    assert again.statistics["none_clean"].tobytes() == old.statistics["none_clean"].tobytes()
    train_shadows(GRAPH, MORE, 70, tmp_path / "added")
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


@dataclass(frozen=True)
class Nothing(OutputRelease):
    """Gives no numbers for some models."""

    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        return logits * np.nan if logits[0, 0] > 0 else logits


def test_models_that_fail_under_an_added_release_have_failed(tmp_path: Path) -> None:
    more = replace(PLAN, releases=(Clean(), Nothing()))
    whole = train_shadows(GRAPH, more, 12, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, PLAN, 12, tmp_path / "added", keep_weights=True)
    added = train_shadows(GRAPH, more, 12, tmp_path / "added")
    assert 0 < len(whole.failed) < 12
    assert added.failed == whole.failed
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


def test_models_are_added_to_what_was_added(tmp_path: Path) -> None:
    train_shadows(GRAPH, MORE, 45, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, PLAN, 10, tmp_path / "added", keep_weights=True)
    train_shadows(GRAPH, MORE, 45, tmp_path / "added")
    assert contents(tmp_path / "whole") == contents(tmp_path / "added")


def test_other_plans_are_still_refused(tmp_path: Path) -> None:
    train_shadows(GRAPH, MORE, 3, tmp_path, keep_weights=True)
    for other in (PLAN, replace(MORE, seed=4), replace(MORE, queries=PLAN.queries[::-1])):
        with pytest.raises(InputError, match="holds shadow models with"):
            train_shadows(GRAPH, other, 3, tmp_path)


def test_weights_cannot_be_kept_of_models_that_are_there(tmp_path: Path) -> None:
    train_shadows(GRAPH, PLAN, 3, tmp_path)
    with pytest.raises(InputError, match="holds shadow models without weights_0; use a new folder to keep them"):
        train_shadows(GRAPH, PLAN, 3, tmp_path, keep_weights=True)


def test_an_engine_of_ones_own_keeps_no_weights(tmp_path: Path) -> None:
    plan = replace(PLAN, engine="own_parts:ConstantEngine")
    with pytest.raises(InputError, match="the engine own_parts:ConstantEngine cannot keep weights"):
        train_shadows(GRAPH, plan, 3, tmp_path, keep_weights=True)
