"""A posterior as one file, and back (docs/estimation.md, "The file")."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge, Len

from bmpaudit import registry
from bmpaudit.attack.counts import COLUMNS, ErrorCounts
from bmpaudit.estimation.definitions import Parameter, ProvenEpsilon, StoredDefinition, parameter_names
from bmpaudit.estimation.density import PiecewiseDensity
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import LogDensity, NormalPrior, StrengthPrior, likelihood_of, upper_end
from bmpaudit.estimation.mhaar import MhaarRun, MhaarSettings, estimated_names
from bmpaudit.estimation.posterior import DrawsMarginal, Marginal, Posterior
from bmpaudit.interfaces import Definition
from bmpaudit.io.codec import Number, Record, decode, encode
from bmpaudit.io.readers import Arrays, checked, damage_in, parse_json, read_archive
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Floats

PRIOR_POINTS = 4_001
JOINT_ARRAYS = ("first", "second", "first_weight", "second_weight", "values")
ABOUT, WHAT = "about", "a posterior"


@dataclass(frozen=True)
class _Proven(Record):
    bound: Number | None
    floor: Number
    node: int | str | None
    term: str | None


@dataclass(frozen=True)
class _About(Record):
    """What a file says beside its arrays."""

    format: Literal[2]
    definition: dict[str, Any]
    definition_parameters: Annotated[tuple[Parameter, ...], Len(1, 2)]
    uses_prior: bool
    method: Literal["exact", "mhaar"]
    status: str
    parameters: tuple[str, ...]
    lows: dict[str, Number]
    strength: float | tuple[float, float]
    prior: NormalPrior | None
    prior_draws: Annotated[int, Ge(0)]
    chains: MhaarSettings | None
    proven: dict[str, _Proven]
    log_mass: float | None = None

    @property
    def is_built_in(self) -> bool:
        """Whether the definition comes with this package."""
        return self.definition["name"] in registry.ENTRIES[registry.DEFINITION]


def save_posterior(posterior: Posterior, path: Path) -> None:
    """See `Posterior.save`."""
    if path.suffix != ".npz":
        raise InputError(f"{path}: the name of a posterior's file must end in .npz")
    arrays: Arrays = {f"counts_{name}": getattr(posterior.counts, name) for name in COLUMNS}
    arrays["is_used"] = posterior.is_used
    definition, strength, prior, run = posterior.definition, posterior.strength, posterior.prior, posterior.run
    table, proven = registry.table_of(registry.DEFINITION, definition), dict[str, _Proven]()
    if table["name"] not in registry.ENTRIES[registry.DEFINITION]:
        # Whoever reads the file may not have the code that tells what is proven.
        for name in posterior.parameter_names:
            what = posterior.proven(name)
            proven[name] = _Proven(what.bound, what.floor, what.node, what.term)
            arrays[f"proven_{name}"] = what.per_node
    if not isinstance(prior, NormalPrior):
        low = min(posterior.lows.values())
        points = np.linspace(low, upper_end(prior, low), PRIOR_POINTS)
        arrays |= {"prior_points": points, "prior_log_density": prior(points)}
    if run is not None:
        arrays |= {"draws": run.draws, "acceptance_rate": run.acceptance_rate}
    log_mass = None
    for name, marginal in posterior.marginals.items():
        if isinstance(marginal, PiecewiseDensity):
            arrays |= {f"edges_{name}": marginal.edges, f"coefficients_{name}": marginal.coefficients}
            log_mass = marginal.log_mass
    if posterior.joint is not None:
        arrays |= {f"joint_{name}": getattr(posterior.joint, name) for name in JOINT_ARRAYS}
    about = _About(
        format=2,
        definition=table,
        definition_parameters=tuple(definition.parameters),
        uses_prior=definition.uses_prior,
        method="exact" if run is None else "mhaar",
        status=posterior.status,
        parameters=tuple(posterior.marginals),
        lows=dict(posterior.lows),
        strength=(strength.a, strength.b) if isinstance(strength, StrengthPrior) else strength,
        prior=prior if isinstance(prior, NormalPrior) else None,
        prior_draws=posterior.prior_draws,
        chains=None if run is None else run.settings,
        proven=proven,
        log_mass=log_mass,
    )
    values = encode(about)
    if log_mass is None:
        del values["log_mass"]
    with atomic_write(path) as temporary:
        arrays[ABOUT] = np.array(json.dumps(values))
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


def load_posterior(path: Path, trust_code: bool = False) -> Posterior:
    """See `Posterior.load`."""
    arrays = read_archive(path, required=[ABOUT])
    with damage_in(path, WHAT):
        values = parse_json(str(arrays[ABOUT]))
        if values["format"] != 2:
            raise DataError(f"{path}: a posterior of format {values['format']}, this version reads 2")
        about = decode(_About, values)
        definition: Definition = _stored_definition(about, arrays)
    if about.is_built_in or trust_code:
        with damage_in(path, WHAT) if about.is_built_in else nullcontext():  # what the user's own code raises is none
            definition = registry.build(registry.DEFINITION, about.definition)
        names = [parameter.name for parameter in about.definition_parameters]
        if list(parameter_names(definition)) != names:
            raise DataError(
                f"{path}: its definition has the parameters {', '.join(names)}, the code of "
                f"{about.definition['name']} has {', '.join(parameter_names(definition))}"
            )
    with damage_in(path, WHAT):
        return _posterior(definition, about, arrays)


def _stored_definition(about: _About, arrays: Arrays) -> StoredDefinition:
    settings = dict(about.definition)
    target = settings.pop("name")
    if not isinstance(target, str):
        raise ValueError(f"definition.name must be text, got {target!r}")
    proven = {
        name: ProvenEpsilon(**vars(values), per_node=checked(arrays, f"proven_{name}", "f", None))
        for name, values in about.proven.items()
    }
    return StoredDefinition(
        registry.DEFINITION, target, settings, about.definition_parameters, about.uses_prior, proven
    )


def _posterior(definition: Definition, about: _About, arrays: Arrays) -> Posterior:
    counts = ErrorCounts.from_arrays(**{name: arrays[f"counts_{name}"] for name in COLUMNS})
    is_used = checked(arrays, "is_used", "b", counts.num_nodes)
    strength = StrengthPrior(*about.strength) if isinstance(about.strength, tuple) else about.strength
    prior: LogDensity | None = about.prior
    if prior is None:
        points = _ascending(arrays, "prior_points")
        values = checked(arrays, "prior_log_density", "f", len(points))
        prior = cast(LogDensity, partial(np.interp, xp=points, fp=values, left=-np.inf, right=-np.inf))
    names = estimated_names(definition, strength, about.chains.tau_variance if about.chains else None)
    if about.parameters != names:
        raise ValueError(f"parameters must be {', '.join(names)}, got {', '.join(about.parameters)}")
    marginals: dict[str, Marginal] = {}
    run, joint = None, None
    if about.chains is not None:
        if about.prior is None:
            raise ValueError("chains need a normal prior")
        num_chains, num_kept = about.chains.num_chains, about.chains.num_iterations - about.chains.burn_in
        draws = checked(arrays, "draws", "f", num_chains, num_kept, len(names))
        run = MhaarRun(draws, checked(arrays, "acceptance_rate", "f", num_chains), about.chains, names)
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in names}
    else:
        densities = [_density(name, about, arrays) for name in names]
        marginals = dict(zip(names, densities, strict=True))
        if len(names) == 2:
            x, y = (_ascending(arrays, f"joint_{name}") for name in ("first", "second"))
            joint = JointDensity(
                x,
                y,
                checked(arrays, "joint_first_weight", "f", len(x)),
                checked(arrays, "joint_second_weight", "f", len(y)),
                checked(arrays, "joint_values", "f", len(x), len(y)),
                *densities,
            )
    return Posterior(
        definition=definition,
        marginals=marginals,
        counts=counts,
        is_used=is_used,
        likelihood=likelihood_of(counts, definition, is_used),
        prior=prior,
        strength=strength,
        lows={name: float(about.lows[name]) for name in parameter_names(definition)},
        status=about.status,
        prior_draws=about.prior_draws,
        joint=joint,
        run=run,
    )


def _density(name: str, about: _About, arrays: Arrays) -> PiecewiseDensity:
    edges = _ascending(arrays, f"edges_{name}")
    coefficients = checked(arrays, f"coefficients_{name}", "f", len(edges) - 1, None)
    if not coefficients.size or not np.isfinite(coefficients).all():
        raise ValueError(f"coefficients_{name} must be finite numbers, at least one for each panel")
    if about.log_mass is None:
        raise ValueError("log_mass is missing")
    return PiecewiseDensity(edges, coefficients, about.log_mass)


def _ascending(arrays: Arrays, name: str) -> Floats:
    values = checked(arrays, name, "f", None)
    if len(values) < 2 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise ValueError(f"{name} must be at least two finite numbers in ascending order")
    return values
