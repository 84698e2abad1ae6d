"""Whether limits of the exposure hold the truth, on simulated models of which it is known."""

from __future__ import annotations

from known_exposure import Coverage, Setting, equal, exponential, few, mixture
from section import Section, fewest, table

from bmpaudit.util.progress import progress_bar

NUM_AUDITS = 200
SHARE = 0.93  # of audits whose limits hold the truth, at least
FEW, PRIORS, SIZES = (1, 3, 10, 30), (0.25, 0.02), ((300, 64), (300, 128), (1000, 64), (1000, 256), (1000, 1000))
OTHERS = {
    "all by 2 σ": equal(2.0),
    "all by 3 σ": equal(3.0),
    "exponential": exponential,
    "2 % by 7 σ, others by 0.7 σ": mixture,
    "nothing leaks": few(0),
}
SETTINGS = [
    setting
    for num_nodes, num_models in SIZES
    for setting in (
        *(Setting(f"{number} by 8 σ", few(number), num_nodes, num_models, prior) for prior in PRIORS for number in FEW),
        *(Setting(name, shifts, num_nodes, num_models) for name, shifts in OTHERS.items()),
    )
]


def run(scale: float, seed: int) -> Section:
    """Audits whose answers are normal, of members by some standard deviations higher."""
    number, rows, passed = max(int(NUM_AUDITS * scale), 5), [], True
    least = fewest(number, SHARE)
    for setting in SETTINGS:
        made = Coverage()
        size = f"{setting.num_nodes:,}, {setting.num_models:,}"
        with progress_bar(f"{setting.name}, {size}, {setting.prior:g}", number) as progress:
            for audit in range(number):
                made.add(setting, seed * 1_000_000 + audit)
                progress(audit + 1)
        held = (made.high, made.low, made.node_high, made.node_low)
        passed &= min(held) >= least
        said = f"{made.correct:.2f} ({made.mean_low:.2f} to {made.mean_high:.2f})"
        shares = [f"{100 * count / number:.1f} %" for count in held]
        rows.append([setting.name, size, f"{setting.prior:g}", f"{setting.truth:.2f}", said, *shares])
    head = ["who leaks", "nodes, models", "prior", "named with 99 %", "said on average", "upper", "lower"]
    text = f"""{number:,} audits in each setting. Members' answers are normal with unit variance, and by some standard
deviations (σ) higher than non-members', so that it is known how many nodes the exact posterior names rightly with 99 %
certainty. The last four columns are the shares of audits whose limits, at 95 %, hold that number: the upper and the
lower one of the names per model, and those of how often the first node is named.

{table([*head, "upper, one node", "lower, one node"], rows)}

Shares below {SHARE:.0%} by more than chance would be too few: fewer than {least:,} audits."""
    return Section(text, passed)
