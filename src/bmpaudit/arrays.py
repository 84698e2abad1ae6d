"""One name for each kind of array."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


def as_bytes(flags: Flags) -> Bytes:
    """Flags as the kernels take them, copied only if they do not lie together."""
    return np.ascontiguousarray(flags).view(np.uint8)
