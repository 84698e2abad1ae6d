"""A gate: what an audit may find at most, decided threshold by threshold, for people, scripts and CI servers."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

from bmpaudit.auditing.context import plan_hash
from bmpaudit.auditing.finished import Audit, stored_plan, stored_result
from bmpaudit.auditing.result import (
    AuditResult,
    BoundResult,
    EpsilonResult,
    ExposureResult,
    NamedResult,
    Parameter,
    ReleaseResult,
)
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.plan import ExposureLimit, Gate
from bmpaudit.proof.guesses import SHARE_FOR_PRIORS
from bmpaudit.proof.prove import models_to_prove_more, provable
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import plain
from bmpaudit.util.words import SYMBOLS, confidence, count, number

__all__ = ["GateResult", "check"]

Outcome = Literal["passed", "exceeded", "undecided"]
EXIT_CODES: dict[Outcome, int] = {"passed": 0, "exceeded": 1, "undecided": 3}
"""What `bmpaudit check` exits with; 2 is for wrong use, 4 for files that cannot be read or written."""


@dataclass(frozen=True)
class CheckedThreshold:
    """One threshold of a gate.

    Attributes:
        name: Its key in a gate, such as max_exposure.
        limit: The threshold.
        precision: For exposure, the precision it is about.
        outcome: passed, exceeded, or undecided.
        what: What is limited, in words.
        low: What it is at least, as far as the audit tells; None if it does not.
        high: What it is at most, as far as the audit tells; None if it does not.
        reason: Why the outcome is what it is, in words.
        models_needed: If undecided, the number of shadow models that would do; None if no number is known to.
    """

    name: str
    limit: float
    precision: float | None
    outcome: Outcome
    what: str
    low: float | None
    high: float | None
    reason: str
    models_needed: int | None = None

    @property
    def label(self) -> str:
        """Key and threshold, as in a plan file: `max_exposure 10@0.99`."""
        return f"{self.name} {self.limit:g}" + ("" if self.precision is None else f"@{self.precision:g}")

    @property
    def explanation(self) -> str:
        """The reason and, if undecided, how many models would do."""
        if self.outcome != "undecided":
            return self.reason
        needed = self.models_needed
        if needed is None:
            return f"{self.reason}; no number of shadow models is known to decide it"
        return f"{self.reason}; about {needed:,} shadow models would do"


@dataclass(frozen=True)
class GateResult:
    """The outcome of a gate.

    Attributes:
        title: What was audited.
        fingerprint: Tells audits apart whose answers may differ.
        bmpaudit: Version of the program that made the audit.
        release: The release that was checked.
        num_models: Number of shadow models behind the audit.
        thresholds: Each threshold with its outcome.
    """

    title: str
    fingerprint: str
    bmpaudit: str
    release: str
    num_models: int
    thresholds: tuple[CheckedThreshold, ...]

    @property
    def outcome(self) -> Outcome:
        """Of all thresholds: exceeded if any is, else undecided if any is, else passed."""
        there = {each.outcome for each in self.thresholds}
        if "exceeded" in there:
            return "exceeded"
        return "undecided" if "undecided" in there else "passed"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 exceeded, 3 undecided."""
        return EXIT_CODES[self.outcome]

    @property
    def models_needed(self) -> int | None:
        """Number of shadow models with which all undecided thresholds can be decided; None if none is known."""
        numbers = [each.models_needed for each in self.thresholds if each.outcome == "undecided"]
        known = [number for number in numbers if number is not None]
        return max(known) if known and len(known) == len(numbers) else None

    @property
    def subject(self) -> str:
        """What was checked, in one line."""
        return f"{self.title}; {self.release} release; {count(self.num_models, 'shadow model')}"

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        values: dict[str, Any] = plain(
            {"outcome": self.outcome, "exit_code": self.exit_code, "models_needed": self.models_needed} | asdict(self)
        )
        return values

    def __str__(self) -> str:
        width = max(len(each.label) for each in self.thresholds)
        rows = [f"{each.outcome:<9}  {each.label:<{width}}  {each.explanation}" for each in self.thresholds]
        return "\n".join([self.subject, *rows, f"gate: {self.outcome}"])


# From a result and a gate to outcomes: nothing but the result is looked at, so nobody's code is run.


PARAMETERS: dict[str, Parameter] = {"right": "epsilon_right", "left": "epsilon_left", "mp": "mp"}
MOST_MODELS = 10**6  # hardly anybody trains more
DIGITS = 3  # of an ε, so that one just above a threshold does not look the same


def decide(result: AuditResult, gate: Gate) -> GateResult:
    """Holds an audit against a gate.

    Raises:
        InputError: if the gate has no threshold, or one about something that the audit does not have.
    """
    if not gate.has_thresholds:
        raise InputError(
            "there is no threshold to check: give one, such as --max-proven-right 3, or a [gate] in plan.toml"
        )
    release = gate.release or result.main_release
    if release not in result.releases:
        raise InputError(f"release must be one of {', '.join(result.releases)}, got {release!r}")
    return GateResult(
        title=result.title,
        fingerprint=result.fingerprint,
        bmpaudit=result.bmpaudit,
        release=release,
        num_models=result.shadow_models.trained,
        thresholds=tuple(_checked(result, gate, release)),
    )


def _checked(result: AuditResult, gate: Gate, release: str) -> Iterator[CheckedThreshold]:
    for side in PARAMETERS:
        limit = getattr(gate, f"max_proven_{side}")
        if limit is not None:
            yield _check_proven(result, result.releases[release], side, limit)
    for curve, limits in (("members", gate.max_exposure), ("non_members", gate.max_exposure_non_members)):
        for each in limits:
            yield _check_exposure(result.releases[release].exposure, curve, each)
    for side in PARAMETERS:
        limit = getattr(gate, f"max_estimated_{side}")
        if limit is not None:
            yield _check_estimated(result, release, side, limit)


def _check_proven(result: AuditResult, release: ReleaseResult, side: str, limit: float) -> CheckedThreshold:
    symbol, bound = SYMBOLS[PARAMETERS[side]], _bound(release, side)
    outcome: Outcome = "exceeded"
    needed, reason = None, _certainly_above(release, side, limit)
    if not reason:
        outcome, reason, needed = _unless_exceeded(result, release, side, limit)
    proven = None if bound is None else bound.proven
    return CheckedThreshold(
        f"max_proven_{side}", limit, None, outcome, f"proven {symbol}", proven, None, reason, needed
    )


def _unless_exceeded(
    result: AuditResult, release: ReleaseResult, side: str, limit: float
) -> tuple[Outcome, str, int | None]:
    """Outcome, reason and models needed where nothing above the limit is proven: could these models have proven it?"""
    level, method, shift = result.proof_level, result.proof_method, 0.0
    if side == "mp":
        # A guess of prior log-odds o proves -o more. Whoever sees everything finds a member (or, where most nodes are
        # members, a non-member) of no more than average prior in every model. Sampled priors cost some confidence.
        if result.priors.num_draws:
            level = 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)
        members, others = release.exposure.total_members, release.exposure.total_non_members
        shift = abs(math.log(members / others)) if members > 0 and others > 0 else 0.0
    number_needed = models_to_prove_more(limit - shift, level, method)
    needed = number_needed if number_needed <= MOST_MODELS else None
    bound = _bound(release, side)
    if bound is None:
        return "undecided", release.not_proven, needed
    most = provable(bound.num_challenged, level, method) + shift
    found = "nothing is proven"
    if bound.proven is not None:
        found = f"{SYMBOLS[PARAMETERS[side]]} ≥ {number(bound.proven, DIGITS)} is proven"
    could = f"{bound.num_challenged:,} challenged models could have proven {number(most, DIGITS)}"
    if most > limit:
        return "passed", f"{found}; {could}", None
    return "undecided", f"{found}, and {could} at most", needed


def _bound(release: ReleaseResult, side: str) -> BoundResult | None:
    return None if release.proof is None else release.proof.bounds[PARAMETERS[side]]


def _certainly_above(release: ReleaseResult, side: str, limit: float) -> str:
    """Why ε is above a limit whatever else was found; empty if nothing says so."""
    symbol, bound = SYMBOLS[PARAMETERS[side]], _bound(release, side)
    if bound is not None and bound.floor > limit:
        return (
            f"the sampling alone gives {symbol} ≥ {number(bound.floor, DIGITS)}: no model trained this way stays below"
        )
    if bound is not None and bound.proven is not None and bound.proven > limit:
        return f"{symbol} ≥ {number(bound.proven, DIGITS)} is proven with {confidence(bound.level)} confidence"
    return ""


def _check_exposure(exposure: ExposureResult, curve: str, limit: ExposureLimit) -> CheckedThreshold:
    row = exposure.named(limit.precision, curve)
    side = "" if curve == "members" else "_non_members"
    people = curve.replace("_", "-")
    # An adversary may have more shadow models than the audit, which the upper end allows for.
    limits = f"{number(row.correct_low)} to {number(row.correct_high)}"
    found = f"{number(row.correct)} ({limits}) {people} are named correctly per model"
    needed = None
    if row.correct_low > limit.nodes:
        outcome: Outcome = "exceeded"
    elif row.correct_high <= limit.nodes and row.is_settled:
        outcome = "passed"
    else:
        outcome = "undecided"
        needed = _models_to_settle(row, exposure.num_models, limit.nodes)
        found += "" if row.is_settled else f", which {exposure.num_models:,} models do not settle"
    what = f"{people} named with {100 * limit.precision:g} % certainty"
    ends = row.correct_low, row.correct_high
    return CheckedThreshold(f"max_exposure{side}", limit.nodes, limit.precision, outcome, what, *ends, found, needed)


def _models_to_settle(row: NamedResult, num_models: int, limit: float) -> int | None:
    """About how many models settle the curve and narrow its limits until they leave out the threshold."""
    needed = row.models_needed
    if row.correct_low <= limit < row.correct_high:
        distance = abs(row.correct - limit)
        half_width = max(row.correct_high - row.correct, row.correct - row.correct_low)
        # Limits narrow with the square root of the number of models.
        if distance == 0 or num_models * (half_width / distance) ** 2 > MOST_MODELS:
            return None
        needed = max(needed, math.ceil(num_models * (half_width / distance) ** 2), num_models + 1)
    return needed


def _check_estimated(result: AuditResult, release: str, side: str, limit: float) -> CheckedThreshold:
    name, symbol = f"max_estimated_{side}", SYMBOLS[PARAMETERS[side]]
    if release != result.main_release:
        raise InputError(f"{name} is about the plan's first release, {result.main_release}, got release {release!r}")
    row = next((row for row in result.headline if _is_about(row, side)), None)
    if row is None:
        raise InputError(f"{name}: the audit did not estimate {symbol}; name a definition that has it in the plan")
    interval = f"estimated {number(row.p5, DIGITS)} to {number(row.p95, DIGITS)}"
    doubts = list(row.warnings)
    if not result.is_leakage_found:
        doubts.insert(0, "no leakage was found, so the estimate means nothing")
    certain = _certainly_above(result.releases[release], side, limit)
    outcome: Outcome = "undecided"
    reason = certain or interval
    if certain:
        outcome = "exceeded"
    elif row.p95 <= limit:
        outcome = "passed"
    elif doubts:
        reason = f"{interval}, which decides nothing: {'; '.join(doubts)}"
    elif row.p5 > limit:
        outcome = "exceeded"
    return CheckedThreshold(name, limit, None, outcome, f"estimated {symbol}", row.p5, row.p95, reason)


def _is_about(row: EpsilonResult, side: str) -> bool:
    if side == "mp":
        return row.definition == "mp"
    return row.parameter == PARAMETERS[side] and not row.multiplies_odds


# The outcome of a gate for a model card (Markdown) and for CI servers (JUnit XML).


NOT_A_GUARANTEE = "Passing means that this attack found no more. It is no guarantee: a better attack may find more."

# What is not a character of XML 1.0.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~])")


def to_markdown(result: GateResult) -> str:
    """A few lines for a model card."""
    rows = [f"| {_shown(each.label)} | {each.outcome} | {_shown(each.explanation)} |" for each in result.thresholds]
    subject = _shown(f"{result.subject}; bmpaudit {result.bmpaudit}")
    return "\n".join(
        [
            f"**Membership inference: {result.outcome}** ({subject})",
            "",
            "| threshold | outcome | why |",
            "| --- | --- | --- |",
            *rows,
            "",
            NOT_A_GUARANTEE,
        ]
    )


def _shown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


def to_junit(result: GateResult) -> str:
    """JUnit XML: a test case for each threshold. Exceeded is a failure; undecided is an error, so that it stops CI."""
    outcomes = [each.outcome for each in result.thresholds]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("exceeded")),
        "errors": str(outcomes.count("undecided")),
        "skipped": "0",
    }
    root = ET.Element("testsuites", {"name": "bmpaudit check", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _characters(result.subject), **counts})
    properties = ET.SubElement(suite, "properties")
    for name in ("outcome", "fingerprint", "bmpaudit"):
        ET.SubElement(properties, "property", {"name": name, "value": _characters(getattr(result, name))})
    for each in result.thresholds:
        _add_case(suite, result, each)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _add_case(suite: ET.Element, result: GateResult, each: CheckedThreshold) -> None:
    explanation = _characters(each.explanation)
    case = ET.SubElement(suite, "testcase", {"classname": _characters(result.title), "name": each.label})
    if each.outcome == "passed":
        ET.SubElement(case, "system-out").text = explanation
    else:
        tag = "failure" if each.outcome == "exceeded" else "error"
        ET.SubElement(case, tag, {"type": each.outcome, "message": explanation}).text = explanation


def _characters(text: str) -> str:
    return _NO_XML.sub("?", text)


# Whether a finished audit passes a gate.


def check(audit: Audit | str | Path, gate: Gate | None = None, **thresholds: Any) -> GateResult:
    """Holds a finished audit against thresholds.

    Everything is decided from the result: no code that the plan names is run, and no shadow model is read.

    Args:
        audit: The audit, or its folder.
        gate: The thresholds; those of the plan's section `[gate]` if not given.
        **thresholds: Fields of the gate, such as `max_proven_right=3` or `max_exposure="10@0.99"`, which override it.

    Raises:
        InputError: if there is no threshold, or one about something that the audit does not have.
        DataError: if the folder is not a finished audit, or is damaged.

    >>> from bmpaudit.pipeline.pipeline import audit
    >>> finished = audit("demo", shadows=16, definitions="bmp-r")
    >>> print(check(finished, max_proven_right=3))
    demo, Uniform 25 %, GCN; clean release; 16 shadow models
    undecided  max_proven_right 3  ...
    gate: undecided
    """
    if isinstance(audit, Audit):
        result, its_gate = audit.result, audit.plan.gate
    else:
        workspace = Workspace(audit)
        with workspace.unchanged():
            plan = stored_plan(workspace).plan
            workspace.stamp("estimate", plan_hash(plan))
            result, its_gate = stored_result(workspace), plan.gate
    return decide(result, (its_gate if gate is None else gate).replace(**thresholds))
