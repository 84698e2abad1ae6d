"""A folder in an object store, or wherever else fsspec reaches, used as a `pathlib.Path` is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmpaudit.util.errors import InputError, one_line
from bmpaudit.util.files import is_ours

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s:?#]+(:\d+)?[^\s:?#]*")
HERE = ("file", "local", "memory")


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at an address such as `s3://bucket/audit`: one protocol, which is not of this machine's own files.

    Credentials, endpoints and the like come from the environment, as fsspec and its file systems read them: they are
    the user's, not the audit's. `InputError` if it is not such an address, or no file system is installed for it.
    """

    address: str

    def __post_init__(self) -> None:
        protocol = self.address.partition("://")[0]
        if not _ADDRESS.fullmatch(self.address) or protocol in HERE:
            raise InputError(f"store must be an address such as s3://bucket/audit, got {self.address!r}")
        object.__setattr__(self, "address", self.address.rstrip("/"))
        try:
            self._file_system()
        except (ImportError, ValueError) as failure:
            raise InputError(f"store {self.address} cannot be used: {one_line(failure)}") from None

    def __truediv__(self, name: str) -> RemoteFolder:
        return RemoteFolder(f"{self.address}/{name}")

    def __str__(self) -> str:
        return self.address

    @property
    def parent(self) -> RemoteFolder:
        """The folder that this one is in."""
        return RemoteFolder(self.address.rpartition("/")[0])

    def exists(self) -> bool:
        """Whether there is a file of this name, or one in the folder."""
        with reaching(self):
            return bool(self._file_system().exists(self.address))

    def read_bytes(self, most_bytes: int) -> bytes:
        """The content of a file, or so much of it."""
        with reaching(self), self._file_system().open(self.address, "rb") as file:
            return bytes(file.read(most_bytes))

    def write_text(self, text: str) -> None:
        """Replaces a file, in one step as object stores do it."""
        with reaching(self):
            self._file_system().pipe_file(self.address, text.encode())

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file."""
        with reaching(self), suppress(FileNotFoundError) if missing_ok else nullcontext():
            self._file_system().rm_file(self.address)

    def remove_leftovers(self) -> None:
        """Removes the small files by which killed processes marked the folder; see `files.is_ours`."""
        with reaching(self), suppress(FileNotFoundError):
            for path in self._file_system().ls(self.address, detail=False):
                if is_ours(path.rpartition("/")[2]):
                    self._file_system().rm_file(path)

    def folders_with(self, file: str) -> list[str]:
        """Names of the folders in this one that hold a file."""
        with reaching(self):
            return [path.rsplit("/", 2)[1] for path in self._file_system().glob(f"{self.address}/*/{file}")]

    def zarr_store(self, *, read_only: bool) -> Any:
        """The folder as a store of Zarr."""
        from zarr.storage import FsspecStore

        with reaching(self):
            return FsspecStore.from_url(self.address, {"use_listings_cache": False}, read_only=read_only)

    def _file_system(self) -> Any:
        import fsspec

        return fsspec.core.url_to_fs(self.address, use_listings_cache=False)[0]


def folder_at(address: str | Path | RemoteFolder) -> Path | RemoteFolder:
    """A folder by its path or address."""
    if isinstance(address, str) and "://" in address:
        return RemoteFolder(address)
    return address if isinstance(address, RemoteFolder) else Path(address)


@contextmanager
def reaching(folder: Path | RemoteFolder) -> Iterator[None]:
    """Raises `OSError` with the address in place of whatever a file system raises that cannot be reached."""
    try:
        yield
    except Exception as failure:
        library = type(failure).__module__.partition(".")[0]
        is_theirs = isinstance(failure, OSError) or library not in ("builtins", "bmpaudit", "zarr", "numpy")
        if isinstance(folder, Path) or isinstance(failure, FileNotFoundError) or not is_theirs:
            raise
        raise OSError(f"{folder} cannot be reached: {one_line(failure)}") from None
