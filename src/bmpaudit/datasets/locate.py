"""Where data files are searched for, without touching the network."""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from bmpaudit.datasets.catalog import NAMED_DATASETS, FileSet, NamedDataset
from bmpaudit.errors import DataError
from bmpaudit.files import sha256_of

ENVIRONMENT_VARIABLE = "BMPAUDIT_DATA"


def user_cache() -> Path:
    """Where downloaded data sets are kept."""
    return Path(platformdirs.user_cache_dir("bmpaudit", appauthor=False))


def search_path(data_dir: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in order: `data_dir`, `$BMPAUDIT_DATA`, the user's cache."""
    chosen = [Path(folder) for folder in (data_dir, os.environ.get(ENVIRONMENT_VARIABLE)) if folder]
    return [*chosen, user_cache()]


@dataclass(frozen=True)
class FoundFiles:
    """A folder that holds a data set in one of its forms."""

    folder: Path
    form: FileSet

    def verify(self) -> None:
        """Raises `DataError` unless every file is there and has the published SHA-256."""
        for file_name, published in self.form.sha256.items():
            verify_file(self.folder / file_name, published)


def verify_file(path: Path, published: str) -> None:
    """Raises `DataError` unless the file is there and has this SHA-256."""
    try:
        sha256, size = sha256_of(path), path.stat().st_size
    except FileNotFoundError:
        raise DataError(f"{path}: no such file, though other files of the data set are there") from None
    if sha256 != published:
        raise DataError(
            f"{path}: not the published file (SHA-256 must be {published[:12]}…, got {sha256[:12]}… of {size:,} bytes)"
        )


def find_files(dataset: NamedDataset, data_dir: str | Path | None = None) -> FoundFiles | None:
    """The first folder of the search path that holds at least one file of the data set, or None.

    The files may be in a subfolder `planetoid`.
    """
    return next(filter(None, (find_files_in(root, dataset) for root in search_path(data_dir))), None)


def find_files_in(root: Path, dataset: NamedDataset) -> FoundFiles | None:
    """Like `find_files`, in one folder of the search path."""
    for folder in (root / "planetoid", root):
        for form in dataset.forms:
            if any((folder / file_name).is_file() for file_name in form.sha256):
                return FoundFiles(folder, form)
    return None


def find_archive(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The first `<name>.npz` in a folder of the search path or its subfolder `npz`, or None."""
    for root in search_path(data_dir):
        for path in (root / "npz" / f"{name}.npz", root / f"{name}.npz"):
            if path.is_file():
                return path
    return None


def at_hand(data_dir: str | Path | None = None) -> list[str]:
    """Names that `load` can read without a download: named data sets first, then archives.

    >>> "demo" in at_hand()
    True
    """
    named = [name for name, dataset in NAMED_DATASETS.items() if not dataset.forms or find_files(dataset, data_dir)]
    archives = {
        path.stem for root in search_path(data_dir) for folder in (root / "npz", root) for path in folder.glob("*.npz")
    }
    return named + sorted(archives - set(NAMED_DATASETS))
