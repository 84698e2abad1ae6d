"""What a comparison says in plain words: does it help, and what does it cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bmpaudit.auditing.compare_models import Mean, ModelDifference
from bmpaudit.auditing.compare_settings import differing_settings
from bmpaudit.auditing.compared import ComparedAudit
from bmpaudit.report.compare_words import AUC, HELD_OUT_ACCURACY, NAMED, NAMED_99, Quantity
from bmpaudit.report.words import count, signed

SURELY = 0.99


def verdict(first: ComparedAudit, other: ComparedAudit, differences: Sequence[ModelDifference]) -> str:
    """One or a few sentences on one audit against the first."""
    changes = {each.quantity: each.change for each in differences}
    sentences = []
    if first.is_leakage_found is False and other.is_leakage_found is False:
        sentences.append(f"No leakage was found in {first.label} or in {other.label}{_cost(changes)}.")
    else:
        sentences.append(f"{_exposure(first, other, changes)}{_cost(changes)}.")
        unfound = (audit.label for audit in (first, other) if audit.is_leakage_found is False)
        sentences += [f"No leakage was found in {label}." for label in unfound]
    sentences += [_not_tested(audit) for audit in (first, other) if audit.is_leakage_found is None]
    sentences += _not_settled([audit for audit in (first, other) if not audit.curve.is_settled[_place(audit)]])
    reasons = [audit.why_no_accuracy for audit in (first, other) if audit.why_no_accuracy]
    if reasons:
        sentences.append(f"What it costs in held-out accuracy is not known: {'; '.join(reasons)}.")
    return " ".join(sentences)


def _exposure(first: ComparedAudit, other: ComparedAudit, changes: Mapping[Quantity, Mean]) -> str:
    nodes, change = NAMED[other.side], changes[NAMED_99]
    if change.is_apart_from_0:
        ends = _ends(change, 1.0, "fewer", "more")
        return (
            f"{other.label} exposes {ends.amount} {ends.word} {nodes} per released model than {first.label} "
            f"({ends.low} to {ends.high} {ends.word}; named with 99 % certainty)"
        )
    if change.low == change.high:
        if not changes[NAMED_99].mean and not first.curve.correct.mean[_place(first)]:
            said = f"No model of {first.label} or of {other.label} exposes {nodes} with 99 % certainty"
        else:
            said = f"Each model of {other.label} exposes as many {nodes} as that of {first.label}"
    else:
        said = (
            f"{other.label} and {first.label} cannot be told apart: the difference in {nodes} exposed per released "
            f"model is {signed(change.low, 1)} to {signed(change.high, 1)} (named with 99 % certainty)"
        )
    auc = changes.get(AUC)
    if auc is not None and auc.is_apart_from_0:
        ends = _ends(auc, 1.0, "lower", "higher", digits=3)
        said += f", though the attack's AUC is {ends.amount} {ends.word} ({ends.low} to {ends.high})"
    return said


def _cost(changes: Mapping[Quantity, Mean]) -> str:
    change = changes.get(HELD_OUT_ACCURACY)
    if change is None:
        return ""
    if change.is_apart_from_0:
        ends = _ends(change, 100.0, "lower", "higher")
        points = "point" if ends.amount == "1" else "points"
        return f", and held-out accuracy is {ends.amount} {points} {ends.word} ({ends.low} to {ends.high})"
    if change.low == change.high:
        return ", and held-out accuracy is the same"
    return (
        ", and no difference in held-out accuracy can be told "
        f"({signed(100 * change.low, 1)} to {signed(100 * change.high, 1)} points)"
    )


class _Ends:
    """A difference without its sign, and the word for its sign."""

    def __init__(self, change: Mean, factor: float, less: str, more: str, digits: int | None) -> None:
        self.word = less if change.mean < 0 else more
        amount, *ends = (factor * abs(value) for value in (change.mean, change.low, change.high))
        if digits is None:
            # The nearer end tells that there is a difference: it must not round to none.
            digits = 0 if min(ends) >= 10 else 1 if min(ends) >= 0.1 else 2
        self.amount, self.low, self.high = (f"{value:,.{digits}f}" for value in (amount, *sorted(ends)))


def _ends(change: Mean, factor: float, less: str, more: str, digits: int | None = None) -> _Ends:
    return _Ends(change, factor, less, more, digits)


def _place(audit: ComparedAudit) -> int:
    return audit.curve.at(SURELY)


def _not_settled(audits: Sequence[ComparedAudit]) -> list[str]:
    if not audits:
        return []
    needed = (
        f"{audit.label} has {count(audit.curve.num_models, 'model')}, about "
        f"{audit.curve.models_needed[_place(audit)]:,} would do"
        for audit in audits
    )
    return [f"How many can be named is not settled: {'; '.join(needed)}."]


def _not_tested(audit: ComparedAudit) -> str:
    return (
        f"That {audit.label} leaks is not proven, and the permutation test was on the release "
        f"{audit.audit.attacks.releases[0]} alone."
    )


def cautions(audits: Sequence[ComparedAudit]) -> list[str]:
    """What a reader must know before trusting the verdicts."""
    messages = []
    marks = [(audit.fingerprint, audit.release) for audit in audits]
    if len(set(marks)) < len(marks):
        messages.append("The same audit is here more than once: it is compared with itself.")
    first = audits[0]
    for other in audits[1:]:
        counted = [setting.key for setting in differing_settings((first, other)) if not setting.is_beside]
        if first.audit is not other.audit and first.release != other.release:
            counted.append("the release")
        if len(counted) > 1:
            messages.append(
                f"{other.label} differs from {first.label} in {len(counted)} settings, so the difference cannot be put "
                f"down to one of them: {', '.join(counted)}."
            )
        if len(first.models.index) != len(other.models.index):
            messages.append(
                f"{first.label} has {count(len(first.models.index), 'shadow model')}, {other.label} "
                f"{len(other.models.index):,}: an attack that learns from more models names more nodes."
            )
    messages += [
        f"{audit.label}: its shadow models cannot be read, so neither its accuracy nor its samples are known: "
        f"{audit.runs}"
        for audit in audits
        if isinstance(audit.runs, str)
    ]
    return messages
