"""A posterior as one file, and back (docs/estimation.md, "The file")."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev

from bmpaudit import registry
from bmpaudit.attack.counts import COLUMNS, ErrorCounts
from bmpaudit.estimation.definitions import Parameter, ProvenEpsilon, StoredDefinition, parameter_names
from bmpaudit.estimation.density import PiecewiseDensity
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import (
    LogDensity,
    NormalPrior,
    StrengthPrior,
    TabulatedPrior,
    likelihood_of,
    upper_end,
)
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun, MhaarSettings, diagnose
from bmpaudit.estimation.posterior import DrawsMarginal, Marginal, Posterior
from bmpaudit.interfaces import Definition
from bmpaudit.io.readers import Arrays, check_json, checked, damage_in, parse_json, read_archive, record
from bmpaudit.privacy import prior_floor
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Floats, plain

FORMAT = 2
PRIOR_POINTS = 4_001
JOINT_ARRAYS = ("first", "second", "first_weight", "second_weight", "values")
CHAIN_SETTINGS = ("num_iterations", "burn_in", "num_auxiliary", "num_chains", "seed")
ABOUT, WHAT = "about", "a posterior"

_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
_ANY_NUMBER = {"anyOf": [_NUMBER, {"enum": ["inf", "-inf"]}]}
_PARAMETER = record(name=_TEXT, symbol=_TEXT, latex=_TEXT, meaning=_TEXT)
_NAMES = {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True}
SCHEMA = {
    "type": "object",
    "properties": {
        "definition": {"type": "object", "properties": {"name": _TEXT}, "required": ["name"]},
        "definition_parameters": {"type": "array", "items": _PARAMETER, "minItems": 1, "maxItems": 2},
        "uses_prior": {"type": "boolean"},
        "method": {"enum": ["exact", "mhaar"]},
        "status": _TEXT,
        "parameters": _NAMES,
        "lows": {"type": "object", "additionalProperties": _ANY_NUMBER},
        "strength": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}]},
        "prior": {"anyOf": [{"type": "null"}, record(mean=_NUMBER, variance=_NUMBER)]},
        "prior_draws": _WHOLE,
        "chains": {
            "anyOf": [
                {"type": "null"},
                record(**dict.fromkeys(CHAIN_SETTINGS, _WHOLE), tau_variance={"type": ["number", "null"]}),
            ]
        },
        "proven": {
            "type": "object",
            "additionalProperties": record(
                bound={"anyOf": [{"type": "null"}, _ANY_NUMBER]},
                floor=_ANY_NUMBER,
                node={"type": ["integer", "string", "null"]},
                term={"type": ["string", "null"]},
            ),
        },
        "log_mass": _NUMBER,
    },
    "required": [
        *("definition", "definition_parameters", "uses_prior", "method", "status", "parameters", "lows", "strength"),
        *("prior", "prior_draws", "chains", "proven"),
    ],
}
"""Of what a file says beside its arrays."""


def save_posterior(posterior: Posterior, path: Path) -> None:
    """See `Posterior.save`."""
    if path.suffix != ".npz":
        raise InputError(f"{path}: the name of a posterior's file must end in .npz")
    strength = posterior.strength
    about: dict[str, Any] = {
        "format": FORMAT,
        "definition": registry.table_of(registry.DEFINITION, posterior.definition),
        "definition_parameters": [asdict(parameter) for parameter in posterior.definition.parameters],
        "uses_prior": posterior.definition.uses_prior,
        "method": posterior.method,
        "status": posterior.status,
        "parameters": list(posterior.marginals),
        "lows": dict(posterior.lows),
        "strength": [strength.a, strength.b] if isinstance(strength, StrengthPrior) else strength,
        "prior": None,
        "prior_draws": posterior.prior_draws,
        "chains": None,
        "proven": {},
    }
    arrays: Arrays = {f"counts_{name}": getattr(posterior.counts, name) for name in COLUMNS}
    arrays["is_used"] = posterior.is_used
    if not _is_built_in(about):  # whoever reads the file may not have the code that tells what is proven
        for name in posterior.parameter_names:
            proven = posterior.proven(name)
            about["proven"][name] = {key: getattr(proven, key) for key in ("bound", "floor", "node", "term")}
            arrays[f"proven_{name}"] = proven.per_node
    if isinstance(posterior.prior, NormalPrior):
        about["prior"] = {"mean": posterior.prior.mean, "variance": posterior.prior.variance}
    else:
        points = _prior_points(posterior)
        arrays |= {"prior_points": points, "prior_log_density": posterior.prior(points)}
    if posterior.run is not None:
        settings = posterior.run.settings
        about["chains"] = {name: getattr(settings, name) for name in CHAIN_SETTINGS}
        about["chains"]["tau_variance"] = None if settings.correlated is None else settings.correlated.tau_variance
        arrays |= {"draws": posterior.run.draws, "acceptance_rate": posterior.run.acceptance_rate}
    for name, marginal in posterior.marginals.items():
        if isinstance(marginal, PiecewiseDensity):
            arrays[f"edges_{name}"] = marginal.edges
            # Polynomials of lower degree end in zeros.
            coefficients = zip_longest(*(panel.coef for panel in marginal.panels), fillvalue=0.0)
            arrays[f"coefficients_{name}"] = np.array(list(coefficients)).T
            about["log_mass"] = marginal.log_mass
    if posterior.joint is not None:
        arrays |= {f"joint_{name}": getattr(posterior.joint, name) for name in JOINT_ARRAYS}
    with atomic_write(path) as temporary:
        arrays[ABOUT] = np.array(json.dumps(plain(about)))
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


def load_posterior(path: Path, trust_code: bool = False) -> Posterior:
    """See `Posterior.load`."""
    arrays = read_archive(path, required=[ABOUT])
    with damage_in(path, WHAT):
        about = parse_json(str(arrays[ABOUT]), {"type": "object", "required": ["format"]})
        if about["format"] != FORMAT:
            raise DataError(f"{path}: a posterior of format {about['format']}, this version reads {FORMAT}")
        check_json(about, SCHEMA)
        definition: Definition = _stored_definition(about, arrays)
    if _is_built_in(about) or trust_code:
        with damage_in(path, WHAT) if _is_built_in(about) else nullcontext():  # what the user's own code raises is none
            definition = registry.build(registry.DEFINITION, about["definition"])
        names = [parameter["name"] for parameter in about["definition_parameters"]]
        if list(parameter_names(definition)) != names:
            raise DataError(
                f"{path}: its definition has the parameters {', '.join(names)}, the code of "
                f"{about['definition']['name']} has {', '.join(parameter_names(definition))}"
            )
    with damage_in(path, WHAT):
        return _posterior(definition, about, arrays)


def _is_built_in(about: dict[str, Any]) -> bool:
    return about["definition"]["name"] in registry.ENTRIES[registry.DEFINITION]


def _prior_points(posterior: Posterior) -> Floats:
    low = min(posterior.lows.values())
    return np.linspace(low, upper_end(posterior.prior, low), PRIOR_POINTS)


def _stored_definition(about: dict[str, Any], arrays: Arrays) -> StoredDefinition:
    settings = dict(about["definition"])
    target = str(settings.pop("name"))
    proven = {
        str(name): ProvenEpsilon(
            bound=None if values["bound"] is None else float(values["bound"]),
            floor=float(values["floor"]),
            node=values["node"],
            term=values["term"],
            per_node=checked(arrays, f"proven_{name}", "f", None),
        )
        for name, values in about["proven"].items()
    }
    parameters = tuple(Parameter(**parameter) for parameter in about["definition_parameters"])
    return StoredDefinition(
        registry.DEFINITION, target, settings, parameters, uses_prior=bool(about["uses_prior"]), proven=proven
    )


def _posterior(definition: Definition, about: dict[str, Any], arrays: Arrays) -> Posterior:
    counts = ErrorCounts.from_arrays(**{name: arrays[f"counts_{name}"] for name in COLUMNS})
    is_used = checked(arrays, "is_used", "b", counts.num_nodes)
    prior: LogDensity = _tabulated_prior(arrays) if about["prior"] is None else NormalPrior(**about["prior"])
    strength = StrengthPrior(*about["strength"]) if isinstance(about["strength"], list) else float(about["strength"])
    marginals: dict[str, Marginal] = {}
    run, joint = None, None
    if about["chains"] is not None:
        tau_variance = about["chains"].pop("tau_variance")
        correlated = None if tau_variance is None else CorrelatedCounts(tau_variance)
        settings = MhaarSettings(definition, prior, **about["chains"], strength=strength, correlated=correlated)  # type: ignore[arg-type]
        names, num_kept = settings.parameter_names, settings.num_iterations - settings.burn_in
        _check_names(about, names)
        draws = checked(arrays, "draws", "f", settings.num_chains, num_kept, len(names))
        diagnostics = {name: diagnose(draws[:, :, k]) for k, name in enumerate(names)}
        run = MhaarRun(draws, checked(arrays, "acceptance_rate", "f", settings.num_chains), settings, diagnostics)
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in about["parameters"]}
    else:
        estimated = ("strength",) if isinstance(strength, StrengthPrior) else ()
        _check_names(about, (*parameter_names(definition), *estimated))
        marginals = {name: _density(name, about, arrays) for name in about["parameters"]}
        joint = _joint_density(marginals, about, arrays) if "joint_values" in arrays else None
    return Posterior(
        definition=definition,
        method=about["method"],
        marginals=marginals,
        counts=counts,
        is_used=is_used,
        likelihood=likelihood_of(counts, definition, is_used),
        prior=prior,
        strength=strength,
        floor=prior_floor(counts.prior_odds[is_used]),
        lows={name: float(about["lows"][name]) for name in parameter_names(definition)},
        status=about["status"],
        prior_draws=int(about["prior_draws"]),
        joint=joint,
        run=run,
    )


def _check_names(about: dict[str, Any], names: tuple[str, ...]) -> None:
    if set(about["parameters"]) != set(names):
        raise ValueError(f"parameters must be {', '.join(names)}, got {', '.join(about['parameters'])}")


def _tabulated_prior(arrays: Arrays) -> TabulatedPrior:
    points = _ascending("prior_points", checked(arrays, "prior_points", "f", None))
    return TabulatedPrior(points, checked(arrays, "prior_log_density", "f", len(points)))


def _density(name: str, about: dict[str, Any], arrays: Arrays) -> PiecewiseDensity:
    edges = _ascending(f"edges_{name}", checked(arrays, f"edges_{name}", "f", None))
    coefficients = checked(arrays, f"coefficients_{name}", "f", len(edges) - 1, None)
    if not coefficients.size or not np.isfinite(coefficients).all():
        raise ValueError(f"coefficients_{name} must be finite numbers, at least one for each panel")
    panels = zip(coefficients, edges[:-1], edges[1:], strict=True)
    return PiecewiseDensity(edges, tuple(Chebyshev(c, domain=[a, b]) for c, a, b in panels), about["log_mass"])


def _joint_density(marginals: dict[str, Marginal], about: dict[str, Any], arrays: Arrays) -> JointDensity:
    if len(marginals) != 2:
        raise ValueError(f"a joint density must be of 2 parameters, got {len(marginals)}")
    first, second = (_ascending(name, checked(arrays, name, "f", None)) for name in ("joint_first", "joint_second"))
    grids = {
        "first": first,
        "second": second,
        "first_weight": checked(arrays, "joint_first_weight", "f", len(first)),
        "second_weight": checked(arrays, "joint_second_weight", "f", len(second)),
        "values": checked(arrays, "joint_values", "f", len(first), len(second)),
    }
    of_first, of_second = marginals.values()
    return JointDensity(**grids, first_marginal=of_first, second_marginal=of_second, log_mass=about["log_mass"])  # type: ignore[arg-type]


def _ascending(name: str, values: Floats) -> Floats:
    if len(values) < 2 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise ValueError(f"{name} must be at least two finite numbers in ascending order")
    return values
