"""Text that is safe to show: in a terminal, which obeys control characters, and in HTML."""

import re
from collections.abc import Iterable, Sequence
from html import escape

# C0 but for tab and line feed, DEL and C1, separators of lines, marks of direction, and halves of surrogate pairs.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_text(text: str) -> bool:
    r"""Whether every character can be written: halves of a surrogate pair cannot.

    >>> is_text("naïve 👍"), is_text("\ud83d")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    r"""Text in which control characters are spelled out, as in JSON; line breaks and tabs stay.

    Terminals obey control characters, and some reverse what follows a mark of direction.

    >>> visible("\x1b[31mred\u202e\n")
    '\\u001b[31mred\\u202e\n'
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text.

    >>> html_table(["name"], [["<Rex>"]])
    '<table><tr><th>name</th></tr><tr><td>&lt;Rex&gt;</td></tr></table>'
    """
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def paragraphs(lines: Iterable[str]) -> str:
    """Lines of text, a paragraph each."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
