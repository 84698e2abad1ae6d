"""Intervals against what is proven, on tables made for it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_up import cell_table
from reproduction.beyond import CONFIGURATION, against_proofs, directions, highest_meant
from reproduction.experiments import CONFIGURATIONS, KEY, RELEASES, published_table


def proof_table(value: Any) -> pd.DataFrame:
    rows = []
    for configuration in CONFIGURATIONS:
        for release in RELEASES:
            for adversary in ("full", "none", "all"):
                for seed in range(3):
                    key = {**vars(configuration), "release": release, "adversary": adversary, "seed": seed}
                    rows.append({**key, "epsilon_right_proven": value(key), "mp_proven": value(key) + 1})
    return pd.DataFrame(rows)


def both_countings(value: Any) -> pd.DataFrame:
    return pd.concat([cell_table(value, counting=counting) for counting in ("paper", "ours")], ignore_index=True)


def test_an_interval_is_refuted_by_the_median_of_the_bounds_of_its_own_adversary() -> None:
    cells = both_countings(lambda _: 4.0)  # p5 is 3.5, p95 is 4.5
    bounds = {"full": (4.6, 4.6, 0.0), "none": (4.6, 0.0, 0.0), "all": (9.0, 9.0, 9.0)}
    proofs = proof_table(lambda key: bounds[key["adversary"]][key["seed"]])
    unflagged = cells[cells["counting"] == "paper"].assign(p50_unflagged=4.0)
    table = against_proofs(cells, unflagged, proofs)
    assert len(table) == 256
    right = table[table["definition"] == "bmp-r"]
    assert (right["below_paper_same"] == (right["query"] == "full")).all()
    assert right["below_ours_all"].all()
    assert (right.loc[right["query"] == "none", "proven_same"] == 0).all()
    assert (table.loc[table["definition"] == "mp", "proven_all"] == 10).all()
    printed = published_table()
    expected = highest_meant(printed["p95"].to_numpy(dtype=float)) < np.where(table["definition"] == "mp", 10, 9)
    assert (table["below_published_all"] == expected).all()
    assert not table["is_driven"].any()


def test_of_two_bounds_the_lower_one_counts() -> None:
    cells = both_countings(lambda _: 4.0)
    unflagged = cells[cells["counting"] == "paper"].assign(p50_unflagged=4.0)
    proofs = proof_table(lambda key: 3.0 + key["seed"])
    table = against_proofs(cells, unflagged, proofs[proofs["seed"] < 2])
    assert set(table.loc[table["definition"] == "bmp-r", "proven_same"]) == {3.0}


def test_nothing_proven_refutes_nothing() -> None:
    cells = both_countings(lambda _: 4.0)
    unflagged = cells[cells["counting"] == "paper"].assign(p50_unflagged=4.0)
    table = against_proofs(cells, unflagged, proof_table(lambda _: np.nan))
    assert not table.filter(like="below_").any(axis=None)


@pytest.mark.parametrize(("without", "is_driven"), [(3.6, False), (3.4, True), (np.nan, True)])
def test_a_cell_is_driven_if_its_middle_falls_out_of_the_interval(without: float, is_driven: bool) -> None:
    cells = both_countings(lambda _: 4.0)
    unflagged = cells[cells["counting"] == "paper"].assign(p50_unflagged=without)
    table = against_proofs(cells, unflagged, proof_table(lambda _: 0.0))
    assert (table["is_driven"] == is_driven).all()


def test_directions_agree_where_estimates_follow_exposure() -> None:
    """p50 falls with noise as exposure does, and rises with the fraction although exposure falls."""
    cells = cell_table(lambda key: 5 - (key["release"] == "noisy") + (key["train_fraction"] == 0.5))
    exposures = pd.DataFrame(
        [
            {
                **vars(configuration),
                "release": release,
                "adversary": adversary,
                "seed": 0,
                "precision": precision,
                "correct_mean": (50 - 10 * (release == "noisy") - 20 * (configuration.train_fraction == 0.5))
                * precision,
                "total": 100.0,
            }
            for configuration in CONFIGURATIONS
            for release in RELEASES
            for adversary in ("full", "none", "all")
            for precision in (0.9, 0.99)
        ]
    )
    table = directions(cells, exposures)
    by_factor = {str(name): part for name, part in table.groupby("factor")}
    assert set(by_factor["release"]["num_agreeing"]) == {32}
    assert set(by_factor["train_fraction"]["num_agreeing"]) == {0}
    assert set(by_factor["model"]["num_agreeing"]) == {32}  # neither moves
    assert set(by_factor["all"]["num_pairs"]) == {64}
    assert by_factor["all"]["correlation"].max() < 0
    assert set(CONFIGURATION) < set(KEY)
