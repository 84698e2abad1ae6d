"""How numbers and symbols are written, on the page, in tables and in the terminal."""

import math
import re
from collections.abc import Mapping, Sequence

SYMBOLS = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP ε"}
"""How the parameters are written that a proof is about."""

MISSING = "–"
CEILING, CEILING_NOTE = "^", "^ every guess was right: the most that so many guesses can show"
MINUS = "−"
LARGEST_SHOWN_ODDS = 1e6
USUAL_DIGITS, ALL_DIGITS = 6, 17  # of a confidence level
TABLE_WORDS = {
    "training graph": "training data",
    "graph": "data set",
    "Graph": "Data set",
    "node": "row",
    "nodes": "rows",
    "Node": "Row",
    "Nodes": "Rows",
}
"""What words about graphs are replaced by where the data are a table."""
INFINITE = {"inf": math.inf, "-inf": -math.inf}  # as JSON has them

Number = float | str | None
"""A number; infinite ones may be the texts "inf" and "-inf", an unknown one None."""


def number(value: Number, digits: int = 2) -> str:
    """A number with a fixed number of decimals and a real minus sign; a dash if unknown.

    >>> number(-1.098), number(-0.001), number("inf"), number(-math.inf), number(None)
    ('−1.10', '0.00', '∞', '−∞', '–')
    """
    if value is None:
        return MISSING
    known = INFINITE[value] if isinstance(value, str) else float(value)
    if math.isnan(known):
        return MISSING
    if math.isinf(known):
        return "∞" if known > 0 else f"{MINUS}∞"
    text = f"{known:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", MINUS)


def signed(value: Number, digits: int = 2) -> str:
    """As `number`, with a plus before what is positive.

    >>> signed(1.234), signed(-0.5), signed(-0.001), signed(math.inf), signed(None)
    ('+1.23', '−0.50', '0.00', '+∞', '–')
    """
    text = number(value, digits)
    has_sign = text.startswith(MINUS) or text == MISSING or not text.strip("0.")
    return text if has_sign else f"+{text}"


def interval(low: Number, high: Number, digits: int = 2) -> str:
    """Both ends of an interval.

    >>> interval(-1, 2.345)
    '−1.00 to 2.35'
    """
    return f"{number(low, digits)} to {number(high, digits)}"


def probability(value: float) -> str:
    """Two decimals, but never certainty.

    >>> probability(0.5), probability(0.9999), probability(1e-9)
    ('0.50', 'over 0.99', 'under 0.01')
    """
    if value > 0.995:
        return "over 0.99"
    return "under 0.01" if value < 0.005 else f"{value:.2f}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share as a percentage.

    >>> percent(0.951), percent(0.9512, digits=1), percent(None)
    ('95 %', '95.1 %', '–')
    """
    return MISSING if share is None else f"{100 * share:.{digits}f} %"


def confidence(level: float) -> str:
    """A confidence level as a percentage, with as many digits as it takes not to look certain.

    >>> confidence(0.95), confidence(0.999), confidence(0.99999999)
    ('95 %', '99.9 %', '99.999999 %')
    """
    texts = (f"{100 * level:.{digits}g}" for digits in range(USUAL_DIGITS, ALL_DIGITS + 1))
    return f"{next((text for text in texts if float(text) < 100), '100')} %"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """A number of things.

    >>> count(1, "node"), count(1204, "node"), count(2, "class", "classes")
    ('1 node', '1,204 nodes', '2 classes')
    """
    return f"{value:,} {noun if value == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """A time, to about two digits.

    >>> duration(0.04), duration(8.2), duration(200.0), duration(7_300.0), duration(400_000.0)
    ('0.0 s', '8.2 s', '3 min 20 s', '2 h 1 min', '4 d 15 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for (unit, size), (smaller, part) in (
        (("d", 86_400), ("h", 3_600)),
        (("h", 3_600), ("min", 60)),
        (("min", 60), ("s", 1)),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s"


def listed(items: Sequence[str]) -> str:
    """Several things in a sentence.

    >>> listed(["ε_R"]), listed(["ε_R", "ε_L"]), listed(["ε_R", "ε_L", "MP ε"])
    ('ε_R', 'ε_R and ε_L', 'ε_R, ε_L and MP ε')
    """
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def in_other_words(text: str, replaced: Mapping[str, str]) -> str:
    """A text with some of its words replaced; names of commands stay.

    >>> in_other_words("Nodes of a graph: bmpaudit nodes DIR", TABLE_WORDS)
    'Rows of a data set: bmpaudit nodes DIR'
    """
    if not replaced:
        return text
    pattern = rf"(?<!bmpaudit )\b({'|'.join(map(re.escape, replaced))})\b"
    return re.sub(pattern, lambda found: replaced[found[1]], text)


def odds(epsilon: float) -> str:
    """The odds e^ε : 1, or 1 : e^-ε below even odds.

    >>> odds(math.log(120)), odds(math.log(1 / 3)), odds(40.0)
    ('120 : 1', '1 : 3', 'over 1,000,000 : 1')
    """
    bound, ratio = _ratio(epsilon)
    return bound + (f"{ratio} : 1" if epsilon >= 0 else f"1 : {ratio}")


def factor(epsilon: float) -> str:
    """What odds are multiplied by, e^ε: how the ε of MP reads.

    >>> factor(math.log(96)), factor(math.log(1 / 3)), factor(40.0)
    ('×96', '×1/3', 'over ×1,000,000')
    """
    bound, ratio = _ratio(epsilon)
    return bound + (f"×{ratio}" if epsilon >= 0 or ratio == "1" else f"×1/{ratio}")


def _ratio(epsilon: float) -> tuple[str, str]:
    """e^|ε|, and before it "over " or "below " where it is more than is told."""
    ratio = math.exp(min(abs(epsilon), 700.0))
    if ratio > LARGEST_SHOWN_ODDS:
        return "over " if epsilon > 0 else "below ", f"{LARGEST_SHOWN_ODDS:,.0f}"
    return "", f"{ratio:,.0f}" if ratio >= 20 else f"{ratio:.2g}"
