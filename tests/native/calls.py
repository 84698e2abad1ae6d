"""Calls of every function and class of the native kernels: right ones, and what happens if one argument is wrong.

As a script, makes the wrong calls and prints what each raised, one line per call: a call that crashes takes the process
with it, which only a caller in another process can tell.
"""

import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import score_calls

from bmpaudit import _native

NUM_NODES, NUM_CLASSES, NUM_FEATURES, NUM_MODELS = 4, 2, 3, 5
LARGE = 2**31 - 1


def ints64(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def ints32(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


def floats(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def flags(*shape: int) -> Any:
    return (np.arange(np.prod(shape)) % 2).astype(np.uint8).reshape(shape)


ANY: dict[str, Any] = {}  # what follows it may be of any type
PATH: dict[str, Any] = {"indptr": ints64(0, 1, 3, 5, 6), "indices": ints32(1, 0, 2, 1, 3, 2)}  # 0 - 1 - 2 - 3
STREAMS: dict[str, Any] = {"seed": 1, "purpose": 2, "first": 0, "count": 3, "num_threads": 2}
COUNTS = np.array([[10, 8, 2, 3], [20, 5, 0, 5], [7, 7, 1, 1]], dtype=np.float64)


def grouped_subset(**changed: Any) -> Any:
    return _native.GroupedSubset(**ANY | {"group": ints32(0, 1, 0, 1), "take": [1, 2]} | changed)


def independent_coins(**changed: Any) -> Any:
    return _native.IndependentCoins(**ANY | {"num_nodes": NUM_NODES, "probability": 0.5} | changed)


def weighted_subset(**changed: Any) -> Any:
    return _native.WeightedSubset(**ANY | {"weights": floats(1, 2, 3, 4), "take": 2} | changed)


def snowball(**changed: Any) -> Any:
    return _native.Snowball(**PATH | {"target": 3, "fan_out": 2, "restart": False} | changed)


def random_walks(**changed: Any) -> Any:
    return _native.RandomWalks(**PATH | {"num_roots": 2, "walk_length": 3} | changed)


def sample(bit_generator: Any = None) -> Any:
    return snowball().sample(bit_generator or np.random.PCG64(1))


def memberships(**changed: Any) -> Any:
    return snowball().memberships(**STREAMS | changed)


def counts(**changed: Any) -> Any:
    return snowball().counts(**STREAMS | changed)


def model_settings(**changed: Any) -> Any:
    settings: dict[str, Any] = {
        "architecture": "gcn",
        "hidden": 4,
        "heads": 1,
        "layers": 2,
        "activation": "relu",
        "dropout": 0.0,
    }
    places: dict[str, Any] = {"drops_input": False, "drops_attention": False, "drops_hidden": False}
    return _native.ModelSettings(**settings | places | changed)


def training_settings(**changed: Any) -> Any:
    settings: dict[str, Any] = {"epochs": 3, "learning_rate": 0.01, "weight_decay": 5e-4, "optimizer": "adam"}
    return _native.TrainingSettings(**settings | changed)


def engine(**changed: Any) -> Any:
    arguments: dict[str, Any] = PATH | {
        "x_indptr": ints64(0, 1, 2, 3, 4),
        "x_indices": ints32(0, 1, 2, 0),
        "x_values": None,
        "x_dense": None,
        "num_features": NUM_FEATURES,
        "labels": ints32(0, 1, 0, 1),
        "num_classes": NUM_CLASSES,
        "model": model_settings(),
        "training": training_settings(),
    }
    return _native.ShadowEngine(**arguments | changed)


def run(**changed: Any) -> Any:
    queries = [tuple(PATH.values()), (np.zeros(NUM_NODES + 1, dtype=np.int64), ints32())]
    arguments: dict[str, Any] = {
        "member": flags(NUM_MODELS, NUM_NODES),
        "indices": np.arange(NUM_MODELS, dtype=np.int64),
        "seed": 1,
        "queries": queries,
        "views": [(0, 0.0), (1, 0.25), (1, 0.0)],
        "num_threads": 2,
        "statistics": np.zeros((3, NUM_MODELS, NUM_NODES), dtype=np.float32),
        "logits": None,
        "state": np.zeros(NUM_MODELS, dtype=np.uint8),
        "train_accuracy": np.zeros(NUM_MODELS, dtype=np.float32),
        "held_out_accuracy": np.zeros(NUM_MODELS, dtype=np.float32),
        "progress": None,
    }
    arguments |= changed
    engine().run(**arguments)
    return arguments["state"]


def gradient(**changed: Any) -> Any:
    trainer = engine()
    arguments: dict[str, Any] = {"parameters": trainer.initial_parameters(1, 0), "member": flags(NUM_NODES)}
    return trainer.gradient(**arguments | changed)


def trained_parameters(**changed: Any) -> Any:
    trainer = engine()
    arguments: dict[str, Any] = {"parameters": trainer.initial_parameters(1, 0), "member": flags(NUM_NODES)}
    return trainer.trained_parameters(**arguments | changed)


def logits(**changed: Any) -> Any:
    trainer = engine()
    arguments: dict[str, Any] = {"parameters": trainer.initial_parameters(1, 0), **PATH}
    return trainer.logits(**arguments | changed)


def challenge(**changed: Any) -> Any:
    rng = np.random.default_rng(0)
    member = np.stack([np.arange(8) % 2, np.arange(8) // 2 % 2, np.arange(8) // 4 % 2], axis=1).astype(np.uint8)
    arguments: dict[str, Any] = {
        "statistics": rng.normal(size=(8, 3)).astype(np.float32),
        "member": member,
        "fitting_statistics": None,
        "fitting_member": None,
        "log_prior_odds": np.zeros(3),
        "is_fittable": np.ones(3, dtype=np.uint8),
        "pooled_variance": False,
        "min_sigma": 0.0,
        "threshold": 0.0,
        "num_threads": 2,
        "errors": np.zeros((2, 2, 3), dtype=np.int64),
        "scores": np.zeros((8, 3)),
    }
    arguments |= changed
    _native.challenge_models(**arguments)
    return arguments["scores"]


def student_scores(**changed: Any) -> Any:
    rng = np.random.default_rng(0)
    arguments = {
        "features": rng.normal(size=(2, 8, 3)).astype(np.float32),
        "member": flags(8, 3),
        "challenged": None,
        "set_of": ints64(0, 0, 0, 0, 1, 1, 1, 1),
        "level": np.zeros((2, 2, 2)),
        "shift": np.ones((2, 2)),
        "weights": np.ones((2, 2)),
        "dof": np.full((2, 2), 4.0),
        "other_share": np.full((2, 2), 0.5),
        "scale": np.tile(np.eye(2), (2, 2, 1, 1)),
        "log_gamma": np.zeros((2, 2, 9)),
        "num_threads": 2,
        "scores": np.zeros((8, 3)),
    }
    arguments |= changed
    _native.student_scores(**arguments)
    return arguments["scores"]


def log_likelihood(**changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "counts": COUNTS,
        "log_prior_odds": np.zeros(3),
        "times": np.ones(3),
        "epsilon_left": floats(1, 2),
        "epsilon_right": floats(1, 2),
        "cutoff": floats(-np.inf, -np.inf),
        "strength": 0.0,
        "num_threads": 2,
        "progress": None,
    }
    return _native.log_likelihood(**arguments | changed)


def node_log_likelihood(**changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "counts": COUNTS,
        "log_prior_odds": np.zeros(3),
        "epsilon_left": floats(1, 2),
        "epsilon_right": floats(1, 2),
        "strength": 0.0,
        "num_threads": 2,
    }
    return _native.node_log_likelihood(**arguments | changed)


def grid_log_likelihood(**changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "counts": COUNTS,
        "log_prior_odds": np.zeros(3),
        "times": np.ones(3),
        "epsilon_left": floats(1, 2),
        "epsilon_right": floats(1, 2, 3),
        "depth": 400.0,
        "strength": 0.0,
        "num_threads": 2,
        "progress": None,
    }
    return _native.grid_log_likelihood(**arguments | changed)


def leakage_quantiles(**changed: Any) -> Any:
    arguments: dict[str, Any] = {"counts": COUNTS, "probabilities": floats(0.1, 0.9), "num_threads": 2}
    return _native.leakage_quantiles(**arguments | changed)


def run_mhaar(**changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "counts": COUNTS,
        "log_prior_odds": np.zeros(3),
        "bounds_left": True,
        "bounds_right": True,
        "is_joint": False,
        "prior_mean": 0.0,
        "prior_variance": 9.0,
        "strength": 0.0,
        "strength_prior": None,
        "tau_variance": None,
        "num_auxiliary": 5,
        "num_iterations": 30,
        "burn_in": 10,
        "seed": 1,
        "purpose": 7,
        "num_threads": 2,
        "draws": np.zeros((2, 20, 1)),
        "acceptance": np.zeros(2),
        "progress": None,
    }
    arguments |= changed
    _native.run_mhaar(**arguments)
    return arguments["draws"]


RIGHT: tuple[Callable[..., Any], ...] = (
    grouped_subset,
    independent_coins,
    weighted_subset,
    snowball,
    random_walks,
    sample,
    memberships,
    counts,
    model_settings,
    training_settings,
    engine,
    run,
    gradient,
    trained_parameters,
    logits,
    challenge,
    student_scores,
    log_likelihood,
    node_log_likelihood,
    grid_log_likelihood,
    leakage_quantiles,
    run_mhaar,
    *score_calls.RIGHT,
)


class _CapsuleOnly:
    """Looks like a bit generator, but is none: what its capsule points to may be gone."""

    capsule = np.random.PCG64(1).capsule


NAN, INF = float("nan"), float("inf")
READ_ONLY = np.zeros(2)
READ_ONLY.flags.writeable = False
UNALIGNED = np.frombuffer(bytes(17), dtype=np.uint8)[1:].view(np.float64)

# Function, then the arguments that are wrong.
WRONG: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (grouped_subset, {"group": ints64(0, 1, 0, 1)}),
    (grouped_subset, {"group": ints32(0, 1, 0, 2)}),
    (grouped_subset, {"group": ints32(0, -1, 0, 1)}),
    (grouped_subset, {"group": ints32()}),
    (grouped_subset, {"group": ints32(0, 0, 1, 9, 1, 9)[::3]}),
    (grouped_subset, {"group": b"0101"}),
    (grouped_subset, {"take": [1, 3]}),
    (grouped_subset, {"take": [-1, 1]}),
    (grouped_subset, {"take": []}),
    (grouped_subset, {"take": [2**40, 1]}),
    (independent_coins, {"num_nodes": 0}),
    (independent_coins, {"num_nodes": -5}),
    (independent_coins, {"num_nodes": 2**40}),
    (independent_coins, {"probability": 1.5}),
    (independent_coins, {"probability": NAN}),
    (weighted_subset, {"weights": floats(1, 0, 1, 1)}),
    (weighted_subset, {"weights": floats(1, -1, 1, 1)}),
    (weighted_subset, {"weights": floats(1, NAN, 1, 1)}),
    (weighted_subset, {"weights": floats(1, INF, 1, 1)}),
    (weighted_subset, {"weights": floats(), "take": 0}),
    (weighted_subset, {"weights": UNALIGNED, "take": 1}),
    (weighted_subset, {"take": 0}),
    (weighted_subset, {"take": 5}),
    (snowball, {"indptr": ints64(0, 1, 3, 5, 7)}),
    (snowball, {"indptr": ints64(0, 3, 1, 5, 6)}),
    (snowball, {"indptr": ints64(-1, 1, 3, 5, 6)}),
    (snowball, {"indptr": ints64(0, 2**62, 3, 5, 6)}),
    (snowball, {"indptr": ints64()}),
    (snowball, {"indptr": ints32(0, 1, 3, 5, 6)}),
    (snowball, {"indptr": None}),
    (snowball, {"indices": ints32(1, 0, 2, 1, 4, 2)}),
    (snowball, {"indices": ints32(1, 0, 2, 1, -1, 2)}),
    (snowball, {"indices": ints32(1, 0, 2)}),
    (snowball, {"indices": [1, 0, 2, 1, 3, 2]}),
    (snowball, {"target": 0}),
    (snowball, {"target": 5, "restart": True}),
    (snowball, {"fan_out": 0}),
    (random_walks, {"indices": ints32(1, 0, 2, 1, 400_000_000, 2)}),
    (random_walks, {"num_roots": 0}),
    (random_walks, {"walk_length": -1}),
    (sample, {"bit_generator": np.random.PCG64(1).capsule}),
    (sample, {"bit_generator": _CapsuleOnly()}),
    (sample, {"bit_generator": np.random.default_rng(1)}),
    (memberships, {"count": -1}),
    (memberships, {"count": 2**62}),
    (memberships, {"count": 2**40}),
    (memberships, {"num_threads": 0}),
    (memberships, {"num_threads": -3}),
    (memberships, {"seed": -1}),
    (memberships, {"first": 2**64 - 1}),
    (counts, {"count": -1}),
    (counts, {"num_threads": 0}),
    (model_settings, {"architecture": "transformer"}),
    (model_settings, {"architecture": 1}),
    (model_settings, {"activation": "tanh"}),
    (model_settings, {"hidden": 0}),
    (model_settings, {"hidden": LARGE}),
    (model_settings, {"heads": 0}),
    (model_settings, {"heads": 60_000, "hidden": 60_000}),
    (model_settings, {"layers": 0}),
    (model_settings, {"layers": LARGE}),
    (model_settings, {"dropout": 1.0}),
    (model_settings, {"dropout": NAN}),
    (training_settings, {"epochs": -1}),
    (training_settings, {"learning_rate": NAN}),
    (training_settings, {"weight_decay": -1.0}),
    (training_settings, {"optimizer": "lbfgs"}),
    (engine, {"indptr": ints64(0, 1, 3, 5, 6, 6)}),
    (engine, {"indices": ints32(1, 0, 2, 1, 99, 2)}),
    (engine, {"x_indptr": ints64(0, 1, 2, 3)}),
    (engine, {"x_indptr": ints64(0, 1, 2, 3, 400)}),
    (engine, {"x_indptr": None}),
    (engine, {"x_indices": ints32(0, 1, 3, 0)}),
    (engine, {"x_indices": ints32(0, 1, -1, 0)}),
    (engine, {"x_values": np.ones(3, dtype=np.float32)}),
    (engine, {"x_dense": np.ones(12, dtype=np.float32)}),
    (engine, {"x_indptr": None, "x_indices": None, "x_dense": np.ones(11, dtype=np.float32)}),
    (engine, {"num_features": 0}),
    (engine, {"num_features": LARGE, "model": model_settings(hidden=60_000)}),
    (engine, {"labels": ints32(0, 1, 0, 2)}),
    (engine, {"labels": ints32(0, -1, 0, 1)}),
    (engine, {"labels": ints32(0, 1, 0)}),
    (engine, {"num_classes": 0}),
    (engine, {"num_classes": LARGE}),
    (engine, {"model": model_settings(hidden=60_000, layers=1_000)}),
    (engine, {"model": None}),
    (run, {"member": flags(NUM_MODELS, NUM_NODES + 1)}),
    (run, {"member": flags(NUM_MODELS, NUM_NODES) + np.uint8(1)}),
    (run, {"member": flags(NUM_MODELS, NUM_NODES).astype(np.bool_)}),
    (run, {"indices": np.arange(NUM_MODELS - 1, dtype=np.int64)}),
    (run, {"indices": ints64(0, 1, -2, 3, 4)}),
    (run, {"queries": []}),
    (run, {"queries": [(ints64(0, 1), ints32(0))] * 2}),
    (run, {"queries": [(PATH["indptr"], ints32(1, 0, 2, 1, 9, 2))] * 2}),
    (run, {"views": [(0, 0.0), (1, 0.25), (2, 0.0)]}),
    (run, {"views": [(0, 0.0), (1, 0.25), (-1, 0.0)]}),
    (run, {"views": [(0, 0.0), (1, -0.25), (1, 0.0)]}),
    (run, {"views": [(0, 0.0), (1, NAN), (1, 0.0)]}),
    (run, {"views": [(0, 0.0)]}),
    (run, {"num_threads": 0}),
    (run, {"statistics": np.zeros((3, NUM_MODELS, NUM_NODES - 1), dtype=np.float32)}),
    (run, {"statistics": np.zeros((3, NUM_MODELS, NUM_NODES))}),
    (run, {"logits": np.zeros((3, NUM_MODELS, NUM_NODES, 1), dtype=np.float32)}),
    (run, {"state": np.zeros(1, dtype=np.uint8)}),
    (run, {"train_accuracy": np.zeros(1, dtype=np.float32)}),
    (run, {"held_out_accuracy": np.zeros(0, dtype=np.float32)}),
    (run, {"progress": 3}),
    (gradient, {"parameters": np.zeros(3, dtype=np.float32)}),
    (gradient, {"member": flags(NUM_NODES - 1)}),
    (gradient, {"member": np.full(NUM_NODES, 7, dtype=np.uint8)}),
    (trained_parameters, {"parameters": np.zeros(3, dtype=np.float32)}),
    (trained_parameters, {"member": np.zeros(NUM_NODES, dtype=np.uint8)}),
    (logits, {"parameters": np.zeros(3, dtype=np.float32)}),
    (logits, {"parameters": None}),
    (logits, {"indptr": ints64(0, 1, 3)}),
    (logits, {"indptr": ints64(0, 1, 3, 5, 6, 6)}),
    (logits, {"indices": ints32(1, 0, 2, 1, 4, 2)}),
    (challenge, {"statistics": np.zeros((7, 3), dtype=np.float32)}),
    (challenge, {"statistics": np.zeros((8, 3))}),
    (challenge, {"member": np.full((8, 3), 2, dtype=np.uint8)}),
    (challenge, {"member": np.zeros((8, 3), dtype=np.uint8)}),
    (challenge, {"fitting_member": flags(8, 3)}),
    (challenge, {"fitting_statistics": np.zeros((8, 2), dtype=np.float32), "fitting_member": flags(8, 2)}),
    (challenge, {"fitting_statistics": np.zeros((0, 3), dtype=np.float32), "fitting_member": flags(0, 3)}),
    (challenge, {"log_prior_odds": np.zeros(2)}),
    (challenge, {"log_prior_odds": floats(0, NAN, 0)}),
    (challenge, {"is_fittable": np.ones(2, dtype=np.uint8)}),
    (challenge, {"is_fittable": np.full(3, 255, dtype=np.uint8)}),
    (challenge, {"min_sigma": -1.0}),
    (challenge, {"min_sigma": NAN}),
    (challenge, {"threshold": NAN}),
    (challenge, {"num_threads": 0}),
    (challenge, {"errors": np.zeros((2, 2, 2), dtype=np.int64)}),
    (challenge, {"scores": np.zeros((7, 3))}),
    (student_scores, {"features": np.zeros((2, 8, 4), dtype=np.float32)}),
    (student_scores, {"features": np.zeros((2, 8, 3))}),
    (student_scores, {"features": np.zeros((0, 8, 3), dtype=np.float32)}),
    (student_scores, {"features": np.zeros((17, 8, 3), dtype=np.float32)}),
    (student_scores, {"features": np.zeros((3, 8, 3), dtype=np.float32)}),
    (student_scores, {"features": np.zeros((2, 7, 3), dtype=np.float32)}),
    (student_scores, {"member": np.full((8, 3), 2, dtype=np.uint8)}),
    (student_scores, {"member": np.zeros((8, 3), dtype=np.bool_)}),
    (student_scores, {"challenged": np.zeros((2, 8, 2), dtype=np.float32)}),
    (student_scores, {"challenged": np.zeros((1, 8, 3), dtype=np.float32)}),
    (student_scores, {"challenged": np.zeros((2, 5, 3), dtype=np.float32)}),
    (student_scores, {"set_of": ints64(0, 0, 0, 0, 1, 1, 1, 2)}),
    (student_scores, {"set_of": ints64(-1, 0, 0, 0, 1, 1, 1, 1)}),
    (student_scores, {"set_of": ints64(0)}),
    (student_scores, {"level": np.zeros((2, 2, 3))}),
    (student_scores, {"level": np.full((2, 2, 2), NAN)}),
    (student_scores, {"level": np.zeros((0, 2, 2)), "set_of": ints64()}),
    (student_scores, {"shift": np.full((2, 2), INF)}),
    (student_scores, {"shift": np.zeros((2, 1))}),
    (student_scores, {"weights": np.zeros((2, 2))}),
    (student_scores, {"weights": np.ones((1, 2))}),
    (student_scores, {"dof": np.full((2, 2), 3.0)}),
    (student_scores, {"dof": np.full((2, 2), NAN)}),
    (student_scores, {"other_share": np.full((2, 2), 1.5)}),
    (student_scores, {"other_share": np.full((2, 2), NAN)}),
    (student_scores, {"scale": np.tile(np.ones((2, 2)), (2, 2, 1, 1))}),
    (student_scores, {"scale": np.zeros((2, 2, 2, 2))}),
    (student_scores, {"scale": np.full((2, 2, 2, 2), NAN)}),
    (student_scores, {"scale": np.tile(np.eye(3), (2, 2, 1, 1))}),
    (student_scores, {"log_gamma": np.zeros((2, 2, 8))}),
    (student_scores, {"log_gamma": np.full((2, 2, 9), INF)}),
    (student_scores, {"num_threads": 0}),
    (student_scores, {"scores": np.zeros((8, 2))}),
    (student_scores, {"scores": np.zeros((8, 3), dtype=np.float32)}),
    (log_likelihood, {"counts": COUNTS[:, :3].copy()}),
    (log_likelihood, {"counts": COUNTS * -1}),
    (log_likelihood, {"counts": np.array([[1.0, 1, 2, 0]]), "log_prior_odds": np.zeros(1)}),
    (log_likelihood, {"counts": np.array([[NAN, 1, 0, 0]]), "log_prior_odds": np.zeros(1)}),
    (log_likelihood, {"counts": np.array([[INF, 1, 0, 0]]), "log_prior_odds": np.zeros(1)}),
    (log_likelihood, {"counts": np.array([[1e300, 1, 0, 0]]), "log_prior_odds": np.zeros(1)}),
    (log_likelihood, {"log_prior_odds": np.zeros(2)}),
    (log_likelihood, {"log_prior_odds": floats(0, NAN, 0)}),
    (log_likelihood, {"epsilon_left": floats(1)}),
    (log_likelihood, {"epsilon_right": floats(1, NAN)}),
    (log_likelihood, {"cutoff": floats(1)}),
    (log_likelihood, {"strength": 1.0}),
    (log_likelihood, {"strength": NAN}),
    (log_likelihood, {"num_threads": 0}),
    (log_likelihood, {"times": np.ones(2)}),
    (log_likelihood, {"times": floats(1, 0, 1)}),
    (log_likelihood, {"times": floats(1, NAN, 1)}),
    (log_likelihood, {"progress": 1}),
    (node_log_likelihood, {"counts": COUNTS[:, :3].copy()}),
    (node_log_likelihood, {"epsilon_left": floats(1)}),
    (node_log_likelihood, {"strength": 1.0}),
    (node_log_likelihood, {"num_threads": 0}),
    (grid_log_likelihood, {"counts": COUNTS.astype(np.int64)}),
    (grid_log_likelihood, {"log_prior_odds": np.zeros(4)}),
    (grid_log_likelihood, {"epsilon_left": np.zeros(200_000), "epsilon_right": np.zeros(200_000)}),
    (grid_log_likelihood, {"epsilon_left": floats(NAN)}),
    (grid_log_likelihood, {"depth": NAN}),
    (grid_log_likelihood, {"strength": -0.5}),
    (grid_log_likelihood, {"num_threads": -1}),
    (leakage_quantiles, {"counts": np.array([[1.0, 1, 0, 2]])}),
    (leakage_quantiles, {"counts": np.zeros((2, 4, 1))}),
    (leakage_quantiles, {"probabilities": floats(0.0, 0.5)}),
    (leakage_quantiles, {"probabilities": floats(0.5, 1.0)}),
    (leakage_quantiles, {"probabilities": floats(NAN)}),
    (leakage_quantiles, {"num_threads": 0}),
    (run_mhaar, {"counts": np.zeros((0, 4)), "log_prior_odds": np.zeros(0)}),
    (run_mhaar, {"log_prior_odds": np.zeros(2)}),
    (run_mhaar, {"bounds_left": False, "bounds_right": False}),
    (run_mhaar, {"bounds_left": False, "is_joint": True}),
    (run_mhaar, {"prior_mean": NAN}),
    (run_mhaar, {"prior_variance": 0.0}),
    (run_mhaar, {"strength": 1.5}),
    (run_mhaar, {"strength_prior": (0.0, 1.0), "draws": np.zeros((2, 20, 2))}),
    (run_mhaar, {"tau_variance": NAN, "draws": np.zeros((2, 20, 3))}),
    (run_mhaar, {"num_auxiliary": 0}),
    (run_mhaar, {"num_auxiliary": LARGE}),
    (run_mhaar, {"num_iterations": 10}),
    (run_mhaar, {"burn_in": -1}),
    (run_mhaar, {"burn_in": 2**63 - 1}),
    (run_mhaar, {"num_threads": 0}),
    (run_mhaar, {"draws": np.zeros((2, 19, 1))}),
    (run_mhaar, {"draws": np.zeros((2, 20, 2))}),
    (run_mhaar, {"acceptance": np.zeros(1)}),
    (run_mhaar, {"acceptance": READ_ONLY}),
    (run_mhaar, {"progress": "no function"}),
    *score_calls.WRONG,
)


def main() -> None:
    """Prints what each of the wrong calls raised, from the one on whose number is given."""
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))  # rather an error than a machine without memory
    for number in range(int(sys.argv[1]), len(WRONG)):
        function, changed = WRONG[number]
        try:
            function(**changed)
            outcome = "nothing"
        except (TypeError, ValueError, MemoryError) as error:
            outcome = type(error).__name__
        print(number, outcome, flush=True)


if __name__ == "__main__":
    main()
