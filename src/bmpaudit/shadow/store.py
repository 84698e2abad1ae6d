"""Shadow models on disk: Zarr arrays that survive a kill at any moment, and the plan they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Ints
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import remove_leftovers, write_text
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.reading.damage import damage_in
from bmpaudit.reading.text import parse_json, read_json
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.array_group import ArrayGroup
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.columns import array_kinds, columns_of, weights_name
from bmpaudit.shadow.differences import difference
from bmpaudit.shadow.digest import model_digests
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.remote_folder import RemoteFolder, folder_at, reaching
from bmpaudit.shadow.runs import ShadowRuns, ViewAccuracy
from bmpaudit.shadow.stored_table import StoredTable, reading
from bmpaudit.tables import MODELS_PER_CHUNK, FlagTable, fits_in_memory, new_flags

PLAN_FILE = "shadows.json"


class ShadowStore:
    """One folder of shadow models.

    The folder holds `shadows.json` (the plan and the graph's hash) and `shadows/`, a Zarr v3 group with arrays over the
    dimensions model and node: see `columns_of`, with NaN where there is no number. A missing Zarr chunk reads as the
    fill value without a word, so only `done` says what is there; it is written last, and every file is replaced in one
    step. Digests (see `model_digests`) tell whether the numbers of a model are its own. They are checked before models
    are added, and whenever models are read whose tables fit into memory.

    The store takes no lock: whoever writes holds `files.folder_lock`, as `train_shadows` and `import_runs` do, or
    writes for somebody who does.

    Args:
        folder: Where the models are: a path, or an address that fsspec knows, such as `s3://bucket/audit`.
        graph: The whole graph.
        plan: The plan; a folder of another plan or graph is refused. Reading runs none of its code.
        keep_logits: Whether new models are stored with what each view gives out.
        num_weights: How many weights of a model are stored; 0 if none are.
        read_only: Whether to change nothing in the folder, which must hold shadow models then.
        joins: Whether to write to a folder that another process has made ready and may be writing to.

    Raises:
        InputError: if the folder holds shadow models of another plan or graph.
        DataError: if the folder is damaged, or holds none and is only to be read.
    """

    def __init__(
        self,
        folder: str | Path | RemoteFolder,
        graph: Graph,
        plan: ShadowPlan,
        keep_logits: bool = False,
        num_weights: int = 0,
        *,
        read_only: bool = False,
        joins: bool = False,
    ) -> None:
        self.folder = folder_at(folder)
        self.graph = graph
        self.plan = plan
        if not (read_only or joins):
            if isinstance(self.folder, RemoteFolder):
                self.folder.remove_leftovers()
            else:
                self.folder.mkdir(parents=True, exist_ok=True)
                remove_leftovers(self.folder)
        self._check_plan(must_be_there=read_only or joins)
        with reaching(self.folder):
            self.arrays = ArrayGroup(self.folder / "shadows", read_only=read_only)
        # A folder that keeps logits or weights keeps those of all its models.
        self.keep_logits = keep_logits or any(name.startswith("logits_") for name in self.arrays.names)
        with reaching(self.folder):
            self.num_weights = num_weights
            if weights_name(0) in self.arrays.names:
                self.num_weights = int(self.arrays[weights_name(0)].shape[1])
            self.columns = columns_of(graph, plan, keep_logits=self.keep_logits, num_weights=self.num_weights)
            self.arrays.check(array_kinds(self.columns), are_all_there=read_only)
            if not (read_only or joins):
                self.arrays.create(array_kinds(self.columns))

    @property
    def num_models(self) -> int:
        """How many models there is room for."""
        return int(self.arrays["done"].shape[0])

    @property
    def is_done(self) -> Flags:
        """Which models are there, shape (num_models,)."""
        with reaching(self.folder):
            return np.asarray(self.arrays["done"][:])

    def extend(self, num_models: int) -> None:
        """Makes room for at least `num_models` models; those already there stay.

        Array by array and `done` last, so that after a kill on the way the next call finds the rest to do.
        """
        with reaching(self.folder):
            self.arrays.extend(num_models)

    def new_batch(self, indices: Ints, num_threads: int) -> ShadowBatch:
        """Models to be trained and stored here; `indices` are ascending."""
        return ShadowBatch.drawn(
            self.graph, self.plan, indices, self.keep_logits, self.num_weights, num_threads=num_threads
        )

    def write(self, batch: ShadowBatch) -> None:
        """Stores the finished models of a batch whose models lie in one chunk."""
        finished = batch if batch.is_done.all() else batch.part(batch.is_done)
        if len(finished.indices):
            self.write_data(finished)
            self.vouch(finished.indices)

    def write_data(self, batch: ShadowBatch, *, with_others: bool = True) -> None:
        """Writes finished models of one chunk, for which nothing vouches yet.

        Args:
            batch: The models, all finished.
            with_others: Whether the other models of the chunk that are done stay; if not, the batch is all of it.
        """
        chunk = self._chunk(batch.indices)
        rows = batch.indices - chunk.start
        is_new = not (with_others and np.asarray(self.arrays["done"][chunk]).any())

        def put(name: str, values: npt.NDArray[Any]) -> None:
            array = self.arrays[name]
            # A chunk without finished models may be what a crash left of one: it is written anew, unread.
            kept = self.arrays.blank(name, chunk) if is_new else np.asarray(array[chunk])
            kept[rows] = values
            self.arrays.write(name, chunk, kept)

        with reaching(self.folder):
            for columns in self.columns:
                values = columns.values(batch)
                for name, table in values.items():
                    put(name, table)
                put(columns.digest, model_digests(batch.indices, values))
            put("failed", batch.state == ModelState.FAILED)

    def vouch(self, indices: Ints) -> None:
        """Says that models of one chunk, whose data was written, are there."""
        chunk = self._chunk(indices)
        with reaching(self.folder):
            done = np.asarray(self.arrays["done"][chunk])
            done[indices - chunk.start] = True
            self.arrays.write("done", chunk, done)

    def _chunk(self, indices: Ints) -> slice:
        start = int(indices[0]) // MODELS_PER_CHUNK * MODELS_PER_CHUNK
        return slice(start, min(start + MODELS_PER_CHUNK, self.num_models))

    def discard_damaged(self, report: Callable[[str], None], num_threads: int | None = None) -> None:
        """Reads everything that is said to be there and forgets models whose data is damaged or missing."""
        starts = np.arange(0, self.num_models, MODELS_PER_CHUNK)
        with suppress(ValueError, RuntimeError):  # if that record is damaged itself, every chunk is looked at
            starts = np.unique(np.flatnonzero(self.is_done) // MODELS_PER_CHUNK) * MODELS_PER_CHUNK
        for start in starts.tolist():
            chunk = slice(start, min(start + MODELS_PER_CHUNK, self.num_models))
            problem = self.problem(chunk, num_threads)
            if problem is not None:
                report(f"models {chunk.start} to {chunk.stop - 1}: {problem}; they are trained again")
                self.arrays.forget(chunk)

    def read(self, num_models: int | None = None) -> ShadowRuns:
        """The finished ones of the first `num_models` models, or of all.

        Tables too large to be held in memory (`tables.MOST_IN_MEMORY`) are read from the folder when they are used.

        Raises:
            DataError: if data is damaged or missing.
        """
        with reading(self.folder):
            done = self.is_done[:num_models]
            failed = np.asarray(self.arrays["failed"][:num_models]) & done
            usable = done & ~failed
            numbers = {
                name: np.asarray(self.arrays[name][:num_models])[usable]
                for name, kind in array_kinds(self.columns).items()
                if not kind.extent
            }
            stored = {view.name: self.arrays[f"statistic_{view.name}"] for view in self.plan.views}
        indices = np.flatnonzero(usable)
        tables = {view: StoredTable(self.folder, array, indices) for view, array in stored.items()}
        runs = ShadowRuns(
            indices=indices,
            memberships=self._memberships(indices),
            statistics={view: table[:] if fits_in_memory(table.nbytes) else table for view, table in tables.items()},
            train_accuracy=numbers["train_accuracy"],
            held_out_accuracy=numbers["held_out_accuracy"],
            view_accuracy={
                view: ViewAccuracy(numbers[f"train_accuracy_{view}"], numbers[f"held_out_accuracy_{view}"])
                for view in tables
            },
            failed=tuple(np.flatnonzero(failed).tolist()),
            notes=self.arrays.notes,
        )
        if all(isinstance(table, np.ndarray) for table in runs.statistics.values()):
            self._check_digests(runs, numbers)
        return runs

    def _check_digests(self, runs: ShadowRuns, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Raises `DataError` if a file of the store is missing, or has taken the place of another."""
        tables = {**numbers, "memberships": runs.memberships[:]}
        tables |= {f"statistic_{view}": np.asarray(table) for view, table in runs.statistics.items()}
        for columns in self.columns:
            if columns.kinds.keys() <= tables.keys():  # logits are not read
                found = model_digests(runs.indices, {name: tables[name] for name in columns.kinds})
                if not np.array_equal(found, numbers[columns.digest]):
                    model = runs.indices[np.argmax(found != numbers[columns.digest])]
                    raise DataError(
                        f"{self.folder}: damaged: model {model} is not as it was written: run bmpaudit train"
                    )

    def _memberships(self, indices: Ints) -> FlagTable:
        """Who is in the sample of each of some models; one bit each if they are many."""
        flags = new_flags(len(indices), self.graph.num_nodes)
        for start in range(0, int(indices[-1]) + 1 if len(indices) else 0, MODELS_PER_CHUNK):
            first, last = np.searchsorted(indices, (start, start + MODELS_PER_CHUNK))
            with reading(self.folder):
                chunk = np.asarray(self.arrays["memberships"][start : start + MODELS_PER_CHUNK])
            flags[first:last] = rows = chunk[indices[first:last] - start]
            if not rows.any(axis=1).all():  # a chunk that was lost reads as its fill value
                model = indices[first:last][~rows.any(axis=1)][0]
                raise DataError(f"{self.folder}: damaged: memberships of model {model} is missing")
        return flags

    def _check_plan(self, *, must_be_there: bool) -> None:
        path = self.folder / PLAN_FILE
        if not path.exists() and (self.folder / "shadows").exists():
            raise DataError(f"{self.folder} has shadow models but no {PLAN_FILE} that says of which plan")
        if path.exists():
            check_same_plan(self.folder, self.graph, self.plan)
        elif must_be_there:
            raise DataError(f"{self.folder} has no shadow models")
        else:
            write_description(self.folder, self.graph, self.plan)

    def problem(self, chunk: slice, num_threads: int | None) -> str | None:
        """What is wrong with the finished models of one chunk, or None."""
        try:
            done = np.asarray(self.arrays["done"][chunk])
            if not done.any():
                return None
            values = {name: np.asarray(self.arrays[name][chunk])[done] for name in array_kinds(self.columns)}
        except Exception as damage:  # a damaged file can raise nearly anything on the way through the codecs
            return f"damaged ({damage})"
        indices = chunk.start + np.flatnonzero(done)
        for columns in self.columns:
            found = model_digests(indices, {name: values[name] for name in columns.kinds})
            if not np.array_equal(found, values[columns.digest]):
                return "a file is missing, or has taken the place of another"
        drawn = draw_memberships(
            self.graph, self.plan.sampler, len(done), self.plan.seed, first=chunk.start, num_threads=num_threads
        )
        if not np.array_equal(values["memberships"], drawn[done]):
            if values["memberships"].any():  # whole, with the right checksum: somebody else's
                raise InputError(f"{self.folder} holds shadow models of other samples: has the sampler changed?")
            return "memberships are missing"
        return None


def check_same_plan(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Checks that the shadow models of a folder, finished or not, are of a plan and a graph.

    Raises:
        InputError: if they are of another plan or graph.
        DataError: if the folder does not say.
    """
    # Through JSON and back, so that both sides have its types.
    other = difference(read_description(folder), json.loads(to_json(plan.describe(graph))))
    if other is not None:
        raise InputError(f"{folder} holds {other}")


def read_description(folder: Path | RemoteFolder) -> dict[str, Any]:
    """`ShadowPlan.describe` as a folder has it.

    Raises:
        DataError: if the folder does not say.
    """
    path, schema = folder / PLAN_FILE, {"type": "object"}
    if isinstance(path, RemoteFolder):
        with damage_in(str(path), "a JSON file"):
            return dict(parse_json(path.read_text(), schema))
    return dict(read_json(path, schema))


def write_description(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Writes what the models of a folder are of."""
    path, text = folder / PLAN_FILE, to_json(plan.describe(graph)) + "\n"
    if isinstance(path, RemoteFolder):
        path.write_text(text)
    else:
        write_text(path, text)
