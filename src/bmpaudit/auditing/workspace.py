"""The folder of an audit: one lock, and one manifest that vouches for every file (docs/audit-folder.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from bmpaudit.io.codec import Record, decode, encode, read_record
from bmpaudit.io.readers import damage_in, read_json
from bmpaudit.io.remote_folder import RemoteFolder
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write, folder_lock, is_ours, remove_leftovers, sha256_of, write_text
from bmpaudit.util.text import is_text
from bmpaudit.util.values import to_json

Value = TypeVar("Value")
Files = Mapping[str, Callable[[Path], object]]
"""What writes each file, by its path in the folder."""

FORMAT = 2
MANIFEST, STORE = "manifest.json", "store.json"


class Stage(NamedTuple):
    """A stage of the pipeline: the command that makes it, and the files it may own."""

    command: str
    files: tuple[str, ...]


STAGES: Mapping[str, Stage] = {
    "graph": Stage("audit", ("graph.npz",)),
    "samples": Stage("sample", ("memberships.npz",)),
    "priors": Stage("attack", ("priors.parquet",)),
    "attack": Stage("attack", ("attack.json", "permutation_test.npz", "counts/*.parquet")),
    "proof": Stage("attack", ("proof/*.npz",)),
    "estimate": Stage("estimate", ("summary.json", "nodes.parquet", "posteriors/*.npz")),
    "report": Stage(
        "report", ("report.html", "tables.md", "tables.tex", "figures/*.png", "figures/*.pdf", "figures/*.svg")
    ),
}
"""In the order of the pipeline."""

# What shows that a folder is an audit's, whatever step it has reached.
SIGNS = (MANIFEST, "plan.toml", "shadows.json")
FOLDERS = ("counts", "proof", "posteriors", "figures")


@dataclass(frozen=True)
class Stamp(Record):
    """What a stage was made from, as hashes."""

    plan: str  # of the settings that matter to the stage
    graph: str
    models: str = ""  # of the shadow models' statistics and of the priors; empty for stages before them
    build: str = ""  # of bmpaudit's own code
    code: dict[str, str] | None = None  # of each module of the user's own that took part, by name, if it was run


@dataclass(frozen=True)
class _Entry(Record):
    """A stage in the manifest: without a stamp it is being replaced, and only its files are known."""

    stamp: Stamp | None
    files: dict[str, str]


@dataclass(frozen=True)
class _Store(Record):
    """Where the shadow models are, if not in the folder."""

    shadows: str


@dataclass(frozen=True)
class _Manifest(Record):
    """What vouches for every file of the folder."""

    format: int
    stages: dict[str, _Entry]


class Workspace:
    """One audit on disk.

    Each stage of the pipeline leaves files, and an entry in the manifest with their checksums and what they were made
    from. The entry is withdrawn before anything is replaced and written last, so whatever happens in between, a reader
    finds either a whole stage or none. Only files that the manifest lists are ever removed, and nothing is written or
    removed through a link.

    `store` is an address that fsspec knows, such as `s3://bucket/audit`, for the shadow models of a new folder; it is
    written down when the folder is first locked, and an old folder remembers its own.
    """

    def __init__(self, path: str | Path, store: str | None = None) -> None:
        self.path = Path(path)
        self._new_store = None if store is None else RemoteFolder(store)

    @property
    def plan_path(self) -> Path:
        """What the audit is to do."""
        return self.path / "plan.toml"

    @property
    def report_path(self) -> Path:
        """The report page."""
        return self.path / "report.html"

    @property
    def shadows(self) -> Path | RemoteFolder:
        """Where the shadow models are: here, or at the address that `store.json` says."""
        if not (self.path / STORE).exists():
            return self.path
        return RemoteFolder(read_record(self.path / STORE, _Store).shadows)

    @property
    def has_shadows(self) -> bool:
        """Whether there are shadow models, finished or not."""
        return (self.shadows / "shadows.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from writing here, and clears away what a killed one left half written.

        Raises:
            InputError: if another process holds the lock, or the folder holds something else, or has its shadow models
                elsewhere than at the address that was given.
        """
        if self.path.is_file():
            raise InputError(f"{self.path} is a file, not a folder")
        is_foreign = self.path.exists() and any(not is_ours(path.name) for path in self.path.iterdir())
        if is_foreign and not any((self.path / name).exists() for name in SIGNS):
            raise InputError(f"{self.path} holds files that are not an audit's; use a new folder")
        # Nothing of ours is a link: somebody else put it there, and it may lead anywhere.
        for name in (*SIGNS, *FOLDERS, STORE, "shadows"):
            self._own(name)
        with folder_lock(self.path):
            remove_leftovers(self.path)
            store = self._new_store
            if store is not None and store != (there := self.shadows):
                if isinstance(there, RemoteFolder) or self.has_shadows:
                    raise InputError(f"{self.path} has its shadow models in {there}, not in {store}: use a new folder")
                write_text(self._own(STORE), to_json({"shadows": str(store)}) + "\n")
            yield

    # Reading

    def is_current(self, stage: str, stamp: Stamp) -> bool:
        """Whether a stage is here, whole, and made from just this by this build.

        A stamp without `code` is that of somebody who may not run the code, and so takes what it made.
        """
        entry = self._entries().get(stage)
        if entry is None or entry.stamp is None:
            return False
        made_from = entry.stamp if stamp.code is not None else replace(entry.stamp, code=None)
        return made_from == stamp and self._damage(entry) is None

    def stamp(self, stage: str, plan: str | None = None) -> Stamp:
        """What a stage was made from, after checking that it is here and whole, and by the settings of a plan's hash.

        Raises:
            DataError: naming what is missing, damaged or of another plan, and the command that makes it again.
        """
        entry, command = self._entries().get(stage), STAGES[stage].command
        if entry is None or entry.stamp is None:
            raise DataError(f"{self.path} has no {stage} step yet: run bmpaudit {command}")
        damage = self._damage(entry)
        if damage is not None:
            raise DataError(f"{self.path / damage} is missing or damaged: run bmpaudit {command} again")
        if plan is not None and entry.stamp.plan != plan:
            raise DataError(f"{self.path}: its {stage} step was made with another plan: run bmpaudit {command} again")
        return entry.stamp

    def has(self, stage: str) -> bool:
        """Whether a stage is here and whole."""
        with suppress(DataError):
            self.stamp(stage)
            return True
        return False

    def files(self, stage: str) -> tuple[str, ...]:
        """The files of a stage, by their paths in the folder."""
        self.stamp(stage)
        return tuple(self._entries()[stage].files)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """For readers, who hold no lock: `DataError` if not everything that is read in the block belongs together."""
        path = self.path / MANIFEST
        before = path.read_bytes() if path.exists() else None
        yield
        if (path.read_bytes() if path.exists() else None) != before:
            raise DataError(f"{self.path} changed while it was read: try again")

    def read(self, name: str, reader: Callable[[Path], Value]) -> Value:
        """Reads a file of a stage that was checked; `DataError` if the manifest does not list it."""
        path = self.path / name
        if not any(name in entry.files for entry in self._entries().values()):
            raise DataError(f"{path} is not a file of this audit")
        with damage_in(path, "a file of an audit"):
            return reader(path)

    # Writing

    def write_plan(self, text: str) -> None:
        """Writes the plan, if it says something new; `InputError` if it cannot be, such as a path not in UTF-8."""
        if not is_text(text):
            raise InputError(f"a plan must be text: {next(line for line in text.splitlines() if not is_text(line))!r}")
        if not self.plan_path.exists() or self.plan_path.read_text(encoding="utf-8") != text:
            write_text(self._own(self.plan_path.name), text)

    def publish(self, stage: str, stamp: Stamp, files: Files) -> None:
        """Replaces a stage: its files, then the manifest that vouches for them. Later stages are removed."""
        entries, order = self._entries(), list(STAGES)
        later = order[order.index(stage) + 1 :]
        known = {name: entries[name].files if name in entries else {} for name in (stage, *later)}
        stale = {file for there in known.values() for file in there} - set(files)
        known[stage] = {**known[stage], **dict.fromkeys(files, "")}
        # Without stamps, but with all files, old and new: whatever a kill leaves is known, and nothing vouches for it.
        entries |= {name: _Entry(None, there) for name, there in known.items() if there}
        self._write_manifest(entries)
        for name, write in files.items():
            path = self._own(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                write(temporary)
        for name in sorted(stale):
            self._own(name).unlink(missing_ok=True)
        entries = {name: entry for name, entry in entries.items() if name not in later}
        entries[stage] = _Entry(stamp, {name: sha256_of(self.path / name) for name in files})
        self._write_manifest(entries)

    def _own(self, name: str) -> Path:
        """The path of a file of ours, which is neither a link nor behind one."""
        path = self.path / name
        for part in [path, *path.parents]:
            if part == self.path:
                return path
            if part.is_symlink():
                raise DataError(f"{part} is a link: an audit neither writes nor removes anything through links")
        raise DataError(f"{path} is outside of {self.path}")

    # The manifest

    def _entries(self) -> dict[str, _Entry]:
        path = self.path / MANIFEST
        if not path.exists():
            # Nothing is vouched for, so every stage is made again. Folders of the first format had no manifest at all,
            # and their shadow models mean something else now: these are refused.
            is_of_first = False
            with suppress(DataError, KeyError, TypeError):
                is_of_first = read_json(self.path / "summary.json")["format"] < 2
            if is_of_first:
                raise DataError(f"{self.path} was made by an earlier version of bmpaudit: use a new folder")
            return {}
        remedy = "; remove it to have everything made again"
        content = read_json(path, remedy=remedy)
        with damage_in(path, "a manifest", remedy):
            there = content["format"]
            if there == FORMAT:
                stages = decode(_Manifest, content).stages
        if there != FORMAT:
            raise DataError(f"{path}: format {there!r}; this version of bmpaudit reads {FORMAT}")
        for stage, entry in stages.items():
            for name in entry.files:
                _check_name(stage, name)
        return stages

    def _write_manifest(self, entries: Mapping[str, _Entry]) -> None:
        write_text(self._own(MANIFEST), to_json(encode(_Manifest(FORMAT, dict(entries)))) + "\n")

    def _damage(self, entry: _Entry) -> str | None:
        """The first file of a stage that is not as it was written, or None."""
        paths = {name: self.path / name for name in entry.files}
        damaged = (name for name, path in paths.items() if not path.is_file() or sha256_of(path) != entry.files[name])
        return next(damaged, None)


def _check_name(stage: str, name: str) -> None:
    """Raises `DataError` unless a path from a manifest, which anybody may have written, is one the stage may own."""
    path, patterns = PurePosixPath(name), STAGES[stage].files if stage in STAGES else ()
    is_owned = any(fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in patterns)
    if path.is_absolute() or ".." in path.parts or not is_owned:
        raise DataError(f"{MANIFEST}: {name!r} is not a file of an audit's {stage} step")
