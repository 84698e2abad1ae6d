"""A stage imports only earlier stages; the theory stands alone."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = "bmpaudit"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# From first to last; modules of one line may import each other.
STAGES = (
    ("errors", "checks", "streams", "files", "progress", "_native"),
    ("graph",),
    ("datasets",),
    ("samplers",),
    ("shadow",),
    ("attack",),
    ("estimation",),
    ("report",),
    ("paper",),
    ("plan",),
    ("auditing",),
    ("cli",),
)
RANK = {name: rank for rank, stage in enumerate(STAGES) for name in stage}
# Imports nothing of ours, and anybody may import it.
THEORY = "privacy"
WITHOUT_HEAVY_LIBRARIES = {
    THEORY: {"torch", "torch_geometric", "matplotlib", "zarr"},
    "estimation": {"torch", "torch_geometric", "matplotlib", "zarr"},
    "samplers": {"torch", "torch_geometric"},
}


def violations(sources: Mapping[str, str]) -> list[str]:
    """What breaks the rule in modules given by dotted name (`bmpaudit.graph.npz`) and source text."""
    return [
        f"{module} imports {imported}: {reason}"
        for module, source in sources.items()
        for imported in _imports(module, source)
        if (reason := _reason_against(module, imported)) is not None
    ]


def _imports(module: str, source: str) -> Iterator[str]:
    """Dotted names of all that is imported, anywhere in a module: also within functions and by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative: "." is the package that the module is in
                package = module.split(".")[: -node.level]
                base = ".".join([*package, *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)


def _reason_against(module: str, imported: str) -> str | None:
    stage = _stage(module)
    top, _, rest = imported.partition(".")
    if top in WITHOUT_HEAVY_LIBRARIES.get(stage, ()):
        return f"{stage} does without {top}"
    if top != PACKAGE or stage == "__init__":
        return None
    wanted = rest.partition(".")[0]
    if wanted == stage or (wanted == THEORY and stage in RANK):
        return None
    if stage == THEORY:
        return "the theory imports nothing of ours"
    if stage not in RANK or wanted not in RANK:
        unknown = wanted if stage in RANK else stage
        return f"{unknown or PACKAGE} has no place in the line"
    return None if RANK[wanted] <= RANK[stage] else f"{wanted} comes after {stage}"


def _stage(module: str) -> str:
    return module.split(".")[1]


def _our_sources() -> dict[str, str]:
    sources = {}
    for path in SOURCE.rglob("*.py"):
        # A package is named for its __init__, so that relative imports count from the right place.
        parts = [PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]
        sources[".".join(parts)] = path.read_text()
    return sources


def test_our_imports_keep_the_rule() -> None:
    assert violations(_our_sources()) == []


def test_every_module_has_its_place_in_the_line() -> None:
    stages = {_stage(module) for module in _our_sources()}
    assert {"graph", "datasets", "samplers", THEORY, "cli"} <= stages
    assert stages <= {*RANK, THEORY, "__init__"}


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("graph.npz", "from bmpaudit.datasets import load", "datasets comes after graph"),
        ("graph.npz", "import bmpaudit.samplers.uniform", "samplers comes after graph"),
        ("graph.npz", "from bmpaudit import samplers", "samplers comes after graph"),
        ("graph.npz", "from .. import samplers", "samplers comes after graph"),
        ("graph.npz", "from ..samplers.uniform import Uniform", "samplers comes after graph"),
        ("graph.__init__", "from ..samplers import Uniform", "samplers comes after graph"),
        ("datasets.load", "def f():\n    from bmpaudit.cli import main", "cli comes after datasets"),
        (
            "datasets.load",
            "if TYPE_CHECKING:\n    from bmpaudit.samplers import Sampler",
            "samplers comes after datasets",
        ),
        ("datasets.load", "importlib.import_module('bmpaudit.samplers')", "samplers comes after datasets"),
        ("datasets.load", "__import__('bmpaudit.samplers')", "samplers comes after datasets"),
        ("errors", "import bmpaudit.graph", "graph comes after errors"),
        ("report.page", "from bmpaudit.auditing import run", "auditing comes after report"),
        ("plan", "from bmpaudit.auditing import run", "auditing comes after plan"),
        ("auditing", "from bmpaudit.cli import main", "cli comes after auditing"),
        ("samplers.uniform", "from bmpaudit import Graph", "Graph has no place in the line"),
        ("samplers.uniform", "import bmpaudit", "bmpaudit has no place in the line"),
        ("graph.npz", "from bmpaudit.helpers import f", "helpers has no place in the line"),
        ("helpers", "from bmpaudit.graph import Graph", "helpers has no place in the line"),
        ("privacy.region", "from bmpaudit.errors import InputError", "the theory imports nothing of ours"),
        ("privacy.region", "from ..graph import Graph", "the theory imports nothing of ours"),
        ("privacy.region", "from bmpaudit import Graph", "the theory imports nothing of ours"),
        ("privacy.region", "import matplotlib.pyplot as plt", "privacy does without matplotlib"),
        ("privacy.region", "def f():\n    import torch", "privacy does without torch"),
        (
            "privacy.region",
            "def f():\n    from torch_geometric.data import Data",
            "privacy does without torch_geometric",
        ),
        ("estimation.exact", "try:\n    import zarr\nexcept ImportError:\n    pass", "estimation does without zarr"),
        ("estimation.exact", "importlib.import_module('torch.nn')", "estimation does without torch"),
        ("samplers.uniform", "import torch", "samplers does without torch"),
    ],
)
def test_what_breaks_the_rule_is_found(module: str, source: str, reason: str) -> None:
    found = violations({f"{PACKAGE}.{module}": source})
    assert len(found) == 1
    assert found[0].startswith(f"{PACKAGE}.{module} imports ")
    assert found[0].endswith(reason)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cli", "from bmpaudit import auditing, datasets, privacy, samplers"),
        ("auditing", "from bmpaudit.paper import tables\nfrom bmpaudit.plan import AuditPlan"),
        ("samplers.draw", "from bmpaudit.streams import stream\nfrom bmpaudit import _native\nimport numpy"),
        ("samplers.draw", "from . import uniform\nfrom .uniform import Uniform\nfrom ..graph import Graph"),
        ("graph.__init__", "from .edges import EdgeCleaning"),
        ("streams", "from bmpaudit.errors import InputError"),
        ("graph.npz", "from bmpaudit.privacy import Region"),
        ("errors", "from bmpaudit.privacy import Region"),
        ("privacy.region", "from bmpaudit.privacy.epsilon import EpsilonPair\nimport scipy.special"),
        ("privacy.region", "from .epsilon import EpsilonPair"),
        ("report.figures", "import matplotlib.pyplot"),
        ("__init__", "from bmpaudit import cli, privacy\nfrom bmpaudit.graph import Graph"),
        ("graph.npz", '"""Docs.\n\n>>> from bmpaudit import cli\n"""'),
    ],
)
def test_what_keeps_the_rule_passes(module: str, source: str) -> None:
    assert violations({f"{PACKAGE}.{module}": source}) == []


def test_import_is_light() -> None:
    heavy = ["torch", "torch_geometric", "dask", "distributed", "arviz", "matplotlib", "zarr", "networkx", "pandas"]
    program = f"import sys, {PACKAGE}; print(*sorted(set({heavy}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
