"""Errors that name the node they are about."""

from collections.abc import Sequence

from bmpaudit.errors import InputError


class NodeError(InputError):
    """A value of one node cannot be used.

    A reader of files knows more about where the value stands, and reports `what` with the file, line and column.

    Attributes:
        what: The requirement and the value, without the place.
        node: Number of the node.
        column: Number of the feature column, if the value is a feature.
    """

    def __init__(self, what: str, node: int, names: Sequence[str] | None, column: int | None = None) -> None:
        self.what, self.node, self.column = what, node, column
        place = describe_node(node, names)
        super().__init__(f"{what} at {place}" if column is None else f"{what} at {place}, feature column {column}")


def describe_node(node: int, names: Sequence[str] | None) -> str:
    """What to call a node in a message: by its name if it has one.

    >>> describe_node(1, ["Rex", "Tom"]), describe_node(1, None)
    ("node 'Tom'", 'node 1')
    """
    return f"node {node}" if names is None else f"node {names[node]!r}"
