"""Which bmpaudit runs here, on what: what has to be the same for results to be the same to the byte."""

import hashlib
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from bmpaudit import _native
from bmpaudit.util.files import sha256_of

CODE_SUFFIXES = frozenset((".py", ".so", ".pyd", ".js", ".html", ".css"))


@cache
def build_id() -> str:
    """A hash of bmpaudit's own code, compiled and not: it changes whenever an answer might."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in CODE_SUFFIXES):
        digest.update(f"{path.relative_to(root)} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Build:
    """What tells apart two processes whose statistics may differ in their last bits; libraries by their versions."""

    version: str
    code: str  # `build_id`
    instruction_set: str  # of the kernels
    processor: str
    numpy: str
    torch: str = ""  # if it takes no part
    sklearn: str = ""

    def differences(self, other: Self) -> str:
        """In what another build differs, in words; empty if it does not."""
        ours, theirs = asdict(self), asdict(other)
        shown = {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}
        if "code" in shown:
            shown["code"] = (self.code[:8], other.code[:8])
        return ", ".join(
            f"{name.replace('_', ' ')} {theirs or 'none'} in place of {ours or 'none'}"
            for name, (ours, theirs) in shown.items()
        )


@cache
def this_build(engine: str = "native") -> Build:
    """The build that runs here, as far as it matters to an engine; an engine of the user's own may use PyTorch."""
    about: list[str] = []  # the CPU, whose kind is what Linux calls its model name, elsewhere the architecture
    with suppress(OSError):
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return Build(
        _version("bmpaudit"),
        build_id(),
        _native.instruction_set,
        next((line.partition(":")[2].strip() for line in about if line.startswith("model name")), platform.machine()),
        _version("numpy"),
        "" if engine in ("native", "sklearn") else _version("torch"),
        _version("scikit-learn") if engine == "sklearn" else "",
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source
        return ""
