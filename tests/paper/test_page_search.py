"""The table of other ways of snowball sampling."""

from typing import Any

import pandas as pd

from bmpaudit.paper.page_search import search_part


def row(snowball: str, fraction: float, is_within: bool, **values: Any) -> dict[str, Any]:
    key = {"dataset": "citeseer", "train_fraction": fraction, "model": "gcn", "query": "none", "release": "noisy"}
    cell = {"rule": "weak", "definition": "bmp-r", "p50": 8.4, "published_p50": 5.4}
    return {"snowball": snowball, **key, **cell, "is_within": is_within, **values}


def test_cells_gained_are_counted_where_a_variant_was_run() -> None:
    table = pd.DataFrame(
        [
            row("stop", 0.5, False),
            row("stop", 0.5, True, rule="strong"),
            row("stop", 0.25, False),
            row("resume", 0.5, True, p50=6.0),
            row("resume", 0.5, True, rule="strong"),
        ]
    )
    counted = {"sampler": "snowball", "counting": "paper"}
    cells = pd.DataFrame(
        [
            row("", 0.5, False, p50=7.9, **counted),
            row("", 0.5, False, p50=8.5, **counted),
            row("", 0.5, False, p50=9.9, sampler="snowball", counting="ours"),
        ]
    )
    part = search_part({"variants": table, "cells": cells})
    assert "CiteSeer 50% GCN" in part
    assert "stays small | 1 of 2 | 0 of 1 |  |" in part
    assert "joins it again | 2 of 2 | - | +1 |" in part
    assert "(published 5.4): stop 8.4, resume 6.0. " in part
    assert "ended after 2 of 8 snowball configurations" in part
    assert "Not run at all: a node draws up to 5 of its neighbours outside of the sample; " in part
    assert part.endswith("their seeds give 7.9 to 8.5.")


def test_nothing_without_results() -> None:
    assert search_part({}) == ""
