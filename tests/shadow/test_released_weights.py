"""Weights under anybody's names, and files of them that are read without unpickling."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import flat_parameters, random_graph

from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, NativeModel
from bmpaudit.models.torch_modules import LayeredModule
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.released import flat_weights, read_named_arrays, read_released
from bmpaudit.util.errors import DataError, InputError

GRAPH = random_graph()  # 37 features, 3 classes
PLAN = ShadowPlan(Uniform(0.5))


def weights_of(model: NativeModel) -> tuple[dict[str, np.ndarray], np.ndarray]:
    torch.manual_seed(1)
    module = LayeredModule(model, GRAPH.num_features, GRAPH.num_classes)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return {name: value.numpy() for name, value in module.state_dict().items()}, flat_parameters(module)


def renamed(weights: dict[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
    return {name.replace(old, new): values for name, values in weights.items()}


@pytest.mark.parametrize(
    "model",
    [GCN(), GAT(), MLP(), GCN(hidden=3, layers=12), SAGE(), APPNP(), GIN(layers=3)],
    ids=str,
)
@pytest.mark.parametrize("backwards", [False, True])
def test_any_order_of_the_file_gives_the_order_of_the_layers(model: NativeModel, backwards: bool) -> None:
    """Also of layers of the same shape, with numbers of two digits."""
    weights, flat = weights_of(model)
    names = sorted(weights, reverse=backwards)
    assert np.array_equal(flat_weights({name: weights[name] for name in names}, model, GRAPH), flat)


@pytest.mark.parametrize(
    ("old", "new"), [("layers.", "conv"), ("layers.", "module.encoder.convs."), ("lin.weight", "weight")]
)
def test_names_of_other_peoples_modules(old: str, new: str) -> None:
    weights, flat = weights_of(GCN())
    assert np.array_equal(flat_weights(renamed(weights, old, new), GCN(), GRAPH), flat)


def test_layers_without_numbers_are_told_apart_by_their_shapes() -> None:
    weights, flat = weights_of(GCN())
    named = renamed(renamed(weights, "layers.0", "input"), "layers.1", "classifier")
    assert np.array_equal(flat_weights(named, GCN(), GRAPH), flat)
    weights, _ = weights_of(GCN(layers=4))
    alike = renamed(renamed(weights, "layers.1", "left"), "layers.2", "right")
    with pytest.raises(InputError, match=r"layers of the same shape must have numbers .* got left and right"):
        flat_weights(alike, GCN(layers=4), GRAPH)


def test_older_attention_layers() -> None:
    weights, flat = weights_of(GAT())
    older = {
        name.replace("lin.weight", "lin_src.weight"): values[0] if "att" in name else values
        for name, values in weights.items()
    }
    assert np.array_equal(flat_weights(older, GAT(), GRAPH), flat)


def test_double_and_half_precision_become_single() -> None:
    weights, flat = weights_of(GCN())
    double = {name: values.astype(np.float64) for name, values in weights.items()}
    assert np.array_equal(flat_weights(double, GCN(), GRAPH), flat)
    half = {name: values.astype(np.float16) for name, values in weights.items()}
    assert flat_weights(half, GCN(), GRAPH) == pytest.approx(flat, rel=1e-3)


EXPECTED = (
    r"the weights must be those of the plan's GCN with 2 layers on this graph: weight \(16, 37\), bias \(16,\), "
    r"weight \(3, 16\), bias \(3,\); got "
)


def test_what_was_expected_and_what_was_found() -> None:
    weights, _ = weights_of(GCN())
    for other in (GCN(hidden=8), GCN(layers=3), MLP(hidden=32)):
        with pytest.raises(InputError, match=EXPECTED + r".*\(\d+, \d+\)"):
            flat_weights(weights_of(other)[0], GCN(), GRAPH)
    no_bias = {name: values for name, values in weights.items() if name != "layers.0.bias"}
    with pytest.raises(InputError, match=EXPECTED + r"layers\.0\.lin\.weight \(16, 37\), layers\.1"):
        flat_weights(no_bias, GCN(), GRAPH)
    with pytest.raises(InputError, match=EXPECTED + r".*; norm\.running_mean is not one of them"):
        flat_weights({**weights, "norm.running_mean": np.zeros(16)}, GCN(), GRAPH)
    transposed = {name: values.T for name, values in weights.items()}
    with pytest.raises(InputError, match=EXPECTED + r".*\(37, 16\)"):
        flat_weights(transposed, GCN(), GRAPH)
    with pytest.raises(InputError, match=r"layers\.0 has weight twice"):
        flat_weights({**weights, "layers.0.weight": weights["layers.0.lin.weight"]}, GCN(), GRAPH)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"weights must be finite in single precision, got nan in layers\.1\.bias"),
        (1e300, r"weights must be finite in single precision, got 1e\+300 in layers\.1\.bias"),
        ("x", r"weights must be finite in single precision, got values of type <U1 in layers\.1\.bias"),
    ],
)
def test_weights_that_are_no_numbers(value: Any, message: str) -> None:
    weights, _ = weights_of(GCN())
    with pytest.raises(InputError, match=message):
        flat_weights({**weights, "layers.1.bias": np.full(3, value)}, GCN(), GRAPH)


def safetensors(entries: dict[str, Any], data: bytes) -> bytes:
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + data


def test_safetensors_of_every_type(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0, 0.25]])
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    halves = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    arrays = {"F64": values, "F32": values.astype("<f4"), "F16": values.astype("<f2"), "BF16": halves}
    for kind, array in arrays.items():
        entries[kind] = {"dtype": kind, "shape": [1, 3], "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    entries["scalar"] = {"dtype": "I64", "shape": [], "data_offsets": [len(data), len(data) + 8]}
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(entries, data + np.int64(7).tobytes()))
    read = read_named_arrays(path)
    assert list(read) == [*arrays, "scalar"]
    for kind in arrays:
        assert np.array_equal(read[kind], values)
    assert read["scalar"] == 7


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it ends within its header"),
        ((2**63).to_bytes(8, "little") + b"{}", "it ends within its header"),
        (safetensors({"a": F32}, bytes(4)), r"a of shape \(2,\) cannot be at bytes 0 to 8 of 4"),
        (safetensors({"a": F32 | {"shape": [3]}}, bytes(8)), r"a of shape \(3,\) cannot be at bytes 0 to 8"),
        (safetensors({"a": F32 | {"data_offsets": [-8, 0]}}, bytes(8)), r"\(2,\) cannot be at bytes -8 to 0 of 8"),
        (safetensors({"a": F32 | {"shape": [-1, -2]}}, bytes(8)), r"a of shape \(-1, -2\) cannot be at bytes 0 to 8"),
        (safetensors({"a": F32 | {"dtype": "F8_E4M3"}}, bytes(8)), r"a must be one of F64, F32, .*, got F8_E4M3"),
        (safetensors({"a": {"dtype": "F32"}}, bytes(8)), "'shape' is missing"),
        (safetensors({"a": F32 | {"shape": [2.0]}}, bytes(8)), "damaged or not a safetensors file"),
        (safetensors({"a": 3}, bytes(8)), "damaged or not a safetensors file"),
        ((4).to_bytes(8, "little") + b"[[[[", "damaged or not a safetensors file"),
        ((4).to_bytes(8, "little") + b"\xff\xfe\xff\xfe", "damaged or not a safetensors file"),
    ],
)
def test_damaged_safetensors(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as refusal:
        read_named_arrays(path)
    assert "\n" not in str(refusal.value)


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("was_run"),))


def test_pickles_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.pt", "model.PTH", "model.ckpt", "pytorch_model.bin"):
        with pytest.raises(DataError, match=r"a pickle, which can run code .* convert a state dict with python -c"):
            read_released(name, GRAPH, PLAN, "clean")
    Path("model.npz").write_bytes(pickle.dumps(Payload()))
    np.savez("objects.npz", weights=np.array([Payload()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"damaged or not an \.npz archive"):
        read_named_arrays(Path("model.npz"))
    with pytest.raises(DataError, match="it holds pickled objects, which are never loaded"):
        read_named_arrays(Path("objects.npz"))
    assert not Path("was_run").exists()


def test_the_conversion_of_a_pickle_works_as_the_message_says(tmp_path: Path) -> None:
    import shlex
    import subprocess
    import sys

    weights, flat = weights_of(GCN())
    torch.save({name: torch.from_numpy(values) for name, values in weights.items()}, tmp_path / "model.pt")
    with pytest.raises(DataError) as refusal:
        read_released(tmp_path / "model.pt", GRAPH, PLAN, "clean")
    _, _, command = str(refusal.value).partition("convert a state dict with python ")
    subprocess.run([sys.executable, *shlex.split(command)], cwd=tmp_path, check=True)
    assert np.array_equal(flat_weights(read_named_arrays(tmp_path / "model.npz"), GCN(), GRAPH), flat)
