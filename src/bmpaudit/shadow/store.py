"""Shadow models on disk: one Zarr group whose `done` array vouches for the others (docs/shadow-models.md)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.io.readers import read_json
from bmpaudit.io.remote_folder import RemoteFolder, folder_at, reaching
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns, ViewAccuracy
from bmpaudit.util.errors import DataError, InputError, one_line
from bmpaudit.util.files import remove_leftovers, uninterrupted, write_text
from bmpaudit.util.matrices import (
    MODELS_PER_CHUNK,
    NODES_PER_CHUNK,
    FlagMatrix,
    LazyMatrix,
    Rows,
    fits_in_memory,
    new_flags,
)
from bmpaudit.util.values import Flags, Floats32, Ints, to_json

if TYPE_CHECKING:
    import zarr

PLAN_FILE = "shadows.json"
CODECS = ("bytes", "zstd", "crc32c")
MOST_MODELS = 2**20
"""Models that a group has room for: every chunk of them is looked for, whether it is there or not."""


class ArrayKind(NamedTuple):
    """What one array holds for each model."""

    source: str  # which attribute of a `ShadowBatch` it is
    place: int | None = None  # which view or repeat of that attribute; None for all of it
    extent: tuple[int, ...] = ()  # its shape, but for the models
    dtype: str = "float32"
    fill: Any = np.nan  # what stands where nothing is stored
    dimensions: tuple[str, ...] = ("node", "class")  # their names, but for the models

    @property
    def chunks(self) -> tuple[int, ...]:
        """Extents of a chunk."""
        return (MODELS_PER_CHUNK, *(min(extent, NODES_PER_CHUNK) for extent in self.extent))


Kinds = Mapping[str, ArrayKind]
Values = Mapping[str, npt.NDArray[Any]]
Sealed = Mapping[str, Kinds]
"""By the array of their digests, arrays that are written together."""


def sealed_arrays(graph: Graph, plan: ShadowPlan, *, keep_logits: bool, num_weights: int = 0) -> Sealed:
    """Everything that is stored of the models of a plan; no weights if their number is 0."""
    nodes, views = (graph.num_nodes,), [view.name for view in plan.views]
    sealed: dict[str, Kinds] = {
        "digest": {
            "memberships": ArrayKind("memberships", None, nodes, "bool", False),
            "train_accuracy": ArrayKind("train_accuracy"),
            "held_out_accuracy": ArrayKind("held_out_accuracy"),
        }
    }
    for number, view in enumerate(views):
        labels = {f"is_right_{view}": ArrayKind("is_right", number, nodes, "bool", False)} if plan.keeps_labels else {}
        sealed[f"digest_{view}"] = {
            f"statistic_{view}": ArrayKind("statistics", number, nodes),
            f"train_accuracy_{view}": ArrayKind("view_train_accuracy", number),
            f"held_out_accuracy_{view}": ArrayKind("view_held_out_accuracy", number),
            **labels,
        }
    for number, view in enumerate(views if keep_logits else []):
        kind = ArrayKind("logits", number, (graph.num_nodes, graph.num_classes))
        sealed[f"digest_logits_{view}"] = {f"logits_{view}": kind}
    for repeat in range(plan.num_repeats if num_weights else 0):
        kind = ArrayKind("weights", repeat, (num_weights,), dimensions=("weight",))
        sealed[f"digest_weights_{repeat}"] = {f"weights_{repeat}": kind}
    for number, each in enumerate(plan.row_sets):
        extent = graph.num_features, graph.num_classes
        sealed[f"digest_rows_{each.name}"] = {
            f"rows_{each.name}": ArrayKind("rows", number, extent, dimensions=("feature", "class")),
            f"norms_{each.name}": ArrayKind("norms", number, extent[:1], dimensions=("feature",)),
        }
    return sealed


def array_kinds(sealed: Sealed) -> dict[str, ArrayKind]:
    """All arrays: what is sealed, the digests, and what is known of a model beside its numbers, `done` last."""
    kinds: dict[str, ArrayKind] = {}
    for digest, each in sealed.items():
        kinds |= {**each, digest: ArrayKind("digest", dtype="uint64", fill=0)}
    return kinds | {name: ArrayKind(name, dtype="bool", fill=False) for name in ("failed", "done")}


def model_digests(indices: Ints, values: Values) -> npt.NDArray[np.uint64]:
    """A number for each model that depends on all of its numbers in some arrays and on where each of them stands.

    The checksum of a Zarr chunk says that a file is whole, not that it is the right one: two files that changed places
    are whole, and one that is missing reads as fill values. `indices` has shape (J,), each array (J, …).
    """
    # Flags as bits, and floats with one kind of NaN: Zarr makes no difference between them.
    rows = {
        name: np.packbits(array, axis=1)
        if array.dtype == np.bool_
        else np.where(np.isnan(array), np.float32(np.nan), array)
        for name, array in sorted(values.items())
    }
    digests = np.empty(len(indices), dtype=np.uint64)
    for row, index in enumerate(indices.tolist()):
        digest = hashlib.blake2b(index.to_bytes(8, "little"), digest_size=8)
        for name, array in rows.items():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array[row]).tobytes())
        digests[row] = int.from_bytes(digest.digest(), "little")
    return digests


def first_damaged(sealed: Sealed, indices: Ints, values: Values) -> int | None:
    """The first model whose numbers are not those that its digests, also in `values`, are of; None if there is none."""
    for digest, kinds in sealed.items():
        is_wrong = model_digests(indices, {name: values[name] for name in kinds}) != values[digest]
        if is_wrong.any():
            return int(indices[is_wrong.argmax()])
    return None


class ArrayGroup:
    """Compressed, checksummed arrays whose first dimension is the model, and `done`, which vouches for the others."""

    def __init__(self, path: Path | RemoteFolder, *, read_only: bool) -> None:
        # Zarr takes long to import, and a plan or a help text needs no models.
        import zarr
        from zarr.storage import LocalStore

        from bmpaudit.shadow.bounded_store import BoundedStore

        self.path = path
        self._opened: dict[str, zarr.Array[Any]] = {}
        if read_only and not path.exists():
            raise DataError(f"{path.parent} has no shadow models")
        try:
            make: Any = path.zarr_store if isinstance(path, RemoteFolder) else partial(LocalStore, path)
            self._store = BoundedStore(make(read_only=read_only), {})
            self._group = uninterrupted(lambda: zarr.open_group(self._store, mode="r" if read_only else "a"))
            arrays = [self[name] for name in self.names]
        except Exception as damage:  # what was damaged can make Zarr raise nearly anything
            raise DataError(f"{path}: damaged metadata ({one_line(damage)}); use a new folder") from None
        if "done" not in self._group and (read_only or any(array.shape[0] for array in arrays)):
            raise DataError(f"{path}: the record of what is done is missing; use a new folder")

    @property
    def names(self) -> list[str]:
        """The arrays, `done` last."""
        # Not Zarr's own listing: it opens all arrays at once and, of damaged ones, logs all tracebacks but the first. A
        # process that was killed while it made an array leaves a folder without metadata, which the next one fills.
        if isinstance(self.path, RemoteFolder):
            names = self.path.folders_with("zarr.json")
        else:
            names = [file.parent.name for file in self.path.glob("*/zarr.json")]
        return sorted(names, key=lambda name: (name == "done", name))

    def __getitem__(self, name: str) -> zarr.Array[Any]:
        # Opening reads and checks the metadata, which takes as long as writing a small chunk. Kept arrays stay right:
        # nobody else resizes them while a process writes here.
        if name not in self._opened:
            from zarr import Array

            array = self._group[name]
            if not isinstance(array, Array):
                raise KeyError(f"{name} is not an array")
            self._opened[name] = array
        return self._opened[name]

    def check(self, kinds: Kinds, *, are_all_there: bool) -> None:
        """Raises `DataError` unless arrays are what they are said to be, before anything of their size is read.

        If `done` is among them, all must have room for as many models.
        """
        names = self.names
        # A process that was killed while it made the arrays leaves none.
        num_models = self["done"].shape[0] if "done" in kinds and "done" in names else 0
        for name, kind in kinds.items():
            if name not in names:
                if are_all_there:
                    raise DataError(f"{self.path}: {name} is missing; use a new folder")
                continue
            array = self[name]
            about: Any = array.metadata.to_dict()
            codecs = tuple(str(codec["name"]) for codec in about["codecs"])
            if codecs != CODECS:
                raise DataError(f"{self.path}: {name} must be encoded by {', '.join(CODECS)}, got {', '.join(codecs)}")
            if array.dtype != kind.dtype or array.shape[1:] != kind.extent or array.chunks != kind.chunks:
                raise DataError(
                    f"{self.path}: {name} must hold {kind.dtype} of shape {('any', *kind.extent)} in chunks of "
                    f"{kind.chunks}, got {array.dtype} of shape {array.shape} in chunks of {array.chunks}"
                )
            self._store.chunk_bytes[name] = math.prod(kind.chunks) * array.dtype.itemsize
            if not num_models <= array.shape[0] <= MOST_MODELS:
                limits = f"{num_models:,} to {MOST_MODELS:,}"
                raise DataError(f"{self.path}: {name} must have room for {limits} models, got {array.shape[0]:,}")

    def create(self, kinds: Kinds) -> None:
        """Creates the arrays that are missing, in order; `InputError` if `done` is one of them and models are there."""
        from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

        for name, kind in kinds.items():
            if name in self._group:
                continue
            if "done" in kinds and "done" in self._group and np.asarray(self["done"][:]).any():
                folder = self.path.parent
                raise InputError(f"{folder} holds shadow models without {name}; use a new folder to keep them")
            create = partial(
                self._group.create_array,
                name,
                shape=(0, *kind.extent),
                chunks=kind.chunks,
                dtype=kind.dtype,
                fill_value=kind.fill,
                serializer=BytesCodec(),
                compressors=[ZstdCodec(level=1), Crc32cCodec()],
                dimension_names=("model", *kind.dimensions[: len(kind.extent)]),
            )
            uninterrupted(create)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the models."""
        notes = self._group.attrs.get("notes")
        return tuple(str(note) for note in notes) if isinstance(notes, list) else ()

    def add_note(self, note: str) -> bool:
        """Says something about the models; whether that is new."""
        is_new = note not in self.notes
        if is_new:
            self._group.attrs["notes"] = [*self.notes, note]
        return is_new

    def write(self, name: str, chunk: slice, values: npt.NDArray[Any]) -> None:
        """Writes one chunk of an array, to its end even if Ctrl-C is pressed."""
        uninterrupted(lambda: self[name].__setitem__(chunk, values))

    def blank(self, name: str, chunk: slice) -> npt.NDArray[Any]:
        """Fill values of one chunk."""
        array = self[name]
        return np.full((chunk.stop - chunk.start, *array.shape[1:]), array.fill_value, dtype=array.dtype)


class StoredMatrix(LazyMatrix[np.float32]):
    """Numbers of finished models, whose rows are `indices`, in a Zarr array of all models; all must be finite."""

    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path | RemoteFolder, array: zarr.Array[Any], indices: Ints) -> None:
        super().__init__(len(indices), array.shape[1])
        self.folder, self._array, self._rows = folder, array, indices

    def _read(self, rows: Ints, nodes: slice | Ints) -> Floats32:
        if not len(rows):
            return np.empty((0, len(range(self._num_nodes)[nodes] if isinstance(nodes, slice) else nodes)), self.dtype)
        span = slice(int(rows.min()), int(rows.max()) + 1)
        with reading(self.folder):
            read = np.asarray(self._array.oindex[span, nodes], dtype=np.float32)
        if len(rows) < len(read) or (np.diff(rows) != 1).any():
            read = read[rows - span.start]
        is_there = np.isfinite(read).all(axis=1)  # a chunk that was lost reads as NaN
        if not is_there.all():
            raise DataError(f"{self.folder}: damaged: {self._array.basename} of model {rows[~is_there][0]} is missing")
        return read


class StoredRows:
    """Numbers of finished models about each feature, read from a Zarr array of all models when they are indexed."""

    def __init__(self, folder: Path | RemoteFolder, array: zarr.Array[Any], indices: Ints) -> None:
        self.shape = len(indices), *array.shape[1:]
        self.folder, self._array, self._rows = folder, array, indices

    def __getitem__(self, models: Ints) -> Floats32:
        rows = self._rows[models]
        with reading(self.folder):
            read = np.asarray(self._array.oindex[rows], dtype=np.float32)
        is_there = np.isfinite(read).all(axis=tuple(range(1, read.ndim)))  # a chunk that was lost reads as NaN
        if not is_there.all():
            raise DataError(f"{self.folder}: damaged: {self._array.basename} of model {rows[~is_there][0]} is missing")
        return read


@contextmanager
def reading(folder: Path | RemoteFolder) -> Iterator[None]:
    """Raises `DataError` in place of whatever damaged data makes Zarr raise."""
    try:
        with reaching(folder):
            yield
    except (InputError, PermissionError, MemoryError):
        raise
    except Exception as damage:  # its codecs raise nearly anything
        raise DataError(f"{folder}: damaged: {one_line(damage)}") from None


class ShadowStore:
    """One folder of shadow models.

    The folder holds `shadows.json` (the plan and the graph's hash) and `shadows/`, a Zarr v3 group of arrays over the
    dimensions model and node: see `sealed_arrays`, with NaN where there is no number. A missing Zarr chunk reads as the
    fill value without a word, so only `done` says what is there; it is written last, and every file is replaced in one
    step. Digests (see `model_digests`) are checked before models are added, and whenever models are read whose matrices
    fit into memory.

    The store takes no lock: whoever writes holds `files.folder_lock`, or writes for somebody who does.

    Args:
        folder: Where the models are: a path, or an address that fsspec knows, such as `s3://bucket/audit`.
        graph: The whole graph.
        plan: The plan; a folder of another plan or graph is refused. Reading runs none of its code.
        keep_logits: Whether new models are stored with what each view gives out.
        num_weights: How many weights of a model are stored; 0 if none are.
        read_only: Whether to change nothing in the folder, which must hold shadow models then.
        joins: Whether to write to a folder that another process has made ready and may be writing to.
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
        self.folder, self.graph, self.plan = folder_at(folder), graph, plan
        if not (read_only or joins):
            if isinstance(self.folder, RemoteFolder):
                self.folder.remove_leftovers()
            else:
                self.folder.mkdir(parents=True, exist_ok=True)
                remove_leftovers(self.folder)
        if (self.folder / PLAN_FILE).exists():
            check_same_plan(self.folder, graph, plan)
        elif (self.folder / "shadows").exists():
            raise DataError(f"{self.folder} has shadow models but no {PLAN_FILE} that says of which plan")
        elif read_only or joins:
            raise DataError(f"{self.folder} has no shadow models")
        else:
            write_description(self.folder, graph, plan)
        with reaching(self.folder):
            self.arrays = ArrayGroup(self.folder / "shadows", read_only=read_only)
            names = self.arrays.names
            # A folder that keeps logits or weights keeps those of all its models.
            self.keep_logits = keep_logits or any(name.startswith("logits_") for name in names)
            self.num_weights = int(self.arrays["weights_0"].shape[1]) if "weights_0" in names else num_weights
            self.sealed = sealed_arrays(graph, plan, keep_logits=self.keep_logits, num_weights=self.num_weights)
            self.arrays.check(array_kinds(self.sealed), are_all_there=read_only)
            if not (read_only or joins):
                self.arrays.create(array_kinds(self.sealed))

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
        """Makes room for at least so many models, in `done` last, so that after a kill the next call does the rest."""
        if num_models > MOST_MODELS:
            raise InputError(f"a folder holds at most {MOST_MODELS:,} shadow models, got {num_models:,}")
        with reaching(self.folder):
            length = max(num_models, self.num_models)
            for name in self.arrays.names:
                array = self.arrays[name]
                if array.shape[0] < length:
                    uninterrupted(partial(array.resize, (length, *array.shape[1:])))

    def add_arrays(self, plan: ShadowPlan) -> Sealed:
        """Makes the arrays that a plan has beyond those that are there, with room for the models; says which."""
        sealed = sealed_arrays(self.graph, plan, keep_logits=self.keep_logits, num_weights=self.num_weights)
        missing = {digest: kinds for digest, kinds in sealed.items() if digest not in self.sealed}
        kinds = {name: kind for name, kind in array_kinds(missing).items() if name not in ("failed", "done")}
        self.arrays.check(kinds, are_all_there=False)
        self.arrays.create(kinds)
        self.extend(self.num_models)
        return missing

    def has(self, sealed: Sealed, chunk: slice, done: Flags) -> bool:
        """Whether some models of a chunk are in arrays that may be half written."""
        try:
            values = self._values([*sealed, *chain(*sealed.values())], chunk, done)
        except Exception:  # what a stop left half written can raise nearly anything
            return False
        return first_damaged(sealed, chunk.start + np.flatnonzero(done), values) is None

    def _values(self, names: Iterable[str], rows: slice, chosen: Flags) -> dict[str, npt.NDArray[Any]]:
        """Some arrays of the models chosen from those of some rows."""
        return {name: np.asarray(self.arrays[name][rows])[chosen] for name in names}

    def write(self, batch: ShadowBatch) -> None:
        """Stores the finished models of a batch whose models lie in one chunk."""
        finished = batch if batch.is_done.all() else batch.part(batch.is_done)
        if len(finished.indices):
            self.write_data(finished)
            self.vouch(finished.indices)

    def write_data(self, batch: ShadowBatch, *, with_others: bool = True) -> None:
        """Writes finished models of one chunk, for which nothing vouches yet, `with_others` that are there already."""
        with reaching(self.folder):
            # A chunk without finished models may be what a crash left of one: it is written anew, unread.
            chunk = self.chunk_of(int(batch.indices[0]))
            is_new = not (with_others and np.asarray(self.arrays["done"][chunk]).any())
            self.put(self.sealed, batch, is_new=is_new)
            self._put("failed", batch.indices, batch.state == ModelState.FAILED, is_new=is_new)

    def put(self, sealed: Sealed, batch: ShadowBatch, *, is_new: bool) -> None:
        """Writes some arrays of models of one chunk with their digests; of a new chunk there are no other models."""
        for digest, kinds in sealed.items():
            values: dict[str, npt.NDArray[Any]] = {}
            for name, kind in kinds.items():
                source = getattr(batch, kind.source)
                if source is not None:
                    values[name] = source if kind.place is None else source[kind.place]
            for name, array in {**values, digest: model_digests(batch.indices, values)}.items():
                self._put(name, batch.indices, array, is_new=is_new)

    def _put(self, name: str, indices: Ints, values: npt.NDArray[Any], *, is_new: bool) -> None:
        chunk = self.chunk_of(int(indices[0]))
        kept = self.arrays.blank(name, chunk) if is_new else np.asarray(self.arrays[name][chunk])
        kept[indices - chunk.start] = values
        self.arrays.write(name, chunk, kept)

    def vouch(self, indices: Ints) -> None:
        """Says that models of one chunk, whose data was written, are there."""
        with reaching(self.folder):
            self._put("done", indices, np.ones(len(indices), dtype=np.bool_), is_new=False)

    def chunk_of(self, model: int) -> slice:
        """The models that are stored together with one of them, itself included."""
        start = model // MODELS_PER_CHUNK * MODELS_PER_CHUNK
        return slice(start, min(start + MODELS_PER_CHUNK, self.num_models))

    def discard_damaged(self, report: Callable[[str], None], num_threads: int | None = None) -> None:
        """Reads everything that is said to be there and forgets models whose data is damaged or missing."""
        starts = np.arange(0, self.num_models, MODELS_PER_CHUNK)
        with suppress(ValueError, RuntimeError):  # if that record is damaged itself, every chunk is looked at
            starts = np.unique(np.flatnonzero(self.is_done) // MODELS_PER_CHUNK) * MODELS_PER_CHUNK
        for chunk in map(self.chunk_of, starts.tolist()):
            if self.is_damaged(chunk, report, num_threads):
                # `done` first: what it does not vouch for is nothing. A partial write would read the damaged chunk.
                for name in reversed(self.arrays.names):
                    self.arrays.write(name, chunk, self.arrays.blank(name, chunk))

    def is_damaged(self, chunk: slice, report: Callable[[str], None], num_threads: int | None) -> bool:
        """Whether something is wrong with the finished models of one chunk, which is reported."""
        problem = ""
        try:
            done = np.asarray(self.arrays["done"][chunk])
            if not done.any():
                return False
            values = self._values(array_kinds(self.sealed), chunk, done)
        except Exception as damage:  # a damaged file can raise nearly anything on the way through the codecs
            problem = f"damaged ({damage})"
        else:
            plan, size = self.plan, len(done)
            drawn = draw_memberships(
                self.graph, plan.sampler, size, plan.seed, first=chunk.start, num_threads=num_threads
            )
            if first_damaged(self.sealed, chunk.start + np.flatnonzero(done), values) is not None:
                problem = "a file is missing, or has taken the place of another"
            elif not np.array_equal(values["memberships"], drawn[done]):
                # Whole, with the right checksums: somebody else's.
                raise InputError(f"{self.folder} holds shadow models of other samples: has the sampler changed?")
        if problem:
            report(f"models {chunk.start} to {chunk.stop - 1}: {problem}; they are trained again")
        return bool(problem)

    def read(self, num_models: int | None = None) -> ShadowRuns:
        """The finished ones of the first `num_models` models, or of all; `DataError` if data is damaged or missing.

        Matrices too large to be held in memory (`matrices.MOST_IN_MEMORY`) are read from the folder when they are used.
        """
        with reading(self.folder):
            done = self.is_done[:num_models]
            failed = np.asarray(self.arrays["failed"][:num_models]) & done
            usable = done & ~failed
            names = [name for name, kind in array_kinds(self.sealed).items() if not kind.extent]
            numbers = self._values(names, slice(num_models), usable)
            stored = {view.name: self.arrays[f"statistic_{view.name}"] for view in self.plan.views}
        indices = np.flatnonzero(usable)

        def rows(name: str) -> Any:
            table = StoredRows(self.folder, self.arrays[name], indices)
            return table[np.arange(len(indices))] if fits_in_memory(4 * math.prod(table.shape)) else table

        matrices = {view: StoredMatrix(self.folder, array, indices) for view, array in stored.items()}
        runs = ShadowRuns(
            indices=indices,
            memberships=self._flags("memberships", indices),
            statistics={view: each[:] if fits_in_memory(each.nbytes) else each for view, each in matrices.items()},
            train_accuracy=numbers["train_accuracy"],
            held_out_accuracy=numbers["held_out_accuracy"],
            view_accuracy={
                view: ViewAccuracy(numbers[f"train_accuracy_{view}"], numbers[f"held_out_accuracy_{view}"])
                for view in matrices
            },
            failed=tuple(np.flatnonzero(failed).tolist()),
            rows={
                each.name: Rows(rows(f"rows_{each.name}"), rows(f"norms_{each.name}")) for each in self.plan.row_sets
            },
            is_right={view: self._flags(f"is_right_{view}", indices) for view in stored if self.plan.keeps_labels},
            notes=self.arrays.notes,
            are_independent=True,
        )
        if all(isinstance(each, np.ndarray) for each in runs.statistics.values()):
            statistics = {f"statistic_{view}": np.asarray(each) for view, each in runs.statistics.items()}
            statistics |= {f"is_right_{view}": each[:] for view, each in runs.is_right.items()}
            held = {f"rows_{name}": each.values for name, each in runs.rows.items()}
            held |= {f"norms_{name}": each.norms for name, each in runs.rows.items()}
            held = {name: each for name, each in held.items() if isinstance(each, np.ndarray)}
            values = {**numbers, **statistics, **held, "memberships": runs.memberships[:]}
            read = {digest: kinds for digest, kinds in self.sealed.items() if kinds.keys() <= values.keys()}
            damaged = first_damaged(read, indices, values)  # missing, or in the place of another
            if damaged is not None:
                raise DataError(f"{self.folder}: damaged: model {damaged} is not as it was written: run bmpaudit train")
        return runs

    def _flags(self, name: str, indices: Ints) -> FlagMatrix:
        """Flags of all nodes under each of some models; one bit each if they are many."""
        flags = new_flags(len(indices), self.graph.num_nodes)
        for start in range(0, int(indices[-1]) + 1 if len(indices) else 0, MODELS_PER_CHUNK):
            first, last = np.searchsorted(indices, (start, start + MODELS_PER_CHUNK))
            with reading(self.folder):
                chunk = np.asarray(self.arrays[name][start : start + MODELS_PER_CHUNK])
            flags[first:last] = rows = chunk[indices[first:last] - start]
            if name == "memberships" and not rows.any(axis=1).all():  # a chunk that was lost reads as its fill value
                model = indices[first:last][~rows.any(axis=1)][0]
                raise DataError(f"{self.folder}: damaged: memberships of model {model} is missing")
        return flags


def check_same_plan(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Raises `InputError` if the shadow models of a folder, finished or not, are of another plan or graph."""
    # Through JSON and back, so that both sides have its types.
    other = difference(read_description(folder), json.loads(to_json(plan.describe(graph))))
    if other is not None:
        raise InputError(f"{folder} holds {other}")


def read_description(folder: Path | RemoteFolder) -> dict[str, Any]:
    """`ShadowPlan.describe` as a folder has it; `DataError` if it does not say."""
    content = read_json(folder / PLAN_FILE)
    if not isinstance(content, dict):
        raise DataError(f"{folder / PLAN_FILE}: damaged or not a JSON file: it must hold an object")
    return content


def write_description(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Writes what the models of a folder are of."""
    path, text = folder / PLAN_FILE, to_json(plan.describe(graph)) + "\n"
    if isinstance(path, RemoteFolder):
        path.write_text(text)
    else:
        write_text(path, text)


def addition_to(
    folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan
) -> tuple[ShadowPlan, ShadowPlan | None] | None:
    """The plan of the models of a folder, and one with the releases they lack a view of; None if it does not only add.

    Releases can be added anywhere, queries after those that are there: what a release draws goes on query by query.
    """
    if not (folder / PLAN_FILE).exists():
        return None
    stored = read_description(folder)
    wanted = json.loads(to_json(plan.describe(graph)))
    alike = {name: wanted[name] for name in ("releases", "queries")}
    if stored == wanted or difference({**stored, **alike}, wanted) is not None:
        return None
    releases, queries = stored.get("releases"), stored.get("queries")
    if not isinstance(releases, list) or not isinstance(queries, list):
        return None
    if any(each not in wanted["releases"] for each in releases) or wanted["queries"][: len(queries)] != queries:
        return None
    there = [plan.releases[wanted["releases"].index(each)] for each in releases]
    has_all_queries = len(queries) == len(plan.queries)
    lacking = [each for each in plan.releases if not has_all_queries or each not in there]
    return (
        replace(plan, releases=there, queries=plan.queries[: len(queries)]),
        replace(plan, releases=lacking) if lacking else None,
    )


def difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """What a folder holds instead of what a plan asks for, or None if `ShadowPlan.describe` of both is the same.

    >>> difference({"format": 2, "seed": 1}, {"format": 2, "seed": 2})
    'shadow models with seed 1; this plan has seed 2'
    """
    if stored.get("format") != wanted.get("format"):
        return f"shadow models in format {stored.get('format')}; this version of bmpaudit reads {wanted['format']}"
    for name in [*wanted, *(name for name in stored if name not in wanted)]:
        there, here = stored.get(name), wanted.get(name)
        if there != here:
            return _other(name, there, here)
    return None


def _other(name: str, there: Any, here: Any) -> str:
    """What a folder holds of one part of the description, and what this plan has."""
    if name == "graph":
        if not isinstance(there, Mapping):
            return "shadow models of another graph"
        apart = [number for number in here if number.startswith("num_") and there.get(number) != here[number]]
        if not apart:
            return "shadow models of a graph of the same size with other edges, features or labels"
        sizes = [" and ".join(f"{graph.get(number, 0):,} {number[4:]}" for number in apart) for graph in (there, here)]
        return f"shadow models of a graph with {sizes[0]}; this one has {sizes[1]}"
    if there == "trained elsewhere" or (isinstance(there, Mapping) and there.get("name") == "elsewhere"):
        return f"models that were trained elsewhere; this plan has {name} {_words(here)}"
    if isinstance(there, Mapping) and isinstance(here, Mapping) and there.get("name") == here.get("name"):
        keys = [key for key in {**here, **there} if there.get(key) != here.get(key)]
        part = f"{name} {there['name']}, " if "name" in there else f"{name} "
        return f"shadow models with {part}{_settings(there, keys)}; this plan has {_settings(here, keys)}"
    return f"shadow models with {name} {_words(there)}; this plan has {name} {_words(here)}"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        settings = _settings(value, [key for key in value if key != "name"])
        return f"{value['name']} ({settings})" if "name" in value and settings else str(value.get("name", settings))
    return ", ".join(map(_words, value)) if isinstance(value, list) else str(value)


def _settings(table: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key}={table[key]!r}" if key in table else f"no {key}" for key in keys)


@contextmanager
def in_background() -> Iterator[Callable[..., None]]:
    """Gives a function that has others called, one after another, in a thread; what they raise is raised later."""
    pending: list[Future[None]] = []

    def submit(write: Callable[..., None], *arguments: Any) -> None:
        # Handed over before anything that a stop could interrupt; one worker keeps the order.
        pending.append(pool.submit(write, *arguments))
        if len(pending) > 1:
            pending.pop(0).result()

    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield submit
        finally:
            for last in pending:
                last.result()
