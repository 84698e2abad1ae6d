"""Another address in place of the one that data sets are downloaded from."""

import os

import pytest

from bmpaudit.datasets import download

NOBODY_LISTENS = "https://127.0.0.1:9"


def set_upstream(patch: pytest.MonkeyPatch, address: str) -> None:
    """Puts an address on this machine in place of the upstream one, without a proxy in between."""
    patch.setattr(download, "UPSTREAM", address)
    for variable in ("no_proxy", "NO_PROXY"):
        patch.setenv(variable, f"127.0.0.1,{os.environ.get(variable, '')}")
