"""Shadow models on disk: one Zarr group whose `done` array vouches for the others (docs/shadow-models.md)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
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
from bmpaudit.util.matrices import MODELS_PER_CHUNK, NODES_PER_CHUNK, FlagMatrix, LazyMatrix, fits_in_memory, new_flags
from bmpaudit.util.values import Flags, Floats32, Ints, to_json

if TYPE_CHECKING:
    import zarr

PLAN_FILE = "shadows.json"
CODECS = ("bytes", "zstd", "crc32c")
MOST_MODELS = 2**20
"""Models that a group has room for: every chunk of them is looked for, whether it is there or not."""


class ArrayKind(NamedTuple):
    """What one array holds for each model.

    Attributes:
        source: Which attribute of a `ShadowBatch` it is.
        place: Which view or repeat of that attribute; None for all of it.
        extent: Its shape, but for the models.
        dtype: Its type.
        fill: What stands where nothing is stored.
        dimensions: Names of the dimensions, but for the models.
    """

    source: str
    place: int | None = None
    extent: tuple[int, ...] = ()
    dtype: str = "float32"
    fill: Any = np.nan
    dimensions: tuple[str, ...] = ("node", "class")

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
        sealed[f"digest_{view}"] = {
            f"statistic_{view}": ArrayKind("statistics", number, nodes),
            f"train_accuracy_{view}": ArrayKind("view_train_accuracy", number),
            f"held_out_accuracy_{view}": ArrayKind("view_held_out_accuracy", number),
        }
    for number, view in enumerate(views if keep_logits else []):
        kind = ArrayKind("logits", number, (graph.num_nodes, graph.num_classes))
        sealed[f"digest_logits_{view}"] = {f"logits_{view}": kind}
    for repeat in range(plan.num_repeats if num_weights else 0):
        kind = ArrayKind("weights", repeat, (num_weights,), dimensions=("weight",))
        sealed[f"digest_{weights_name(repeat)}"] = {weights_name(repeat): kind}
    return sealed


def weights_name(repeat: int) -> str:
    """The array with the weights of one repeat of every model; repeat 0 is the model itself."""
    return f"weights_{repeat}"


def array_kinds(sealed: Sealed) -> dict[str, ArrayKind]:
    """All arrays: what is sealed, the digests, and what is known of a model beside its numbers, `done` last."""
    kinds: dict[str, ArrayKind] = {}
    for digest, each in sealed.items():
        kinds |= {**each, digest: ArrayKind("digest", dtype="uint64", fill=0)}
    return kinds | {name: ArrayKind(name, dtype="bool", fill=False) for name in ("failed", "done")}


def values_of(batch: ShadowBatch, kinds: Kinds) -> Values:
    """What a batch has of some arrays, in the order of its models."""
    sources = {name: getattr(batch, kind.source) for name, kind in kinds.items()}
    return {
        name: source if kinds[name].place is None else source[kinds[name].place]
        for name, source in sources.items()
        if source is not None
    }


def model_digests(indices: Ints, values: Values) -> npt.NDArray[np.uint64]:
    """A number for each model that depends on all of its numbers in some arrays and on where each of them stands.

    The checksum of a Zarr chunk says that a file is whole, not that it is the right one: two files that changed places
    are whole, and one that is missing reads as fill values.

    Args:
        indices: Number of each model in its plan, shape (J,).
        values: By name, of shape (J, …): booleans or floats.
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
    """The first model whose numbers are not those that its digests are of, or None.

    Args:
        sealed: Which arrays to look at.
        indices: Number of each model in its plan, shape (J,).
        values: By name, at least these arrays and their digests, of shape (J, …).
    """
    for digest, kinds in sealed.items():
        is_wrong = model_digests(indices, {name: values[name] for name in kinds}) != values[digest]
        if is_wrong.any():
            return int(indices[is_wrong.argmax()])
    return None


class ArrayGroup:
    """Compressed, checksummed arrays whose first dimension is the model, and `done`, which vouches for the others.

    A missing Zarr chunk reads as the fill value without a word, so only `done` says what is there.
    """

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
            self._store = BoundedStore(make(read_only=read_only))
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

    def check(self, kinds: Kinds, *, are_all_there: bool, with_room: bool = True) -> None:
        """Checks that arrays are what they are said to be, before anything of their size is read.

        Args:
            kinds: What each array must hold.
            are_all_there: Whether none may be missing.
            with_room: Whether all must have room for as many models as `done`.

        Raises:
            DataError: naming the array that is missing or is something else.
        """
        names = self.names
        # A process that was killed while it made the arrays leaves none.
        num_models = self["done"].shape[0] if with_room and "done" in names else 0
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
                raise DataError(
                    f"{self.path}: {name} must have room for as many models as done, and for at most {MOST_MODELS:,}, "
                    f"got {array.shape[0]:,}"
                )

    def create(self, kinds: Kinds, *, to_finished: bool = False) -> None:
        """Creates the arrays that are missing, in order.

        Args:
            kinds: What each array holds.
            to_finished: Whether arrays may be added to finished models.

        Raises:
            InputError: if one is missing though there are finished models, and may not be added.
        """
        from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

        for name, kind in kinds.items():
            if name in self._group:
                continue
            if not to_finished and "done" in self._group and np.asarray(self["done"][:]).any():
                raise InputError(
                    f"{self.path.parent} holds shadow models without {name}; use a new folder to keep them"
                )
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

    def extend(self, length: int) -> None:
        """Makes room for at least `length` models, array by array and `done` last.

        Raises:
            InputError: if that is too many.
        """
        if length > MOST_MODELS:
            raise InputError(f"a folder holds at most {MOST_MODELS:,} shadow models, got {length:,}")
        length = max(length, self["done"].shape[0])
        for name in self.names:
            array = self[name]
            if array.shape[0] < length:
                uninterrupted(partial(array.resize, (length, *array.shape[1:])))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the models."""
        notes = self._group.attrs.get("notes")
        return tuple(str(note) for note in notes) if isinstance(notes, list) else ()

    def add_note(self, note: str) -> None:
        """Says something about the models, once."""
        if note not in self.notes:
            self._group.attrs["notes"] = [*self.notes, note]

    def write(self, name: str, chunk: slice, values: npt.NDArray[Any]) -> None:
        """Writes one chunk of an array, to its end even if Ctrl-C is pressed."""
        uninterrupted(lambda: self[name].__setitem__(chunk, values))

    def forget(self, chunk: slice) -> None:
        """Puts fill values in place of the models of one chunk, `done` first: what it does not vouch for is nothing."""
        for name in reversed(self.names):
            # The whole chunk is written: a partial write would have to read the damaged one.
            self.write(name, chunk, self.blank(name, chunk))

    def blank(self, name: str, chunk: slice) -> npt.NDArray[Any]:
        """Fill values of one chunk."""
        array = self[name]
        return np.full((chunk.stop - chunk.start, *array.shape[1:]), array.fill_value, dtype=array.dtype)


class StoredMatrix(LazyMatrix[np.float32]):
    """Numbers of finished models in a Zarr array of all models; every number that is read is checked to be finite.

    Args:
        folder: Folder of the models, for messages.
        array: The array.
        indices: Rows of the finished models, ascending, shape (J,).
    """

    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path | RemoteFolder, array: zarr.Array[Any], indices: Ints) -> None:
        super().__init__(len(indices), array.shape[1])
        self.folder, self._array = folder, array
        self._rows = indices

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

    The folder holds `shadows.json` (the plan and the graph's hash) and `shadows/`, a Zarr v3 group with arrays over the
    dimensions model and node: see `sealed_arrays`, with NaN where there is no number. A missing Zarr chunk reads as the
    fill value without a word, so only `done` says what is there; it is written last, and every file is replaced in one
    step. Digests (see `model_digests`) tell whether the numbers of a model are its own. They are checked before models
    are added, and whenever models are read whose matrices fit into memory.

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
            # A folder that keeps logits or weights keeps those of all its models.
            self.keep_logits = keep_logits or any(name.startswith("logits_") for name in self.arrays.names)
            self.num_weights = num_weights
            if weights_name(0) in self.arrays.names:
                self.num_weights = int(self.arrays[weights_name(0)].shape[1])
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
        """Makes room for at least `num_models` models; those already there stay.

        Array by array and `done` last, so that after a kill on the way the next call finds the rest to do.
        """
        with reaching(self.folder):
            self.arrays.extend(num_models)

    def new_batch(self, indices: Ints, num_threads: int) -> ShadowBatch:
        """Models to be trained and stored here; `indices` are ascending."""
        keeps = self.keep_logits, self.num_weights
        return ShadowBatch.drawn(self.graph, self.plan, indices, *keeps, num_threads=num_threads)

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
        with reaching(self.folder):
            # A chunk without finished models may be what a crash left of one: it is written anew, unread.
            chunk = self.chunk_of(int(batch.indices[0]))
            is_new = not (with_others and np.asarray(self.arrays["done"][chunk]).any())
            self.put(self.sealed, batch, is_new=is_new)
            self._put("failed", batch.indices, batch.state == ModelState.FAILED, is_new=is_new)

    def put(self, sealed: Sealed, batch: ShadowBatch, *, is_new: bool) -> None:
        """Writes some arrays of models of one chunk with their digests; of a new chunk there are no other models."""
        for digest, kinds in sealed.items():
            values = values_of(batch, kinds)
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
            problem = self.problem(chunk, num_threads)
            if problem is not None:
                report(f"models {chunk.start} to {chunk.stop - 1}: {problem}; they are trained again")
                self.arrays.forget(chunk)

    def problem(self, chunk: slice, num_threads: int | None) -> str | None:
        """What is wrong with the finished models of one chunk, or None."""
        try:
            done = np.asarray(self.arrays["done"][chunk])
            if not done.any():
                return None
            values = {name: np.asarray(self.arrays[name][chunk])[done] for name in array_kinds(self.sealed)}
        except Exception as damage:  # a damaged file can raise nearly anything on the way through the codecs
            return f"damaged ({damage})"
        if first_damaged(self.sealed, chunk.start + np.flatnonzero(done), values) is not None:
            return "a file is missing, or has taken the place of another"
        drawn = draw_memberships(
            self.graph, self.plan.sampler, len(done), self.plan.seed, first=chunk.start, num_threads=num_threads
        )
        if not np.array_equal(values["memberships"], drawn[done]):
            if values["memberships"].any():  # whole, with the right checksum: somebody else's
                raise InputError(f"{self.folder} holds shadow models of other samples: has the sampler changed?")
            return "memberships are missing"
        return None

    def read(self, num_models: int | None = None) -> ShadowRuns:
        """The finished ones of the first `num_models` models, or of all.

        Matrices too large to be held in memory (`matrices.MOST_IN_MEMORY`) are read from the folder when they are used.

        Raises:
            DataError: if data is damaged or missing.
        """
        with reading(self.folder):
            done = self.is_done[:num_models]
            failed = np.asarray(self.arrays["failed"][:num_models]) & done
            usable = done & ~failed
            numbers = {
                name: np.asarray(self.arrays[name][:num_models])[usable]
                for name, kind in array_kinds(self.sealed).items()
                if not kind.extent
            }
            stored = {view.name: self.arrays[f"statistic_{view.name}"] for view in self.plan.views}
        indices = np.flatnonzero(usable)
        matrices = {view: StoredMatrix(self.folder, array, indices) for view, array in stored.items()}
        runs = ShadowRuns(
            indices=indices,
            memberships=self._memberships(indices),
            statistics={view: each[:] if fits_in_memory(each.nbytes) else each for view, each in matrices.items()},
            train_accuracy=numbers["train_accuracy"],
            held_out_accuracy=numbers["held_out_accuracy"],
            view_accuracy={
                view: ViewAccuracy(numbers[f"train_accuracy_{view}"], numbers[f"held_out_accuracy_{view}"])
                for view in matrices
            },
            failed=tuple(np.flatnonzero(failed).tolist()),
            notes=self.arrays.notes,
        )
        if all(isinstance(each, np.ndarray) for each in runs.statistics.values()):
            values = {**numbers, "memberships": runs.memberships[:]}
            values |= {f"statistic_{view}": np.asarray(each) for view, each in runs.statistics.items()}
            read = {digest: kinds for digest, kinds in self.sealed.items() if kinds.keys() <= values.keys()}
            damaged = first_damaged(read, indices, values)  # missing, or in the place of another
            if damaged is not None:
                raise DataError(f"{self.folder}: damaged: model {damaged} is not as it was written: run bmpaudit train")
        return runs

    def _memberships(self, indices: Ints) -> FlagMatrix:
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


def difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """What a folder holds instead of what a plan asks for, or None if they are the same.

    Args:
        stored: `ShadowPlan.describe` as the folder has it.
        wanted: `ShadowPlan.describe` of the plan, of the same types.

    >>> difference({"format": 2, "seed": 1}, {"format": 2, "seed": 2})
    'shadow models with seed 1; this plan has seed 2'
    """
    if stored.get("format") != wanted.get("format"):
        return f"shadow models in format {stored.get('format')}; this version of bmpaudit reads {wanted['format']}"
    for name in [*wanted, *(name for name in stored if name not in wanted)]:
        there, here = stored.get(name), wanted.get(name)
        if there != here:
            return _graphs(there, here) if name == "graph" else _parts(name, there, here)
    return None


def _graphs(there: Any, here: Any) -> str:
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return "shadow models of another graph"
    apart = [name for name in here if name.startswith("num_") and there.get(name) != here[name]]
    if not apart:
        return "shadow models of a graph of the same size with other edges, features or labels"
    sizes = [" and ".join(f"{graph.get(name, 0):,} {name[4:]}" for name in apart) for graph in (there, here)]
    return f"shadow models of a graph with {sizes[0]}; this one has {sizes[1]}"


def _parts(name: str, there: Any, here: Any) -> str:
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
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return str(value)


def _settings(table: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key}={table[key]!r}" if key in table else f"no {key}" for key in keys)


class Writer:
    """Calls what writes, one after another, in a thread; at most one call waits for another."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> Writer:
        return self

    def submit(self, write: Callable[..., None], *arguments: Any) -> None:
        """Has something written; raises what the call before has raised."""
        # Handed over before anything that a stop could interrupt; one worker keeps the order.
        before, self._pending = self._pending, self._pool.submit(write, *arguments)
        if before is not None:
            before.result()

    def __exit__(self, *_: object) -> None:
        try:
            if self._pending is not None:
                self._pending.result()
        finally:
            self._pool.shutdown()
