"""What an audit is about, how it runs, and what tells one answer from another."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.models.own import function_name
from bmpaudit.plan import AuditPlan, plain_value, plan_keys
from bmpaudit.registry import ATTACK, ENGINE, ENTRIES, QUERY, RELEASE, UntrustedPart
from bmpaudit.releases import LABELS, SCORES, gives_labels_only
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.files import sha256_of
from bmpaudit.util.matrices import model_blocks
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import plain

# The ways in which a plan attacks its shadow models.

LABEL_ATTACK = "right-or-wrong"


@dataclass(frozen=True)
class Variant:
    """One way of attacking, by labels: what is given out, what the adversary asks, and how they decide."""

    release: str
    queries: tuple[str, ...]  # whose answers are used together
    rule: str

    @property
    def name(self) -> str:
        """`full_clean_strong`, and so on."""
        return f"{'+'.join(self.queries)}_{self.release}_{self.rule}"

    @property
    def short_label(self) -> str:
        """In three words, for legends."""
        return f"{'+'.join(self.queries)}, {self.release}, {self.rule}"

    @property
    def label(self) -> str:
        """In words."""
        edges = {"full": "full edges", "none": "no edges"}
        return f"{' and '.join(edges.get(q, q) for q in self.queries)}, {self.release} output, {self.rule} decision"


def queries_of(plan: AuditPlan) -> tuple[str, ...]:
    """Labels of the plan's queries."""
    return tuple(registry.label(QUERY, query) for query in plan.queries)


def attack_on(plan: AuditPlan, release: str) -> Any:
    """The attack on a release: the plan's, or `right-or-wrong` where labels alone are given out.

    The other built-in attacks fit distributions to scores, and would miss most of what two values give away. An attack
    of the user's own is taken as it is.
    """
    is_of_scores = registry.name_of(ATTACK, plan.attack) in ENTRIES[ATTACK].keys() - {LABEL_ATTACK}
    is_of_labels = own_access(plan, release) == LABELS or gives_labels_only(release_of(plan, release))
    return registry.build(ATTACK, LABEL_ATTACK) if is_of_scores and is_of_labels else plan.attack


def accesses_of(plan: AuditPlan, release: str) -> tuple[str, ...]:
    """What of a release is attacked by itself, the least first."""
    return plan.accesses(release_of(plan, release))


def own_access(plan: AuditPlan, release: str) -> str:
    """The access that the plan's own attack on a release is about: scores, unless no more than labels are given out."""
    return SCORES if SCORES in accesses_of(plan, release) else LABELS


def release_of(plan: AuditPlan, label: str) -> Any:
    """The release of a label."""
    return next(each for each in plan.releases if registry.label(RELEASE, each) == label)


def variants(plan: AuditPlan) -> tuple[Variant, ...]:
    """All ways of attacking, the first query, release and rule first."""
    queries = queries_of(plan)
    groups = {
        release: (queries,) if attack_on(plan, release).fuses_queries else tuple((query,) for query in queries)
        for release in (registry.label(RELEASE, part) for part in plan.releases)
    }
    return tuple(
        Variant(release, of_release[place], rule)
        for place in range(len(queries))
        for release, of_release in groups.items()
        if place < len(of_release)
        for rule in plan.rules_by_name
    )


# What an audit is about, and what changes how it runs, but not its answer.


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited, and how."""

    graph: Graph
    source: str  # where the graph came from: the name of a data set, a path, or module:function; empty for an object
    plan: AuditPlan


@dataclass(frozen=True)
class Runtime:
    """How to run: threads, progress and workers, which change no answer."""

    num_threads: int | None = None  # all cores if None
    quiet: bool = False  # whether to hide progress bars, which show on terminals and in notebooks only
    # Called with messages, such as about damage that was found and repaired.
    notice: Callable[[str], None] = lambda message: print(f"bmpaudit: {message}", file=sys.stderr)
    # Workers that train the shadow models, score them in blocks of nodes (attack, proof and exposure), and compute a
    # posterior each: any `concurrent.futures.Executor`, such as a process pool, or what `get_executor` of a Dask
    # client returns. Everything runs in this process if None (docs/scaling.md).
    executor: Executor | None = None

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        """A context in which progress is shown; it gives a function to be called with the number of items done."""
        return nullcontext(lambda _: None) if self.quiet else progress_bar(what, total)


# What tells one answer from another: plan, graph, models, and the code that made it.


def parts_of(plan: AuditPlan, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The parts that these fields of a plan hold, and the names of the fields."""
    for name in names:
        value = getattr(plan, name)
        yield from ((name, part) for part in (value if isinstance(value, tuple) else (value,)))


def check_trusted(plan: AuditPlan, names: Collection[str]) -> None:
    """Raises `UntrustedCodeError`, naming the part and its module, if one in these fields is code that may not run."""
    for _, part in parts_of(plan, names):
        if isinstance(part, UntrustedPart):
            raise registry.untrusted(part.kind, part.target)


def code_hashes(plan: AuditPlan) -> dict[str, str] | None:
    """A hash of the source of each part of the user's own, by `module:Name`; None if one of them was not imported."""
    hashes: dict[str, str] = {}
    for name, part in parts_of(plan, plan_keys()):
        if isinstance(part, UntrustedPart):
            return None
        hashes |= {function_name(code): _source_hash(code) for code in _own_code(plan_keys()[name].kind, part)}
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
    with suppress(OSError, TypeError):  # defined at a prompt, or a callable object: there is no file
        source = inspect.getsourcefile(code)
        return sha256_of(Path(source)) if source is not None and Path(source).is_file() else ""
    return ""


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
            digest.update(np.ascontiguousarray(values[rows]).data)
    digest.update(np.ascontiguousarray(priors.prob).data)
    return digest.hexdigest()


def fingerprint(plan: AuditPlan, graph_hash: str, models: str) -> str:
    """Tells audits apart whose answers may differ."""
    return hashlib.sha256(f"{plan_hash(plan)} {graph_hash} {models}".encode()).hexdigest()
