"""Every built-in part by name, and parts of the user's own by `module:Name`.

From this table come the choices of the plan file and the command line, the comments of `bmpaudit plan init` and the
reference in the docs. A new part is a class and one line here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from bmpaudit.util.errors import InputError, UntrustedCodeError, did_you_mean

if TYPE_CHECKING:
    import pydantic

KINDS = ("sampler", "model", "engine", "release", "query", "statistic", "attack", "rule", "definition")
SAMPLER, MODEL, ENGINE, RELEASE, QUERY, STATISTIC, ATTACK, RULE, DEFINITION = KINDS


@dataclass(frozen=True)
class Entry:
    """A built-in part: where it is, and what it is in one line."""

    target: str
    help: str


def _entries(package: str, *rows: tuple[str, str, str]) -> dict[str, Entry]:
    prefix = f"bmpaudit.{package}." if package else "bmpaudit."
    return {name: Entry(prefix + target, about) for name, target, about in rows}


ENTRIES: Mapping[str, Mapping[str, Entry]] = {
    SAMPLER: _entries(
        "samplers",
        ("uniform", "builtin:Uniform", "a fixed number of nodes, all sets equally likely"),
        ("snowball", "builtin:Snowball", "neighbours of neighbours of a random seed node"),
        ("bernoulli", "builtin:Bernoulli", "each node independently"),
        ("stratified", "builtin:Stratified", "the same share of every class"),
        ("degree-weighted", "builtin:DegreeWeighted", "well-connected nodes more often"),
        ("random-walk", "builtin:RandomWalk", "nodes visited by short random walks (GraphSAINT)"),
    ),
    MODEL: _entries(
        "models",
        ("gcn", "gnn:GCN", "graph convolutional network"),
        ("gat", "gnn:GAT", "graph attention network"),
        ("sage", "gnn:SAGE", "GraphSAGE: mean or max of the neighbours, and the node itself"),
        ("gin", "gnn:GIN", "graph isomorphism network: sums, and a perceptron with batch normalisation"),
        ("sgc", "gnn:SGC", "simplified graph convolution: several hops, one weight"),
        ("appnp", "gnn:APPNP", "multilayer perceptron whose predictions are propagated"),
        ("mlp", "gnn:MLP", "multilayer perceptron, which sees no edges"),
        ("private-sgc", "private:PrivateSGC", "logistic regression on k hops with noise: ε-MDP by a proof"),
        ("dp-mlp", "private:DPMLP", "perceptron trained by DP-SGD: (ε, δ)-MDP by a proof"),
        ("dp-gcn", "private:DPGCN", "one-hop graph convolution trained by DP-SGD: (ε, δ)-MDP by a proof"),
        ("elsewhere", "own:TrainedElsewhere", "models trained outside of bmpaudit"),
    ),
    ENGINE: _entries(
        "shadow.engines",
        ("native", "native:NativeEngine", "built-in models in C++"),
        ("torch", "torch:TorchEngine", "built-in models and any nn.Module in PyTorch Geometric"),
        ("sklearn", "sklearn:SklearnEngine", "any scikit-learn classifier, which sees no edges"),
    ),
    RELEASE: _entries(
        "",
        ("clean", "releases:Clean", "the model as it was trained"),
        ("noisy", "releases:NoisyLastLayer", "Gaussian noise on the parameters of the last layer"),
        ("noisy-outputs", "releases:NoisyOutputs", "Gaussian noise on the logits, anew for each answer"),
        ("rounded", "releases:Rounded", "probabilities rounded to a few decimal places"),
        ("temperature", "releases:Temperature", "logits divided by a temperature"),
        ("top", "releases:TopClasses", "probabilities of the likeliest classes only"),
        ("embeddings", "releases:Embeddings", "activations of the last hidden layer, read by a linear probe"),
        ("ensemble", "releases:Ensemble", "mean probabilities of several models trained on the same sample"),
        ("label-only", "releases:LabelOnly", "the predicted class and nothing else"),
    ),
    QUERY: _entries(
        "",
        ("full", "releases:FullEdges", "asked with all edges of the graph"),
        ("none", "releases:NoEdges", "asked without edges, each node by itself"),
    ),
    STATISTIC: _entries("", ("margin", "releases:label_margin", "true label's logit minus the others' log-sum-exp")),
    ATTACK: _entries(
        "attack",
        ("gaussian", "gaussian:Gaussian", "a normal fit per node and hypothesis (Algorithm 2)"),
        ("student", "student:Student", "all queries and the neighbours, a Student t fit with a learnt prior"),
        ("rows", "rows:RowAttack", "what the model says of every single feature, besides all that student takes"),
        ("rmia", "other_attacks:RMIA", "confidence ratio against those of other nodes (Zarifzadeh et al. 2024)"),
        (
            "lira-offline",
            "other_attacks:OfflineLiRA",
            "how unusual an answer is without the node (Carlini et al. 2022)",
        ),
        ("right-or-wrong", "other_attacks:RightOrWrong", "how often other models are as right; for released labels"),
        ("base", "other_attacks:Base", "confidence against its mean over models (Lassila et al. 2025)"),
    ),
    RULE: _entries(
        "attack",
        ("strong", "rules:Strong", "weighs the likelihood ratio with the prior odds"),
        ("weak", "rules:Weak", "goes by the likelihood ratio alone"),
    ),
    DEFINITION: _entries(
        "estimation",
        ("bmp", "definitions:BMP", "ε_L and ε_R jointly"),
        ("bmp-r", "definitions:BMPRight", "ε_R: certainty that a node was in"),
        ("bmp-l", "definitions:BMPLeft", "ε_L: certainty that a node was not in"),
        ("bmp-s", "definitions:BMPSymmetric", "one ε with ε_L = ε_R"),
        ("mp", "definitions:MP", "how far the odds move, whatever the prior"),
    ),
}
"""By kind, then by name."""

WRAPPERS = {MODEL: "bmpaudit.models.own:as_model"}
"""By kind, the function that makes a part of a plain function or class, called with it and the settings."""


@dataclass(frozen=True)
class UntrustedPart:
    """A part named by code that has not been run: it stands for itself in titles and files, and cannot be used."""

    kind: str  # one of `KINDS`
    target: str  # `module:Name`
    settings: Mapping[str, Any] = field(default_factory=dict)  # its fields, as the file has them

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise untrusted(self.kind, self.target)


def untrusted(what: str, target: str) -> UntrustedCodeError:
    """The error that says which code would have to run."""
    module = target.partition(":")[0]
    return UntrustedCodeError(
        f"the {what} {target!r} is code that a file names: --trust-code runs the module {module!r}; do so only if you "
        "trust whoever wrote the file"
    )


def is_code(name: str) -> bool:
    """Whether a name reads as `module:Name`.

    >>> is_code("my_samplers:Hubs"), is_code("uniform"), is_code("C:/graphs")
    (True, False, False)
    """
    module, colon, attribute = name.partition(":")
    # What is defined inside a function has a name too, which says what it was, though nobody can import it.
    names = [part for part in attribute.split(".") if part not in ("<locals>", "<lambda>")]
    return bool(colon) and bool(attribute) and all(part.isidentifier() for part in (*module.split("."), *names))


def import_target(target: str, *, is_built_in: bool = False) -> Any:
    """What `module:Name` names, looked for as Python does and in the current folder; `InputError` says why not.

    For what is built in, the current folder is not searched: a file there that is named like a library, such as
    `torch.py`, must not run in its place.
    """
    module_name, _, attribute = target.partition(":")
    here = str(Path.cwd())
    is_new = here not in sys.path and not is_built_in
    if is_new:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as failure:  # the user's code may raise anything
        raise InputError(f"{target}: {type(failure).__name__}: {failure}") from failure
    finally:
        if is_new:
            sys.path.remove(here)
    return found


def load(kind: str, name: str) -> Any:
    """The class, function or object of a built-in name or of `module:Name`, which is imported."""
    entry = ENTRIES[kind].get(name)
    if entry is not None:
        return import_target(entry.target, is_built_in=True)
    if is_code(name):
        return import_target(name)
    raise unknown_name(kind, name)


def unknown_name(kind: str, name: str) -> InputError:
    """The error that lists the choices of a kind, and says which of them may have been meant."""
    return InputError(
        f"{kind} must be one of {', '.join(ENTRIES[kind])}, or module:Name of your own, got {name!r}"
        f"{did_you_mean(name, ENTRIES[kind])}"
    )


def build(kind: str, given: Any, *, trust_code: bool = True) -> Any:
    """A part from `"snowball"`, `{"name": "snowball", "fan_out": 3}`, `"my_module:MySampler"`, or from itself.

    Without `trust_code` nothing is imported that is not built in: an `UntrustedPart` takes the place of `module:Name`.
    """
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        return import_target(WRAPPERS[kind], is_built_in=True)(given) if kind in WRAPPERS else given
    settings = dict(given)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"{kind}.name must be one of {', '.join(ENTRIES[kind])}, or module:Name, got {name!r}")
    if name not in ENTRIES[kind] and is_code(name) and not trust_code:
        return UntrustedPart(kind, name, settings)
    target = load(kind, name)
    if kind in WRAPPERS and not dataclasses.is_dataclass(target):
        return import_target(WRAPPERS[kind], is_built_in=True)(target, **settings)
    if not isinstance(target, type):  # a function, or an object that is ready
        if settings:
            raise InputError(f"{kind} {name} is not a class and takes no settings, got {', '.join(settings)}")
        return target
    return make(target, settings, kind)


def name_of(kind: str, part: Any) -> str:
    """The name under which `build` finds a part's class again: a built-in name, or `module:Name`."""
    if isinstance(part, UntrustedPart):
        return part.target
    if isinstance(part, str):
        return part
    if hasattr(part, "registry_table"):
        return str(part.registry_table()["name"])
    target = part if inspect.isroutine(part) or isinstance(part, type) else type(part)
    where = f"{target.__module__}:{target.__qualname__}"
    return next((name for name, entry in ENTRIES[kind].items() if entry.target == where), where)


def table_of(kind: str, part: Any) -> dict[str, Any]:
    """`name` and settings of a part, from which `build` makes it again; a part may have a `registry_table()` itself."""
    if isinstance(part, UntrustedPart):
        return {"name": part.target, **part.settings}
    if hasattr(part, "registry_table"):
        return dict(part.registry_table())
    return {"name": name_of(kind, part), **settings_of(part)}


def settings_of(part: Any) -> dict[str, Any]:
    """The fields of a dataclass as a file can hold them, those that are None left out; nothing for other parts."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return {}
    values = {each.name: getattr(part, each.name) for each in dataclasses.fields(part) if each.init}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v is not None}


def label(kind: str, part: Any) -> str:
    """A short name for file names and legends: `noisy`, or `noisy-0.5` where a setting is not the default.

    >>> from bmpaudit.releases import NoisyLastLayer
    >>> label(RELEASE, NoisyLastLayer()), label(RELEASE, NoisyLastLayer(0.5))
    ('noisy', 'noisy-0.5')
    """
    settings = table_of(kind, part)
    name = settings.pop("name")
    if name in ENTRIES[kind] and settings:  # the defaults of a user's own part are not known without running its code
        defaults = {each.name: each.default for each in dataclasses.fields(part)}
        settings = {key: value for key, value in settings.items() if getattr(part, key) != defaults[key]}
    name = name.rpartition(":")[2].rpartition(".")[2].replace("_", "-")
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join([name, *map(str, settings.values())]).lower())


def title(part: Any) -> str:
    """What to call a part in a title: what it says of itself, else the name of its class or function."""
    if isinstance(part, UntrustedPart):
        return title_of_table(table_of(part.kind, part))
    if inspect.isroutine(part) or isinstance(part, type):
        return str(part.__qualname__)
    speaks_for_itself = any("__str__" in vars(cls) for cls in type(part).__mro__[:-1])
    return str(part) if speaks_for_itself else type(part).__qualname__


def title_of_table(table: Mapping[str, Any]) -> str:
    """What to call a part by its name and settings: a pipeline of scikit-learn by its steps, others by their name.

    >>> title_of_table({"name": "sklearn.pipeline:Pipeline", "steps": [["a", {"name": "m:A"}], ["b", {"name": "m:B"}]]})
    'A + B'
    """
    steps = [step[-1] for step in table.get("steps", ()) if isinstance(step, list) and isinstance(step[-1], Mapping)]
    names = [str(each.get("name", "")) for each in steps] or [str(table["name"])]
    return " + ".join(name.rpartition(":")[2] for name in names)


def field_help(part: type) -> dict[str, str]:
    """What the section "Attributes" of a class's docstring says of each field, as one line without a full stop.

    Of a field that the class does not mention, its base classes do.
    """
    rows: dict[str, str] = {}
    for cls in reversed(part.__mro__):
        section = re.search(r"^Attributes:\n((?:[ ]+.*\n?|\n)+)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE)
        lines = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", section[1], re.MULTILINE) if section else []
        rows |= {name: " ".join(about.split()).rstrip(".") for name, about in lines}
    return rows


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a `Literal`, else nothing."""
    found = get_args(annotation)
    return found if found and all(isinstance(value, str) for value in found) else ()


STRICT: pydantic.ConfigDict = {"extra": "forbid", "frozen": True, "strict": True, "arbitrary_types_allowed": True}


def make(kind: type[Any], values: Mapping[str, Any], section: str, also: tuple[str, ...] = ("name",)) -> Any:
    """An object of a dataclass from the values of a file, in which lists stand for tuples.

    `InputError` names the key of the section, what is allowed (`also` beside the fields) and the value.
    """
    if not dataclasses.is_dataclass(kind):
        if values:
            raise InputError(f"{section} {kind.__qualname__} is not a dataclass and takes no settings")
        return kind()
    import pydantic

    wanted: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for each in (each for each in dataclasses.fields(kind) if each.init):
        default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
        wanted[each.name] = (hints[each.name], ... if default is dataclasses.MISSING else default)
    model = pydantic.create_model("Settings", __config__=STRICT, **wanted)
    # TOML has lists where we have tuples.
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        checked = dict(model(**plain))
    except pydantic.ValidationError as wrong:
        raise InputError(explain(section, wrong, [*also, *wanted])) from None
    try:
        return kind(**checked)
    except InputError as wrong:
        raise InputError(f"[{section}] {wrong}") from None


def unknown_key(section: str, name: str, allowed: Sequence[str]) -> str:
    """What to say of a key that a section does not have; without a section, of one at the top of a file."""
    key, where = (f"{section}.{name}", f"in [{section}]") if section else (name, "here")
    return f"unknown key {key}; allowed {where}: {', '.join(allowed)}{did_you_mean(name, allowed)}"


def explain(section: str, wrong: pydantic.ValidationError, allowed: Sequence[str]) -> str:
    """The first thing that pydantic found wrong, in one line."""
    # An unknown key comes first: it may be a misspelt one, which is then missing.
    first = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
    key = ".".join([*([section] if section else []), str(first["loc"][0])])
    if first["type"] == "extra_forbidden":
        return unknown_key(section, str(first["loc"][0]), allowed)
    if first["type"] == "missing":
        return f"{key} is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    message = first["msg"].removeprefix("Input should be ").replace("a valid ", "a ").replace("a integer", "an integer")
    return f"{key} must be {message.replace('a tuple', 'a list')}, got {first['input']!r}"
