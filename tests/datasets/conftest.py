from pathlib import Path

import pytest
from upstream import NOBODY_LISTENS, set_upstream

from bmpaudit import datasets


@pytest.fixture(scope="session")
def wheel_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Cora and CiteSeer, really downloaded from the wheel, as if upstream could not be reached."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        set_upstream(patch, NOBODY_LISTENS)
        for name in ("cora", "citeseer"):
            datasets.get(name, folder)
    return folder
