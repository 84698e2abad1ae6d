"""What a reader must know before trusting an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.auditing.table_words import TABLE_NOTE, in_words_of
from bmpaudit.report.words import count, number, percent

if TYPE_CHECKING:
    from bmpaudit.auditing.finished_audit import Audit

FEW_MODELS = 3  # of one side, below which the Gaussian attack leaves a node out
CALIBRATED = 0.02  # expected calibration error up to which stated certainties are taken at their word


def cautions(audit: Audit) -> tuple[str, ...]:
    """One sentence each."""
    counts = audit.attacks.main_counts
    messages: list[str] = []
    if audit.guaranteed is not None:
        messages += audit.guaranteed.contradictions(audit.findings)
    if counts.not_auditable:
        fate = "counted as non-members" if counts.is_kept.any() else "left out"
        messages.append(
            f"{count(len(counts.not_auditable), 'node')} could not be audited and "
            f"{'is' if len(counts.not_auditable) == 1 else 'are'} {fate}, such as {counts.not_auditable[0]}."
        )
    fewest = np.minimum(counts.num_in, counts.num_out)
    num_few = int(np.count_nonzero((fewest < FEW_MODELS) & ~counts.is_kept))
    if num_few:
        messages.append(
            f"{count(num_few, 'node')} {'is' if num_few == 1 else 'are'} in the samples of fewer than {FEW_MODELS} "
            f"models, or in all but that many: what is said of {'it' if num_few == 1 else 'them'} rests on what the "
            "attack learnt from other nodes."
        )
    error = audit.main_findings.exposure.reliability.expected_calibration_error
    if error > CALIBRATED:
        messages.append(
            f"Stated certainties are off by {percent(error, 1)} on average (expected calibration error "
            f"{number(error, 3)}): more shadow models would calibrate them better."
        )
    messages += [f"{reason}." for reason in audit.estimates.not_estimated]
    messages = [in_words_of(audit.graph, message) for message in messages]
    return (*messages, *(() if audit.graph.num_edges else (TABLE_NOTE,)))
