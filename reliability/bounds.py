"""How often a proven bound lies above the truth, on mechanisms whose ε is known."""

from __future__ import annotations

import numpy as np
from proof_validity import (
    HORIZON,
    LEVEL,
    NUM_MODELS,
    PARAMETERS,
    anytime_ever_exceeds,
    audit,
    random_mechanism,
    surest_hits,
    violations,
    worst_case,
)
from section import Section, most, table

from bmpaudit.privacy import privacy_levels
from bmpaudit.util.progress import progress_bar

NUM_MECHANISMS = 5_000
ANYTIME = "epsilon_right, anytime, stopped when highest"


def run(scale: float, seed: int) -> Section:
    """Thousands of mechanisms of two families."""
    number, rows, passed = int(NUM_MECHANISMS * scale), [], True
    for name, make in (("random", random_mechanism), ("worst case", worst_case)):
        rng, counts = np.random.default_rng([seed, len(name)]), dict.fromkeys((*PARAMETERS, ANYTIME), 0)
        with progress_bar(name, number) as progress:
            for done in range(number):
                mechanism = make(rng)
                truth = privacy_levels(mechanism)
                above = violations(audit(mechanism, NUM_MODELS, rng), truth)
                for parameter, is_above in zip(PARAMETERS, above, strict=True):
                    counts[parameter] += is_above
                counts[ANYTIME] += anytime_ever_exceeds(surest_hits(mechanism, HORIZON, rng), truth.bmp.right)
                progress(done + 1)
        for bound, count in counts.items():
            passed &= count <= most(number, 1 - LEVEL)
            share = f"{100 * count / number:.2f} %"
            rows.append([name, bound, f"{number:,}", count, share, most(number, 1 - LEVEL)])
    head = ["mechanisms", "bound", "number", "above the truth", "share", "a valid bound has at most (99.9 %)"]
    text = f"""Finite mechanisms with dependent memberships, audited by the best adversary there is with {NUM_MODELS}
models (`examples/proof_validity.py` says how they are made). A bound of 95 % confidence may exceed the truth in 5 % of
the audits.

{table(head, rows)}"""
    return Section(text, passed)
