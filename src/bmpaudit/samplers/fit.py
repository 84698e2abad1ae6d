"""Whether memberships drawn elsewhere can have come from a sampler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.graph import Graph
from bmpaudit.graph.graph import describe_node
from bmpaudit.samplers.builtin import NativeSampler
from bmpaudit.samplers.draw import AnySampler, draw_memberships, sampler_name
from bmpaudit.samplers.priors import Priors
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.matrices import FlagMatrix, LazyMatrix, count_in, row_digests, take_rows
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.values import Flags, Floats, Ints

FALSE_ALARM_PROB = 0.001

NATIVE_REFERENCES, PYTHON_REFERENCES = 2_000, 400
_RELABELLINGS = 9_999
_EXACT_UP_TO = 100  # rows; from there on the limiting law of Kolmogorov and Smirnov is as good

# Memory: reference samples hold about this many flags at most, and are worked on in parts of so many numbers.
_REFERENCE_FLAGS = 200_000_000
_NUMBERS_AT_ONCE = 20_000_000

# Probability that the bounds of an estimated prior miss it; added to the p-value of the node frequencies.
_PRIOR_MISS_PROB = 1e-6


@dataclass(frozen=True)
class FitTest:
    """One test of memberships against a sampler."""

    name: str  # what is compared
    p_value: float  # probability, under the sampler, of a deviation at least this large
    message: str  # the figures of both sides


@dataclass(frozen=True)
class MembershipFit:
    """Whether memberships can have come from a sampler."""

    fits: bool  # whether no test found a misfit
    p_value: float  # smallest of the tests, Bonferroni-corrected for their number
    message: str  # figures of the first test that found a misfit; of the one with the smallest p-value if none did
    tests: tuple[FitTest, ...]


def check_memberships(
    memberships: npt.ArrayLike | FlagMatrix,
    graph: Graph,
    sampler: AnySampler,
    priors: Priors,
    *,
    seed: int = 0,
    num_references: int | None = None,
    num_threads: int | None = None,
) -> MembershipFit:
    """Tests memberships against a sampler, with reference samples drawn from the sampler itself.

    Under the null hypothesis the rows are independent samples of the sampler, so rows and references are exchangeable:

    - *Sample sizes* and *edges inside a sample*, which depend on how often pairs of nodes are in together: a two-sample
      Kolmogorov–Smirnov test of rows against references.
    - *Node frequencies*: each node's count is binomial with its prior probability; the most extreme node is tested,
      Bonferroni over nodes.
    - *Agreement between samples*: the node frequencies of one half of the rows, less the priors, are a direction along
      which rows of the other half must not lie further out than references do (one-sided Kolmogorov–Smirnov test).
      Small deviations of many nodes add up here, and samples that depend on each other show.
    - *Repeated samples*: the nodes in identical pairs of rows, against relabelling rows and references at random.

    Each test keeps its level for any sampler and number of rows, and so does their Bonferroni combination: right
    memberships are refused with probability 0.001 at most. Memberships that pass may still be wrong in ways that these
    statistics do not show, or by too little to show in this number of rows.

    Args:
        memberships: Whether each node is in each sample, shape (num_samples, num_nodes); a table that is not held in
            memory is read a part of the samples at a time.
        graph: The whole graph.
        sampler: The sampler they are said to come from.
        priors: Its priors, from `prior_probabilities`.
        seed: Random seed of the references, which are never samples that shadow models are trained on.
        num_references: Number of reference samples. If not given, 2,000 for built-in samplers, fewer on graphs of
            more than 100,000 nodes, and 400 for other samplers.
        num_threads: Number of threads for built-in samplers; all processors if not given.

    >>> from bmpaudit import datasets, samplers
    >>> graph, half, quarter = datasets.load("demo"), samplers.Uniform(0.5), samplers.Uniform(0.25)
    >>> memberships = samplers.draw_memberships(graph, half, 16, seed=0)
    >>> check_memberships(memberships, graph, quarter, samplers.prior_probabilities(graph, quarter)).message
    'samples hold 50.0 % of the nodes (500) on average; uniform draws 25.0 % of the nodes (250)'
    """
    rows = memberships if isinstance(memberships, LazyMatrix) else np.asarray(memberships)
    if len(rows.shape) != 2 or rows.shape[1] != graph.num_nodes or len(rows) == 0:
        raise InputError(f"memberships must have shape (num_samples, {graph.num_nodes}), got {rows.shape}")
    if rows.dtype != np.bool_ and not np.isin(rows, (0, 1)).all():
        raise InputError("memberships must be True or False, or 1 or 0")
    rows = rows if isinstance(rows, LazyMatrix) else rows.astype(np.bool_, copy=False)
    if num_references is None:
        affordable = NATIVE_REFERENCES if isinstance(sampler, NativeSampler) else PYTHON_REFERENCES
        num_references = min(affordable, max(PYTHON_REFERENCES, _REFERENCE_FLAGS // graph.num_nodes))
    check_at_least_one(num_references=num_references)
    references = draw_memberships(
        graph, sampler, num_references, seed, purpose=Purpose.MEMBERSHIP_FIT, num_threads=num_threads
    )
    rng = stream(seed, num_references, Purpose.MEMBERSHIP_FIT)
    name = sampler_name(sampler)
    tests = [
        _sizes(rows, references, name),
        _repeats(rows, references, rng, name),
        _edges(rows, references, graph, name),
        _node_frequencies(rows, graph, priors, name),
    ]
    if len(rows) > 1:
        tests.append(_agreement(rows, references, priors.prob, rng, name))
    misfits = [test for test in tests if len(tests) * test.p_value <= FALSE_ALARM_PROB]
    worst = min(tests, key=lambda test: test.p_value)
    p_value = min(1.0, len(tests) * worst.p_value)
    return MembershipFit(not misfits, p_value, (misfits or [worst])[0].message, tuple(tests))


def _sizes(rows: FlagMatrix, references: Flags, name: str) -> FitTest:
    ours, theirs = _row_sums(rows), _row_sums(references)
    figures = [
        f"{100 * sizes.mean() / rows.shape[1]:.1f} % of the nodes"
        f" ({sizes.min():,}{f' to {sizes.max():,}' if sizes.max() > sizes.min() else ''})"
        for sizes in (ours, theirs)
    ]
    message = f"samples hold {figures[0]} on average; {name} draws {figures[1]}"
    return FitTest("sample sizes", _kolmogorov_smirnov(ours, theirs), message)


def _edges(rows: FlagMatrix, references: Flags, graph: Graph, name: str) -> FitTest:
    ours, theirs = edges_inside(rows, graph), edges_inside(references, graph)
    message = f"samples hold {ours.mean():,.1f} edges on average; those of {name} hold {theirs.mean():,.1f}"
    return FitTest("edges inside a sample", _kolmogorov_smirnov(ours, theirs), message)


def edges_inside(rows: FlagMatrix, graph: Graph) -> Ints:
    """The number of edges between nodes of each sample, shape (num_samples,)."""
    source, target = graph.edges.T
    return _of_each(rows, lambda part: np.count_nonzero(part[:, source] & part[:, target], axis=1), len(source))


def _of_each(rows: FlagMatrix, of_part: Callable[[Flags], Any], num_columns: int | None = None) -> npt.NDArray[Any]:
    """What there is to say of each row, so many of them at once that the whole table never has to fit into memory."""
    size = max(1, _NUMBERS_AT_ONCE // max(1, rows.shape[1] if num_columns is None else num_columns))
    return np.concatenate([of_part(rows[first : first + size]) for first in range(0, len(rows), size)])


def _row_sums(rows: FlagMatrix) -> Ints:
    return _of_each(rows, lambda part: part.sum(axis=1))


def _node_frequencies(rows: FlagMatrix, graph: Graph, priors: Priors, name: str) -> FitTest:
    counts, num_rows = count_in(rows), len(rows)
    low, high = priors.confidence_bounds(1 - _PRIOR_MISS_PROB)
    with np.errstate(invalid="ignore"):  # a node that every sample holds: its tail is replaced
        too_many = np.where(counts > 0, scipy.special.bdtrc(counts - 1, num_rows, high), 1.0)
    too_few = scipy.special.bdtr(counts, num_rows, low)
    tail = np.minimum(too_many, too_few)
    node = int(np.argmin(tail))
    p_value = min(1.0, 2 * len(tail) * float(tail[node]) + (0.0 if priors.is_exact else _PRIOR_MISS_PROB))
    message = (
        f"{describe_node(node, graph.node_names)} is in {counts[node]:,} of {num_rows:,} samples; "
        f"{name} draws it with probability {priors.prob[node]:.4g}"
    )
    return FitTest("node frequencies", p_value, message)


def _agreement(rows: FlagMatrix, references: Flags, prob: Floats, rng: np.random.Generator, name: str) -> FitTest:
    order = rng.permutation(len(rows))
    first, second = (take_rows(rows, half) for half in (order[: len(rows) // 2], order[len(rows) // 2 :]))
    direction = count_in(first) / len(first) - prob
    ours, theirs = (_of_each(table, lambda part: part @ direction) for table in (second, references))
    p_value = _kolmogorov_smirnov(ours, theirs, alternative="less")
    shared, expected = _mean_overlap(rows), _mean_overlap(references)
    message = f"two samples share {shared:,.1f} nodes on average; two samples of {name} share {expected:,.1f}"
    return FitTest("agreement between samples", p_value, message)


def _mean_overlap(rows: FlagMatrix) -> float:
    counts, num_rows = count_in(rows).astype(np.float64), len(rows)
    return float((counts * (counts - 1)).sum() / max(1, num_rows * (num_rows - 1)))


def _repeats(rows: FlagMatrix, references: Flags, rng: np.random.Generator, name: str) -> FitTest:
    group_of: dict[bytes, int] = {}
    ours, theirs = (_of_each(table, lambda part: np.array(row_digests(part), object)) for table in (rows, references))
    groups = np.array([group_of.setdefault(digest, len(group_of)) for digest in [*ours, *theirs]])
    num_rows, weight = len(rows), np.zeros(len(group_of))
    weight[groups] = np.maximum(1, np.concatenate([_row_sums(rows), _row_sums(references)]))

    def repeated_nodes(chosen: Ints) -> float:
        counts = np.bincount(chosen, minlength=len(weight))
        return float((counts * (counts - 1) * weight).sum())

    observed = repeated_nodes(groups[:num_rows])
    p_value = 1.0
    if observed:
        at_least = sum(repeated_nodes(rng.permutation(groups)[:num_rows]) >= observed for _ in range(_RELABELLINGS))
        p_value = (1 + at_least) / (1 + _RELABELLINGS)
    num_repeats = num_rows - len(np.unique(groups[:num_rows]))
    expected = len(references) - len(np.unique(groups[num_rows:]))
    message = (
        f"{num_repeats:,} of {num_rows:,} samples repeat another one exactly; "
        f"of {len(references):,} samples of {name}, {expected:,} do"
    )
    return FitTest("repeated samples", p_value, message)


def _kolmogorov_smirnov(ours: npt.NDArray[Any], theirs: npt.NDArray[Any], alternative: str = "two-sided") -> float:
    from scipy.stats import ks_2samp

    method = "exact" if len(ours) <= _EXACT_UP_TO else "asymp"
    return float(ks_2samp(ours, theirs, alternative=alternative, method=method).pvalue)
