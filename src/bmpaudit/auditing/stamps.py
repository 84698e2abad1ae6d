"""What tells one answer from another: plan, graph, models, and the code that made it."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing.plan import AuditPlan, plan_keys
from bmpaudit.auditing.plan_file import plain_value
from bmpaudit.files import sha256_of
from bmpaudit.plain import plain
from bmpaudit.registry import ENGINE, ENTRIES, UntrustedPart
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.models.torch_model import function_name
from bmpaudit.tables import model_blocks


def code_hashes(plan: AuditPlan) -> dict[str, str] | None:
    """A hash of the source of each part of the user's own, by `module:Name`; None if one of them was not imported."""
    hashes: dict[str, str] = {}
    for name, key in plan_keys().items():
        value = getattr(plan, name)
        for part in value if key.is_list else (value,):
            if isinstance(part, UntrustedPart):
                return None
            for code in _own_code(key.kind, part):
                hashes[function_name(code)] = _source_hash(code)
    return hashes


def _own_code(kind: str, part: Any) -> Iterator[Any]:
    """The classes and functions of a part that are not bmpaudit's own."""
    if not kind or registry.name_of(kind, part) in ENTRIES[kind]:
        return
    if kind == ENGINE:
        yield registry.load(ENGINE, part)
    elif hasattr(part, "own_code"):
        yield from part.own_code()
    else:
        yield part if inspect.isroutine(part) or isinstance(part, type) else type(part)


def _source_hash(code: Any) -> str:
    try:
        source = inspect.getsourcefile(code)
    except (OSError, TypeError):  # defined at a prompt, or a callable object: there is no file
        source = None
    return "" if source is None or not Path(source).is_file() else sha256_of(Path(source))


def plan_hash(plan: AuditPlan, *, only: Collection[str] = (), without_sections: Collection[str] = ()) -> str:
    """A hash of the plan's settings: all, only some of its fields, or all but those of sections of a plan file.

    Never of its gate, nor of whether weights are kept, which change no answer.
    """
    chosen = {
        name: plain_value(key, getattr(plan, name))
        for name, key in plan_keys().items()
        if (name in only if only else key.section not in without_sections)
        and name not in ("gate", "keep_weights")
        and not (name == "training" and plan.shadow_plan.training is None)
    }
    return hashlib.sha256(json.dumps(plain(chosen), sort_keys=True).encode()).hexdigest()


def attack_hash(plan: AuditPlan) -> str:
    """A hash of the settings that matter to the attack."""
    return plan_hash(plan, without_sections=("estimation", "proof"))


def proof_hash(plan: AuditPlan) -> str:
    """A hash of the settings that matter to proof and exposure."""
    return plan_hash(plan, without_sections=("estimation",))


def models_hash(runs: ShadowRuns, priors: Priors) -> str:
    """A hash of everything that the attack looks at."""
    digest = hashlib.sha256(runs.indices.astype(np.int64).tobytes())
    for rows in model_blocks(*runs.memberships.shape):
        digest.update(np.packbits(runs.memberships[rows], axis=1).tobytes())
    for name, values in runs.statistics.items():
        digest.update(name.encode())
        for rows in model_blocks(*values.shape):
            digest.update(_buffer(values[rows]))
    digest.update(_buffer(priors.prob))
    return digest.hexdigest()


def fingerprint(plan: AuditPlan, graph_hash: str, models: str) -> str:
    """Tells audits apart whose answers may differ."""
    return hashlib.sha256(f"{plan_hash(plan)} {graph_hash} {models}".encode()).hexdigest()


def _buffer(values: Any) -> Any:
    return np.ascontiguousarray(values).data
