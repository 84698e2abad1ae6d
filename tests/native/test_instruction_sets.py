"""The kernels are there for every instruction set that the processor has, and agree."""

import os
import subprocess
import sys

import numpy as np
import pytest

from bmpaudit import _native
from bmpaudit._native import cpu

SCRIPT = """
import numpy as np
from bmpaudit import _native

path = np.array([0, 1, 3, 4], dtype=np.int64), np.array([1, 0, 2, 1], dtype=np.int32)
layers = [_native.LayerSettings("gat", 3, 2), _native.LayerSettings("sage", 2, root_weight=True)]
model = _native.ModelSettings(layers, "elu", 0.0)
training = _native.TrainingSettings(10, 0.05, 0.0, "adam")
features, labels = np.arange(6, dtype=np.float32), np.array([0, 1, 0], dtype=np.int32)
engine = _native.ShadowEngine(*path, None, None, None, features, 2, labels, 2, model, training)
values = engine.gradient(engine.initial_parameters(1, 0), np.ones(3, dtype=np.uint8))
print(_native.instruction_set, *values)
"""


def run(instruction_set: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "BMPAUDIT_INSTRUCTION_SET": instruction_set}
    return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)


def built() -> list[str]:
    done = run("none")
    assert done.returncode != 0
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: BMPAUDIT_INSTRUCTION_SET must be one of ")
    assert message.endswith(", got 'none'")
    return message.partition("one of ")[2].partition(" here")[0].split(", ")


def test_all_that_were_built_agree() -> None:
    names = built()
    assert _native.instruction_set == os.environ.get("BMPAUDIT_INSTRUCTION_SET", names[0])
    assert "tuned" in names or "baseline" in names
    answers = []
    for name in names:
        used, *values = run(name).stdout.split()
        assert used == name
        answers.append(np.array(values, dtype=np.float64))
    for answer in answers:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["baseline", "tuned"])
def test_every_processor_runs_the_baseline(name: str) -> None:
    assert cpu.supports(name)
    assert not cpu.supports("another")
    assert _native.instruction_set in _native.library_file
