"""Data of a report page that was not audited but made up, by the page's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from page_fixture_nodes import (
    HOSTILE_CLASS,
    SCRIPT_NAME,
    groups_of,
    made_up_margins,
    made_up_nodes,
    rounded,
    thresholds_of,
)
from scipy.spatial import cKDTree

from bmpaudit.auditing.result import (
    BoundResult,
    CertificateResult,
    CertifiedResult,
    ExposureResult,
    NamedResult,
    PowerResult,
    ProofResult,
    ReleaseResult,
    ReliabilityResult,
)
from bmpaudit.io.codec import encode

VARIANTS = (
    ("full_clean_strong", "full edges, clean, strong"),
    ("full_clean_weak", "full edges, clean, weak"),
    ("none_clean_strong", "no edges, clean, strong"),
    ("full_noisy_strong", "full edges, noisy, strong"),
)


VERDICT = (
    "From one released model an adversary can name at least 21 nodes as training nodes, and at least 99 % of the names "
    "are right (95 % confidence; there are 78)."
)


def page_data(
    num_nodes: int = 300,
    num_edges: int = 600,
    num_classes: int = 7,
    num_models: int = 400,
    audited_share: float = 0.93,
    seed: int = 0,
) -> dict[str, Any]:
    """A whole page; `audited_share=0` leaves every node without a leakage."""
    rng = np.random.default_rng(seed)
    nodes = made_up_nodes(rng, num_nodes, num_classes, num_models, audited_share)
    places = np.column_stack([nodes["x"], nodes["y"]])
    source = rng.integers(num_nodes, size=num_edges)
    near = cKDTree(places).query(places, k=min(8, num_nodes))[1].reshape(num_nodes, -1)
    # Most edges join nodes that are near each other in the drawing, so that it looks like a graph.
    target = near[source, rng.integers(near.shape[1], size=num_edges)]
    target = np.where(rng.random(num_edges) < 0.97, target, rng.integers(num_nodes, size=num_edges))
    nodes["degree"] = np.bincount(np.concatenate([source, target]), minlength=num_nodes).tolist()
    nodes["homophily"] = [None if degree == 0 else round(float(rng.beta(4, 1)), 4) for degree in nodes["degree"]]
    num_left_out = sum(low is None for low in nodes["right_low"])
    return {
        "title": f"cora {SCRIPT_NAME}, snowball 25 %, GCN",
        "bmpaudit": "0.1.0",
        "created": "2026-11-16T01:02:03Z",
        "graph": {
            "name": "cora",
            "source": "cora",
            "content_hash": "3f9a" * 16,
            "num_nodes": num_nodes,
            "num_edges": num_edges,
            "num_features": 1433,
            "num_classes": num_classes,
        },
        "is_leakage_found": True,
        "guarantee": {
            "mechanism": "PrivateSGC",
            "corners": [[0, 1], [0, 1], [0.1, 0.1], [1, 0], [1, 0], [1, 0], [0.9, 0.9], [0, 1]],
        },
        "answer": {
            "level": "strong",
            "verdict": VERDICT,
            "proven": "With 95 % confidence each, an adversary reaches odds of at least 8.2 : 1 that a node was in "
            "the training graph (ε_R ≥ 2.10; 70 of 72 guesses right).",
            "exposure": "From one released model an adversary can name about 12.1 (10.2 to 14.0) of its 78 training "
            "nodes, 99.2 % of them correctly.",
            "floor": "The sampling alone gives odds of at least 2.6 : 1 that some node was in, and of 1 : 4.1 that "
            "some node was not.",
            "guaranteed": "By the proof of PrivateSGC, ε_R ≤ 5.00.",
            "estimated": "ε_R = 4.8 (4.1 to 6.3), MP ε = 4.6 (3.2 to 15.1): medians and 90 % intervals.",
            "warnings": [f"80 % of the upper tail of ε_R has the prior's shape {SCRIPT_NAME}."],
        },
        "next": ["Try fewer epochs.", "See who is at risk: bmpaudit nodes DIR."],
        "releases": [_release("clean", 1.0), _release(HOSTILE_CLASS, 0.4)],
        "headline": [
            {
                "name": "ε_R",
                "meaning": "how sure an adversary can become that a node was in the training graph",
                "definition": "bmp-r",
                "parameter": "epsilon_right",
                "p5": 4.1,
                "p50": 4.8,
                "p95": 6.3,
                "tail_prior_share": 0.8,
                "half_median": 4.4,
                "mean": 5.1,
                "mean_without_constant": 4.9,
                "warnings": [],
                "floor": 0.94,
                "floor_is_exact": False,
                "floor_level": 0.99,
                "proven": 2.1,
                "proof_level": 0.95,
                "multiplies_odds": False,
            },
            {
                "name": "ε_L",
                "meaning": "how sure an adversary can become that a node was not in the training graph",
                "definition": "bmp-l",
                "parameter": "epsilon_left",
                "p5": 5.2,
                "p50": 6.0,
                "p95": 7.9,
                "tail_prior_share": 0.6,
                "half_median": 4.4,
                "mean": 5.1,
                "mean_without_constant": 4.9,
                "warnings": [],
                "floor": -1.4,
                "floor_is_exact": True,
                "floor_level": None,
                "proven": None,
                "proof_level": 0.95,
                "multiplies_odds": False,
            },
            {
                "name": "MP ε",
                "meaning": "by how much the model multiplies the odds, whatever the prior",
                "definition": "mp",
                "parameter": "epsilon",
                "p5": 3.2,
                "p50": 4.564,
                "p95": 15.1,
                "tail_prior_share": None,
                "half_median": 4.4,
                "mean": 5.1,
                "mean_without_constant": 4.9,
                "warnings": [],
                "floor": 0.0,
                "floor_is_exact": True,
                "floor_level": None,
                "proven": 1.1,
                "proof_level": 0.95,
                "multiplies_odds": True,
            },
        ],
        "cautions": [
            f"{num_left_out} nodes could not be audited: fewer than 2 models contain them.",
            "17 nodes have a constant decision; it looks like a strong attack and is none.",
            f"The node {SCRIPT_NAME} alone moves ε_R by 0.4.",
        ],
        "permutation_test": {
            "is_leakage_found": True,
            "p_value": 0.005,
            "num_shuffles": 199,
            "num_nodes": num_nodes,
            "num_leaking": sum(nodes["is_leaking"]),
            "num_hidden": 3,
            "missed_auc": 0.81,
            "statistic": 9.21,
            "null_statistics": rounded(rng.normal(3.2, 0.4, 199)),
        },
        "words": {},
        "missed": "A single node of AUC 0.81 would have been found.",
        "is_not": [
            "The posterior is calibrated under its own model, in which error rates are uniform on the region; it is no "
            "confidence statement about other attacks.",
            "A better attack may find more: the estimate does not bound what other adversaries can do.",
            "Beyond the data the upper tail is the prior's.",
        ],
        "variants": [_variant(name, label, 1.0 - 0.2 * index) for index, (name, label) in enumerate(VARIANTS)],
        "posteriors": [
            _posterior(name, *definition, shift)
            for shift, (name, _) in zip((0.0, -0.5, -1.2, -0.9), VARIANTS, strict=True)
            for definition in (
                ("bmp-r", "epsilon_right", "ε_R (bmp-r)", 4.8, 0.6),
                ("bmp-l", "epsilon_left", "ε_L (bmp-l)", 6.0, 0.8),
                ("mp", "epsilon", "ε (mp)", 8.7, 1.2),
                ("bmp-s", "epsilon", "ε (bmp-s)", 5.9, 0.7),
                ("bmp", "epsilon_left", "ε_L (bmp)", 5.8, 0.8),
                ("bmp", "epsilon_right", "ε_R (bmp)", 4.6, 0.6),
            )
        ],
        "joint": [
            {
                "variant": name,
                "left": rounded(5.2 + rng.gamma(2, 0.45, 1000)),
                "right": rounded(4.0 + rng.gamma(2, 0.4, 1000)),
            }
            for name, _ in VARIANTS[:2]
        ],
        "nodes": nodes,
        "proof_level": 0.95,
        "exposure_level": 0.95,
        "leakage_level": 0.9,
        "leaking_level": 0.005,
        "num_most_exposed": num_nodes,
        "edges": {"source": source.tolist(), "target": target.tolist(), "num_between": num_edges},
        "groups": groups_of(nodes),
        "thresholds": thresholds_of(nodes),
        "margins": made_up_margins(rng, nodes),
        "accuracy": {
            "train": rounded(rng.beta(90, 4, num_models)),
            "held_out": [None, *rounded(rng.beta(80, 25, num_models - 1))],
        },
        "provenance": [["seed", "0"], ["graph hash", "3f9a" * 16], ["name", HOSTILE_CLASS], ["Python", "3.11.2"]],
        "diagnostics": [["models trained", "1,000"], ["models failed", "0"], ["evaluations of the posterior", "311"]],
        "timings": [["training", "12.3 s"], ["attack", "0.1 s"], ["estimation", "4.0 s"]],
        "plan_toml": f'seed = 0\n\n[sampler]\nname = "snowball"\ntrain_fraction = 0.25\nnote = "{SCRIPT_NAME}"\n',
        "citation": "A. Author: Bayesian membership privacy of graph neural networks, 2026.",
    }


def _release(name: str, strength: float) -> dict[str, Any]:
    bounds = {"epsilon_right": (2.1, 0.94), "epsilon_left": (3.1, 3.9), "mp": (1.1, 0.0)}
    made = ReleaseResult(
        access="scores",
        lesser={},
        attack="student",
        queries=["full", "none"],
        variant="full+none_clean_strong",
        auc=0.5 + 0.4 * strength,
        tpr_at_fpr={"0.001": 0.01, "0.01": 0.1, "0.1": 0.5},
        train_accuracy=0.95,
        held_out_accuracy=0.8,
        proof=ProofResult(
            is_leakage_proven=True,
            **{
                parameter: BoundResult(
                    proven,
                    proven > floor,
                    parameter == "mp",
                    floor,
                    0.95,
                    "one guess per model",
                    200,
                    80,
                    72,
                    72 if parameter == "mp" else 70,
                    "student, full",
                )
                for parameter, (proven, floor) in bounds.items()
            },
        ),
        certified=CertifiedResult(
            0.99, 133, 267, "student, full", _certificates(strength), _certificates(2 * strength)
        ),
        not_proven="",
        power=PowerResult(dict.fromkeys(bounds), dict.fromkeys(bounds), 0.0, 1.0),
        exposed_by="student, full and none",
        exposure=ExposureResult(
            at_risk=0.99,
            num_models=400,
            num_fitting=399,
            num_nodes=300,
            num_left_out=0,
            level=0.95,
            total_members=78.0,
            total_non_members=222.0,
            members=_curve(78.0 * strength),
            non_members=_curve(222.0 * strength),
            mean_auc=0.9,
            reliability=ReliabilityResult(
                edges=[0.0, 0.001, 0.1, 0.5, 0.7, 0.9, 0.99, 1.0],
                num_challenges=[4000, 30000, 40000, 0, 20000, 5000, 40],
                stated=[0.0004, 0.02, 0.3, None, 0.8, 0.97, 0.9996],
                observed=[0.0005, 0.021, 0.29, None, 0.81, 0.96, 1.0],
                expected_calibration_error=0.0061,
            ),
            statement="",
        ),
    )
    return {"name": name, **encode(made)}


def _certificates(strength: float) -> list[CertificateResult]:
    names = {0.75: 40.0, 0.9: 32.5, 0.95: 27.3, 0.99: 21.9, 0.999: 0.0}
    return [
        CertificateResult(
            certainty=certainty,
            names=strength * number,
            by_prior=1 if certainty < 0.9 else 0,
            mean_names=strength * number + 1.5,
            share_correct=0.997 if number else None,
            most_names=70,
        )
        for certainty, number in names.items()
    ]


def _curve(total: float) -> list[NamedResult]:
    shares = {0.5: 0.8, 0.75: 0.6, 0.9: 0.4, 0.95: 0.3, 0.99: 0.15, 0.995: 0.1, 0.999: 0.0}
    right = [0.7, 0.85, 0.93, 0.96, 0.992, 0.996, None]
    return [
        NamedResult(
            precision=precision,
            correct=round(total * share, 4),
            correct_low=round(0.9 * total * share, 4),
            correct_high=round(1.1 * total * share, 4),
            at_most=round(1.15 * total * share, 4),
            named=round(1.01 * total * share, 4),
            share_correct=right[place],
            by_prior=[5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0][place],
            is_settled=place < 6,
        )
        for place, (precision, share) in enumerate(shares.items())
    ]


def _variant(name: str, label: str, strength: float) -> dict[str, Any]:
    fpr = np.concatenate([[0.0], np.logspace(-4, 0, 100)])
    tpr = fpr ** (1 / (1 + strength))
    at = {level: round(float(np.interp(float(level), fpr, tpr)), 5) for level in ("0.001", "0.01", "0.1")}
    curve = {"fpr": rounded(fpr, 6), "tpr": rounded(tpr, 6)}
    return {
        "id": name,
        "label": label,
        "auc": 0.5 + 0.2 * strength,
        "tpr_at_fpr": at,
        "accuracy": 0.6 + 0.15 * strength,
        "roc": curve,
    }


def _posterior(
    variant: str, definition: str, parameter: str, symbol: str, mean: float, std: float, shift: float
) -> dict[str, Any]:
    centre = mean + shift
    x = np.linspace(centre - 3 * std, centre + 5 * std, 201)
    density = np.exp(-0.5 * ((x - centre) / (std * (1 + 0.5 * (x > centre)))) ** 2)
    density /= density.sum() * (x[1] - x[0])
    prior = np.exp(-0.5 * x**2 / 10) / np.sqrt(20 * np.pi)
    quantiles = {"p5": centre - 1.5 * std, "p50": centre, "p95": centre + 2.2 * std, "mean": centre + 0.1}
    names = {"variant": variant, "definition": definition, "parameter": parameter, "symbol": symbol}
    densities = {"x": rounded(x), "density": rounded(density, 5), "prior_density": rounded(prior, 5)}
    return {**names, **quantiles, **densities, "status": "exact"}
