"""Shadow models on disk: Zarr arrays that survive a kill at any moment, and the plan they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns

MODELS_PER_CHUNK = 32


class ShadowStore:
    """One folder of shadow models, open in one process at a time; use it in a `with` block.

    The folder holds `shadows.json` (the plan and the graph's hash) and `shadows/`, a Zarr v3 group with arrays over the
    dimensions model and node: `memberships`, `margin_<view>` (NaN where there is none), `logits_<view>` if kept,
    `train_accuracy`, `held_out_accuracy`, `failed`, and `done`. A missing Zarr chunk reads as the fill value without a
    word, so only `done` says what is there; it is written last, and every file takes its place in one step.
    """

    def __init__(self, folder: str | Path, graph: Graph, plan: ShadowPlan, keep_logits: bool = False) -> None:
        self.folder = Path(folder)
        self.graph = graph
        self.plan = plan
        self.keep_logits = keep_logits
        self._lock = filelock.FileLock(self.folder / ".lock")

    def __enter__(self) -> ShadowStore:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(f"{self.folder} is in use by another process") from None
        try:
            self._check_plan()
            self._open_group()
            # A folder that keeps logits keeps those of all its models.
            self.keep_logits |= any(name.startswith("logits_") for name in self._names())
            self._create_arrays()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @property
    def num_models(self) -> int:
        """How many models there is room for."""
        return int(self._array("done").shape[0])

    @property
    def is_done(self) -> npt.NDArray[np.bool_]:
        """Which models are there, shape (num_models,)."""
        return np.asarray(self._array("done")[:])

    def extend(self, num_models: int) -> None:
        """Makes room for at least so many models; those already there stay.

        Array by array and `done` last, so that whoever is killed on the way finds the rest to do next time.
        """
        length = max(num_models, self.num_models)
        for name in self._names():
            array = self._array(name)
            if array.shape[0] < length:
                array.resize((length, *array.shape[1:]))

    def write(self, batch: ShadowBatch) -> None:
        """Stores the finished models of a batch whose models lie in one chunk."""
        finished = batch.is_done
        if not finished.any():
            return
        start = int(batch.indices[0]) // MODELS_PER_CHUNK * MODELS_PER_CHUNK
        chunk = slice(start, min(start + MODELS_PER_CHUNK, self.num_models))
        rows = batch.indices[finished] - start
        is_new = not np.asarray(self._array("done")[chunk]).any()

        def put(name: str, values: npt.NDArray[Any]) -> None:
            array = self._array(name)
            # A chunk without finished models may be what a crash left of one: it is written anew, unread.
            kept = self._blank(name, chunk) if is_new else np.asarray(array[chunk])
            kept[rows] = values[finished]
            array[chunk] = kept

        put("memberships", batch.memberships)
        for number, view in enumerate(self.plan.views):
            put(f"margin_{view.name}", batch.statistics[number])
            if batch.logits is not None:
                put(f"logits_{view.name}", batch.logits[number])
        put("train_accuracy", batch.train_accuracy)
        put("held_out_accuracy", batch.held_out_accuracy)
        put("failed", batch.state == ModelState.FAILED)
        put("done", finished)

    def discard_damaged(self, report: Callable[[str], None]) -> None:
        """Reads everything that is said to be there and forgets models whose data is damaged or missing."""
        starts = np.arange(0, self.num_models, MODELS_PER_CHUNK)
        with suppress(ValueError, RuntimeError):  # if that record is damaged itself, every chunk is looked at
            starts = np.unique(np.flatnonzero(self.is_done) // MODELS_PER_CHUNK) * MODELS_PER_CHUNK
        for start in starts.tolist():
            chunk = slice(start, min(start + MODELS_PER_CHUNK, self.num_models))
            problem = self._problem(chunk)
            if problem is not None:
                report(f"models {chunk.start} to {chunk.stop - 1}: {problem}; they are trained again")
                self._forget(chunk)

    def read(self, num_models: int) -> ShadowRuns:
        """The finished ones of the first `num_models` models.

        Raises:
            DataError: if data is damaged.
        """
        try:
            done = self.is_done[:num_models]
            failed = np.asarray(self._array("failed")[:num_models]) & done
            usable = done & ~failed

            def get(name: str) -> npt.NDArray[Any]:
                return np.asarray(self._array(name)[:num_models])[usable]

            return ShadowRuns(
                indices=np.flatnonzero(usable),
                memberships=get("memberships"),
                statistics={view.name: get(f"margin_{view.name}") for view in self.plan.views},
                train_accuracy=get("train_accuracy"),
                held_out_accuracy=get("held_out_accuracy"),
                failed=tuple(np.flatnonzero(failed).tolist()),
            )
        except (ValueError, RuntimeError) as damage:  # Zarr's codecs raise either
            raise DataError(f"{self.folder}: damaged: {damage}") from None

    def _open_group(self) -> None:
        try:
            self.group = zarr.open_group(self.folder / "shadows", mode="a")
            arrays = [self._array(name) for name in self.group.array_keys()]
        except (ValueError, KeyError, TypeError, zarr.errors.BaseZarrError) as damage:
            raise DataError(f"{self.folder / 'shadows'}: damaged metadata ({damage}); use a new folder") from None
        if "done" not in self.group and any(array.shape[0] for array in arrays):
            raise DataError(f"{self.folder / 'shadows'}: the record of what is done is missing; use a new folder")

    def _check_plan(self) -> None:
        path = self.folder / "shadows.json"
        if not path.exists() and (self.folder / "shadows").exists():
            raise DataError(
                f"{self.folder} has shadow models but no shadows.json that says of which plan; use a new one"
            )
        # Through JSON and back, so that both sides have its types.
        wanted = json.loads(json.dumps(self.plan.describe(self.graph)))
        if not path.exists():
            with atomic_write(path) as temporary:
                temporary.write_text(json.dumps(wanted, indent=2) + "\n")
            return
        try:
            found = json.loads(path.read_text())
        except ValueError as damage:
            raise DataError(f"{path}: not readable: {damage}") from None
        difference = _first_difference(found, wanted, "")
        if difference is not None:
            raise InputError(f"{self.folder} holds shadow models of another plan: {difference}")

    def _create_arrays(self) -> None:
        num_nodes, num_classes = self.graph.num_nodes, self.graph.num_classes
        wanted: dict[str, tuple[str, tuple[int, ...], Any]] = {"memberships": ("bool", (num_nodes,), False)}
        for view in self.plan.views:
            wanted[f"margin_{view.name}"] = ("float32", (num_nodes,), np.nan)
            if self.keep_logits:
                wanted[f"logits_{view.name}"] = ("float32", (num_nodes, num_classes), np.nan)
        wanted |= dict.fromkeys(("train_accuracy", "held_out_accuracy"), ("float32", (), np.nan))
        wanted |= dict.fromkeys(("failed", "done"), ("bool", (), False))
        for name, (dtype, extent, fill) in wanted.items():
            if name in self.group:
                continue
            if "done" in self.group and self.is_done.any():
                raise InputError(f"{self.folder} holds shadow models without {name}; use a new folder to keep them")
            self.group.create_array(
                name,
                shape=(0, *extent),
                chunks=(MODELS_PER_CHUNK, *extent),
                dtype=dtype,
                fill_value=fill,
                serializer=BytesCodec(),
                compressors=[ZstdCodec(level=1), Crc32cCodec()],
                dimension_names=("model", "node", "class")[: 1 + len(extent)],
            )

    def _problem(self, chunk: slice) -> str | None:
        """What is wrong with the finished models of one chunk, or None."""
        try:
            done = np.asarray(self._array("done")[chunk])
            if not done.any():
                return None
            values = {name: np.asarray(self._array(name)[chunk])[done] for name in self.group.array_keys()}
        except Exception as damage:  # a damaged file can raise nearly anything on the way through the codecs
            return f"damaged ({damage})"
        trained = ~values["failed"]
        for name in self._names():
            # Of a model that holds every node there is no accuracy elsewhere.
            if name == "held_out_accuracy" or values[name].dtype == np.bool_:
                continue
            if not np.isfinite(values[name][trained]).all():
                return f"{name} is missing"
        drawn = draw_memberships(self.graph, self.plan.sampler, len(done), self.plan.seed, first=chunk.start)
        if not np.array_equal(values["memberships"], drawn[done]):
            if values["memberships"].any():  # whole, with the right checksum: somebody else's
                raise InputError(f"{self.folder} holds shadow models of other samples: has the sampler changed?")
            return "memberships are missing"
        return None

    def _forget(self, chunk: slice) -> None:
        for name in reversed(self._names()):  # `done` first: what it does not vouch for is nothing
            # The whole chunk is written: a partial write would have to read the damaged one.
            self._array(name)[chunk] = self._blank(name, chunk)

    def _blank(self, name: str, chunk: slice) -> npt.NDArray[Any]:
        array = self._array(name)
        return np.full((chunk.stop - chunk.start, *array.shape[1:]), array.fill_value, dtype=array.dtype)

    def _names(self) -> list[str]:
        """The arrays, `done` last."""
        return sorted(self.group.array_keys(), key=lambda name: (name == "done", name))

    def _array(self, name: str) -> zarr.Array[Any]:
        array = self.group[name]
        assert isinstance(array, zarr.Array)  # noqa: S101 - created as one above
        return array


def _first_difference(found: Any, wanted: Any, path: str) -> str | None:
    """Names the first place where two nested values differ."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            place = f"{path}.{key}" if path else key
            difference = _first_difference(found.get(key), wanted.get(key), place)
            if difference is not None:
                return difference
        return None
    return None if found == wanted else f"{path} is {found!r} there and {wanted!r} here"
