"""A right call of every function and class of the native kernels, with room for other arguments."""

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
    return _native.Snowball(**PATH | {"target": 3, "fan_out": 2, "restart": False, "any_order": False} | changed)


def random_walks(**changed: Any) -> Any:
    return _native.RandomWalks(**PATH | {"num_roots": 2, "walk_length": 3} | changed)


def sample(bit_generator: Any = None) -> Any:
    return snowball().sample(bit_generator or np.random.PCG64(1))


def walked_edges(bit_generator: Any = None) -> Any:
    return snowball().walked_edges(bit_generator or np.random.PCG64(1))


def memberships(**changed: Any) -> Any:
    return snowball().memberships(**STREAMS | changed)


def counts(**changed: Any) -> Any:
    return snowball().counts(**STREAMS | changed)


def layer_settings(**changed: Any) -> Any:
    settings: dict[str, Any] = {"kind": "gcn", "channels": 4}
    return _native.LayerSettings(**settings | changed)


def model_settings(**changed: Any) -> Any:
    layers = [layer_settings(), layer_settings(channels=NUM_CLASSES)]
    settings: dict[str, Any] = {"layers": layers, "activation": "relu", "dropout": 0.0}
    return _native.ModelSettings(**settings | changed)


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
        "view_train_accuracy": np.zeros((3, NUM_MODELS), dtype=np.float32),
        "view_held_out_accuracy": np.zeros((3, NUM_MODELS), dtype=np.float32),
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
    layer_settings,
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
