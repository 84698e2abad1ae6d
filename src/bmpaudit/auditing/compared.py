"""One of several audits that are compared, and in which settings they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit import registry
from bmpaudit.auditing.folder import AuditFolder
from bmpaudit.auditing.summary import FORMAT
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation import Posterior

if TYPE_CHECKING:
    import pandas as pd

ABOVE = 0.5  # of the posterior: the upper half
DOMINATED = 0.8

# Settings that leave the compared posterior as it is, or change nothing but chance.
BESIDE = frozenset(
    ("seed", "attack.null_permutations", "estimation.definitions", "estimation.level", "estimation.proof_level")
)


@dataclass(frozen=True, eq=False)
class ComparedAudit:
    """What a comparison needs of an audit.

    Attributes:
        label: What it is called: its folder's name, as far as these are distinct.
        path: Its folder.
        title: Graph, sampler and model in a few words.
        fingerprint: Tells it from audits whose answers may differ.
        graph_hash: Of the graph's content.
        settings: The plan by dotted keys, such as `sampler.name`.
        variant: Which attack.
        posterior: Of the compared definition.
        parameter: Which ε of it.
        floor: What the sampler alone gives away.
        proven: What the attack proves; None with too few models.
        leakage_found: What the null control said.
        nodes: The audit's table of nodes.
    """

    label: str
    path: Path
    title: str
    fingerprint: str
    graph_hash: str
    settings: Mapping[str, Any]
    variant: str
    posterior: Posterior
    parameter: str
    floor: float
    proven: float | None
    leakage_found: bool
    nodes: pd.DataFrame

    @property
    def prior_share(self) -> float:
        """How much of the upper half of the posterior has simply the shape of the prior, from 0 to 1."""
        return self.posterior.tail_prior_share(self.parameter, above=ABOVE)

    @property
    def is_prior_dominated(self) -> bool:
        """Whether the data say how large ε is at least, and the prior how large at most."""
        return self.prior_share > DOMINATED


@dataclass(frozen=True)
class DifferingSetting:
    """A key of the plan that is not the same in all audits.

    Attributes:
        key: Such as `sampler.name`.
        values: In the order of the audits; None where a plan has no such key.
        is_beside: Whether it leaves the compared posterior as it is, but for chance.
    """

    key: str
    values: tuple[Any, ...]
    is_beside: bool

    def __str__(self) -> str:
        return f"{self.key} ({', '.join(map(show_value, self.values))})"


def show_value(value: Any) -> str:
    """A setting as a plan file has it, without quotes.

    >>> show_value(["full", "none"]), show_value(True), show_value(0.25), show_value(None)
    ('full none', 'true', '0.25', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, (list, tuple)):
        return " ".join(map(show_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_compared(
    folders: Sequence[str | Path], definition: str, side: str | None = None, variant: str | None = None
) -> tuple[ComparedAudit, ...]:
    """Reads finished audits; see `compare_audits`."""
    if len(folders) < 2:
        raise InputError(f"a comparison takes at least two folders of audits, got {len(folders)}")
    paths = [Path(folder) for folder in folders]
    parameter = parameter_of(definition, side)
    return tuple(
        _read(label, path, definition, parameter, variant) for label, path in zip(_labels(paths), paths, strict=True)
    )


def parameter_of(definition: str, side: str | None) -> str:
    """Which ε of a definition is compared: with two of them that of the side, else the only one.

    Raises:
        InputError: if the definition has no ε of that side.
    """
    names = tuple(each.name for each in registry.build(registry.DEFINITION, definition).parameters)
    if names == ("epsilon",):
        return "epsilon"
    wanted = f"epsilon_{side or ('right' if 'epsilon_right' in names else 'left')}"
    if wanted not in names:
        raise InputError(f"{definition} is about the other side, got side={side!r}")
    return wanted


def differing_settings(audits: Sequence[ComparedAudit]) -> tuple[DifferingSetting, ...]:
    """The keys in which plans differ.

    The graph is compared by its content. What only one sampler or model has (`sampler.fan_out`) goes with its name and
    is no difference of its own.
    """
    tables = [{**audit.settings, "graph": audit.graph_hash} for audit in audits]
    found = []
    for key in dict.fromkeys(key for table in tables for key in table):
        values = tuple(table.get(key) for table in tables)
        if all(value == values[0] for value in values):
            continue
        section = key.split(".")[0]
        have_it = {json.dumps(table.get(f"{section}.name")) for table in tables if key in table}
        lack_it = {json.dumps(table.get(f"{section}.name")) for table in tables if key not in table}
        present = [value for value in values if value is not None]
        if lack_it and not have_it & lack_it and all(value == present[0] for value in present):
            continue
        if key == "graph":
            values = tuple(audit.settings.get("graph") or audit.graph_hash[:8] for audit in audits)
        found.append(DifferingSetting(key, values, key in BESIDE))
    return tuple(found)


def _labels(paths: Sequence[Path]) -> list[str]:
    names = [path.resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: position + 1].count(name)})"
        for position, name in enumerate(names)
    ]


def _read(label: str, path: Path, definition: str, parameter: str, variant: str | None) -> ComparedAudit:
    folder = AuditFolder(path)
    if not folder.plan_path.exists():
        raise DataError(f"{path} is no folder of an audit: it has no plan.toml")
    told = folder.read_summary()
    if told.get("format") != FORMAT:
        raise DataError(f"{path}: a summary of format {told.get('format')}; this version reads {FORMAT}")
    try:
        chosen = next(iter(told["variants"])) if variant is None else variant
        if chosen not in told["variants"]:
            raise InputError(f"{path} has no attack {chosen!r}; there: {', '.join(told['variants'])}")
        estimated = told["variants"][chosen]["posteriors"]
        if definition not in estimated:
            raise InputError(f"{definition} was not estimated for {chosen} in {path}; there: {', '.join(estimated)}")
        posterior = Posterior.load(folder.posterior_path(chosen, definition))
        floor = posterior.support_low(parameter)
        return ComparedAudit(
            label=label,
            path=path,
            title=str(told["title"]),
            fingerprint=str(told["fingerprint"]),
            graph_hash=str(told["graph"]["content_hash"]),
            settings=_flat(told["plan"]),
            variant=chosen,
            posterior=posterior,
            parameter=parameter,
            floor=floor,
            proven=_proven(told["variants"][chosen]["proven"], definition, parameter),
            leakage_found=bool(told["null_control"]["leakage_found"]),
            nodes=folder.read_nodes(),
        )
    except (KeyError, TypeError, AttributeError, StopIteration) as damage:
        raise DataError(f"{path / 'summary.json'}: damaged: {damage!r}") from None


def _proven(bounds: Mapping[str, Any] | None, definition: str, parameter: str) -> float | None:
    if bounds is None:
        return None
    sides = {name: None if bounds[name] is None else float(bounds[name]) for name in ("left", "right", "mp")}
    if not registry.build(registry.DEFINITION, definition).uses_prior:
        return sides["mp"]
    wanted = {"epsilon_right": ("right",), "epsilon_left": ("left",), "epsilon": ("left", "right")}[parameter]
    return max((value for side in wanted if (value := sides[side]) is not None), default=None)


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{name}": part for name, part in value.items()}
        else:
            found[key] = value
    return found
