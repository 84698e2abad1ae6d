"""Audits of simulated models whose exposure is known: answers are normal, and members' are shifted."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special
import scipy.stats

from bmpaudit.attack import Evidence, Student
from bmpaudit.proof.exposure import AT_RISK, ReleaseExposure, expose
from bmpaudit.util.values import Floats


def few(number: int) -> Callable[[int], Floats]:
    """So many nodes give themselves away in every model, all others nothing."""
    return lambda num_nodes: np.where(np.arange(num_nodes) < number, 8.0, 0.0)


def equal(shift: float) -> Callable[[int], Floats]:
    """All nodes leak alike."""
    return lambda num_nodes: np.full(num_nodes, shift)


def exponential(num_nodes: int) -> Floats:
    """From nodes that leak nothing to some that leak much, by the quantiles of an exponential law of mean 1."""
    return np.asarray(-np.log((np.arange(num_nodes) + 0.5) / num_nodes))


def mixture(num_nodes: int) -> Floats:
    """2 % of the nodes leak much, all others a little."""
    return np.where(np.arange(num_nodes) < num_nodes // 50, 7.0, 0.7)


@dataclass(frozen=True)
class Setting:
    """How audits are simulated: shifts of N nodes, their prior, and J models."""

    name: str
    shifts: Callable[[int], Floats]
    num_nodes: int
    num_models: int
    prior: float = 0.25

    @property
    def shares(self) -> Floats:
        """How often the exact posterior names each node, among the models that it is in, shape (N,)."""
        shift = self.shifts(self.num_nodes)
        # The log-odds of an answer z are shift·z - shift²/2 + logit(prior); where nothing leaks they are never high.
        wanted = scipy.special.logit(AT_RISK) - scipy.special.logit(self.prior)
        with np.errstate(divide="ignore"):
            least = np.where(shift > 0, wanted / shift + shift / 2, np.inf)
        return np.asarray(scipy.stats.norm.sf(least - shift))

    @property
    def truth(self) -> float:
        """How many nodes of one model the exact posterior names correctly, on average."""
        return float(self.prior * self.shares.sum())

    def models(self, audit: int) -> Evidence:
        """The models of one audit, whose samples are independent coins."""
        rng = np.random.default_rng([audit, self.num_models, self.num_nodes])
        memberships = rng.random((self.num_models, self.num_nodes)) < self.prior
        answers = rng.normal(size=memberships.shape) + self.shifts(self.num_nodes) * memberships
        return Evidence({"full": answers.astype(np.float32)}, memberships, np.arange(self.num_models))

    def audit(self, audit: int) -> ReleaseExposure:
        """What is found out."""
        return expose(Student(), self.models(audit), np.full(self.num_nodes, self.prior), num_threads=1)


@dataclass
class Coverage:
    """In how many audits limits at 99 % held the truth: of the names per model, and of the first node's share."""

    audits: int = 0
    high: int = 0
    low: int = 0
    node_high: int = 0
    node_low: int = 0
    correct: float = 0.0
    mean_high: float = 0.0
    mean_low: float = 0.0

    def add(self, setting: Setting, audit: int) -> None:
        """Simulates one more audit."""
        exposure = setting.audit(audit).exposure
        curve, nodes, truth = exposure.members, exposure.member_nodes, setting.truth
        k, share = curve.at(AT_RISK), setting.shares[0]
        low, high = float(curve.correct.low[k]), float(curve.correct.high[k])
        before = self.audits
        self.audits += 1
        self.high += truth <= high
        self.low += low <= truth
        is_first = nodes.node == 0  # a node that no attack can score has no limits, and so none that miss
        self.node_high += bool((share <= nodes.high[is_first] + 1e-9).all())
        self.node_low += bool((nodes.low[is_first] <= share).all())
        self.correct = (before * self.correct + float(curve.correct.mean[k])) / self.audits
        self.mean_high = (before * self.mean_high + high) / self.audits
        self.mean_low = (before * self.mean_low + low) / self.audits
