"""Memory over 20,000 models."""

from __future__ import annotations

import tempfile
from pathlib import Path

from section import Section, table
from small_graph import small_graph

from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.progress import progress_bar

NUM_MODELS = 20_000
MOST_GROWTH = 8.0  # MB between the second look and the last; tables of results grow by 3


def run(scale: float, seed: int) -> Section:
    """Trains tiny models, and looks at the resident memory every now and then."""
    number = int(NUM_MODELS * scale)
    looks: list[tuple[int, float]] = []
    plan = ShadowPlan(sampler=Uniform(0.25), model=GCN(hidden=4), training=Training(epochs=3), seed=seed)
    with tempfile.TemporaryDirectory() as folder, progress_bar("models", number) as progress:

        def look(done: int) -> None:
            progress(done)
            if done // (number // 10) >= len(looks):
                looks.append((done, _resident_megabytes()))

        train_shadows(small_graph(), plan, number, folder, progress=look)
    growth = looks[-1][1] - looks[1][1]
    rows = [[f"{done:,}", f"{megabytes:.1f}"] for done, megabytes in looks]
    text = f"""{number:,} tiny GCNs in one process, and its resident memory.

{table(["models", "MB"], rows)}

From {looks[1][0]:,} models on it grew by {growth:.1f} MB; more than {MOST_GROWTH:g} MB would be a leak."""
    return Section(text, growth <= MOST_GROWTH)


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20
