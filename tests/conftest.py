"""Settings for all tests, which of them are slow, and the audit that many of them look at."""

import multiprocessing.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# No test depends on how fast the machine is, and every run tries the same examples.
settings.register_profile("bmpaudit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bmpaudit")
# A test's files need not survive a power cut, and to wait for the disk takes a third of the time of a small audit.
os.fsync = lambda _: None  # type: ignore[assignment]

TESTS = Path(__file__).parent
# `make quick` leaves out doctests, and these folders, files and tests: they use torch, start processes or run audits.
SLOW = (
    "attack/test_attack_inputs.py::test_import_is_light",
    "attack/test_large_graphs.py",
    "attack/test_permutation_test.py",
    "auditing",
    "cli",
    "datasets",
    "docs",
    "estimation/test_definitions.py::test_own_definitions",
    "examples",
    "faults",
    "fuzz",
    "graph/test_pyg.py",
    "io/test_sizes.py",
    "native/test_bindings.py::test_wrong_calls_raise",
    "native/test_instruction_sets.py",
    "native/test_interrupts.py",
    "packaging",
    "proof/test_certified.py",
    "proof/test_exposure_coverage.py",
    "report",
    "reproduction",
    "shadow",
    "test_architecture.py::test_import_is_light",
    "test_tiers.py::test_a_quick_test_starts_no_process_and_imports_no_torch",
    "util/test_files.py",
    "util/test_matrices.py::test_a_temporary_file_is_shared_by_its_path",
    "util/test_progress.py::test_importing_the_module_loads_neither_rich_nor_ipython",
    "workers",
)
# The longest files are begun first, so that no process waits long for another at the end.
LONGEST = (
    "auditing/test_audit_damage.py",
    "auditing/test_trust.py",
    "cli/test_audit_command.py",
    "cli/test_cli_trust.py",
    "cli/test_processes.py",
    "examples/test_extending.py",
    "faults/test_faults.py",
    "fuzz/test_fuzz.py",
    "shadow/test_native_against_pytorch.py",
    "shadow/test_store_damage.py",
    "shadow/test_torch_processes.py",
    "workers/test_dask.py",
)
# Python's audit events for new processes.
STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")


def is_slow(path: Path, test: str = "") -> bool:
    """Whether the quick tier leaves out a folder, a file, or a test of it."""
    if not path.is_relative_to(TESTS):
        return True
    inner = path.relative_to(TESTS)
    names = {place.as_posix() for place in (inner, *inner.parents)} | {f"{inner.as_posix()}::{test}"}
    return not names.isdisjoint(SLOW)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test is either quick or slow."""
    for item in items:
        item.add_marker("slow" if is_slow(item.path, item.name.partition("[")[0]) else "quick")
    longest = {TESTS / name for name in LONGEST}
    items.sort(key=lambda item: item.path not in longest)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait, for a process or a browser."""
    return (os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of the other tier are not even imported."""
    if config.option.markexpr == "quick" and is_slow(collection_path):
        return True
    if config.option.markexpr == "slow" and collection_path.is_file() and collection_path.is_relative_to(TESTS):
        has_slow_tests = any(name.startswith(f"{collection_path.relative_to(TESTS).as_posix()}::") for name in SLOW)
        return True if not has_slow_tests and not is_slow(collection_path) else None
    return None


def pytest_collection(session: pytest.Session) -> None:
    """With `-m quick`, the process that runs the tests starts no other from here on, and imports no torch."""
    options = session.config.option
    runs_tests = hasattr(session.config, "workerinput") or not getattr(options, "numprocesses", None)
    if options.markexpr == "quick" and runs_tests:
        sys.addaudithook(_refuse)
        # What it spawns comes with no event.
        multiprocessing.util.spawnv_passfds = lambda *_: _refuse("subprocess.Popen", ())  # type: ignore[assignment]


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    # matplotlib lists a machine's fonts when it is first imported there.
    if event in STARTS and "fc-list" not in arguments:
        raise RuntimeError(f"a quick test must not start a process ({event}): see SLOW in tests/conftest.py")
    if event == "import" and arguments[0] == "torch":
        raise RuntimeError("a quick test must not import torch: see SLOW in tests/conftest.py")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished audit on disk, to look at: all processes of a run share it, and `copied` is there to be changed."""
    from small_audit import run_audit, times

    own = tmp_path_factory.getbasetemp()
    path = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "audits" / "finished"
    is_built = path.with_name("is_built")
    path.parent.mkdir(exist_ok=True)
    with FileLock(path.with_name("lock")):
        if not is_built.exists():
            run_audit(path, pictures=True)
            is_built.touch()
    before = times(path)
    yield path
    assert times(path) == before, "a test has changed the audit that others look at"


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))
