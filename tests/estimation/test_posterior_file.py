"""A posterior written to a file and read again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import CorrelatedCounts, NormalPrior, Posterior, StrengthPrior, estimate
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.values import Floats

COUNTS = ErrorCounts.from_arrays([50, 40], [20, 40], [5, 9], [7, 20], [0.25, 1.0], node=["é", "<b>"])


def laplace_prior(epsilon: Floats) -> Floats:
    return -np.abs(epsilon - 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"definition": "mp"},
        {"definition": "bmp-r", "strength": 0.3},
        {"definition": "bmp"},
        {"definition": "mp", "strength": StrengthPrior(2, 1)},
        {"definition": "bmp-l", "prior": laplace_prior},
        {"definition": "bmp", "method": "mhaar", "num_iterations": 100},
        {"definition": "mp", "method": "mhaar", "num_iterations": 100, "correlated": CorrelatedCounts()},
    ],
)
def test_everything_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    posterior = estimate(COUNTS, **options)
    posterior.save(tmp_path / "p.npz")
    loaded = Posterior.load(tmp_path / "p.npz")
    assert list(loaded.marginals) == list(posterior.marginals)
    for name in posterior.marginals:
        assert np.array_equal(loaded.quantile([0.05, 0.5, 0.95], name), posterior.quantile([0.05, 0.5, 0.95], name))
        assert np.array_equal(loaded.sample(7)[name], posterior.sample(7)[name])
    for attribute in ("definition", "method", "status", "left_out", "floor", "lows", "strength"):
        assert getattr(loaded, attribute) == getattr(posterior, attribute)
    assert np.array_equal(loaded.node, posterior.node)
    first = posterior.parameter_names[0]
    assert loaded.influence(first).shift == pytest.approx(posterior.influence(first).shift, abs=1e-3)
    x = posterior.support_low(first) + np.linspace(1.5, 3, 9)
    assert loaded.prior(x) == pytest.approx(posterior.prior(x), abs=1e-3)


def test_the_strength_may_be_a_whole_number(tmp_path: Path) -> None:
    estimate(COUNTS, "mp", strength=0).save(tmp_path / "p.npz")
    assert Posterior.load(tmp_path / "p.npz").strength == 0


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.npz: no such file"):
        Posterior.load(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"b\.npz: damaged or not an \.npz archive: File is not a zip file"):
        Posterior.load(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", x=np.arange(3))
    with pytest.raises(DataError, match=r"c\.npz: key 'about' is missing; the archive has x"):
        Posterior.load(tmp_path / "c.npz")
    with pytest.raises(InputError, match=r"must end in \.npz"):
        estimate(COUNTS, "mp").save(tmp_path / "p.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.npz", "c.npz"]


def rewrite(path: Path, **changes: Any) -> None:
    """Changes entries of `about`; None takes one away. Keys that are arrays are replaced as such."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    about = json.loads(str(arrays["about"]))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        elif value is None:
            del about[name]
        else:
            about[name] = value
    arrays["about"] = np.array(json.dumps(about))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 1}, "a posterior of format 1, this version reads 2"),
        ({"definition": None}, "damaged or not a posterior: definition: field required"),
        ({"definition": "bmp-r"}, "damaged or not a posterior"),
        ({"definition_parameters": [{"name": "epsilon"}]}, "damaged or not a posterior"),
        ({"definition": {"name": "bmp-l"}}, "has the parameters epsilon_right, the code of bmp-l has epsilon_left"),
        ({"definition": {"name": "bmp-r", "left": 3}}, "damaged or not a posterior: unknown key definition.left"),
        ({"lows": {}}, "damaged or not a posterior: 'epsilon_right'"),
        ({"is_used": np.array([1.0, 0.0])}, "damaged or not a posterior: is_used must be flags of shape"),
        ({"is_used": np.array([True])}, "damaged or not a posterior: is_used must be flags of shape"),
        ({"counts_false_positives": np.array([60, 9])}, "damaged or not a posterior"),
        (
            {"prior": {"mean": 0.0, "variance": -1.0}},
            "damaged or not a posterior: .* variance must be positive",
        ),
    ],
)
def test_damaged_files_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    estimate(COUNTS, "bmp-r").save(tmp_path / "p.npz")
    rewrite(tmp_path / "p.npz", **changes)
    with pytest.raises(DataError, match=message) as caught:
        Posterior.load(tmp_path / "p.npz")
    assert str(tmp_path / "p.npz") in str(caught.value)


def test_what_a_built_in_definition_is_stands_in_the_file(tmp_path: Path) -> None:
    estimate(COUNTS, "bmp-r", prior=NormalPrior(1, 4), prior_draws=4).save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as archive:
        about = json.loads(str(archive["about"]))
    assert about["definition"] == {"name": "bmp-r"}
    assert [parameter["symbol"] for parameter in about["definition_parameters"]] == ["ε_R"]
    assert about["uses_prior"] is True
    assert Posterior.load(tmp_path / "p.npz").prior_draws == 4
