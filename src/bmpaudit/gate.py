"""A gate: what an audit may find at most, decided threshold by threshold, for people, scripts and CI servers."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.special

from bmpaudit.attack.permutation import LEAKING, largest_z
from bmpaudit.auditing import Audit, AuditResult, Workspace, context, finished
from bmpaudit.auditing.result import AccessResult, BoundResult, Parameter
from bmpaudit.plan import FEWEST_SHADOWS, ExposureLimit, Gate
from bmpaudit.proof.exposure import LEVEL_OF_GATES
from bmpaudit.proof.guesses import ENOUGH_MODELS, SHARE_FOR_PRIORS, fewest_to_be_named
from bmpaudit.proof.prove import FIRST_FIT, default_num_fitting, guesses_to_prove_more
from bmpaudit.releases import ACCESSES
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import plain
from bmpaudit.util.words import SYMBOLS, confidence, count, interval, number, percent

__all__ = ["GateResult", "check"]

Outcome = Literal["passed", "exceeded", "undecided"]
EXIT_CODES: dict[Outcome, int] = {"passed": 0, "exceeded": 1, "undecided": 3}
"""What `bmpaudit check` exits with; 2 is for wrong use, 4 for files that cannot be read or written."""


@dataclass(frozen=True)
class CheckedThreshold:
    """One threshold of a gate."""

    name: str  # its key in a gate, such as max_exposure
    limit: float  # the threshold
    precision: float | None  # for exposure, the precision it is about
    outcome: Outcome  # passed, exceeded, or undecided
    what: str  # what is limited, in words
    low: float | None  # what it is at least, as far as the audit tells; None if it does not
    high: float | None  # what it is at most, as far as the audit tells; None if it does not
    reason: str  # why the outcome is what it is, in words
    # If undecided, the number of shadow models that it takes; None if no number is known.
    models_needed: int | None = None

    @property
    def label(self) -> str:
        """Key and threshold, as in a plan file: `max_exposure 10@0.99`."""
        return f"{self.name} {self.limit:g}" + ("" if self.precision is None else f"@{self.precision:g}")

    @property
    def explanation(self) -> str:
        """The reason and, if undecided, how many models it takes."""
        if self.outcome != "undecided":
            return self.reason
        needed = self.models_needed
        if needed is None:
            return f"{self.reason}; no number of shadow models is known to decide it"
        return f"{self.reason}; about {needed:,} shadow models are enough"


@dataclass(frozen=True)
class GateResult:
    """The outcome of a gate."""

    title: str  # what was audited
    fingerprint: str  # tells audits apart whose answers may differ
    bmpaudit: str  # version of the program that made the audit
    release: str  # that was checked
    access: str  # what the adversary sees of it
    num_models: int  # number of shadow models behind the audit
    thresholds: tuple[CheckedThreshold, ...]

    @property
    def outcome(self) -> Outcome:
        """Of all thresholds: exceeded if any is, else undecided if any is, else passed."""
        return max((each.outcome for each in self.thresholds), key=("passed", "undecided", "exceeded").index)

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
        return f"{self.title}; {self.release} release, {self.access}; {count(self.num_models, 'shadow model')}"

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        overall = {"outcome": self.outcome, "exit_code": self.exit_code, "models_needed": self.models_needed}
        return dict(plain(overall | asdict(self)))

    def __str__(self) -> str:
        width = max(len(each.label) for each in self.thresholds)
        rows = [f"{each.outcome:<9}  {each.label:<{width}}  {each.explanation}" for each in self.thresholds]
        return "\n".join([self.subject, *rows, f"gate: {self.outcome}"])


# From a result and a gate to outcomes: nothing but the result is looked at, so nobody's code is run.

PARAMETERS: dict[str, Parameter] = {"right": "epsilon_right", "left": "epsilon_left", "mp": "mp"}
MOST_MODELS = 10**6  # hardly anybody trains more
DIGITS = 3  # of an ε, so that one just above a threshold does not look the same
UNLIKELY = 0.01  # probability with which as many models as are said to be needed turn out to be too few


def decide(result: AuditResult, gate: Gate) -> GateResult:
    """Holds an audit against a gate; `InputError` if that has no threshold, or one about what the audit does not have.

    A threshold is passed only if the shadow models would have shown that one node alone exceeds it, whichever node.
    """
    if not gate.has_thresholds:
        raise InputError(
            "there is no threshold to check: give one, such as --max-proven-right 3, or a [gate] in plan.toml"
        )
    release = gate.release or result.main_release
    if release not in result.releases:
        raise InputError(f"release must be one of {', '.join(result.releases)}, got {release!r}")
    ladder = result.releases[release].ladder
    access = gate.access or result.releases[release].access
    if access not in ladder:
        raise InputError(f"access must be one of {', '.join(ladder)}, which the audit has, got {access!r}")
    return GateResult(
        title=result.title,
        fingerprint=result.fingerprint,
        bmpaudit=result.bmpaudit,
        release=release,
        access=access,
        num_models=result.shadow_models.trained,
        thresholds=tuple(_checked(_Subject(result, release, access, ladder[access]), gate)),
    )


class _Subject(NamedTuple):
    """What is held against the thresholds."""

    result: AuditResult
    release: str
    access: str
    found: AccessResult  # what is known of that access to that release

    def bound(self, side: str) -> BoundResult | None:
        """What is proven of one side, and how; None without a proof."""
        return None if self.found.proof is None else self.found.proof.bounds[PARAMETERS[side]]

    def check_tested(self, name: str) -> None:
        """Refuses thresholds on what is known of the main release alone, and only of what was tested of it."""
        main = self.result.main_release
        if self.release != main:
            raise InputError(f"{name} is about the plan's first release, {main}, got release {self.release!r}")
        tested = "scores" if "scores" in self.result.main.ladder else "labels"
        if ACCESSES.index(self.access) < ACCESSES.index(tested):
            raise InputError(f"{name} is about {tested}, which access to {self.access} does not show")


def _checked(subject: _Subject, gate: Gate) -> Iterator[CheckedThreshold]:
    for side in PARAMETERS:
        limit = getattr(gate, f"max_proven_{side}")
        if limit is not None:
            yield _check_proven(subject, side, limit)
    for side, limits in (("members", gate.max_exposure), ("non_members", gate.max_exposure_non_members)):
        for each in limits:
            yield _check_exposure(subject, side, each)
    if gate.max_node_exposure is not None:
        yield _check_node_exposure(subject, gate.max_node_exposure)
    if gate.max_leaking_nodes is not None:
        yield _check_leaking_nodes(subject, gate.max_leaking_nodes)
    for side in PARAMETERS:
        limit = getattr(gate, f"max_estimated_{side}")
        if limit is not None:
            yield _check_estimated(subject, side, limit)


# What is proven.


def _check_proven(subject: _Subject, side: str, limit: float) -> CheckedThreshold:
    bound, what = subject.bound(side), f"proven {SYMBOLS[PARAMETERS[side]]}"
    above = _certainly_above(subject, side, limit)
    decided = ("exceeded", above, None) if above else _unless_exceeded(subject, side, limit)
    outcome, reason, needed = decided
    proven = None if bound is None else bound.proven
    return CheckedThreshold(f"max_proven_{side}", limit, None, outcome, what, proven, None, reason, needed)


def _unless_exceeded(subject: _Subject, side: str, limit: float) -> tuple[Outcome, str, int | None]:
    """Outcome, reason and models needed where nothing above the limit is proven: would these models have proven it?"""
    symbol, bound, power = SYMBOLS[PARAMETERS[side]], subject.bound(side), subject.found.power
    if bound is None:
        return "undecided", subject.found.not_proven, _models_to_prove(subject, side, limit)
    found = "nothing is proven"
    if bound.proven is not None:
        found = f"{symbol} ≥ {number(bound.proven, DIGITS)} is proven"
    provable, possible = power.provable[PARAMETERS[side]], power.possible[PARAMETERS[side]]
    if provable is None or provable <= limit:
        most = "nothing" if provable is None else f"{number(provable, DIGITS)} at most"
        reason = f"{found}; a single node that every model gives away would prove {most}"
        return "undecided", reason, _models_to_prove(subject, side, limit)
    hits = f"{bound.num_hits:,} of {count(bound.num_guesses, 'guess', 'guesses')} right"
    if possible is None or possible > limit:
        return "undecided", f"{found}; with {hits}, {symbol} > {limit:g} is not ruled out", None
    would = f"a single node that every model gives away would prove {number(provable, DIGITS)}"
    return "passed", f"{found}, with {hits}; {would}", None


def _models_to_prove(subject: _Subject, side: str, limit: float) -> int | None:
    """The number of models with which any node by itself, given away in every model, very likely exceeds the limit."""
    result, bound = subject.result, subject.bound(side)
    nodes, method = result.nodes, result.proof_method
    level = result.proof_level if bound is None else bound.level
    # For the priors that are hardest: shares of the models, and the log-odds that guesses about so many have to show.
    if side == "mp":
        if result.priors.num_draws:  # which cost some confidence
            level = 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)
        priors = {nodes.rarest_prior, min(max(0.5, nodes.rarest_prior), nodes.commonest_prior), nodes.commonest_prior}
        shares = [[(each, limit + math.log(each / (1 - each))) for each in (prior, 1 - prior)] for prior in priors]
    else:
        shares = [[(nodes.rarest_prior if side == "right" else 1 - nodes.commonest_prior, limit)]]
    ways = [[(share, guesses_to_prove_more(shown, level, method)) for share, shown in each] for each in shares]
    rarest = min(nodes.rarest_prior, 1 - nodes.commonest_prior)

    def is_enough(num_models: int) -> bool:
        num_fitting = FIRST_FIT if method == "prequential" else default_num_fitting(num_models)
        num_challenged = num_models - num_fitting
        return _hold(result, fewest_to_be_named(num_fitting), num_fitting, rarest) and all(
            any(_hold(result, needed, num_challenged, share) for share, needed in each) for each in ways
        )

    return _fewest_models(is_enough)


def _hold(result: AuditResult, needed: int, num_models: int, prior: float) -> bool:
    """Whether very likely at least so many models hold each node, if no prior is smaller."""
    allowed = UNLIKELY / result.permutation_test.num_nodes
    return num_models >= needed and bool(scipy.special.bdtr(needed - 1, num_models, prior) <= allowed)


def _fewest_models(is_enough: Callable[[int], bool]) -> int | None:
    """The smallest number of models that is enough; None if hardly anybody trains so many."""
    number = bisect_left(range(MOST_MODELS + 1), True, lo=FEWEST_SHADOWS, key=is_enough)
    return number if number <= MOST_MODELS else None


def _certainly_above(subject: _Subject, side: str, limit: float) -> str:
    """Why ε is above a limit whatever else was found; empty if nothing says so."""
    symbol, bound = SYMBOLS[PARAMETERS[side]], subject.bound(side)
    if bound is not None and bound.floor > limit:
        floor = number(bound.floor, DIGITS)
        return f"the sampling alone gives {symbol} ≥ {floor}: no model trained this way stays below"
    if bound is not None and bound.proven is not None and bound.proven > limit:
        return f"{symbol} ≥ {number(bound.proven, DIGITS)} is proven with {confidence(bound.level)} confidence"
    return ""


# How many nodes are named, and how often each is.


def _check_exposure(subject: _Subject, side: str, limit: ExposureLimit) -> CheckedThreshold:
    result, certified = subject.result, subject.found.certified
    row = subject.found.exposure.named(limit.precision, side)
    suffix, people = "" if side == "members" else "_non_members", side.replace("_", "-")
    nodes, needed = result.nodes, None
    fewest = nodes.fewest_in if side == "members" else nodes.fewest_out
    enough = _models_to_name(limit.precision)
    certificate = None if certified is None else certified.named(limit.precision, side)
    proven = 0.0 if certificate is None else certificate.certainty * certificate.names
    reason = (
        f"{number(row.correct)} ({number(row.correct_low)} to {number(row.at_most)}) {people} are named correctly per "
        "model"
    )
    outcome: Outcome = "undecided"
    if proven > limit.nodes and certified is not None:
        outcome = "exceeded"
        reason = (
            f"{number(proven)} {people} or more are named correctly per model, with {confidence(certified.level)} "
            "confidence"
        )
    elif row.correct_low > limit.nodes:
        outcome = "exceeded"
    elif fewest < enough:
        place = "in" if side == "members" else "missing from"
        reason += f"; some node is {place} only {count(fewest, 'model')}, and it takes {enough} to name it"
        needed = _models_that_hold(result, enough, side)
    elif row.at_most <= limit.nodes:
        outcome = "passed"
    what = f"{people} named with {100 * limit.precision:g} % certainty"
    ends = max(row.correct_low, proven), row.at_most
    return CheckedThreshold(f"max_exposure{suffix}", limit.nodes, limit.precision, outcome, what, *ends, reason, needed)


def _models_to_name(precision: float) -> int:
    """Number of models of one side about a node without which no naming of it can be seen to be that certain.

    If it is right in all n of them, it is right in (n + 1/2)/(n + 1) of all: 49 for 99 %. With very few, no attack
    learns how the node answers.
    """
    return max(ENOUGH_MODELS, math.ceil((precision - 0.5) / (1 - precision) - 1e-9))


def _models_that_hold(result: AuditResult, needed: int, side: str = "members") -> int | None:
    """The number of models of which very likely at least so many hold each node, or do not."""
    prior = result.nodes.rarest_prior if side == "members" else 1 - result.nodes.commonest_prior
    return _fewest_models(lambda num_models: _hold(result, needed, num_models, prior))


def _check_node_exposure(subject: _Subject, limit: float) -> CheckedThreshold:
    result, power = subject.result, subject.found.power
    low, high = power.node_share_low, power.node_share_high
    fewest, precision = result.nodes.fewest_in, subject.found.exposure.at_risk
    named = f"with {100 * precision:g} % certainty by"
    enough, needed = _models_to_name(precision), None
    outcome: Outcome = "undecided"
    reason = f"the most exposed node is named {named} {percent(low)} to {percent(high)} of the models that hold it"
    if low > limit:
        outcome = "exceeded"
    elif high <= limit and fewest >= enough:
        outcome = "passed"
    elif limit > 0:
        # Of a node that none of n models names, it is known that no more than 1 - (level / nodes)^(1/n) of them do.
        failure = (1 - LEVEL_OF_GATES) / 2 / result.permutation_test.num_nodes
        enough = max(enough, math.ceil(math.log(failure) / math.log1p(-limit)))
        if fewest < enough:
            reason += f"; some node is in only {count(fewest, 'model')}, and it takes {enough}"
            needed = _models_that_hold(result, enough)
    what = f"largest share of a node's models that name it with {100 * precision:g} % certainty"
    return CheckedThreshold("max_node_exposure", limit, None, outcome, what, low, high, reason, needed)


def _check_leaking_nodes(subject: _Subject, limit: int) -> CheckedThreshold:
    name, result, test = "max_leaking_nodes", subject.result, subject.result.permutation_test
    subject.check_tested(name)
    reason = f"{count(test.num_leaking, 'node')} {'is' if test.num_leaking == 1 else 'are'} proven to leak"
    outcome: Outcome = "passed"
    needed, num_leaking = None, test.num_leaking
    if not num_leaking and subject.found.is_leakage_proven:  # in a way that ranks do not show
        reason, num_leaking = "models are proven to give away more than the sampling, so some node leaks", 1
    if num_leaking > limit:
        outcome = "exceeded"
    elif test.num_hidden:
        outcome, needed = "undecided", _models_to_test(result)
        reason += f"; a leak of {count(test.num_hidden, 'node')} could not have been found"
    elif test.missed_auc is not None:
        reason += f"; a leak of one node with an AUC of {number(test.missed_auc, 2)} would have been found"
    return CheckedThreshold(name, limit, None, outcome, "nodes proven to leak", num_leaking, None, reason, needed)


def _models_to_test(result: AuditResult) -> int | None:
    """The number of models with which a node that every model gives away very likely stands out from all others."""
    test, nodes = result.permutation_test, result.nodes
    # What no node reaches by chance grows with the number of models, up to that of normal statistics.
    critical = max(-scipy.special.ndtri(LEAKING / 2 / test.num_nodes), *test.null_statistics)
    rarest = min(nodes.rarest_prior, 1 - nodes.commonest_prior)

    def is_enough(num_models: int) -> bool:
        numbers = np.arange(num_models // 2 + 1)
        hidden = int(np.searchsorted(largest_z(numbers, num_models), critical, side="right"))
        return hidden < len(numbers) and _hold(result, hidden, num_models, rarest)

    return _fewest_models(is_enough)


# What is estimated.


def _check_estimated(subject: _Subject, side: str, limit: float) -> CheckedThreshold:
    name, symbol, result = f"max_estimated_{side}", SYMBOLS[PARAMETERS[side]], subject.result
    subject.check_tested(name)
    of_side = [row for row in result.headline if row.parameter == PARAMETERS[side] and not row.multiplies_odds]
    of_mp = (row for row in result.headline if row.definition == "mp")
    row = next(of_mp if side == "mp" else iter(of_side), None)
    if row is None:
        raise InputError(f"{name}: the audit did not estimate {symbol}; name a definition that has it in the plan")
    estimate = interval(row.p5, row.p95, DIGITS)
    doubts = list(row.warnings)
    if not result.is_leakage_found:
        doubts.insert(0, "no leakage was found, so the estimate is uninformative")
    outcome: Outcome = "exceeded"
    needed, reason, bound = None, _certainly_above(subject, side, limit), subject.bound(side)
    if not reason and bound is not None and bound.proven is not None and bound.proven > row.p95:
        reason = f"the estimate, {estimate}, is refuted: {symbol} ≥ {number(bound.proven, DIGITS)} is proven"
    if not reason:
        outcome, reason = "undecided", f"estimated {estimate}"
        if row.p95 <= limit:
            outcome, why, needed = _unless_exceeded(subject, side, limit)
            reason += f"; {why}"
        elif doubts:
            reason += f", which decides nothing: {'; '.join(doubts)}"
        elif row.p5 > limit:
            outcome = "exceeded"
    return CheckedThreshold(name, limit, None, outcome, f"estimated {symbol}", row.p5, row.p95, reason, needed)


# The outcome of a gate for a model card (Markdown) and for CI servers (JUnit XML).

NOT_A_GUARANTEE = (
    "Passing means that a single node that every model gives away would have been found, and that nothing like it was. "
    "It is no guarantee: a better attack may find more."
)

# What is not a character of XML 1.0.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~])")


def to_markdown(result: GateResult) -> str:
    """A few lines for a model card."""
    rows = [f"| {_shown(each.label)} | {each.outcome} | {_shown(each.explanation)} |" for each in result.thresholds]
    subject = _shown(f"{result.subject}; bmpaudit {result.bmpaudit}")
    table = "\n".join(["| threshold | outcome | why |", "| --- | --- | --- |", *rows])
    return f"**Membership inference: {result.outcome}** ({subject})\n\n{table}\n\n{NOT_A_GUARANTEE}"


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
        explanation = _characters(each.explanation)
        case = ET.SubElement(suite, "testcase", {"classname": _characters(result.title), "name": each.label})
        tag = {"passed": "system-out", "exceeded": "failure", "undecided": "error"}[each.outcome]
        about = {} if each.outcome == "passed" else {"type": each.outcome, "message": explanation}
        ET.SubElement(case, tag, about).text = explanation
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _characters(text: str) -> str:
    return _NO_XML.sub("?", text)


# Whether a finished audit passes a gate.


def check(audit: Audit | str | Path, gate: Gate | None = None, **thresholds: Any) -> GateResult:
    """Holds a finished audit, or its folder, against thresholds.

    Everything is decided from the result: no code that the plan names is run, and no shadow model is read. The gate is
    that of the plan's section `[gate]` if none is given; `thresholds` are fields of it, such as `max_proven_right=3` or
    `max_exposure="10@0.99"`, which override it.

    Raises:
        InputError: if there is no threshold, or one about something that the audit does not have.
        DataError: if the folder is not a finished audit, or is damaged.

    >>> from bmpaudit.pipeline.pipeline import audit
    >>> finished = audit("demo", shadows=16, definitions="bmp-r", release_as="scores")
    >>> print(check(finished, max_proven_right=3))
    demo, Uniform 25 %, GCN; clean release, scores; 16 shadow models
    undecided  max_proven_right 3  ...
    gate: undecided
    """
    if isinstance(audit, Audit):
        result, its_gate = audit.result, audit.plan.gate
    else:
        workspace = Workspace(audit)
        with workspace.unchanged():
            plan = finished.stored_plan(workspace).plan
            workspace.stamp("estimate", context.plan_hash(plan))
            result, its_gate = finished.stored_result(workspace), plan.gate
    return decide(result, (its_gate if gate is None else gate).replace(**thresholds))
