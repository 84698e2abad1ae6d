"""Citation data in the older form `<name>.content` (paper, words, class) and `<name>.cites` (cited, citing)."""

from pathlib import Path

import numpy as np

from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.graph.node_error import NodeError
from bmpaudit.reading.text import read_text


def read_content(folder: Path, name: str) -> Graph:
    """Reads `<name>.content` and `<name>.cites` from a folder.

    Nodes are in the order of the content file and keep their names; classes are numbered in alphabetical order.

    Raises:
        DataError: if a file is missing, or a line does not fit; the message names file and line.
    """
    content, cites = folder / f"{name}.content", folder / f"{name}.cites"
    line_of: dict[str, int] = {}
    words: list[np.ndarray] = []
    classes: list[str] = []
    for line, fields in _lines(content):
        if len(fields) < 3:
            raise DataError(f"{content}: line {line}: must have a paper, words and a class, got {len(fields)} fields")
        if words and len(fields) - 2 != len(words[0]):
            raise DataError(f"{content}: line {line}: must have {len(words[0]) + 2} fields, got {len(fields)}")
        paper = fields[0]
        if paper in line_of:
            raise DataError(f"{content}: line {line}: paper {paper!r} is already on line {line_of[paper]}")
        line_of[paper] = line
        try:
            words.append(np.array(fields[1:-1], dtype=np.float32))
        except ValueError as failure:
            raise DataError(f"{content}: line {line}: paper {paper!r}: {failure}") from None
        classes.append(fields[-1])
    if not words:
        raise DataError(f"{content}: truncated, it is empty")
    papers = list(line_of)
    class_names, labels = np.unique(classes, return_inverse=True)
    try:
        return Graph.from_edges(
            _read_cites(cites, content, papers),
            np.stack(words),
            labels,
            node_names=papers,
            class_names=[str(class_name) for class_name in class_names],
        )
    except NodeError as wrong:
        paper = papers[wrong.node]
        place = f"{content}: line {line_of[paper]}"
        raise DataError(f"{place}: {wrong.what} in word {wrong.column} of paper {paper!r}") from None
    except DataError:
        raise
    except InputError as wrong:
        raise DataError(f"{content}: {wrong}") from None


def _read_cites(cites: Path, content: Path, papers: list[str]) -> list[list[int]]:
    row_of = {paper: row for row, paper in enumerate(papers)}
    pairs = []
    for line, fields in _lines(cites):
        if len(fields) != 2:
            raise DataError(f"{cites}: line {line}: must have two papers, got {len(fields)} fields")
        for paper in fields:
            if paper not in row_of:
                raise DataError(f"{cites}: line {line}: paper {paper!r} is not in {content.name}")
        pairs.append([row_of[paper] for paper in fields])
    return pairs


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The fields of each line, with its number."""
    lines = read_text(path, encoding="ascii").splitlines()
    return [(number, line.split()) for number, line in enumerate(lines, start=1)]
