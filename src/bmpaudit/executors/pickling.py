"""Values on their way to another process."""

from __future__ import annotations

import pickle
from typing import Any


def dumps(value: Any) -> bytes:
    """As `pickle.dumps`; with cloudpickle also lambdas, and what is defined in a script or notebook."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
