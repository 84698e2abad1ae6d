"""What a gate found: one outcome for each threshold, and one for all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from bmpaudit.plain import plain
from bmpaudit.report.words import count

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
