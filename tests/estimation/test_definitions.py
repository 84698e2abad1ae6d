"""Built-in definitions, and definitions of the user's own: any curve (ε_L(t), ε_R(t)) on which neither side falls."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit import registry
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import DefinitionBase, NormalPrior, Parameter, Posterior, StrengthPrior, estimate, lower_bound
from bmpaudit.estimation.definitions import Side, StoredDefinition, epsilons_of, sides_of
from bmpaudit.estimation.likelihood import Likelihood, support_lows
from bmpaudit.interfaces import Definition
from bmpaudit.util.errors import InputError, UntrustedCodeError
from bmpaudit.util.values import Flags, Floats

PROBS = (0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)
LOG_ODDS = np.array([-0.8, 0.3, -1.5])
COUNTS = ErrorCounts.from_arrays(
    [100, 60, 80], [40, 70, 30], [12, 20, 9], [10, 21, 12], prior_prob=1 / (1 + np.exp(-LOG_ODDS))
)


class BMPRatio(DefinitionBase):
    """ε_L may be twice as large as ε_R."""

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return 2 * epsilon, epsilon


@dataclass(frozen=True)
class FixedLeft(DefinitionBase):
    """ε_R, for a given bound on ε_L."""

    left: float = 3.0
    parameters = (Parameter("epsilon_in", "ε_in", r"\varepsilon_\mathrm{in}", "certainty that a node was in"),)

    def epsilons(self, epsilon: Floats) -> tuple[float, Floats]:
        return self.left, epsilon


@dataclass(frozen=True)
class ScaledRight(DefinitionBase):
    """BMP-R in another unit."""

    factor: float = 2.0

    def epsilons(self, epsilon: Floats) -> tuple[float, Floats]:
        return np.inf, self.factor * epsilon


class Plain:
    """A definition without the base class, the same as BMP-R."""

    parameters = (Parameter("epsilon", "ε", r"\varepsilon", "certainty that a node was in"),)
    uses_prior = True

    def epsilons(self, epsilon: Floats) -> tuple[float, Floats]:
        return np.inf, epsilon

    def empties_support(self, log_prior_odds: Floats) -> Flags:
        return log_prior_odds == np.inf


class TwoSidedMP(DefinitionBase):
    """How far the odds rise and fall, whatever the prior, the fall being allowed twice as much."""

    uses_prior = False

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return 2 * epsilon, epsilon


def quantiles_by_brute_force(definition: Any, counts: ErrorCounts, low: float, prior: NormalPrior) -> Floats:
    """Quantiles of prior(t)·Π_k L_k(ε_L(t), ε_R(t)) on a fine grid above the support's lower end."""
    edges = low + np.concatenate([[0.0], np.geomspace(1e-6, 40, 4_001)])
    t = (edges[1:] + edges[:-1]) / 2
    table = np.column_stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives])
    log_odds = np.log(counts.prior_odds) if definition.uses_prior else np.zeros(counts.num_nodes)
    left, right = (np.broadcast_to(side, t.shape) for side in definition.epsilons(t))
    logs = Likelihood(table.astype(np.float64), log_odds)(left, right) + prior(t)
    mass = np.cumsum(np.exp(logs - logs.max()) * np.diff(edges))
    return np.interp(np.array(PROBS) * mass[-1], mass, edges[1:])


@pytest.mark.parametrize(
    ("name", "left", "right", "num_parameters"),
    [
        ("mp", Side.PARAMETER, Side.PARAMETER, 1),
        ("bmp-r", Side.UNBOUNDED, Side.PARAMETER, 1),
        ("bmp-l", Side.PARAMETER, Side.UNBOUNDED, 1),
        ("bmp-s", Side.PARAMETER, Side.PARAMETER, 1),
        ("bmp", Side.PARAMETER, Side.PARAMETER, 2),
    ],
)
def test_built_in_definitions(name: str, left: Side, right: Side, num_parameters: int) -> None:
    definition = registry.build(registry.DEFINITION, name)
    assert isinstance(definition, Definition)
    assert sides_of(definition) == (left, right)
    assert len(definition.parameters) == num_parameters
    assert definition.uses_prior == (name != "mp")
    assert registry.table_of(registry.DEFINITION, definition) == {"name": name}


def test_every_built_in_definition_is_tested_above() -> None:
    assert set(registry.ENTRIES[registry.DEFINITION]) == {"mp", "bmp-r", "bmp-l", "bmp-s", "bmp"}


def test_support_of_built_in_definitions_is_in_closed_form() -> None:
    left, right = 1.5, 0.3  # -min log η and max log η, to the last digit
    expected = {
        "bmp-r": {"epsilon_right": right},
        "bmp-l": {"epsilon_left": left},
        "bmp-s": {"epsilon": left},
        "bmp": {"epsilon_left": left, "epsilon_right": right},
    }
    for name, lows in expected.items():
        assert support_lows(registry.build(registry.DEFINITION, name), LOG_ODDS, NormalPrior()) == lows
    assert support_lows(registry.build(registry.DEFINITION, "mp"), np.zeros(3), NormalPrior()) == {"epsilon": 0.0}


@pytest.mark.parametrize(
    ("definition", "low"),
    [(BMPRatio(), 0.75), (FixedLeft(), 0.3), (ScaledRight(), 0.15), (TwoSidedMP(), 0.0), (Plain(), 0.3)],
    ids=lambda value: type(value).__name__,
)
def test_own_definitions(definition: Any, low: float) -> None:
    posterior = estimate(COUNTS, definition)
    assert posterior.support_low() == pytest.approx(low, abs=1e-12)
    expected = quantiles_by_brute_force(definition, COUNTS, low, NormalPrior())
    assert posterior.quantile(PROBS) == pytest.approx(expected, abs=1e-3)
    assert posterior.mean() == pytest.approx(posterior.influence().mean, abs=1e-9)
    assert posterior.influence().shift.shape == (3,)
    assert posterior.plot() is not None
    assert posterior.parameter_names == tuple(parameter.name for parameter in definition.parameters)


def test_a_curve_through_the_same_points_gives_the_same_posterior() -> None:
    """ε_R = 2t with t ~ N(0, 10/4) is ε_R ~ N(0, 10)."""
    half, whole = estimate(COUNTS, ScaledRight(), prior=NormalPrior(0, 2.5)), estimate(COUNTS, "bmp-r")
    assert 2 * half.quantile(PROBS) == pytest.approx(whole.quantile(PROBS), abs=1e-7)
    assert 2 * half.mean() == pytest.approx(whole.mean(), abs=1e-7)
    assert np.array_equal(estimate(COUNTS, Plain()).quantile(PROBS), whole.quantile(PROBS))


def test_a_large_fixed_side_is_an_unbounded_one() -> None:
    fixed, free = estimate(COUNTS, FixedLeft(35.0)), estimate(COUNTS, "bmp-r")
    assert fixed.quantile(PROBS) == pytest.approx(free.quantile(PROBS), abs=1e-7)


def test_the_strength_of_an_own_definition_can_be_estimated() -> None:
    counts = COUNTS.take([0])
    half = estimate(counts, ScaledRight(), prior=NormalPrior(0, 2.5), strength=StrengthPrior(2, 2))
    whole = estimate(counts, "bmp-r", strength=StrengthPrior(2, 2))
    assert 2 * half.quantile(PROBS, "epsilon") == pytest.approx(whole.quantile(PROBS, "epsilon_right"), abs=1e-4)
    assert half.quantile(PROBS, "strength") == pytest.approx(whole.quantile(PROBS, "strength"), abs=1e-4)


def test_what_is_proven_follows_the_curve() -> None:
    counts = ErrorCounts.from_arrays([500], [500], [10], [60], 0.4)
    bound = lower_bound(counts)
    assert bound.left.bound is not None
    assert bound.right.bound is not None
    left, right = bound.left.bound, bound.right.bound
    assert estimate(counts, BMPRatio()).proven("epsilon").bound == pytest.approx(max(left / 2, right), abs=1e-9)
    assert estimate(counts, ScaledRight()).proven("epsilon").bound == pytest.approx(right / 2, abs=1e-9)
    assert bound.on(FixedLeft(left + 0.01), "epsilon_in").bound == right
    impossible = bound.on(FixedLeft(left - 0.01), "epsilon_in")  # no ε_in makes up for an ε_L that is too small
    assert impossible.bound == np.inf
    assert bound.mp_left.bound is not None
    assert bound.mp_right.bound is not None
    expected = max(bound.mp_left.bound / 2, bound.mp_right.bound)
    assert bound.on(TwoSidedMP(), "epsilon").bound == pytest.approx(expected, abs=1e-9)
    with pytest.raises(InputError, match="parameter must be one of epsilon_in, got 'epsilon'"):
        bound.on(FixedLeft(), "epsilon")


def test_chains_take_what_their_flags_can_express() -> None:
    own = estimate(COUNTS, Plain(), method="mhaar", num_iterations=200)
    built_in = estimate(COUNTS, "bmp-r", method="mhaar", num_iterations=200)
    assert own.run is not None
    assert built_in.run is not None
    assert np.array_equal(own.run.draws, built_in.run.draws)
    for definition in (BMPRatio(), FixedLeft()):
        with pytest.raises(InputError, match=r"method mhaar needs ε_L and ε_R .* (bmpratio|fixedleft-3.0) .* exact$"):
            estimate(COUNTS, definition, method="mhaar", num_iterations=200)


def test_certain_priors_rule_out_bounded_sides_only() -> None:
    certain = np.array([-np.inf, 0.0, np.inf])
    assert BMPRatio().empties_support(certain).tolist() == [True, False, True]
    assert FixedLeft().empties_support(certain).tolist() == [True, False, True]
    assert ScaledRight().empties_support(certain).tolist() == [False, False, True]
    assert TwoSidedMP().empties_support(certain).tolist() == [False, False, False]


def test_a_fixed_side_that_the_priors_contradict_is_refused() -> None:
    with pytest.raises(InputError, match=r"fixedleft-1.0 allows no finite epsilon_in .* ε_L > 1.5 and ε_R > 0.3"):
        estimate(COUNTS, FixedLeft(1.0))


def own(epsilons: Any, names: tuple[str, ...] = ("epsilon",)) -> Any:
    parameters = tuple(Parameter(name, name, name, name) for name in names)
    return type("Own", (DefinitionBase,), {"parameters": parameters, "epsilons": staticmethod(epsilons)})()


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (own(lambda t: (-t, t)), "definition own: ε_L must not fall as the parameter grows"),
        (own(lambda t: (t, np.sin(t))), "definition own: ε_R must not fall"),
        (own(lambda t: (np.sqrt(t), t)), "definition own: ε_L must be a number, got nan at -"),
        (own(lambda _: (np.inf, np.inf)), "definition own must bound ε_L or ε_R, got both infinite"),
        (own(lambda x, y: (y, x), ("a", "b")), "definition own has two parameters, so its epsilons must return them"),
        (own(lambda t: (t, t), ("strength",)), "definition own must have one or two parameters, .* got strength"),
        (own(lambda t: (t, t), ()), "definition own must have one or two parameters, .* got none"),
        (BMPRatio, "definition must be a name, module:Name or an object with .* got <class"),
        (3.0, "definition must be a name, module:Name or an object with .* got 3.0"),
        ("dp", "definition must be one of bmp, bmp-r, bmp-l, bmp-s, mp, or module:Name of your own, got 'dp'"),
        ("no_such_module:Own", "no_such_module:Own: ModuleNotFoundError"),
    ],
)
def test_wrong_definitions_are_refused_in_one_line(definition: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        estimate(COUNTS, definition)
    assert "\n" not in str(caught.value)


def test_own_two_parameter_definition_gets_the_joint_posterior() -> None:
    definition = own(lambda x, y: (x, y), ("out", "in"))
    counts = COUNTS.take([0])
    named, built_in = estimate(counts, definition), estimate(counts, "bmp")
    assert np.array_equal(named.quantile(PROBS, "in"), built_in.quantile(PROBS, "epsilon_right"))


def test_scalar_sides_are_broadcast() -> None:
    left, right = epsilons_of(FixedLeft(), np.zeros((2, 3)))
    assert left.shape == right.shape == (2, 3)


SOURCE = """
from dataclasses import dataclass
from bmpaudit.estimation import DefinitionBase, Parameter

@dataclass(frozen=True)
class Ratio(DefinitionBase):
    factor: float = 2.0
    parameters = (Parameter("epsilon_low", "ε_low", "l", "the smaller of the two"),)

    def epsilons(self, epsilon):
        return self.factor * epsilon, epsilon
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, not yet imported."""
    name = "definition_of_a_user"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


@pytest.mark.parametrize("method", ["exact", "strength"])
def test_a_posterior_of_an_own_definition_is_read_without_its_code(
    module: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = ErrorCounts.from_arrays([500, 50], [500, 50], [10, 25], [60, 25], [0.4, 0.0], node=["é", "<b>"])
    strength = StrengthPrior() if method == "strength" else 0.0
    posterior = estimate(counts, {"name": f"{module}:Ratio", "factor": 3.0}, strength=strength)
    assert posterior.name == "ratio-3.0"
    posterior.save("own.npz")
    monkeypatch.delitem(sys.modules, module)
    loaded = Posterior.load("own.npz")
    assert module not in sys.modules
    assert isinstance(loaded.definition, StoredDefinition)
    assert isinstance(loaded.definition, Definition)
    assert loaded.summary() == posterior.summary()
    assert str(loaded) == str(posterior)
    assert loaded._repr_html_() == posterior._repr_html_()
    assert loaded.definition.parameters == tuple(posterior.definition.parameters)
    assert loaded.support_low("epsilon_low") == posterior.support_low("epsilon_low")
    assert loaded.proven("epsilon_low").node == "é"
    assert np.array_equal(loaded.proven("epsilon_low").per_node, posterior.proven("epsilon_low").per_node)
    for name in posterior.marginals:
        assert np.array_equal(loaded.quantile(PROBS, name), posterior.quantile(PROBS, name))
        assert loaded.interval(0.8, name) == posterior.interval(0.8, name)
        assert np.array_equal(loaded.sample(5)[name], posterior.sample(5)[name])
    assert loaded.plot() is not None
    with pytest.raises(UntrustedCodeError, match=rf"the definition '{module}:Ratio' is code .* --trust-code"):
        loaded.influence("epsilon_low")
    loaded.save("again.npz")  # what is stored can be stored again
    assert Posterior.load("again.npz").summary() == posterior.summary()
    assert module not in sys.modules

    trusted = Posterior.load("own.npz", trust_code=True)
    assert registry.table_of(registry.DEFINITION, trusted.definition) == {"name": f"{module}:Ratio", "factor": 3.0}
    shifts = posterior.influence("epsilon_low").shift
    assert trusted.influence("epsilon_low").shift == pytest.approx(shifts, abs=1e-12)


def test_code_that_no_longer_fits_the_file_is_refused(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate(COUNTS, f"{module}:Ratio").save("own.npz")
    monkeypatch.delitem(sys.modules, module)
    (tmp_path / f"{module}.py").write_text(SOURCE.replace('"epsilon_low"', '"renamed_since"'))
    with pytest.raises(InputError, match=r"has the parameters epsilon_low, the code of .*:Ratio has renamed_since"):
        Posterior.load("own.npz", trust_code=True)
    monkeypatch.delitem(sys.modules, module)
    (tmp_path / f"{module}.py").unlink()
    with pytest.raises(InputError, match=rf"^{module}:Ratio: ModuleNotFoundError"):
        Posterior.load("own.npz", trust_code=True)
    assert Posterior.load("own.npz").name == "ratio-2.0"


def test_chains_of_an_own_definition_are_read_without_its_code(tmp_path: Path) -> None:
    posterior = estimate(COUNTS, Plain(), method="mhaar", num_iterations=100)
    posterior.save(tmp_path / "own.npz")
    loaded = Posterior.load(tmp_path / "own.npz")
    assert isinstance(loaded.definition, StoredDefinition)
    assert loaded.name == "plain"
    assert np.array_equal(loaded.quantile(PROBS), posterior.quantile(PROBS))
