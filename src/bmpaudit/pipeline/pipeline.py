"""The pipeline from graph to report, written once: a step that is up to date is read from the workspace, else run."""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from bmpaudit import datasets
from bmpaudit.auditing.context import (
    Runtime,
    Subject,
    attack_hash,
    code_hashes,
    models_hash,
    plan_hash,
    proof_hash,
    write_samples,
)
from bmpaudit.auditing.finished import OWN_GRAPH, Audit, audit_files, priors_files, read_audit, read_priors, read_runs
from bmpaudit.auditing.stages import (
    Attacks,
    Findings,
    attack_files,
    proof_files,
    read_attacks,
    read_proofs,
    run_attacks,
    run_estimates,
    run_permutation_test,
    run_proofs,
)
from bmpaudit.auditing.workspace import STAGES, Stamp, Workspace
from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel, as_model
from bmpaudit.plan import AuditPlan, format_plan, read_plan
from bmpaudit.registry import UntrustedPart, title, untrusted
from bmpaudit.report.drawing import DEFAULT_PICTURES, Drawing, picture_formats
from bmpaudit.report.page_data import num_parts, report_files
from bmpaudit.report.plots import pictures_of_attacks, pictures_of_findings
from bmpaudit.samplers import Priors, check_memberships, prior_probabilities
from bmpaudit.shadow import ShadowRuns, ShadowStore, train_shadows
from bmpaudit.shadow.adding import check_plan
from bmpaudit.shadow.engines.making import num_weights
from bmpaudit.shadow.train import check_range, train_range
from bmpaudit.util.build import build_id
from bmpaudit.util.errors import DataError, InputError, thread_count
from bmpaudit.util.files import shared_folder_lock
from bmpaudit.util.values import Flags

Value = TypeVar("Value")

STEPS = ("sample", "train", "attack", "estimate", "report")
NEEDED_CODE = {
    "sample": ("sampler",),
    "train": ("sampler", "model", "engine", "releases", "queries", "statistic"),
    "attack": ("attack", "rules"),
    "estimate": ("definitions",),
}
"""Fields of the plan whose parts each step runs."""

ADDED = (
    "models were added after there was a result: what one guess per model proves then holds only if their number did "
    "not depend on it; --proof-method prequential holds in any case"
)
PRIOR_SECONDS = 30.0  # for the prior draws of a sampler written in Python


class Pipeline:
    """All steps of one audit.

    Each step is a property: asking for it runs what is missing before it. With a workspace, results are kept there, and
    a step that is there, whole and made from the same plan, graph, models and code, is read instead.

    Args:
        subject: What is audited, and how.
        workspace: Where to keep it; nothing is kept if None.
        runtime: Threads and progress.
        may_run: The steps that may be run; others have to be in the workspace already.
        keep_logits: Whether to keep the released outputs beside the statistics.
        allow_misfit: Whether to go on if memberships from elsewhere do not fit the sampler.
    """

    def __init__(
        self,
        subject: Subject,
        workspace: Workspace | None = None,
        runtime: Runtime | None = None,
        *,
        may_run: Collection[str] = STEPS,
        keep_logits: bool = False,
        allow_misfit: bool = False,
    ) -> None:
        self.graph, self.source, self.plan = subject.graph, subject.source, subject.plan
        self.workspace = workspace
        self.runtime = runtime or Runtime()
        self.may_run = frozenset(may_run)
        self.keep_logits = keep_logits
        self.allow_misfit = allow_misfit
        self.is_extended = False  # whether models are added to those of a result that is there
        self.timings: dict[str, float] = {}

    # The steps

    @cached_property
    def priors(self) -> Priors:
        """The prior of every node, by formula or from many draws, whichever of them the attack is to use."""
        stamp = self._stamp(plan_hash(self.plan, only=("sampler", "seed", "prior_draws")))
        return self._stage(
            "priors", stamp, self._draw_priors, priors_files, lambda w: read_priors(w, self.plan.sampler)
        )

    @cached_property
    def runs(self) -> ShadowRuns:
        """The shadow models."""
        if self.workspace is None:
            temporary = tempfile.TemporaryDirectory(prefix="bmpaudit-")
            try:
                with self._timed("training"):
                    runs = self._train(Path(temporary.name))
            except BaseException:
                temporary.cleanup()
                raise
            weakref.finalize(runs, temporary.cleanup)  # models that do not fit into memory are read from there
            return runs
        if "train" in self.may_run and not self.plan.shadow_plan.is_trained_elsewhere:
            with self._timed("training"):
                return self._train(self.workspace.path)
        return read_runs(self.workspace, self.graph, self.plan)

    @cached_property
    def attacks(self) -> Attacks:
        """The errors of every variant of the attack."""
        stamp = self._stamp(attack_hash(self.plan), self._models)
        return self._stage("attack", stamp, self._attack, attack_files, read_attacks)

    @cached_property
    def findings(self) -> Findings:
        """What each release proves and exposes."""
        stamp = self._stamp(proof_hash(self.plan), self._models)
        releases = self.attacks.releases
        return self._stage("proof", stamp, self._prove, proof_files, lambda w: read_proofs(w, releases))

    @cached_property
    def audit(self) -> Audit:
        """The finished audit."""
        stamp = self._stamp(plan_hash(self.plan), self._models)
        self.findings  # noqa: B018 - the step before
        return self._stage("estimate", stamp, self._estimate, audit_files, self._read_audit)

    def report(self, *, pictures: str = DEFAULT_PICTURES) -> Path | None:
        """Writes the page, the tables and the pictures.

        Args:
            pictures: Formats of the pictures, separated by commas, or `none`.

        Returns:
            The path of the page, or None without a workspace.

        Raises:
            InputError: if there is no such format.
        """
        formats = picture_formats(pictures)
        workspace = self.workspace
        if workspace is None:
            self.audit  # noqa: B018 - all that is left to do
            return None
        stamp = self._stamp(plan_hash(self.plan), self._models)  # trains, which keeps all cores busy
        with Drawing(formats, thread_count(self.runtime.num_threads) - 1) as drawing:
            if not self._is_reported(workspace, stamp, formats):
                drawing.start()  # not all of the audit keeps more than one core busy
                if formats:
                    drawing.draw(pictures_of_attacks(self.attacks))
                    drawing.draw(pictures_of_findings(self.attacks, self.findings))
            audit = self.audit
            if not self._is_reported(workspace, stamp, formats):
                with self._timed("report"), self.runtime.progress("report", num_parts(audit, drawing)) as progress:
                    workspace.publish("report", stamp, report_files(audit, drawing, progress=progress))
        return workspace.report_path

    def _is_reported(self, workspace: Workspace, stamp: Stamp, formats: Collection[str]) -> bool:
        """Whether the report is there; pictures of this very answer stay, even if nobody asks for them now."""
        if not workspace.is_current("report", stamp):
            return False
        there = {Path(name).suffix[1:] for name in workspace.files("report") if name.startswith("figures/")}
        return there >= set(formats)

    def sample(self) -> Priors:
        """Writes who is in which sample, for models that are trained elsewhere."""
        plan, workspace = self.plan, self.workspace
        if workspace is None:
            raise InputError("samples are written for training elsewhere: a folder is needed")
        stamp = self._stamp(plan_hash(plan, only=("sampler", "seed", "shadows")))
        if not workspace.is_current("samples", stamp):
            write = partial(
                write_samples,
                graph=self.graph,
                sampler=plan.sampler,
                num_samples=plan.shadows,
                seed=plan.seed,
                num_threads=self.runtime.num_threads,
            )
            workspace.publish("samples", stamp, {"memberships.npz": write})
        return self.priors

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Holds the workspace's lock, after checking that the plan fits what is there and writing it down."""
        with nullcontext() if self.workspace is None else self.workspace.locked():
            if self.workspace is not None:
                self._check_workspace(self.workspace)
                self._check_trusted(self.workspace)
                self._write_subject(self.workspace)
            yield

    # How they are run

    def _stage(
        self,
        stage: str,
        stamp: Stamp,
        run: Callable[[], Value],
        files: Callable[[Value], Mapping[str, Callable[[Path], None]]],
        read: Callable[[Workspace], Value],
    ) -> Value:
        workspace = self.workspace
        if workspace is None:
            return run()
        command = STAGES[stage].command
        if command in self.may_run:
            if workspace.is_current(stage, stamp):
                return read(workspace)
            value = run()
            workspace.publish(stage, stamp, files(value))
            return value
        there = workspace.stamp(stage, stamp.plan)
        if (there.graph, there.models) != (stamp.graph, stamp.models):
            raise DataError(
                f"{workspace.path}: its {stage} step was made from another graph or other shadow models: run bmpaudit "
                f"{command} again"
            )
        return read(workspace)

    @cached_property
    def _models(self) -> str:
        return models_hash(self.runs, self.priors)

    def _stamp(self, plan: str, models: str = "") -> Stamp:
        return Stamp(plan, self.graph.content_hash, models, build_id(), code_hashes(self.plan))

    def _draw_priors(self) -> Priors:
        plan = self.plan
        with self._timed("priors"), self.runtime.progress("priors", plan.prior_draws) as progress:
            priors = prior_probabilities(
                self.graph,
                plan.sampler,
                num_draws=plan.prior_draws,
                seed=plan.seed,
                seconds=PRIOR_SECONDS,
                progress=progress,
                num_threads=self.runtime.num_threads,
            )
        if 0 < priors.num_draws < plan.prior_draws:
            self.runtime.notice(
                f"priors: {priors.num_draws:,} of {plan.prior_draws:,} draws in {PRIOR_SECONDS:g} s; standard error up "
                f"to {priors.standard_error.max():.4f}"
            )
        return priors

    def _train(self, folder: Path) -> ShadowRuns:
        plan = self.plan
        if isinstance(plan.model, NativeModel) and plan.model.sees_edges and not self.graph.num_edges:
            self.runtime.notice(f"the graph has no edges: {title(plan.model)} sees each node by itself")
        with self.runtime.progress("shadow models", plan.shadows) as progress:
            return train_shadows(
                self.graph,
                plan.shadow_plan,
                plan.shadows,
                folder,
                num_threads=self.runtime.num_threads,
                keep_logits=self.keep_logits,
                keep_weights=plan.keep_weights,
                executor=self.runtime.executor,
                store_at=None if self.workspace is None else self.workspace.shadows,
                progress=progress,
                report=self.runtime.notice,
            )

    def train_range(self, start: int, stop: int) -> Flags:
        """Trains models start, …, stop - 1 beside other processes that do the same; see `shadow.train_range`.

        Returns:
            Which of the plan's models are there, shape (J,).
        """
        plan, workspace = self.plan, self.workspace
        if workspace is None:
            raise InputError("a range of models is trained for others to go on from: a folder is needed")
        check_range(start, stop, plan.shadows)

        def prepare() -> None:
            with self.prepared():
                weights = num_weights(self.graph, plan.shadow_plan) if plan.keep_weights else 0
                store = ShadowStore(workspace.shadows, self.graph, plan.shadow_plan, self.keep_logits, weights)
                store.extend(plan.shadows)

        with shared_folder_lock(workspace.path, prepare):
            self._check_workspace(workspace)
            with self.runtime.progress("shadow models", min(stop, plan.shadows) - start) as progress:
                return train_range(
                    self.graph,
                    plan.shadow_plan,
                    plan.shadows,
                    workspace.shadows,
                    start,
                    stop,
                    num_threads=self.runtime.num_threads,
                    keep_logits=self.keep_logits,
                    keep_weights=plan.keep_weights,
                    progress=progress,
                    report=self.runtime.notice,
                )

    def check_fit(self, runs: ShadowRuns) -> tuple[str, ...]:
        """Checks that memberships from elsewhere can have come from the sampler.

        Returns:
            A note if they do not, and that was allowed.

        Raises:
            InputError: if they do not.
        """
        fit = check_memberships(
            runs.memberships,
            self.graph,
            self.plan.sampler,
            self.priors,
            seed=self.plan.seed,
            num_threads=self.runtime.num_threads,
        )
        if fit.fits:
            return ()
        message = f"he memberships do not fit the sampler (p = {fit.p_value:.2g}): {fit.message}"
        if not self.allow_misfit:
            raise InputError(f"t{message}; --allow-misfit audits them all the same")
        return (f"T{message}. If so, the priors are wrong, and with them every ε.",)

    def _attack(self) -> Attacks:
        notes = self.runs.notes
        if self.plan.shadow_plan.is_trained_elsewhere:
            notes += self.check_fit(self.runs)
        made_from = self.plan, self.graph, self.runs, self.priors
        with self._timed("permutation test"):
            test = run_permutation_test(*made_from, self.runtime)
        with self._timed("attack"):
            attacks = run_attacks(*made_from, test, self.runtime)
        if self.is_extended and self.plan.proof_method == "one-guess":
            self.runtime.notice(ADDED)
        return replace(attacks, notes=notes)

    def _prove(self) -> Findings:
        with self._timed("proof and exposure"):
            return run_proofs(self.plan, self.graph, self.runs, self.priors, self.attacks, self.runtime)

    def _estimate(self) -> Audit:
        with self._timed("estimation"):
            estimates = run_estimates(self.plan, self.attacks, self.runtime)
        return Audit(
            plan=self.plan,
            source=self.source,
            priors=self.priors,
            attacks=self.attacks,
            findings=self.findings,
            estimates=estimates,
            graph=self.graph,
            runs=self.runs,
            timings=self.timings,
        )

    def _read_audit(self, workspace: Workspace) -> Audit:
        return read_audit(workspace, self.plan, self.source, self.runtime, graph=self.graph, runs=self.runs)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.timings[name] = time.perf_counter() - start

    # What was there before

    def _check_workspace(self, workspace: Workspace) -> None:
        """Refuses a plan that would replace what is there by something else, before anything is changed.

        Raises:
            InputError: saying what is there.
        """
        if not workspace.plan_path.exists():
            return
        there = read_plan(workspace.plan_path).plan
        if there.shadow_plan.is_trained_elsewhere and not self.plan.shadow_plan.is_trained_elsewhere:
            raise InputError(
                f"{workspace.path} holds models that were trained elsewhere; training others would replace them: use a "
                "new folder"
            )
        if self.plan.shadows < there.shadows and workspace.has("attack"):
            raise InputError(
                f"{workspace.path} holds results of {there.shadows:,} shadow models; {self.plan.shadows:,} would "
                "replace them by fewer: use a new folder"
            )
        self.is_extended = self.plan.shadows > there.shadows and workspace.has("proof")
        if workspace.has_shadows:
            check_plan(workspace.shadows, self.graph, self.plan.shadow_plan)
        if workspace.has("samples"):
            wanted = plan_hash(self.plan, only=("sampler", "seed"))
            if (plan_hash(there, only=("sampler", "seed")), workspace.stamp("samples").graph) != (
                wanted,
                self.graph.content_hash,
            ):
                raise InputError(f"{workspace.path} holds samples of another graph, sampler or seed: use a new folder")

    def _check_trusted(self, workspace: Workspace) -> None:
        """Refuses a new plan whose code may not be run, before anything is changed.

        Raises:
            UntrustedCodeError: naming the part and its module.
        """
        if workspace.plan_path.exists() and plan_hash(read_plan(workspace.plan_path).plan) == plan_hash(self.plan):
            return
        for step in self.may_run & NEEDED_CODE.keys():
            for name in NEEDED_CODE[step]:
                value = getattr(self.plan, name)
                for part in value if isinstance(value, tuple) else (value,):
                    if isinstance(part, UntrustedPart):
                        raise untrusted(part.kind, part.target)

    def _write_subject(self, workspace: Workspace) -> None:
        """The plan, and a copy of the graph unless it is a data set that everybody can get."""
        if self.source not in datasets.NAMED_DATASETS:
            stamp = Stamp("", self.graph.content_hash)
            if not workspace.is_current("graph", stamp):
                workspace.publish("graph", stamp, {OWN_GRAPH: self.graph.to_npz})
        workspace.write_plan(format_plan(self.plan, self.source or OWN_GRAPH))


# One call from graph to report.


def audit(
    graph: Graph | str | Path | Any,
    plan: AuditPlan | None = None,
    *,
    train: Callable[[Any, Any, int], None] | None = None,
    folder: str | Path | None = None,
    pictures: str = DEFAULT_PICTURES,
    runtime: Runtime | None = None,
    store: str | None = None,
    **settings: Any,
) -> Audit:
    """Runs the whole pipeline: sample, train, attack, estimate, report.

    Args:
        graph: A graph; a `Data` object of PyTorch Geometric; a table as a pair of features and labels, which is a graph
            without edges; or what `datasets.load` takes.
        plan: What to do; the defaults if not given.
        train: How to train what `model=`, a function of (num_features, num_classes), makes. Called with the module, the
            `Data` of the induced training graph and a seed.
        folder: Where to keep everything, just as `bmpaudit audit --out` does: a stopped audit resumes, a finished one
            is returned, and models can be added. Nothing is kept if not given.
        pictures: Formats of the pictures in the folder, separated by commas (`png`, `pdf`, `svg`), or `none`.
        runtime: Threads, workers and progress.
        store: An address that fsspec knows, such as `s3://bucket/audit`, where the shadow models of a new folder are
            kept.
        **settings: Fields of the plan, such as `sampler="snowball"` or `shadows=64`, which override it.

    Raises:
        InputError: if an argument is impossible, or the folder belongs to another plan or graph.

    >>> result = audit("demo", sampler="snowball", shadows=16, definitions="bmp-r")
    >>> result.title
    'demo, Snowball 25 %, GCN'
    """
    base = plan or AuditPlan()
    if train is not None:
        if "model" not in settings:
            raise InputError("train must come with model, the function that makes the module to train")
        settings["model"] = as_model(settings["model"], train=train)
    subject = Subject(*given_graph(graph), base.replace(**settings) if settings else base)
    pipeline = Pipeline(subject, None if folder is None else Workspace(folder, store), runtime)
    with pipeline.prepared():
        pipeline.report(pictures=pictures)
        return pipeline.audit


def given_graph(data: Graph | str | Path | Any) -> tuple[Graph, str]:
    """The graph that `audit` is given, and its source; empty for an object."""
    if isinstance(data, (str, Path)):
        return datasets.load(data), source_name(data)
    if isinstance(data, Graph):
        return data, ""
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"a table must be a pair of features and labels, got {len(data)} parts")
        return Graph.from_table(*data), ""
    return Graph.from_pyg(data), ""


def source_name(source: str | Path) -> str:
    """A graph's source as a plan records it: paths in full, so that the folder can be used from anywhere."""
    name = str(source)
    return str(Path(name).resolve()) if name not in datasets.NAMED_DATASETS and Path(name).exists() else name
