"""HTML for notebooks, in which nothing that comes from data is taken for markup."""

from collections.abc import Iterable, Sequence
from html import escape


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
