"""Nodes with the same counts and prior are one row that counts several times; a few rows stand for many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats, Ints
from bmpaudit.estimation.quadrature import gauss_of_measure

EXTREME_ROWS = 32  # kept by each of the criteria that can decide where a posterior lies
SKETCH_ROWS = 128  # that stand for all the others, at least
RULE_POINTS = 12  # of a Gauss rule that stands for many rows
WIDEST = 2.0  # the largest of their counts, against the smallest: then the rule is right to 1e-18
SKETCH_SHARE = 1 / 32  # of all rows: the more there are, the narrower the peak that is sought


@dataclass(frozen=True, eq=False)
class Rows:
    """Different rows of counts and prior odds.

    Attributes:
        counts: (n0, n1, A, B), shape (R, 4).
        log_prior_odds: log η, shape (R,).
        times: Number of nodes that each row stands for, shape (R,).
    """

    counts: Floats
    log_prior_odds: Floats
    times: Floats

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: npt.ArrayLike, times: npt.ArrayLike) -> Rows:
        """Some of the rows, each of which stands for so many nodes."""
        counts = np.ascontiguousarray(self.counts[np.asarray(rows)])
        return Rows(
            counts, self.log_prior_odds[np.asarray(rows)], np.broadcast_to(times, len(counts)).astype(np.float64)
        )

    def split(self, times: Ints) -> tuple[Rows, Rows]:
        """So many nodes of each row, and all others."""
        parts = (times.astype(np.float64), self.times - times)
        first, others = (self.take(np.flatnonzero(part > 0), part[part > 0]) for part in parts)
        return first, others

    def condensed(self) -> Rows:
        """Rows of the same likelihood, to more digits than doubles have, without many that differ in n0 and n1 alone.

        If the decision about many nodes never varies and they were in as many models, their log-likelihood is a smooth
        function of n0: its sum over them is that of a Gauss rule, whose nodes are rows of no whole numbers.
        """
        num_out, num_in, false_positives, false_negatives = self.counts.T
        is_never = (false_positives == 0) & (false_negatives == num_in)
        is_always = (false_positives == num_out) & (false_negatives == 0)
        kind = np.where(is_never, 1.0, np.where(is_always, 2.0, 0.0))
        groups, group = np.unique(
            np.column_stack([kind, num_out + num_in, self.log_prior_odds]), axis=0, return_inverse=True
        )
        group = group.ravel()
        is_kept = np.ones(len(self), dtype=bool)
        parts = []
        for number, ((of_kind, total, log_odds), size) in enumerate(zip(groups, np.bincount(group), strict=True)):
            if of_kind == 0 or size <= 2 * RULE_POINTS:
                continue
            rows = np.flatnonzero(group == number)
            if any(values[rows].max() > WIDEST * values[rows].min() for values in (num_out, num_in)):
                continue
            out, times = gauss_of_measure(num_out[rows], self.times[rows], RULE_POINTS)
            inside = total - out
            errors = (np.zeros_like(out), inside) if of_kind == 1 else (out, np.zeros_like(out))
            parts.append(Rows(np.column_stack([out, inside, *errors]), np.full_like(out, log_odds), times))
            is_kept[rows] = False
        if not parts:
            return self
        parts.insert(0, self.take(np.flatnonzero(is_kept), self.times[is_kept]))
        columns = zip(*((part.counts, part.log_prior_odds, part.times) for part in parts), strict=True)
        return Rows(*(np.concatenate(column) for column in columns))

    def sketch(self) -> Rows:
        """The extreme rows and a few of the others, each of which stands for many: good enough to search with."""
        num_chosen = max(SKETCH_ROWS, int(SKETCH_SHARE * len(self)))
        if len(self) <= 2 * (4 * EXTREME_ROWS + num_chosen):
            return self
        num_out, num_in, false_positives, false_negatives = self.counts.T
        alpha, detected = (false_positives + 1) / (num_out + 2), (num_in - false_negatives + 1) / (num_in + 2)
        up, down = np.log(detected / alpha), np.log((1 - detected) / (1 - alpha))
        right, left = np.maximum(up, down) + self.log_prior_odds, np.maximum(-up, -down) - self.log_prior_odds
        criteria = (right, left, self.log_prior_odds, -self.log_prior_odds)
        is_extreme = np.zeros(len(self), dtype=bool)
        for criterion in criteria:
            is_extreme[np.argpartition(-criterion, EXTREME_ROWS)[:EXTREME_ROWS]] = True
        others = np.flatnonzero(~is_extreme)
        others = others[np.argsort(right[others], kind="stable")]
        chosen = others[np.linspace(0, len(others) - 1, num_chosen).astype(np.int64)]
        scale = self.times[others].sum() / self.times[chosen].sum()
        rows = np.concatenate([np.flatnonzero(is_extreme), chosen])
        times = self.times[rows] * np.concatenate([np.ones(int(is_extreme.sum())), np.full(len(chosen), scale)])
        return self.take(rows, times)


def distinct_rows(counts: Floats, log_prior_odds: Floats) -> tuple[Rows, Ints]:
    """The different rows, ordered by counts, and the row of each node, shape (K,)."""
    table = np.column_stack([counts, log_prior_odds])
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    is_first = np.ones(len(table), dtype=bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    row = np.empty(len(table), dtype=np.int64)
    row[order] = np.cumsum(is_first) - 1
    distinct = ordered[is_first]
    times = np.bincount(row, minlength=len(distinct)).astype(np.float64)
    return Rows(np.ascontiguousarray(distinct[:, :4]), np.ascontiguousarray(distinct[:, 4]), times), row
