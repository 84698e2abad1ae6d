"""C++ kernels of bmpaudit.

They are compiled for several instruction sets, each into a library of its own. This module loads the best one that the
processor supports; the environment variable `BMPAUDIT_INSTRUCTION_SET` asks for another. `instruction_set` names the
one in use and `library_file` is the path of its library.
"""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from bmpaudit._native import cpu

_BEST_FIRST = ("tuned", "avx512", "avx2", "baseline")


def _choose() -> str:
    folder = Path(__file__).parent
    usable = [
        name
        for name in _BEST_FIRST
        if cpu.supports(name) and any((folder / (name + suffix)).exists() for suffix in EXTENSION_SUFFIXES)
    ]
    wanted = os.environ.get("BMPAUDIT_INSTRUCTION_SET")
    if wanted is not None and wanted not in usable:
        raise ImportError(f"BMPAUDIT_INSTRUCTION_SET must be one of {', '.join(usable)} here, got {wanted!r}")
    return wanted or usable[0]


instruction_set = _choose()
if instruction_set == "tuned":
    from bmpaudit._native import tuned as _kernels
elif instruction_set == "avx512":
    from bmpaudit._native import avx512 as _kernels
elif instruction_set == "avx2":
    from bmpaudit._native import avx2 as _kernels
else:
    from bmpaudit._native import baseline as _kernels

library_file = _kernels.__file__
globals().update({name: value for name, value in vars(_kernels).items() if not name.startswith("_")})
