"""The JSON Schema of summary.json: real summaries fit, and anything else does not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from payload_module import MODULE, PARTS, Payload
from small_audit import run_audit, small_plan, summary_of, tiny_plan

from bmpaudit.auditing.result import FORMAT, read_result, summary_schema
from bmpaudit.models import Training
from bmpaudit.plan import AuditPlan, Gate
from bmpaudit.samplers import Snowball

OWN_DEFINITION = f"{MODULE}:{PARTS['definitions']}"
PLANS: dict[str, AuditPlan] = {
    "uniform": small_plan(definitions=("bmp", "bmp-r", "mp"), releases=("clean", "noisy")),
    "snowball, 8 models": tiny_plan(sampler=Snowball(0.4), shadows=8, prior_draws=500),
    "prequential": tiny_plan(shadows=70, proof_method="prequential"),
    "nothing leaking": tiny_plan(shadows=20, training=Training(epochs=1, learning_rate=1e-9)),
    "gate": tiny_plan(gate=Gate(max_proven_right=3, max_exposure="10@0.99")),
}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = summary_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("schema") / "audit"
    run_audit(path, PLANS["uniform"])
    return summary_of(path)


def errors(validator: Draft202012Validator, summary: Any) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(summary)]


@pytest.mark.parametrize("name", PLANS)
def test_real_summaries_fit(name: str, validator: Draft202012Validator, tmp_path: Path) -> None:
    audit = run_audit(tmp_path / "audit", PLANS[name])
    assert errors(validator, summary_of(tmp_path / "audit")) == []
    assert errors(validator, audit.summary) == []
    assert audit.is_leakage_found == (name != "nothing leaking")


def test_a_definition_of_ones_own_fits(
    validator: Draft202012Validator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Payload(tmp_path / "modules", monkeypatch)
    try:
        run_audit(tmp_path / "audit", tiny_plan(definitions=(OWN_DEFINITION, "mp")))
    finally:
        module.forget()
    assert errors(validator, summary_of(tmp_path / "audit")) == []


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every object in a summary, one element of each list."""
    if isinstance(value, dict):
        yield path
        for key, part in value.items():
            yield from objects(part, (*path, key))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*path, 0))


def at(summary: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        summary = summary[key]
    return summary


# Objects whose keys are names, settings of parts, or numbers.
OPEN = (
    "plan",
    "releases",
    "lesser",
    "provable",
    "possible",
    "variants",
    "posteriors",
    "parameters",
    "tpr_at_fpr",
    "drivers",
    "timings",
    "prior",
    "strength_prior",
)


def test_no_key_may_be_missing_or_unknown(summary: dict[str, Any], validator: Draft202012Validator) -> None:
    paths = list(objects(summary))
    assert len(paths) > 50
    changed = copy.deepcopy(summary)
    for path in paths:
        if path and (path[-1] in OPEN or path[0] == "plan"):
            continue
        part = at(changed, path)
        part["unheard_of"] = 1
        assert not validator.is_valid(changed), f"{path} takes an unknown key"
        del part["unheard_of"]
        for key in at(summary, path):
            value = part.pop(key)
            assert not validator.is_valid(changed), f"{path} may lack {key}"
            part[key] = value
    assert changed == summary
    assert validator.is_valid(changed)


@pytest.mark.parametrize(
    ("path", "value", "fits"),
    [
        (("headline", 0, "p95"), "inf", True),
        (("headline", 0, "p95"), "-inf", True),
        (("headline", 0, "p95"), "infinity", False),
        (("headline", 0, "p95"), None, False),
        (("headline", 0, "half_median"), None, True),
        (("releases", "clean", "proof"), None, True),
        (("releases", "clean", "proof", "mp", "proven"), None, True),
        (("releases", "clean", "proof", "mp", "proven"), "inf", False),
        (("releases", "clean", "proof", "epsilon_right", "floor"), "inf", True),
        (("releases", "clean", "certified"), None, True),
        (("releases", "clean", "exposure", "members", 0, "correct"), None, False),
        (("releases", "clean", "exposure", "members", 0, "share_correct"), None, True),
        (("releases", "clean", "power", "provable", "mp"), None, True),
        (("releases", "clean", "power", "provable", "mp"), "inf", False),
        (("releases", "clean", "power", "possible", "mp"), "inf", True),
        (("permutation_test", "missed_auc"), None, True),
        (("permutation_test", "num_leaking"), None, False),
        (("answer", "level"), "mild", False),
        (("shadow_models", "train_accuracy"), None, True),
        (("shadow_models", "trained"), 1.5, False),
        (("is_leakage_found",), "yes", False),
        (("format",), FORMAT + 1, False),
    ],
)
def test_types_are_checked(
    path: tuple[Any, ...], value: Any, fits: bool, summary: dict[str, Any], validator: Draft202012Validator
) -> None:
    changed = copy.deepcopy(summary)
    at(changed, path[:-1])[path[-1]] = value
    assert (errors(validator, changed) == []) == fits
    with nullcontext() if fits else pytest.raises(ValueError, match=str(path[-1])):
        read_result(changed)


def test_every_key_is_described() -> None:
    schema = summary_schema()
    definitions = schema["$defs"]
    for name, record in {"": schema, **definitions}.items():
        for key, part in record["properties"].items():
            assert part["description"], f"{name}.{key}"
    assert schema["properties"]["format"]["const"] == FORMAT
