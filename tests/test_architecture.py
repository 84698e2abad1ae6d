"""A stage imports only earlier stages; the theory stands alone; no import hides the name of what it imports."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bmpaudit import registry

PACKAGE = "bmpaudit"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

# From first to last; modules of one line may import each other.
STAGES = (
    ("util", "interfaces", "_native"),
    ("registry",),
    ("io",),
    ("workers",),
    ("graph",),
    ("datasets",),
    ("samplers",),
    ("models",),
    ("releases",),
    ("shadow",),
    ("attack",),
    ("estimation",),
    ("proof",),
    ("plan",),
    ("auditing",),
    ("report",),
    ("pipeline",),
    ("comparison", "gate", "inference"),
    ("sweeps",),
    ("cli",),
)
RANK = {name: rank for rank, stage in enumerate(STAGES) for name in stage}
# Imports nothing of ours, and anybody may import it.
THEORY = "privacy"
WITHOUT_HEAVY_LIBRARIES = {
    THEORY: {"torch", "torch_geometric", "matplotlib", "zarr"},
    "estimation": {"torch", "torch_geometric", "matplotlib", "zarr"},
    "proof": {"torch", "torch_geometric", "matplotlib", "zarr"},
    "samplers": {"torch", "torch_geometric"},
}
# The page of protocols names the types of every stage, for the type checker only.
TYPES_ONLY = "interfaces"
# A posterior and an audit draw themselves on request.
ALLOWED = {("estimation.posterior", "report.figures"), ("auditing.finished", "report.plots")}
# Ways to import something whose name this test cannot read, and who may use them.
HIDDEN_IMPORTS = ("import_module", "__import__", "exec", "eval", "run_module", "run_path", "find_loader", "load_module")
BUILT_IN = ("exec", "eval")  # functions; methods of these names, as torch modules have, import nothing
MAY_HIDE = ("registry", "__init__")


def violations(sources: Mapping[str, str]) -> list[str]:
    """What breaks the rule in modules given by dotted name (`bmpaudit.graph.files`) and source text."""
    return [
        f"{module} imports {imported}: {reason}"
        for module, source in sources.items()
        for imported in _imports(module, source)
        if (reason := _reason_against(module, imported)) is not None
    ]


def _imports(module: str, source: str) -> Iterator[str]:
    """Dotted names of all that is imported, anywhere in a module: also within functions, and through the registry."""
    tree = ast.parse(source)
    for_types = {id(node) for branch in ast.walk(tree) if _is_type_checking(branch) for node in ast.walk(branch)}
    for node in ast.walk(tree):
        if _stage(module) == TYPES_ONLY and id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative: "." is the package that the module is in
                package = module.split(".")[: -node.level]
                base = ".".join([*package, *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _called_imports(module, node)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _called_imports(module: str, call: ast.Call) -> Iterator[str]:
    is_method = isinstance(call.func, ast.Attribute)
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called in HIDDEN_IMPORTS and not (is_method and called in BUILT_IN):
        name = call.args[0] if len(call.args) == 1 else None
        if called == "import_module" and isinstance(name, ast.Constant) and not str(name.value).startswith("."):
            yield str(name.value)
        elif _stage(module) not in MAY_HIDE:
            yield f"hidden.{called}"
    elif (
        called in ("load", "build") and call.args and getattr(getattr(call.func, "value", None), "id", "") == "registry"
    ):
        kind = getattr(registry, str(getattr(call.args[0], "id", getattr(call.args[0], "attr", ""))), None)
        for entry in registry.ENTRIES.get(str(kind), {}).values():
            yield entry.target.replace(":", ".")


def _reason_against(module: str, imported: str) -> str | None:
    stage = _stage(module)
    top, _, rest = imported.partition(".")
    if top == "hidden":
        return f"{rest} hides what is imported"
    if top == "reproduction":
        return "the reproduction is no part of the package"
    if top in WITHOUT_HEAVY_LIBRARIES.get(stage, ()):
        return f"{stage} does without {top}"
    if top != PACKAGE or stage == "__init__":
        return None
    wanted = rest.partition(".")[0]
    if any(module == f"{PACKAGE}.{user}" and rest.startswith(used) for user, used in ALLOWED):
        return None
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
        ("graph.files", "from bmpaudit.datasets import load", "datasets comes after graph"),
        ("graph.files", "import bmpaudit.samplers.builtin", "samplers comes after graph"),
        ("graph.files", "from bmpaudit import samplers", "samplers comes after graph"),
        ("graph.files", "from .. import samplers", "samplers comes after graph"),
        ("graph.files", "from ..samplers.builtin import Uniform", "samplers comes after graph"),
        ("graph.__init__", "from ..samplers import Uniform", "samplers comes after graph"),
        ("datasets.catalog", "def f():\n    from bmpaudit.cli import main", "cli comes after datasets"),
        (
            "datasets.catalog",
            "if TYPE_CHECKING:\n    from bmpaudit.samplers import Sampler",
            "samplers comes after datasets",
        ),
        ("datasets.catalog", "importlib.import_module('bmpaudit.samplers')", "samplers comes after datasets"),
        (
            "datasets.catalog",
            "importlib.import_module('.samplers', 'bmpaudit')",
            "import_module hides what is imported",
        ),
        ("datasets.catalog", "importlib.import_module(f'bmpaudit.{name}')", "import_module hides what is imported"),
        ("datasets.catalog", "eval('__im' + 'port__')", "eval hides what is imported"),
        ("datasets.catalog", "name = 'bmpaudit.samplers'\n__import__(name)", "__import__ hides what is imported"),
        ("estimation.posterior", "import_module(DRAWING)", "import_module hides what is imported"),
        ("estimation.posterior", "exec('import torch')", "exec hides what is imported"),
        ("graph.files", "registry.build(SAMPLER, 'uniform')", "samplers comes after graph"),
        ("attack.rules", "registry.load(registry.DEFINITION, name)", "estimation comes after attack"),
        ("util.errors", "import bmpaudit.graph", "graph comes after util"),
        ("auditing.result", "from bmpaudit.report import page", "report comes after auditing"),
        ("auditing.pipeline", "from bmpaudit.sweeps import sweep", "sweeps comes after auditing"),
        ("auditing.pipeline", "from reproduction import workflow", "the reproduction is no part of the package"),
        ("estimation.posterior", "from bmpaudit.auditing import audit", "auditing comes after estimation"),
        ("estimation.estimate", "from bmpaudit.report import figures", "report comes after estimation"),
        ("interfaces", "from bmpaudit.graph import Graph", "graph comes after interfaces"),
        ("auditing", "from bmpaudit.cli import main", "cli comes after auditing"),
        ("samplers.builtin", "from bmpaudit import Graph", "Graph has no place in the line"),
        ("samplers.builtin", "import bmpaudit", "bmpaudit has no place in the line"),
        ("graph.files", "from bmpaudit.helpers import f", "helpers has no place in the line"),
        ("helpers", "from bmpaudit.graph import Graph", "helpers has no place in the line"),
        ("privacy.region", "from bmpaudit.util.errors import InputError", "the theory imports nothing of ours"),
        ("privacy.region", "from ..graph import Graph", "the theory imports nothing of ours"),
        ("privacy.region", "from bmpaudit import Graph", "the theory imports nothing of ours"),
        ("privacy.region", "import matplotlib.pyplot as plt", "privacy does without matplotlib"),
        ("privacy.region", "def f():\n    import torch", "privacy does without torch"),
        (
            "privacy.region",
            "def f():\n    from torch_geometric.data import Data",
            "privacy does without torch_geometric",
        ),
        ("estimation.estimate", "try:\n    import zarr\nexcept ImportError:\n    pass", "estimation does without zarr"),
        ("samplers.builtin", "import torch", "samplers does without torch"),
    ],
)
def test_what_breaks_the_rule_is_found(module: str, source: str, reason: str) -> None:
    messages = violations({f"{PACKAGE}.{module}": source})
    assert messages
    assert all(message.startswith(f"{PACKAGE}.{module} imports ") for message in messages)
    assert all(message.endswith(reason) for message in messages)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cli", "from bmpaudit import auditing, datasets, privacy, samplers"),
        ("sweeps", "from bmpaudit.plan import AuditPlan\nfrom bmpaudit.report import figures"),
        ("estimation.posterior", "def plot():\n    from bmpaudit.report import figures"),
        ("interfaces", "if TYPE_CHECKING:\n    from bmpaudit.graph import Graph"),
        ("registry", "importlib.import_module(name)"),
        ("util.progress", "import_module('IPython.display').display"),
        ("shadow.engines.torch", "module.eval()"),
        ("plan", "registry.build(DEFINITION, name)"),
        ("samplers.draw", "from bmpaudit.util.streams import stream\nfrom bmpaudit import _native\nimport numpy"),
        ("samplers.draw", "from . import uniform\nfrom .uniform import Uniform\nfrom ..graph import Graph"),
        ("graph.__init__", "from .edges import EdgeCleaning"),
        ("util.streams", "from bmpaudit.util.errors import InputError"),
        ("graph.files", "from bmpaudit.privacy import Region"),
        ("util.errors", "from bmpaudit.privacy import Region"),
        ("privacy.region", "from bmpaudit.privacy.epsilon import EpsilonPair\nimport scipy.special"),
        ("privacy.region", "from .epsilon import EpsilonPair"),
        ("report.figures", "import matplotlib.pyplot"),
        ("__init__", "from bmpaudit import cli, privacy\nfrom bmpaudit.graph import Graph"),
        ("graph.files", '"""Docs.\n\n>>> from bmpaudit import cli\n"""'),
    ],
)
def test_what_keeps_the_rule_passes(module: str, source: str) -> None:
    assert violations({f"{PACKAGE}.{module}": source}) == []


def test_import_is_light() -> None:
    heavy = [
        "torch",
        "torch_geometric",
        "dask",
        "distributed",
        "arviz",
        "matplotlib",
        "zarr",
        "networkx",
        "pandas",
        "pydantic",
        "scipy",
    ]
    program = f"import sys, {PACKAGE}; print(*sorted(set({heavy}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
