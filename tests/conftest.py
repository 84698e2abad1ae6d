"""Settings for all tests, and the audits that many of them look at."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No test depends on how fast the machine is, and every run tries the same examples.
settings.register_profile("bmpaudit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bmpaudit")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit on disk, to look at or to copy."""
    from small_audit import run_audit

    path = tmp_path_factory.mktemp("audits") / "finished"
    run_audit(path, pictures=True)
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))
