"""What is compared of each model, and how it is written in tables of the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bmpaudit.proof.result import SYMBOLS
from bmpaudit.report.words import number, percent, signed

NAMED = {"right": "training nodes", "left": "nodes outside the training graph"}


@dataclass(frozen=True)
class Quantity:
    """What is compared of each model.

    Attributes:
        name: As in files.
        label: As readers see it.
        digits: Number of decimals.
        is_share: Whether it is shown in per cent, and differences in points.
    """

    name: str
    label: str
    digits: int
    is_share: bool = False


def named_with(certainty: float) -> Quantity:
    """Number of nodes that are named correctly with this certainty."""
    return Quantity(f"named_{100 * certainty:g}", f"named with {100 * certainty:g} % certainty", 1)


NAMED_90, NAMED_99 = named_with(0.9), named_with(0.99)
AUC = Quantity("auc", "AUC within a model", 3)
TRUE_POSITIVE_RATE = Quantity("tpr", "TPR at FPR 1 % within a model", 1, is_share=True)
HELD_OUT_ACCURACY = Quantity("held_out_accuracy", "held-out accuracy", 1, is_share=True)
QUANTITIES = (NAMED_90, NAMED_99, AUC, TRUE_POSITIVE_RATE, HELD_OUT_ACCURACY)


class ShownChange(NamedTuple):
    """A difference and its interval in words."""

    mean: str
    interval: str


def show_mean(quantity: Quantity, mean: Mapping[str, float] | None) -> str:
    """A mean with its limits.

    >>> show_mean(NAMED_99, {"mean": 12.34, "low": 11.5, "high": 13.2})
    '12.3 (11.5 to 13.2)'
    >>> show_mean(HELD_OUT_ACCURACY, {"mean": 0.995, "low": 0.985, "high": 1.005})
    '99.5 % (98.5 to 100.0)'
    """
    if mean is None:
        return "not known"
    factor = 100 if quantity.is_share else 1
    # Limits of Student's t know no bounds.
    ends = [max(mean["low"], 0.0), min(mean["high"], 1.0) if quantity.is_share else mean["high"]]
    low, high = (number(factor * end, quantity.digits) for end in ends)
    middle = (percent if quantity.is_share else number)(mean["mean"], quantity.digits)
    return f"{middle} ({low} to {high})"


def show_change(quantity: Quantity, change: Mapping[str, float]) -> ShownChange:
    """A difference with its limits, of shares in points.

    >>> show_change(HELD_OUT_ACCURACY, {"mean": -0.004, "low": -0.006, "high": -0.002})
    ShownChange(mean='−0.4 points', interval='−0.6 to −0.2')
    """
    factor = 100 if quantity.is_share else 1
    mean, low, high = (signed(factor * change[end], quantity.digits) for end in ("mean", "low", "high"))
    return ShownChange(f"{mean}{' points' if quantity.is_share else ''}", f"{low} to {high}")


def side_by_side(audits: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Rows of a table with a column for each audit, from what `Comparison.to_dict` has of them."""
    table = [("shadow models", [f"{audit['num_models']:,}" for audit in audits])]
    table += [
        (quantity.label, [show_mean(quantity, audit["figures"][quantity.name]) for audit in audits])
        for quantity in QUANTITIES
    ]
    for name, symbol in SYMBOLS.items():
        bounds = [audit["proven"][name] for audit in audits]
        table.append((f"proven {symbol}", ["nothing" if bound is None else f"≥ {number(bound)}" for bound in bounds]))
    for name in ("epsilon_right", "epsilon_left"):
        floors = [audit["floor"] for audit in audits]
        table.append(
            (f"floor of {SYMBOLS[name]}", [("" if each["is_exact"] else "≥ ") + number(each[name]) for each in floors])
        )
    return table


def changes(figures: Sequence[Mapping[str, Any]]) -> list[tuple[str, ShownChange]]:
    """Rows of a table of differences, from what `Comparison.to_dict` has of them."""
    quantities = {quantity.name: quantity for quantity in QUANTITIES}
    return [(quantities[each["quantity"]].label, show_change(quantities[each["quantity"]], each)) for each in figures]
