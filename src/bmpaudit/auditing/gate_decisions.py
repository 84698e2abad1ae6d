"""From a summary and a gate to outcomes: nothing but the summary is looked at, so nobody's code is run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bmpaudit.auditing.gate import ExposureLimit, Gate
from bmpaudit.auditing.gate_result import CheckedThreshold, GateResult, Outcome
from bmpaudit.errors import InputError
from bmpaudit.proof.priors import SHARE_FOR_PRIORS
from bmpaudit.proof.provable import models_to_prove_more, provable
from bmpaudit.proof.result import SYMBOLS
from bmpaudit.report.words import confidence, number

PARAMETERS = {"right": "epsilon_right", "left": "epsilon_left", "mp": "mp"}
MOST_MODELS = 10**6  # hardly anybody trains more
DIGITS = 3  # of an ε, so that one just above a threshold does not look the same

Summary = Mapping[str, Any]


def decide(summary: Summary, gate: Gate) -> GateResult:
    """Holds an audit against a gate.

    Raises:
        InputError: if the gate has no threshold, or one about something that the audit does not have.
    """
    if not gate.has_thresholds:
        raise InputError(
            "there is no threshold to check: give one, such as --max-proven-right 3, or a [gate] in plan.toml"
        )
    releases = summary["releases"]
    release = gate.release or next(iter(releases))
    if release not in releases:
        raise InputError(f"release must be one of {', '.join(releases)}, got {release!r}")
    return GateResult(
        title=summary["title"],
        fingerprint=summary["fingerprint"],
        bmpaudit=summary["bmpaudit"],
        release=release,
        num_models=summary["shadow_models"]["trained"],
        thresholds=tuple(_checked(summary, gate, release)),
    )


def _checked(summary: Summary, gate: Gate, release: str) -> Iterator[CheckedThreshold]:
    for side in PARAMETERS:
        limit = getattr(gate, f"max_proven_{side}")
        if limit is not None:
            yield _check_proven(summary, release, side, limit)
    for curve, limits in (("members", gate.max_exposure), ("non_members", gate.max_exposure_non_members)):
        for each in limits:
            yield _check_exposure(summary["releases"][release]["exposure"], curve, each)
    for side in PARAMETERS:
        limit = getattr(gate, f"max_estimated_{side}")
        if limit is not None:
            yield _check_estimated(summary, release, side, limit)


# Proven


def _check_proven(summary: Summary, release: str, side: str, limit: float) -> CheckedThreshold:
    findings = summary["releases"][release]
    proven, needed = _proven(findings, side), None
    reason = _certainly_above(findings, side, limit)
    outcome: Outcome = "exceeded"
    if not reason:
        outcome, reason, needed = _unless_exceeded(summary, findings, side, limit)
    what = f"proven {SYMBOLS[PARAMETERS[side]]}"
    return CheckedThreshold(f"max_proven_{side}", limit, None, outcome, what, proven, None, reason, needed)


def _unless_exceeded(summary: Summary, findings: Summary, side: str, limit: float) -> tuple[Outcome, str, int | None]:
    """Outcome, reason and models needed where nothing above the limit is proven: could these models have proven it?"""
    settings = summary["plan"]["proof"]
    level, method, shift = settings["proof_level"], settings["proof_method"], 0.0
    if side == "mp":
        # A guess of prior log-odds o proves -o more. Whoever sees everything finds a member (or, where most nodes are
        # members, a non-member) of no more than average prior in every model. Sampled priors cost some confidence.
        if summary["priors"]["num_draws"]:
            level = 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)
        shift = abs(_log_ratio(findings["exposure"]["total_members"], findings["exposure"]["total_non_members"]))
    number_needed = models_to_prove_more(limit - shift, level, method)
    needed = number_needed if number_needed <= MOST_MODELS else None
    if findings["proof"] is None:
        return "undecided", findings["not_proven"], needed
    proven, num_challenged = _proven(findings, side), findings["proof"][PARAMETERS[side]]["num_challenged"]
    most = provable(num_challenged, level, method) + shift
    found = "nothing is proven"
    if proven is not None:
        found = f"{SYMBOLS[PARAMETERS[side]]} ≥ {number(proven, DIGITS)} is proven"
    could = f"{num_challenged:,} challenged models could have proven {number(most, DIGITS)}"
    if most > limit:
        return "passed", f"{found}; {could}", None
    return "undecided", f"{found}, and {could} at most", needed


def _log_ratio(members: float, non_members: float) -> float:
    return math.log(members / non_members) if members > 0 and non_members > 0 else 0.0


def _proven(findings: Summary, side: str) -> float | None:
    return None if findings["proof"] is None else findings["proof"][PARAMETERS[side]]["proven"]


def _certainly_above(findings: Summary, side: str, limit: float) -> str:
    """Why ε is above a limit whatever else was found; empty if nothing says so."""
    if findings["proof"] is None:
        return ""
    symbol, bound = SYMBOLS[PARAMETERS[side]], findings["proof"][PARAMETERS[side]]
    proven, floor = bound["proven"], float(bound["floor"])
    if floor > limit:
        return f"the sampling alone gives {symbol} ≥ {number(floor, DIGITS)}: no model trained this way stays below"
    if proven is not None and proven > limit:
        return f"{symbol} ≥ {number(proven, DIGITS)} is proven with {confidence(bound['level'])} confidence"
    return ""


# Exposure


def _check_exposure(exposure: Summary, curve: str, limit: ExposureLimit) -> CheckedThreshold:
    (row,) = (row for row in exposure[curve] if row["precision"] == limit.precision)
    # An adversary may have more shadow models than the audit.
    mean, low, high = row["correct"], row["correct_low"], row["interval_high"]
    side = "" if curve == "members" else "_non_members"
    people = curve.replace("_", "-")
    found = f"{number(mean)} ({number(low)} to {number(high)}) {people} are named correctly per model"
    needed = None
    if low > limit.nodes:
        outcome: Outcome = "exceeded"
    elif high <= limit.nodes and row["is_settled"]:
        outcome = "passed"
    else:
        outcome = "undecided"
        needed = _models_to_settle(row, exposure["num_models"], limit.nodes)
        found += "" if row["is_settled"] else f", which {exposure['num_models']:,} models do not settle"
    what = f"{people} named with {100 * limit.precision:g} % certainty"
    name = f"max_exposure{side}"
    return CheckedThreshold(name, limit.nodes, limit.precision, outcome, what, low, high, found, needed)


def _models_to_settle(row: Summary, num_models: int, limit: float) -> int | None:
    """About how many models settle the curve and narrow its limits until they leave out the threshold."""
    needed: int = row["models_needed"]
    if row["correct_low"] <= limit < row["interval_high"]:
        distance = abs(row["correct"] - limit)
        half_width = max(row["interval_high"] - row["correct"], row["correct"] - row["correct_low"])
        # Limits narrow with the square root of the number of models.
        if distance == 0 or num_models * (half_width / distance) ** 2 > MOST_MODELS:
            return None
        needed = max(needed, math.ceil(num_models * (half_width / distance) ** 2), num_models + 1)
    return needed


# Estimated


def _check_estimated(summary: Summary, release: str, side: str, limit: float) -> CheckedThreshold:
    main = next(iter(summary["releases"]))
    name, symbol = f"max_estimated_{side}", SYMBOLS[PARAMETERS[side]]
    if release != main:
        raise InputError(f"{name} is about the plan's first release, {main}, got release {release!r}")
    row = next((row for row in summary["headline"] if _is_about(row, side)), None)
    if row is None:
        raise InputError(f"{name}: the audit did not estimate {symbol}; name a definition that has it in the plan")
    low, high = float(row["p5"]), float(row["p95"])
    interval = f"estimated {number(low, DIGITS)} to {number(high, DIGITS)}"
    doubts = list(row["warnings"])
    if not summary["is_leakage_found"]:
        doubts.insert(0, "no leakage was found, so the estimate means nothing")
    certain = _certainly_above(summary["releases"][release], side, limit)
    outcome: Outcome = "undecided"
    reason = certain or interval
    if certain:
        outcome = "exceeded"
    elif high <= limit:
        outcome = "passed"
    elif doubts:
        reason = f"{interval}, which decides nothing: {'; '.join(doubts)}"
    elif low > limit:
        outcome = "exceeded"
    return CheckedThreshold(name, limit, None, outcome, f"estimated {symbol}", low, high, reason)


def _is_about(row: Summary, side: str) -> bool:
    if side == "mp":
        return bool(row["definition"] == "mp")
    return row["parameter"] == PARAMETERS[side] and not row["multiplies_odds"]
