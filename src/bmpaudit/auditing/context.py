"""What an audit is about, how it runs, and what tells one answer from another."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
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
from bmpaudit.releases import gives_labels_only
from bmpaudit.samplers import Priors, draw_memberships
from bmpaudit.samplers.draw import AnySampler
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.files import sha256_of
from bmpaudit.util.matrices import model_blocks
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import plain


def write_samples(
    path: Path, *, graph: Graph, sampler: AnySampler, num_samples: int, seed: int, num_threads: int | None
) -> None:
    """Writes `memberships`, shape (J, N), as `numpy.savez_compressed` does, drawing some samples at a time."""
    shape = num_samples, graph.num_nodes
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.bool_)), "fortran_order": False, "shape": shape}
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("memberships.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(file, header)
        for rows in model_blocks(*shape):
            number = rows.stop - rows.start
            some = draw_memberships(graph, sampler, number, seed, first=rows.start, num_threads=num_threads)
            file.write(np.ascontiguousarray(some).data)


# The ways in which a plan attacks its shadow models.


LABEL_ATTACK = "right-or-wrong"


@dataclass(frozen=True)
class Variant:
    """One way of attacking: what is given out, what the adversary asks, and how they decide.

    Attributes:
        release: Label of the release.
        queries: Labels of the queries whose answers are used together.
        rule: Label of the decision rule.
    """

    release: str
    queries: tuple[str, ...]
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
    part = next(each for each in plan.releases if registry.label(RELEASE, each) == release)
    return registry.build(ATTACK, LABEL_ATTACK) if is_of_scores and gives_labels_only(part) else plan.attack


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


# What changes how an audit runs and what it shows on the way, but not its answer.


def _print_notice(message: str) -> None:
    print(f"bmpaudit: {message}", file=sys.stderr)


@dataclass(frozen=True)
class Runtime:
    """How to run.

    Attributes:
        num_threads: Number of threads; all cores if None.
        quiet: Whether to hide progress bars. They show on terminals and in notebooks only.
        notice: Called with messages, such as about damage that was found and repaired; prints to stderr by default.
        executor: Workers that train the shadow models, score them in blocks of nodes (attack, proof and exposure), and
            compute a posterior each: any `concurrent.futures.Executor`, such as a process pool or what
            `distributed.Client.get_executor()` returns. Everything runs in this process if None (docs/scaling.md).
    """

    num_threads: int | None = None
    quiet: bool = False
    notice: Callable[[str], None] = _print_notice
    executor: Executor | None = None

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        """A context in which progress is shown; it gives a function to be called with the number of items done."""
        return nullcontext(lambda _: None) if self.quiet else progress_bar(what, total)


# What an audit is about.


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited, and how.

    Attributes:
        graph: The graph.
        source: Where it came from: the name of a data set, a path, or module:function; empty for an object.
        plan: The plan.
    """

    graph: Graph
    source: str
    plan: AuditPlan


# What tells one answer from another: plan, graph, models, and the code that made it.


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
