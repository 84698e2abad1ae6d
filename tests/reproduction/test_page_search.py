"""The table of other ways of snowball sampling, and what follows from it."""

from typing import Any

import pandas as pd
import pytest
from reproduction.experiments import CONFIGURATIONS
from reproduction.page import OURS, search_part

SNOWBALL = [each for each in CONFIGURATIONS if each.sampler == "snowball"]
ATTACK = {"query": "none", "release": "noisy", "rule": "weak", "definition": "bmp-r"}


def row(snowball: str, fraction: float, is_within: bool, **values: Any) -> dict[str, Any]:
    key = {"dataset": "citeseer", "train_fraction": fraction, "model": "gcn", **ATTACK}
    return {"snowball": snowball, "seed": 0, **key, "p50": 8.4, "published_p50": 5.4, "is_within": is_within, **values}


def cell(p50: float, seed: int = 0, counting: str = "paper", **values: Any) -> dict[str, Any]:
    key = {"dataset": "citeseer", "train_fraction": 0.5, "model": "gcn", "sampler": "snowball", **ATTACK}
    return {**key, "p50": p50, "seed": seed, "counting": counting, **values}


def everywhere(num_within: dict[str, int], seed: int = 0) -> pd.DataFrame:
    """Variants that have one cell in each configuration, within reach in the first so many."""
    rows = []
    for name, within in num_within.items():
        for number, each in enumerate(SNOWBALL):
            key = {"dataset": each.dataset, "model": each.model, "seed": seed}
            rows.append(row(name, each.train_fraction, number < within, **key))
    return pd.DataFrame(rows)


def told(*variants: pd.DataFrame) -> str:
    """What follows below the table."""
    return search_part({"variants": pd.concat(variants), "cells": pd.DataFrame([cell(8.0)])}).split("\n\n", 2)[2]


def test_cells_gained_are_counted_where_a_variant_was_run() -> None:
    table = pd.DataFrame(
        [
            row("stop", 0.5, False),
            row("stop", 0.5, True, rule="strong"),
            row("stop", 0.25, False),
            row("stop", 0.25, True, dataset="cora"),
            row("stop", 0.5, True, seed=1),
            row("resume", 0.5, True, p50=6.0),
            row("resume", 0.5, True, rule="strong"),
            row("connected seed", 0.5, False),
        ]
    )
    cells = pd.DataFrame([cell(7.9), cell(8.5, seed=1), cell(9.9, counting="ours")])
    part = search_part({"variants": table, "cells": cells})
    assert "| CiteSeer 50% GCN | CiteSeer 25% GCN | Cora 25% GCN | cells gained |" in part
    assert "stays small | 1 of 2 | 0 of 1 | 1 of 1 |  |" in part
    assert "joins it again | 2 of 2 | - | - | +1 |" in part
    assert "never the seed | 0 of 1 | - | = | -1 |" in part
    assert "(published 5.4): stop 8.4, resume 6.0, connected seed 8.4. " in part
    assert part.endswith("the seeds of the tables give 7.9 to 8.5.")


def test_seeds_are_compared_where_a_variant_was_run_everywhere() -> None:
    first, again = everywhere({"stop": 5, "any order": 6}), everywhere({"stop": 7, "any order": 3}, seed=1)
    of_cora = again[(again["dataset"] == "cora") | (again["snowball"] == "stop")]
    assert told(first, of_cora).startswith(
        "Seeds alone make a difference. Cells within reach with each: *stop* 5 and 7 of 8.\n"
    )
    assert not told(first).startswith("Seeds alone")


def test_a_variant_about_nodes_that_cora_lacks_is_complete_without_cora() -> None:
    runs = [everywhere({"stop": 8, "connected seed": 4}, seed=seed) for seed in (0, 1)]
    of_citeseer = [run[(run["dataset"] == "citeseer") | (run["snowball"] == "stop")] for run in runs]
    assert "*connected seed* 0 and 0 of 4." in told(*of_citeseer)


def with_value(name: str, *p50: float) -> pd.DataFrame:
    """Seeds with one value in all eight cells: only where it comes near the published 5.4 do they agree."""
    return pd.concat([everywhere({name: 0}, seed=seed).assign(p50=value) for seed, value in enumerate(p50)])


def tables_with(*p50: float) -> pd.DataFrame:
    """The cells of the tables, with one value for each seed."""
    rows = [
        cell(value, seed, dataset=each.dataset, train_fraction=each.train_fraction, model=each.model)
        for seed, value in enumerate(p50)
        for each in SNOWBALL
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("base", "decided"), [(8.0, "So it is the rule of the tables."), (5.4, "That is no clear difference.")]
)
def test_the_measure_of_the_tables_is_averaged_over_choices_of_three_seeds(base: float, decided: str) -> None:
    variants = pd.concat([with_value("stop", base, base, base), with_value(OURS, 5.5, 8.0, 8.0)])
    part = search_part({"variants": variants, "cells": tables_with(8.0)})
    # Of four choices of three, one leaves out the only seed that comes near.
    num_base = 0 if base == 8.0 else 8
    assert "How many of 8 snowball cells agree by the measure of the tables" in part
    assert f": *stop* {num_base}.0 ({num_base} to {num_base}; 3 seeds); *{OURS}* 6.0 (0 to 8; 4 seeds). The" in part
    assert decided in part


def test_every_rule_with_three_seeds_everywhere_is_measured() -> None:
    rules = [with_value(name, 8.0, 8.0, 8.0) for name in ("stop", "any order", "connected seed", OURS)]
    of_citeseer = rules[2][rules[2]["dataset"] == "citeseer"]
    part = search_part({"variants": pd.concat([*rules[:2], of_citeseer, rules[3]]), "cells": tables_with(8.0)})
    assert f": *stop* 0.0 (0 to 0; 3 seeds); *any order* 0.0 (0 to 0; 3 seeds); *{OURS}* 0.0 " in part


def test_the_range_of_three_seeds_is_what_must_come_near() -> None:
    variants = pd.concat([with_value("stop", 8.0, 8.0, 8.0), with_value(OURS, 3.0, 8.0)])
    assert f"*{OURS}* 8.0 (8 to 8; 3 seeds)" in search_part({"variants": variants, "cells": tables_with(8.0)})


def test_fewer_than_three_seeds_are_not_judged() -> None:
    variants = pd.concat([with_value("stop", 8.0, 8.0), with_value(OURS, 3.0, 8.0)])
    assert "by the measure" not in search_part({"variants": variants, "cells": tables_with(8.0)})


@pytest.mark.parametrize(("num_within", "is_behind"), [(4, True), (5, False)])
def test_a_variant_that_cannot_catch_up_is_not_missed(num_within: int, is_behind: bool) -> None:
    """Ours has 20 cells of one configuration and none of the one that is missing, which has 16."""
    rules = [str(number) for number in range(20)]
    ours = [row(name, 0.5, True, rule=rule) for name in ("stop", OURS) for rule in rules]
    ours += [row(name, 0.25, False) for name in ("stop", OURS)]
    other = [row("fill", 0.5, number < num_within, rule=rule) for number, rule in enumerate(rules)]
    others = [
        row(name, each.train_fraction, False, dataset=each.dataset, model=each.model)
        for name in ("stop", OURS, "fill")
        for each in SNOWBALL
        if each.dataset == "cora" or each.model == "gat"
    ]
    part = told(pd.DataFrame([*ours, *other, *others]))
    assert ("could not make up for it: *fill*." in part) == is_behind
    assert (f"where they were: *fill* ({num_within}, *{OURS}* 20)." in part) != is_behind


def test_a_variant_that_is_ahead_with_one_seed_is_named() -> None:
    tried = everywhere({"stop": 4, OURS: 5, "walked edges": 6, "resume": 5})
    sentence = f"Ahead with the one seed that was run, too few to tell: *walked edges* (6, *{OURS}* 5)."
    assert sentence in told(tried)
    assert "Ahead" not in told(tried, everywhere({"walked edges": 3}, seed=1))


def test_nothing_without_results() -> None:
    assert search_part({}) == ""
