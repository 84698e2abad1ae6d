"""Citation data in the older form `<name>.content` (paper, words, class) and `<name>.cites` (cited, citing)."""

from pathlib import Path

import numpy as np

from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph


def read_content(folder: Path, name: str) -> Graph:
    """Reads `<name>.content` and `<name>.cites` from a folder.

    Nodes stand in the order of the content file and keep their names; classes are numbered in alphabetical order.

    Raises:
        DataError: if a file is missing or a line does not fit.
    """
    content, cites = folder / f"{name}.content", folder / f"{name}.cites"
    papers: list[str] = []
    words: list[np.ndarray] = []
    classes: list[str] = []
    for number, fields in _rows(content):
        if len(fields) < 3 or (words and len(fields) - 2 != len(words[0])):
            raise DataError(f"{content}: line {number}: truncated, it has {len(fields)} fields")
        papers.append(fields[0])
        try:
            words.append(np.array(fields[1:-1], dtype=np.float32))
        except ValueError as wrong:
            raise DataError(f"{content}: line {number}: {wrong}") from None
        classes.append(fields[-1])
    row_of = {paper: row for row, paper in enumerate(papers)}
    pairs = []
    for number, fields in _rows(cites):
        unknown = [paper for paper in fields if paper not in row_of]
        if unknown or len(fields) != 2:
            problem = f"paper {unknown[0]!r} is not in {content.name}" if unknown else f"it has {len(fields)} fields"
            raise DataError(f"{cites}: line {number}: {problem}")
        pairs.append([row_of[paper] for paper in fields])
    if not papers:
        raise DataError(f"{content}: truncated, it is empty")
    class_names, labels = np.unique(classes, return_inverse=True)
    try:
        return Graph.from_edges(
            pairs,
            np.stack(words),
            labels,
            node_names=papers,
            class_names=[str(class_name) for class_name in class_names],
        )
    except InputError as wrong:
        raise DataError(f"{folder}: {wrong}") from None


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except UnicodeDecodeError as damage:
        raise DataError(f"{path}: damaged ({damage})") from None
    return [(number, line.split()) for number, line in enumerate(lines, start=1)]
