"""A posterior as one file, and back (docs/estimation.md, "The file")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from bmpaudit import registry
from bmpaudit.arrays import Floats
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.counts_check import COLUMNS
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation.definitions.base import Parameter
from bmpaudit.estimation.definitions.curve import parameter_names
from bmpaudit.estimation.definitions.stored import StoredDefinition
from bmpaudit.estimation.density import PiecewiseDensity
from bmpaudit.estimation.diagnostics import diagnose
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.marginal import Marginal
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun, MhaarSettings
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.estimation.prior import LogDensity, NormalPrior, StrengthPrior, TabulatedPrior, upper_end
from bmpaudit.estimation.proven import ProvenEpsilon
from bmpaudit.estimation.support import likelihood_of
from bmpaudit.files import atomic_write
from bmpaudit.interfaces import Definition
from bmpaudit.plain import plain
from bmpaudit.privacy import prior_floor

FORMAT = 2
PRIOR_POINTS = 4_001
JOINT_ARRAYS = ("first", "second", "first_weight", "second_weight", "values")
CHAIN_SETTINGS = ("num_iterations", "burn_in", "num_auxiliary", "num_chains", "seed")

Arrays = dict[str, npt.NDArray[Any]]


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
            arrays[f"coefficients_{name}"] = np.stack([panel.coef for panel in marginal.panels])
            about["log_mass"] = marginal.log_mass
    if posterior.joint is not None:
        arrays |= {f"joint_{name}": getattr(posterior.joint, name) for name in JOINT_ARRAYS}
    with atomic_write(path) as temporary:
        np.savez_compressed(temporary, about=np.array(json.dumps(plain(about))), **arrays)  # type: ignore[arg-type]


def load_posterior(path: Path, trust_code: bool = False) -> Posterior:
    """See `Posterior.load`."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with _damage_in(path):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(str(arrays["about"]))
        if about["format"] != FORMAT:
            raise DataError(f"{path}: a posterior of format {about['format']}, this version reads {FORMAT}")
        definition: Definition = _stored_definition(about, arrays)
    if _is_built_in(about) or trust_code:
        with _damage_in(path) if _is_built_in(about) else nullcontext():  # what the user's own code raises is no damage
            definition = registry.build(registry.DEFINITION, about["definition"])
        names = [parameter["name"] for parameter in about["definition_parameters"]]
        if list(parameter_names(definition)) != names:
            raise DataError(
                f"{path}: its definition has the parameters {', '.join(names)}, the code of "
                f"{about['definition']['name']} has {', '.join(parameter_names(definition))}"
            )
    with _damage_in(path):
        return _posterior(definition, about, arrays)


@contextmanager
def _damage_in(path: Path) -> Iterator[None]:
    """Whatever cannot be read in the block is reported as damage of the file."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OSError, BadZipFile) as damage:
        raise DataError(f"{path}: damaged or not a posterior: {damage}") from None


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
            per_node=arrays[f"proven_{name}"],
        )
        for name, values in about["proven"].items()
    }
    parameters = tuple(Parameter(**parameter) for parameter in about["definition_parameters"])
    return StoredDefinition(
        registry.DEFINITION, target, settings, parameters, uses_prior=bool(about["uses_prior"]), proven=proven
    )


def _posterior(definition: Definition, about: dict[str, Any], arrays: Arrays) -> Posterior:
    counts = ErrorCounts.from_arrays(**{name: arrays[f"counts_{name}"] for name in COLUMNS})
    is_used = arrays["is_used"]
    if is_used.dtype != np.bool_ or is_used.shape != (counts.num_nodes,):
        raise ValueError(f"is_used must have one flag per node, got {is_used.dtype} of shape {is_used.shape}")
    prior: LogDensity = (
        TabulatedPrior(arrays["prior_points"], arrays["prior_log_density"])
        if about["prior"] is None
        else NormalPrior(**about["prior"])
    )
    strength = StrengthPrior(*about["strength"]) if isinstance(about["strength"], list) else float(about["strength"])
    marginals: dict[str, Marginal] = {}
    run, joint = None, None
    if about["chains"] is not None:
        tau_variance = about["chains"].pop("tau_variance")
        correlated = None if tau_variance is None else CorrelatedCounts(tau_variance)
        settings = MhaarSettings(definition, prior, **about["chains"], strength=strength, correlated=correlated)  # type: ignore[arg-type]
        diagnostics = {name: diagnose(arrays["draws"][:, :, k]) for k, name in enumerate(settings.parameter_names)}
        run = MhaarRun(arrays["draws"], arrays["acceptance_rate"], settings, diagnostics)
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in about["parameters"]}
    else:
        densities = [_density(name, about, arrays) for name in about["parameters"]]
        marginals = dict(zip(about["parameters"], densities, strict=True))
        if "joint_values" in arrays:
            grids = {name: arrays[f"joint_{name}"] for name in JOINT_ARRAYS}
            joint = JointDensity(
                **grids, first_marginal=densities[0], second_marginal=densities[1], log_mass=about["log_mass"]
            )
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


def _density(name: str, about: dict[str, Any], arrays: Arrays) -> PiecewiseDensity:
    edges = arrays[f"edges_{name}"]
    panels = zip(arrays[f"coefficients_{name}"], edges[:-1], edges[1:], strict=True)
    return PiecewiseDensity(edges, tuple(Chebyshev(c, domain=[a, b]) for c, a, b in panels), about["log_mass"])
