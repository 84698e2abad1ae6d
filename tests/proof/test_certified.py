"""Certificates: false in at most one of twenty audits, whatever leaks and however memberships depend on each other."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from finite_models import leaky_models

from bmpaudit.attack import Evidence, Gaussian, RightOrWrong, Scores, Student
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof import certified
from bmpaudit.proof.certified import CERTAINTIES, Certificate, _Counts, certify, mean_limit
from bmpaudit.proof.exposure import LeftOut
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats

SURPRISE = 5e-4


class AsTheyAre:
    """Takes the answers as scores, and learns nothing."""

    fuses_queries = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        return Scores(challenged.at_targets(challenged.only_statistic).astype(np.float64))


def evidence(answers: Floats, memberships: Flags) -> Evidence:
    return Evidence({"full": answers.astype(np.float32)}, memberships, np.arange(len(answers)))


@pytest.fixture
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less to choose from, which takes less time: whatever is chosen, certificates are valid."""
    monkeypatch.setattr(certified, "NUM_LIMITS", 5)
    monkeypatch.setattr(certified, "NUM_TRIED", 12)
    monkeypatch.setattr(certified, "NUM_THRESHOLDS", 40)


def nothing(rng: np.random.Generator, num_models: int) -> tuple[Floats, Flags]:
    """Samples of fixed size, of which the answers know nothing."""
    memberships = rng.permuted(np.tile(np.arange(40) < 10, (num_models, 1)), axis=1)
    return rng.normal(size=memberships.shape), memberships


def just_below(rng: np.random.Generator, num_models: int) -> tuple[Floats, Flags]:
    """Some are called sure at random, and are members with probability 0.945."""
    is_sure = rng.random((num_models, 40)) < 0.3
    return 9 * is_sure + rng.normal(size=is_sure.shape), rng.random(is_sure.shape) < np.where(is_sure, 0.945, 0.1)


def all_or_nobody(rng: np.random.Generator, num_models: int) -> tuple[Floats, Flags]:
    """All who are called sure about one model are members together, with probability 0.945, or none is."""
    is_sure = rng.random((num_models, 40)) < 0.3
    is_right = rng.random((num_models, 1)) < 0.945
    return 9 * is_sure + rng.normal(size=is_sure.shape), np.where(is_sure, is_right, rng.random(is_sure.shape) < 0.1)


def one_node(rng: np.random.Generator, num_models: int) -> tuple[Floats, Flags]:
    """Node 0 gives itself away, and is in a quarter of the models."""
    memberships = rng.random((num_models, 40)) < 0.25
    answers = rng.normal(size=memberships.shape)
    answers[:, 0] += 20 * memberships[:, 0]
    return answers, memberships


def always_false(least: float) -> Callable[[Certificate], bool]:
    """No rule that names anyone has so large a share of right names."""
    return lambda made: made.names > 0 and made.certainty >= least


def more_than_one_node(made: Certificate) -> bool:
    """Who names node 0 rightly a ≤ 1/4 times and others x times has a + x names, and a + x/4 ≥ p (a + x)."""
    return made.names > 0.25 * 0.75 / (made.certainty - 0.25)


@pytest.mark.usefixtures("few_rules")
@pytest.mark.parametrize("num_models", [20, 64, 200])
@pytest.mark.parametrize(
    ("mechanism", "is_false"),
    [
        (nothing, always_false(0.75)),
        (just_below, always_false(0.95)),
        (all_or_nobody, always_false(0.95)),
        (one_node, lambda made: made.certainty > 0.25 and more_than_one_node(made)),
    ],
)
def test_false_certificates_are_rare(
    mechanism: Callable[[np.random.Generator, int], tuple[Floats, Flags]],
    is_false: Callable[[Certificate], bool],
    num_models: int,
) -> None:
    audits, false = 20, 0
    for audit in range(audits):
        answers, memberships = mechanism(np.random.default_rng([audit, num_models]), num_models)
        made = certify(AsTheyAre(), evidence(answers, memberships), memberships.mean(axis=0).clip(0.01, 0.99))
        false += any(map(is_false, made.members))
    assert false <= scipy.stats.binom.isf(SURPRISE, audits, 0.05)


@pytest.mark.usefixtures("few_rules")
def test_where_all_leak_all_are_named() -> None:
    rng = np.random.default_rng(0)
    memberships = rng.random((300, 40)) < 0.5
    made = certify(
        AsTheyAre(), evidence(rng.normal(size=memberships.shape) + 20 * memberships, memberships), np.full(40, 0.5)
    )
    assert (made.num_fitting, made.num_challenged, made.level) == (100, 200, 0.95)
    assert [each.certainty for each in made.members] == list(CERTAINTIES)
    for each in (*made.members[:3], *made.non_members[:3]):
        assert each.share_correct >= each.certainty
        assert 0 < each.names <= each.mean_names <= each.most_names
    assert made.members[0].names > 10


@pytest.mark.usefixtures("few_rules")
def test_rules_do_not_depend_on_the_challenged_models() -> None:
    """Whether one certainty is certified changes what the next may cost, and not whom it names."""
    rng = np.random.default_rng(1)
    memberships = rng.random((240, 40)) < 0.3
    models = evidence(rng.normal(size=memberships.shape) + 2.5 * memberships, memberships)
    later = np.arange(240)[:, None] >= 80
    other = Evidence(models.statistics, np.where(later, ~memberships, memberships), models.indices)
    limits = []
    for each in (models, other):
        made = certify(AsTheyAre(), each, np.full(40, 0.3))
        limits.append([(one.most_names, one.mean_names) for one in (*made.members, *made.non_members)])
    assert limits[0] == limits[1]
    assert all(one.names == 0 for one in certify(AsTheyAre(), other, np.full(40, 0.3)).members)


def law_of_rare_failures(rng: np.random.Generator) -> Floats:
    """One model in 200 names nobody: most often none of the challenged ones."""
    return (rng.random(100) >= 0.005).astype(float)


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        (law_of_rare_failures, 0.995),
        (lambda rng: rng.beta(2, 5, 60), 2 / 7),
        (lambda rng: (rng.random(60) < 0.03).astype(float), 0.03),
    ],
)
def test_limits_of_means_hold(law: Callable[[np.random.Generator], Floats], mean: float) -> None:
    above = sum(mean_limit(law(np.random.default_rng(seed)), 0.05) > mean for seed in range(100))
    assert above <= scipy.stats.binom.isf(SURPRISE, 100, 0.05)


def test_limits_of_means_at_the_ends() -> None:
    assert mean_limit(np.zeros(50), 0.05) == 0
    assert 0.9 < mean_limit(np.ones(100), 0.05) < 1
    assert mean_limit(np.full(1000, 0.4), 0.05) == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("are_members", [True, False])
def test_names_are_counted_as_one_would(are_members: bool) -> None:
    rng = np.random.default_rng(2)
    memberships = rng.random((9, 30)) < 0.4
    models = evidence(np.round(2 * rng.normal(size=memberships.shape), 1), memberships)
    table = models.statistics["full"].astype(np.float32)[:, :]
    scored = LeftOut(models, np.zeros(30), table, np.ones(30, dtype=np.bool_), 2, None)
    thresholds = np.array([-3.0, -0.5, 0.0, 1.0, 2.0, 9.0])
    counts = _Counts.of(scored, thresholds, are_members=are_members)
    signed, right = (table, memberships) if are_members else (-table, ~memberships)

    def by_hand(model: int, least: float) -> tuple[int, int]:
        is_named = signed[model] >= least
        return int(is_named.sum()), int((is_named & right[model]).sum())

    for model in range(9):
        for place, least in enumerate(thresholds[::-1]):
            assert (counts.named[model, place], counts.right[model, place]) == by_hand(model, least)
    for most in (1, 4, 30):
        limited = counts.limited(most)
        for model in range(9):
            for place in range(6):
                # The lowest threshold, from this one on, that does not name too many; the highest names nobody.
                least = min(each for each in thresholds[5 - place :] if by_hand(model, each)[0] <= most)
                assert (limited.named[model, place], limited.right[model, place]) == by_hand(model, least)
    named = np.array([[3, 5], [0, 2]])
    nobody = _Counts(named, named).limited(2)  # where even the highest threshold names too many, nobody is named
    assert nobody.named.tolist() == [[0, 0], [0, 2]]


@pytest.mark.usefixtures("few_rules")
def test_threads_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    models, done = leaky_models(64, 40, np.random.default_rng(0)), list[int]()
    report: Progress = done.append
    one = certify(Student(), models, np.full(40, 0.25), num_threads=1, progress=report)
    assert done == sorted(done)
    assert 38 <= done[-1] <= 40
    assert one.members[0].names > 0
    assert repr(one) == repr(certify(Student(), models, np.full(40, 0.25), num_threads=3))
    monkeypatch.setattr("bmpaudit.util.matrices.MAX_BLOCK", 64 * 7)
    assert repr(one) == repr(certify(Student(), models, np.full(40, 0.25)))


@pytest.mark.usefixtures("few_rules")
def test_who_cannot_be_named_is_not() -> None:
    models = leaky_models(64, 40, np.random.default_rng(0))
    made = certify(Student(), models, np.ones(40))
    assert [each.certainty for each in made.members] == list(CERTAINTIES)
    assert all(each.names == 0 and np.isnan(each.share_correct) for each in (*made.members, *made.non_members))


@pytest.mark.usefixtures("few_rules")
@pytest.mark.parametrize("attack", [Gaussian(), RightOrWrong()])
def test_nodes_that_cannot_be_named_are_left_out_of_the_fit_too(attack: Attack) -> None:
    """Attacks that read the fitting models at the nodes to score do not stumble over the others."""
    models = leaky_models(64, 40, np.random.default_rng(0))
    memberships = models.memberships.copy()
    memberships[:, 0] = True
    models = Evidence({"none": models.statistics["none"] - np.float32(2)}, memberships, models.indices)
    made = certify(attack, models, np.full(40, 0.25))
    assert made.source.endswith(", none")
    assert made.members[0].names > 0


@pytest.mark.usefixtures("few_rules")
@pytest.mark.parametrize("num_models", [4, 8, 12])
def test_few_models_certify_little(num_models: int) -> None:
    made = certify(Student(), leaky_models(num_models, 40, np.random.default_rng(0)), np.full(40, 0.25))
    assert made.members[-1].names == 0
    assert made.num_fitting + made.num_challenged == num_models


def test_bad_input() -> None:
    models = leaky_models(16, 40, np.random.default_rng(0))
    with pytest.raises(InputError, match="num_fitting must be"):
        certify(Student(), models.take([0]), np.full(40, 0.25))
    with pytest.raises(InputError, match="level must be in"):
        certify(Student(), models, np.full(40, 0.25), level=1.0)
    with pytest.raises(InputError, match="prior"):
        certify(Student(), models, np.full(40, 1.5))


def test_a_rule_seldom_asks_for_too_much() -> None:
    """With a certificate that fails its share of the failure probability is lost to all surer ones, too."""
    certificates = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        memberships = rng.random((128, 200)) < 0.25
        models = evidence(rng.normal(size=memberships.shape) + 2.5 * memberships, memberships)
        certificates.append(certify(Student(), models, np.full(200, 0.25), level=0.995, num_threads=1).members)
    for certainty in (0, 1):
        num_certified = sum(made[certainty].names > 0 for made in certificates)
        assert num_certified >= scipy.stats.binom.ppf(SURPRISE, 24, 0.95)


def test_a_certainty_out_of_reach_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty-four models cannot certify 95 %, however right all names are."""
    rng = np.random.default_rng(1)
    memberships = rng.random((64, 200)) < 0.25
    models = evidence(rng.normal(size=memberships.shape) + 3.5 * memberships, memberships)
    made = certify(Student(), models, np.full(200, 0.25), num_threads=1)
    assert [each.names > 0 for each in made.members[2:]] == [False] * 3
    reachable = tuple(each for each, row in zip(CERTAINTIES, made.members, strict=True) if row.mean_names > 0)
    assert 0.99 not in reachable
    monkeypatch.setattr(certified, "CERTAINTIES", reachable)
    alone = certify(Student(), models, np.full(200, 0.25), num_threads=1)
    assert alone.members == made.members[: len(reachable)]
    assert alone.members[0].names > 0
