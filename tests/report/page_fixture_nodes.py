"""Nodes of a report page that were made up, some with names that would like to be code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from bmpaudit.report.page_data import group_data

SCRIPT_NAME = "<script>alert(1)</script>"
QUOTES_NAME = "\"'&</style>"
IMAGE_NAME = "<img src=x onerror=alert(2)>"
PLACEHOLDER_NAME = "{{data}} %{x} \u2028 </script><!--"
HOSTILE_NAMES = (
    SCRIPT_NAME,
    QUOTES_NAME,
    IMAGE_NAME,
    PLACEHOLDER_NAME,
    'a, "quoted"\nname',
    "=1+1",
    "名前 e_R",
    "x" * 120,
)
HOSTILE_CLASS = "<b>class</b> & 'co'"


def made_up_nodes(
    rng: np.random.Generator, num_nodes: int, num_classes: int, num_models: int, audited_share: float
) -> dict[str, Any]:
    """Columns of nodes, still without degree and homophily."""
    names = [f"paper {node}" for node in range(num_nodes)]
    names[3 : 3 + len(HOSTILE_NAMES)] = HOSTILE_NAMES
    classes = [HOSTILE_CLASS, *(f"Topic_{label}" for label in range(1, num_classes))]
    label = rng.integers(num_classes, size=num_nodes)
    angle, reach = rng.uniform(0, 2 * np.pi, num_nodes), np.sqrt(rng.random(num_nodes))
    prior = np.clip(rng.beta(5, 14, num_nodes), 0.01, 0.99)
    num_in = rng.binomial(num_models, prior)
    num_out = num_models - num_in
    rate = rng.beta(2, 3, num_nodes) * 0.9 + 0.03
    false_positives = rng.binomial(num_out, rate * 0.6)
    false_negatives = rng.binomial(num_in, rate)
    floor = np.log(prior / (1 - prior))
    excess = np.abs(
        np.log((num_in - false_negatives + 1) / (num_in + 2)) - np.log((false_positives + 1) / (num_out + 2))
    )
    width = 0.25 + 3 / np.sqrt(false_positives + 1)
    left = (
        np.log((num_out - false_positives + 1) / (num_out + 2)) - np.log((false_negatives + 1) / (num_in + 2)) - floor
    )
    is_audited = rng.random(num_nodes) < audited_share
    is_constant = is_audited & (rng.random(num_nodes) < 0.06)
    # Every node that no model contains is without an exposure; most are never named, a few often.
    member_models = np.where(np.arange(num_nodes) % 97 == 96, 0, num_in)
    exposure = rng.beta(0.3, 2.0, num_nodes) * (rng.random(num_nodes) < 0.6)
    member_named = rng.binomial(member_models, exposure)
    low = np.where(member_named > 0, beta.ppf(0.025, member_named, member_models - member_named + 1), 0.0)
    others_named = rng.binomial(num_out, 0.4)
    order = np.lexsort((np.arange(num_nodes), -low, member_models == 0))
    is_leaking = low > 0.2

    def shown(values: Any, digits: int = 4) -> list[float | None]:
        return [value if audited else None for value, audited in zip(rounded(values, digits), is_audited, strict=True)]

    return {
        "id": list(range(num_nodes)),
        "name": names,
        "class": [classes[index] for index in label],
        "degree": [],
        "homophily": [],
        "component": [0] * num_nodes,
        "x": rounded(0.5 + 0.5 * reach * np.cos(angle)),
        "y": rounded(0.5 + 0.5 * reach * np.sin(angle)),
        "prior_prob": rounded(prior, 5),
        "prior_standard_error": rounded(np.sqrt(prior * (1 - prior) / 1e5), 6),
        "rank": (np.argsort(order) + 1).tolist(),
        "accuracy": shown((2 - rate * 1.6) / 2),
        "member_models": member_models.tolist(),
        "member_named": member_named.tolist(),
        "member_exposure_low": rounded(low, 6),
        "member_exposure_high": rounded(beta.ppf(0.975, member_named + 1, member_models - member_named + 1e-9), 6),
        "non_member_models": num_out.tolist(),
        "non_member_named": others_named.tolist(),
        "non_member_exposure_low": rounded(beta.ppf(0.025, others_named, num_out - others_named + 1), 6),
        "non_member_exposure_high": rounded(beta.ppf(0.975, others_named + 1, num_out - others_named), 6),
        "p_value": [
            0.005 if leaks else 0.31 if audited else None for leaks, audited in zip(is_leaking, is_audited, strict=True)
        ],
        "is_leaking": is_leaking.tolist(),
        "floor_right": rounded(floor),
        "floor_left": rounded(-floor),
        "num_out": num_out.tolist(),
        "num_in": num_in.tolist(),
        "false_positives": [
            int(n) if audited else None for n, audited in zip(false_positives, is_audited, strict=True)
        ],
        "false_negatives": [
            int(n) if audited else None for n, audited in zip(false_negatives, is_audited, strict=True)
        ],
        "right_low": shown(floor + np.maximum(excess - 0.4 * width, 0.01)),
        "right_median": shown(floor + excess + 0.02),
        "right_high": shown(floor + excess + width),
        "left_low": shown(left - 0.3),
        "left_median": shown(left),
        "left_high": shown(left + 0.4),
        "excess_right_median": shown(excess),
        "flag": [
            "not auditable: fewer than 2 models contain it" if not audited else "constant decision" if constant else ""
            for audited, constant in zip(is_audited, is_constant, strict=True)
        ],
    }


def made_up_margins(rng: np.random.Generator, nodes: dict[str, Any]) -> dict[str, Any]:
    """Histograms of two normal distributions for each node."""
    num_nodes, num_bins = len(nodes["id"]), 24
    mean_out, mean_in = rng.normal(1, 1, num_nodes), rng.normal(2, 1, num_nodes)
    std = rng.uniform(0.5, 1.2, num_nodes)
    low, high = np.minimum(mean_out, mean_in) - 3 * std, np.maximum(mean_out, mean_in) + 3 * std

    def binned(mean: Any, counts: list[int]) -> list[list[int]]:
        return [
            np.histogram(np.clip(rng.normal(mean[k], std[k], counts[k]), low[k], high[k]), num_bins, (low[k], high[k]))[
                0
            ].tolist()
            for k in range(num_nodes)
        ]

    fitted = [value is not None for value in nodes["right_low"]]

    def known(values: Any) -> list[float | None]:
        return [value if fits else None for value, fits in zip(rounded(values), fitted, strict=True)]

    return {
        "view": "full_clean",
        "num_bins": num_bins,
        "low": rounded(low),
        "high": rounded(high),
        "out": binned(mean_out, nodes["num_out"]),
        "in": binned(mean_in, nodes["num_in"]),
        "mean_out": known(mean_out),
        "std_out": known(std),
        "mean_in": known(mean_in),
        "std_in": known(std),
    }


def rounded(values: Any, digits: int = 4) -> list[float]:
    """Values with few digits, as the page gets them."""
    return [float(value) for value in np.round(values, digits)]


def groups_of(nodes: dict[str, Any]) -> dict[str, Any]:
    """The groups of all nodes shown."""
    table = pd.DataFrame({name: nodes[name] for name in ("class", "degree", "homophily", "prior_prob", "accuracy")})
    for name in ("right_median", "excess_right_median", "left_median"):
        table[name] = pd.array(nodes[name], dtype="Float64")
    for side in ("member", "non_member"):
        models = np.array(nodes[f"{side}_models"])
        shares = np.array(nodes[f"{side}_named"]) / np.maximum(models, 1)
        table[f"{side}_exposure"] = np.where(models > 0, shares, np.nan)
    accuracy = table["accuracy"].to_numpy(dtype=np.float64, na_value=np.nan)
    groups = group_data(table, accuracy, np.arange(len(table)))
    return {key: {**each, "group": each["group"].tolist()} for key, each in groups.items()}


def thresholds_of(nodes: dict[str, Any]) -> dict[str, Any]:
    """How many nodes are above each percentage."""
    pairs = zip(nodes["member_exposure_low"], nodes["member_models"], strict=True)
    lows = [low for low, models in pairs if models > 0]
    threshold = [percent / 100 for percent in range(101)]
    above = [sum(low > each for low in lows) for each in threshold]
    return {"threshold": threshold, "num_above": above, "num_counted": len(lows)}
