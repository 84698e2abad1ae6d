"""Shows the examples in docstrings as code (an extension of Griffe, which reads the docstrings for the site)."""

import re
from typing import Any

import griffe

# From a prompt to the next empty line.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedDoctests(griffe.Extension):
    """Without fences Markdown takes a prompt for a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Puts fences around the examples of an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
