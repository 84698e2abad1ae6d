"""Shadow models in an object store: a real server of S3, workers that write to it, and an audit that reads from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import s3fs
from cluster_fixture import GRAPH, free_port, wait_until

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.io.remote_folder import RemoteFolder
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import Pipeline, audit
from bmpaudit.plan import AuditPlan
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowStore
from bmpaudit.util.errors import DataError, InputError

PLAN = AuditPlan(
    sampler=Uniform(0.4),
    model=MLP(hidden=8),
    training=Training(epochs=15),
    shadows=80,
    releases=("clean",),
    release_as="scores",
    definitions=("bmp-r",),
)
QUIET = Runtime(quiet=True, num_threads=1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert process.poll() is None
        try:
            return urllib.request.urlopen(address, timeout=5).status == 200
        except OSError:
            return False

    try:
        wait_until(answers)
        yield address
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{abs(hash(tmp_path)) % 10**9}"
    s3fs.S3FileSystem(use_listings_cache=False).mkdir(name)
    return f"s3://{name}"


def objects(address: str) -> dict[str, bytes]:
    """Every object of a folder."""
    files = s3fs.S3FileSystem(use_listings_cache=False)
    root = address.removeprefix("s3://")
    return {path.removeprefix(f"{root}/"): files.cat_file(path) for path in files.find(root)}


def run(folder: Path, store: str | None, runtime: Runtime = QUIET, **settings: Any) -> Audit:
    return audit(GRAPH, PLAN, folder=folder, store=store, runtime=runtime, pictures="none", **settings)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] in ("shadows", "shadows.json")
    }


def answer(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return {name: part for name, part in summary.items() if name != "timings"}


def test_workers_write_to_it_and_the_audit_reads_from_it(bucket: str, tmp_path: Path) -> None:
    run(tmp_path / "alone", None)
    store, folder = f"{bucket}/audits/one", tmp_path / "audit"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        run(folder, store, Runtime(quiet=True, num_threads=1, executor=pool))
    assert objects(store) == files(tmp_path / "alone")
    assert files(folder) == {}
    assert answer(folder) == answer(tmp_path / "alone")
    # Later, without the address: the folder remembers it, and nothing is trained again.
    assert Audit.load(folder).runs.num_models == PLAN.shadows
    assert run(folder, None).summary == Audit.load(folder).summary


def test_training_resumes_adds_models_and_survives_the_loss_of_the_folder(bucket: str, tmp_path: Path) -> None:
    run(tmp_path / "alone", None)
    store = f"{bucket}/audit"
    run(tmp_path / "first", store, shadows=40)
    stale = RemoteFolder(store) / ".shared.partial-0a1b2c3d"
    stale.write_text("")  # of a coordinator that was killed
    pipeline = Pipeline(Subject(GRAPH, "", PLAN), Workspace(tmp_path / "second", store), QUIET)
    with pipeline.prepared():
        pipeline.runs  # noqa: B018 - trains what is missing
    assert objects(store) == files(tmp_path / "alone")
    pipeline.train_range(0, 64)
    assert objects(store) == files(tmp_path / "alone")


def test_a_damaged_object_is_trained_again(bucket: str, tmp_path: Path) -> None:
    store = f"{bucket}/audit"
    run(tmp_path, store)
    before = objects(store)
    chunk = RemoteFolder(store) / "shadows" / "statistic_full_clean" / "c" / "1" / "0"
    chunk.write_text("nonsense")
    with pytest.raises(DataError, match=rf"{store}: damaged"):
        ShadowStore(store, GRAPH, PLAN.shadow_plan, read_only=True).read()
    said: list[str] = []
    run(tmp_path, None, Runtime(quiet=True, num_threads=1, notice=said.append))
    assert ["they are trained again" in line for line in said] == [True]
    assert objects(store) == before


def test_a_folder_keeps_its_store_and_a_store_its_plan(bucket: str, tmp_path: Path) -> None:
    run(tmp_path / "one", f"{bucket}/one")
    with pytest.raises(InputError, match=rf"has its shadow models in {bucket}/one, not in {bucket}/two"):
        run(tmp_path / "one", f"{bucket}/two")
    with pytest.raises(InputError, match=rf"{bucket}/one holds .*seed"):
        run(tmp_path / "other", f"{bucket}/one", seed=5)
    run(tmp_path / "local", None)
    with pytest.raises(InputError, match=r"has its shadow models in .*local, not in"):
        run(tmp_path / "local", f"{bucket}/one")


def test_a_server_that_is_gone_is_told_in_one_line(bucket: str, tmp_path: Path) -> None:
    run(tmp_path, f"{bucket}/one")
    done = subprocess.run(
        [sys.executable, "-c", "from bmpaudit.cli import main; main()", "attack", str(tmp_path)],
        env={**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}", "AWS_MAX_ATTEMPTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"bmpaudit: {bucket}/one/shadows.json cannot be reached: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "address",
    [
        "audit",
        "file:///tmp/audit",
        "memory://audit",
        "simplecache::s3://bucket/audit",
        "s3://",
        "nobody://bucket/audit",
    ],
)
def test_what_is_no_object_store_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"store must be an address|cannot be used"):
        Workspace(tmp_path / "audit", address)
    (tmp_path / "store.json").write_text(json.dumps({"shadows": address}))
    with pytest.raises(InputError, match=r"store must be an address|cannot be used"):
        _ = Workspace(tmp_path).shadows
    for nonsense in ("{}", "[]", '{"shadows": 3}', "{"):
        (tmp_path / "store.json").write_text(nonsense)
        with pytest.raises(DataError, match=r"store.json: damaged"):
            _ = Workspace(tmp_path).shadows
