"""One of several audits that are compared, and in which settings they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bmpaudit import registry
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.errors import InputError
from bmpaudit.estimation import Posterior
from bmpaudit.registry import DEFINITION

ABOVE = 0.5  # the upper half of a posterior
DOMINATED = 0.8

# Settings that leave the compared posterior as it is, or change nothing but chance.
BESIDE = frozenset(("seed", "permutations", "estimation.definitions", "estimation.level", "estimation.proof_level"))


@dataclass(frozen=True, eq=False)
class ComparedAudit:
    """One audit of a comparison.

    Attributes:
        label: What it is called: the name of its folder, or its title, made distinct.
        path: Its folder; empty for an audit that was never written.
        audit: The audit.
        variant: Which attack is compared.
        definition: Label of the definition.
        posterior: The compared posterior.
        parameter: Which ε of it.
    """

    label: str
    path: str
    audit: Audit
    variant: str
    definition: str
    posterior: Posterior
    parameter: str

    @property
    def title(self) -> str:
        """Graph, sampler and model in a few words."""
        return self.audit.title

    @property
    def fingerprint(self) -> str:
        """Tells it from audits whose answers may differ."""
        return str(self.audit.summary["fingerprint"])

    @property
    def graph_hash(self) -> str:
        """Hash of the graph's content."""
        return str(self.audit.summary["graph"]["content_hash"])

    @property
    def settings(self) -> dict[str, Any]:
        """The plan by dotted keys, such as `sampler.name`."""
        return _flat(self.audit.summary["plan"])

    @property
    def floor(self) -> float:
        """What the sampler alone gives away."""
        return float(self._of_parameter("floors"))

    @property
    def proven(self) -> float | None:
        """What the attack proves; None if nothing."""
        bound = self._of_parameter("proven")
        return None if bound is None else float(bound)

    def _of_parameter(self, what: str) -> Any:
        # From the summary: a definition of somebody's own cannot be asked without its code.
        return self.audit.summary["variants"][self.variant]["posteriors"][self.definition][what][self.parameter]

    @property
    def is_leakage_found(self) -> bool:
        """What the permutation test said."""
        return self.audit.attacks.permutation_test.is_leakage_found

    @property
    def nodes(self) -> pd.DataFrame:
        """The audit's table of nodes."""
        return self.audit.nodes

    @property
    def prior_share(self) -> float:
        """How much of the upper half of the posterior simply has the shape of the prior, from 0 to 1."""
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
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {show_value(part)}" for name, part in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def compared_audits(
    audits: Sequence[Audit | str | Path], definition: str, side: str | None = None, variant: str | None = None
) -> tuple[ComparedAudit, ...]:
    """Picks what is compared of each audit; see `compare`."""
    if len(audits) < 2:
        raise InputError(f"a comparison takes at least two audits, got {len(audits)}")
    paths = [None if isinstance(audit, Audit) else Path(audit) for audit in audits]
    loaded = [audit if isinstance(audit, Audit) else Audit.load(audit) for audit in audits]
    names = [audit.title if path is None else path.resolve().name for audit, path in zip(loaded, paths, strict=True)]
    if len(set(names)) < len(names):
        names = [name if path is None else str(path) for name, path in zip(names, paths, strict=True)]
    return tuple(
        _compared(label, path, audit, definition, side, variant)
        for label, path, audit in zip(_distinct(names), paths, loaded, strict=True)
    )


def _compared(
    label: str, path: Path | None, audit: Audit, definition: str, side: str | None, variant: str | None
) -> ComparedAudit:
    variants = audit.estimates.posteriors
    chosen = variant or audit.attacks.main
    if chosen not in variants:
        raise InputError(f"{label} has no attack {chosen!r}; it has {', '.join(variants)}")
    row = variants[chosen]
    name = next((key for key in row if definition in (key, registry.name_of(DEFINITION, row[key].definition))), None)
    if name is None:
        raise InputError(f"{definition} was not estimated for {chosen} in {label}; it has {', '.join(row)}")
    posterior = row[name]
    folder = "" if path is None else str(path)
    return ComparedAudit(label, folder, audit, chosen, name, posterior, parameter_of(posterior, name, side))


def parameter_of(posterior: Posterior, definition: str, side: str | None) -> str:
    """Which ε is compared: that of the side where a definition has both, else its only one.

    Raises:
        InputError: if the definition has no ε of that side.
    """
    names = [parameter.name for parameter in posterior.definition.parameters]
    if len(names) == 1 and (side is None or not names[0].startswith("epsilon_")):
        return names[0]
    wanted = f"epsilon_{side or 'right'}"
    if wanted not in names:
        raise InputError(f"{definition} is about the other side, got side={side!r}")
    return wanted


def differing_settings(audits: Sequence[ComparedAudit]) -> tuple[DifferingSetting, ...]:
    """The keys in which plans differ.

    The graph is compared by its content. What only one sampler or model has (`sampler.fan_out`) goes with its name and
    is no difference of its own.
    """
    tables = [{**audit.settings, "graph": audit.graph_hash} for audit in audits]
    differing = []
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
        differing.append(DifferingSetting(key, values, key in BESIDE))
    return tuple(differing)


def _distinct(names: list[str]) -> list[str]:
    return [
        name if names.count(name) == 1 else f"{name} ({names[: position + 1].count(name)})"
        for position, name in enumerate(names)
    ]


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": part for name, part in value.items()}
        else:
            flat[key] = value
    return flat
