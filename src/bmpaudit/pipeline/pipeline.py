"""The pipeline from graph to report, written once: a step that is up to date is read from the workspace, else run."""

from __future__ import annotations

import math
import tempfile
import time
import weakref
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import ErrorCounts, Evidence
from bmpaudit.auditing import Audit, Runtime, Subject, Workspace, context, finished, stages
from bmpaudit.auditing.workspace import STAGES, Files, Stamp
from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel, as_model
from bmpaudit.plan import FEWEST_SHADOWS, AuditPlan, format_plan, read_plan
from bmpaudit.proof.guesses import SaysNothingError
from bmpaudit.proof.prove import FIRST_FIT
from bmpaudit.registry import title
from bmpaudit.report.drawing import DEFAULT_PICTURES, Drawing, picture_formats
from bmpaudit.report.page_data import num_parts, report_files
from bmpaudit.report.plots import pictures_of_attacks, pictures_of_findings
from bmpaudit.samplers import Priors, check_memberships, draw_memberships, prior_probabilities
from bmpaudit.samplers.draw import AnySampler
from bmpaudit.shadow import ShadowRuns, ShadowStore, train_shadows
from bmpaudit.shadow.engines import num_weights
from bmpaudit.shadow.train import check_plan, check_range, train_range
from bmpaudit.util import errors
from bmpaudit.util.build import build_id
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import shared_folder_lock
from bmpaudit.util.matrices import model_blocks
from bmpaudit.util.values import Flags
from bmpaudit.util.words import number

STEPS = ("sample", "train", "attack", "estimate", "report")
NEEDED_CODE = {
    "sample": ("sampler",),
    "train": ("sampler", "model", "engine", "releases", "queries", "statistic"),
    "attack": ("attack", "rules"),
    "estimate": ("definitions",),
}
"""Fields of the plan whose parts each step runs."""

ADDED_MODELS = (
    "models were added after there was a result: what one guess per model proves then holds only if their number did "
    "not depend on it; --proof-method prequential holds in any case"
)
PRIOR_SECONDS = 30.0  # for the prior draws of a sampler written in Python


class Pipeline:
    """All steps of one audit.

    Asking for the result of a step, such as `attacks`, runs what is missing before it; a report runs `runs`, `priors`,
    `attacks`, `findings`, `audit` and `report`, in this order. From `attacks` on, steps are recognised by a hash of the
    shadow models and priors, so asking for one of them trains the models first, even if the step itself is then read.

    With a workspace, results are kept there, and a step that is there, whole and made from the same plan, graph, models
    and code, is read instead. Steps that are not in `may_run` have to be there already. `keep_logits` keeps the
    released outputs beside the statistics; `allow_misfit` goes on if memberships from elsewhere do not fit the sampler.
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
        """The prior of every node, by formula or from many draws, also if the attack uses frequencies."""
        plan = self.plan
        stamp = self._stamp(context.plan_hash(plan, only=("sampler", "seed", "prior_draws")))
        if (workspace := self._workspace_with("priors", stamp)) is not None:
            return finished.read_priors(workspace, plan.sampler)
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
        self._publish("priors", stamp, {"priors.parquet": partial(priors.to_frame().to_parquet, index=False)})
        return priors

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
        return finished.read_runs(self.workspace, self.graph, self.plan)

    @cached_property
    def attacks(self) -> stages.Attacks:
        """The errors of every variant of the attack."""
        stamp = self._stamp(context.attack_hash(self.plan), self._models_hash)
        if (workspace := self._workspace_with("attack", stamp)) is not None:
            return stages.read_attacks(workspace)
        notes = self.runs.notes
        if self.plan.shadow_plan.is_trained_elsewhere:
            notes += self.check_fit(self.runs)
        models = self.plan, self.graph, self.runs
        with self._timed("permutation test"):
            test = stages.run_permutation_test(*models, self.runtime)
        with self._timed("attack"):
            attacks = replace(stages.run_attacks(*models, self.priors, test, self.runtime), notes=notes)
        if self.is_extended and self.plan.proof_method == "one-guess":
            self.runtime.notice(ADDED_MODELS)
        self._publish("attack", stamp, stages.attack_files(attacks))
        return attacks

    @cached_property
    def findings(self) -> stages.Findings:
        """What each release proves and exposes."""
        stamp = self._stamp(context.proof_hash(self.plan), self._models_hash)
        attacks = self.attacks
        if (workspace := self._workspace_with("proof", stamp)) is not None:
            return stages.read_proofs(workspace, self.plan, attacks.releases)
        with self._timed("proof and exposure"):
            findings = stages.run_proofs(self.plan, self.graph, self.runs, self.priors, attacks, self.runtime)
        self._publish("proof", stamp, stages.proof_files(self.plan, findings))
        return findings

    @cached_property
    def audit(self) -> Audit:
        """The finished audit."""
        plan, source, graph, runs = self.plan, self.source, self.graph, self.runs
        stamp = self._stamp(context.plan_hash(plan), self._models_hash)
        findings = self.findings
        if (workspace := self._workspace_with("estimate", stamp)) is not None:
            return finished.read_audit(workspace, plan, source, self.runtime, graph=graph, runs=runs)
        with self._timed("estimation"):
            estimates = stages.run_estimates(plan, self.attacks, self.runtime)
        audit = Audit(
            plan=plan,
            source=source,
            priors=self.priors,
            attacks=self.attacks,
            findings=findings,
            estimates=estimates,
            graph=graph,
            runs=runs,
            timings=self.timings,
        )
        if self.workspace is not None:
            audit.result  # noqa: B018 - worked out here, before anything is written
            self.workspace.publish("estimate", stamp, finished.audit_files(audit))
        return audit

    def report(self, *, pictures: str = DEFAULT_PICTURES) -> Path | None:
        """Writes the page, the tables and the pictures; returns the path of the page, or None without a workspace.

        Raises:
            InputError: if `pictures` is neither formats, separated by commas, nor `none`.
        """
        formats = picture_formats(pictures)
        workspace = self.workspace
        if workspace is None:
            self.audit  # noqa: B018 - all that is left to do
            return None
        self.runs  # noqa: B018 - trained here, before there are helpers: training keeps all cores busy
        stamp = self._stamp(context.plan_hash(self.plan), self._models_hash)
        with Drawing(formats, errors.thread_count(self.runtime.num_threads) - 1) as drawing:
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
        drawn = {Path(name).suffix[1:] for name in workspace.files("report") if name.startswith("figures/")}
        return drawn >= set(formats)

    def sample(self) -> Priors:
        """Writes who is in which sample, for models that are trained elsewhere, and returns the priors."""
        plan, workspace = self.plan, self.workspace
        if workspace is None:
            raise InputError("samples are written for training elsewhere: a folder is needed")
        stamp = self._stamp(context.plan_hash(plan, only=("sampler", "seed", "shadows")))
        if not workspace.is_current("samples", stamp):

            def write(path: Path) -> None:
                write_samples(path, self.graph, plan.sampler, plan.shadows, plan.seed, self.runtime.num_threads)

            workspace.publish("samples", stamp, {"memberships.npz": write})
        return self.priors

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Holds the workspace's lock, after checking that the plan fits what is there and writing it down."""
        workspace, plan = self.workspace, self.plan
        if workspace is None:
            yield
            return
        with workspace.locked():
            self._check_workspace(workspace)
            stored = read_plan(workspace.plan_path).plan if workspace.plan_path.exists() else None
            if stored is None or context.plan_hash(stored) != context.plan_hash(plan):
                for step in self.may_run & NEEDED_CODE.keys():
                    context.check_trusted(plan, NEEDED_CODE[step])
            if self.source not in datasets.NAMED_DATASETS:  # a copy of the graph, unless everybody can get it
                stamp = Stamp("", self.graph.content_hash)
                if not workspace.is_current("graph", stamp):
                    workspace.publish("graph", stamp, {finished.OWN_GRAPH: self.graph.to_npz})
            workspace.write_plan(format_plan(plan, self.source or finished.OWN_GRAPH))
            yield

    # How they are run

    def _workspace_with(self, stage: str, stamp: Stamp) -> Workspace | None:
        """The workspace to read a stage from; None if it is to be run."""
        workspace = self.workspace
        if workspace is None:
            return None
        command = STAGES[stage].command
        if command in self.may_run:
            return workspace if workspace.is_current(stage, stamp) else None
        stored = workspace.stamp(stage, stamp.plan)
        if (stored.graph, stored.models) != (stamp.graph, stamp.models):
            raise DataError(
                f"{workspace.path}: its {stage} step was made from another graph or other shadow models: run bmpaudit "
                f"{command} again"
            )
        return workspace

    def _publish(self, stage: str, stamp: Stamp, files: Files) -> None:
        if self.workspace is not None:
            self.workspace.publish(stage, stamp, files)

    @cached_property
    def _models_hash(self) -> str:
        return context.models_hash(self.runs, self.priors)

    def _stamp(self, plan: str, models: str = "") -> Stamp:
        return Stamp(plan, self.graph.content_hash, models, build_id(), context.code_hashes(self.plan))

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
                executor=self.runtime.executor,
                store_at=None if self.workspace is None else self.workspace.shadows,
                progress=progress,
                **self._training,
            )

    @property
    def _training(self) -> dict[str, Any]:
        """How models are trained, here and beside other processes."""
        return {
            "num_threads": self.runtime.num_threads,
            "keep_logits": self.keep_logits,
            "keep_weights": self.plan.keep_weights,
            "report": self.runtime.notice,
        }

    def train_range(self, start: int, stop: int) -> Flags:
        """Trains models start, …, stop - 1 beside other processes, as `shadow.train_range`; says which are there."""
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
                    progress=progress,
                    **self._training,
                )

    def check_fit(self, runs: ShadowRuns) -> tuple[str, ...]:
        """A note if memberships from elsewhere cannot have come from the sampler; `InputError` if it is not allowed."""
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
        message = f"memberships do not fit the sampler (p = {fit.p_value:.2g}): {fit.message}"
        if not self.allow_misfit:
            raise InputError(f"the {message}; --allow-misfit audits them all the same")
        return (f"The {message}. If so, the priors are wrong, and with them every ε.",)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.timings[name] = time.perf_counter() - start

    # What was there before

    def _check_workspace(self, workspace: Workspace) -> None:
        """Refuses a plan that would replace what is there by something else, before anything is changed."""
        if not workspace.plan_path.exists():
            return
        stored = read_plan(workspace.plan_path).plan
        if stored.shadow_plan.is_trained_elsewhere and not self.plan.shadow_plan.is_trained_elsewhere:
            raise InputError(
                f"{workspace.path} holds models that were trained elsewhere; training others would replace them: use a "
                "new folder"
            )
        if self.plan.shadows < stored.shadows and workspace.has("attack"):
            raise InputError(
                f"{workspace.path} holds results of {stored.shadows:,} shadow models; {self.plan.shadows:,} would "
                "replace them by fewer: use a new folder"
            )
        self.is_extended = self.plan.shadows > stored.shadows and workspace.has("proof")
        if workspace.has_shadows:
            check_plan(workspace.shadows, self.graph, self.plan.shadow_plan)
        if workspace.has("samples"):
            drawn_from, wanted = (context.plan_hash(plan, only=("sampler", "seed")) for plan in (stored, self.plan))
            if drawn_from != wanted or workspace.stamp("samples").graph != self.graph.content_hash:
                raise InputError(f"{workspace.path} holds samples of another graph, sampler or seed: use a new folder")


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
        plan: What to do, by default as usual.
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


def write_samples(
    path: Path, graph: Graph, sampler: AnySampler, num_samples: int, seed: int, num_threads: int | None
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


def stored_models(workspace: Workspace, runtime: Runtime, *, trust_code: bool) -> tuple[Subject, ShadowRuns, Priors]:
    """What an audit folder is about, its shadow models, and the priors, drawn if there are none; nothing is written."""
    with workspace.unchanged():
        subject = finished.stored_subject(workspace, trust_code=trust_code)
        runs = finished.read_runs(workspace, subject.graph, subject.plan)
        if workspace.has("priors"):
            return subject, runs, finished.read_priors(workspace, subject.plan.sampler)
    context.check_trusted(subject.plan, ("sampler",))
    return subject, runs, Pipeline(subject, None, runtime).priors


def source_name(source: str | Path) -> str:
    """A graph's source as a plan records it: paths in full, so that the folder can be used from anywhere."""
    name = str(source)
    return str(Path(name).resolve()) if name not in datasets.NAMED_DATASETS and Path(name).exists() else name


# More and more shadow models, until ε is known well enough or enough is proven. When to stop depends on what was seen,
# so what such an audit proves comes from the prequential method, which holds whenever one stops.

ENDLESS = 10_000  # this many times the present models: their errors then hardly vary
GROWTH = 1.5


@dataclass(frozen=True, eq=False)
class Stopped:
    """How it ended."""

    is_reached: bool  # whether what was wanted is reached
    shadows: int  # number of models
    message: str  # how it ended, in words
    audit: Audit  # the finished audit


def audit_until(
    subject: Subject,
    workspace: Workspace,
    runtime: Runtime,
    *,
    width: float | None = None,
    proven: float | None = None,
    max_shadows: int,
    pictures: str = DEFAULT_PICTURES,
) -> Stopped:
    """Adds models, up to `max_shadows`, until ε is known well enough or enough is proven.

    With a `width`, the 90 % interval of the first one-parameter definition is to be narrower than that. It stops at
    once where endless models would not be enough: at the present error rates the remaining width comes from the prior,
    as it does with nodes told apart without any error. Else ε_R of the main release is to be `proven` to be so much.
    """
    if width is not None:
        if not 0 < width < math.inf:
            raise InputError(f"until_width must be positive, got until_width={width}")
        judge = partial(_is_narrow, width=width)
    elif proven is not None and math.isfinite(proven):
        judge = partial(_is_proven, epsilon=proven)
    else:
        raise InputError(f"until_proven must be a number, got until_proven={proven}")
    errors.check_at_least_one(max_shadows=max_shadows)
    shadows = min(subject.plan.shadows, max(max_shadows, FEWEST_SHADOWS))
    if workspace.plan_path.exists():  # the models that are there count, and none are lost
        shadows = max(shadows, finished.stored_plan(workspace).plan.shadows)
    while True:
        plan = subject.plan.replace(shadows=shadows, proof_method="prequential")
        pipeline = Pipeline(Subject(subject.graph, subject.source, plan), workspace, runtime)
        with pipeline.prepared():
            is_reached, message = judge(pipeline)
            if is_reached is None and shadows >= max_shadows:
                is_reached, message = False, f"stopped at the limit of {max_shadows:,} models: {message}"
            if is_reached is not None:
                pipeline.report(pictures=pictures)
                return Stopped(is_reached, shadows, message, pipeline.audit)
        runtime.notice(message)
        shadows = min(max_shadows, int(np.ceil(shadows * GROWTH)))


# Whether what was wanted is reached (True), can never be (False), or needs more models (None); and this in words.


def _is_narrow(pipeline: Pipeline, width: float) -> tuple[bool | None, str]:
    plan = pipeline.plan
    names = [name for name, definition in plan.definitions_by_name.items() if len(definition.parameters) == 1]
    definition = names[0] if names else "bmp-r"
    reached, endless = _widths(pipeline, plan.definitions_by_name.get(definition, definition))
    now = f"the 90 % interval of {definition} is {reached:.2f} wide with {plan.shadows:,} models"
    if reached < width:
        return True, now
    if endless >= width:
        return False, (
            f"stopped: at the present error rates the 90 % interval of {definition} would be {endless:.2f} wide "
            f"even with endless models (now {reached:.2f}), not {width:g}: what remains is the prior's"
        )
    return None, f"{now}, not {width:g}"


def _is_proven(pipeline: Pipeline, epsilon: float) -> tuple[bool | None, str]:
    plan, runs = pipeline.plan, pipeline.runs
    if runs.num_models <= FIRST_FIT:
        return None, f"{plan.shadows:,} models are too few: the prequential method needs more than {FIRST_FIT}"
    release = context.variants(plan)[0].release
    access = context.accesses_of(plan, release)[-1]
    evidence = Evidence.of_runs(runs, release, context.queries_of(plan), pipeline.graph, access)
    try:
        proof = stages.prove_release(plan, evidence, pipeline.priors, release, pipeline.runtime, access)
    except SaysNothingError as reason:
        return None, f"nothing is proven with {plan.shadows:,} models: {reason}"
    bound = proof.epsilon_right
    proven = "nothing is proven" if bound.proven is None else f"ε_R ≥ {number(bound.proven)} is proven"
    now = f"{proven} with {plan.shadows:,} models, {bound.num_hits:,} of {bound.num_guesses:,} guesses right"
    if bound.proven is not None and bound.proven >= epsilon:
        return True, now
    return None, f"{now}: not ε_R ≥ {epsilon:g}"


def _widths(pipeline: Pipeline, definition: Any) -> tuple[float, float]:
    """Widths of the interval, with the present models and with endless ones."""
    counts = pipeline.attacks.main_counts
    present, endless = (
        stages.estimate_one(pipeline.plan, each, definition, pipeline.runtime) for each in (counts, _scaled(counts))
    )
    return present.interval(0.9).width, endless.interval(0.9).width


def _scaled(counts: ErrorCounts) -> ErrorCounts:
    """The same error rates with many times the trials.

    Where one kind of error was never made its rate may just be small: it is taken as (A + 1/2)/(n0 + 1). Nodes that are
    told apart without any error, of either kind, stay so.
    """
    is_separated = (counts.false_positives == 0) & (counts.false_negatives == 0)
    is_separated |= (counts.false_positives == counts.num_out) & (counts.false_negatives == counts.num_in)
    scaled = {}
    for wrong, tried in (("false_positives", "num_out"), ("false_negatives", "num_in")):
        wrongs, trials = getattr(counts, wrong), getattr(counts, tried)
        rate = np.where(is_separated, wrongs / np.maximum(trials, 1), (wrongs + 0.5) / (trials + 1))
        scaled[wrong] = np.rint(rate * trials * ENDLESS).astype(np.int64)
        scaled[tried] = trials * ENDLESS
    return ErrorCounts.from_arrays(prior_prob=counts.prior_prob, node=counts.node, **scaled)
