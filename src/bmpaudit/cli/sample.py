"""Training samples for models that are trained elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmpaudit.cli.options import graph_argument, json_option, make_runtime, out_option, quiet_option, threads_option
from bmpaudit.cli.plan_options import plan_options
from bmpaudit.cli.plan_settings import make_subject
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionedCommand
from bmpaudit.cli.terminal import echo


@cli.command(cls=SectionedCommand)
@graph_argument
@out_option
@plan_options()
@threads_option
@quiet_option
@json_option
def sample(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Draw the training samples, for models that you train elsewhere.

    Writes the plan, the prior probability of every node, and which node is in which sample. GRAPH is the name of a data
    set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit sample cora --sampler snowball --shadows 1000 --out cora-own
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.plain import to_json

    pipeline = Pipeline(make_subject(graph, plan_path, settings, out), Workspace(out), make_runtime(threads, quiet))
    with pipeline.prepared():
        priors = pipeline.sample()
    low, high, shadows = float(priors.prob.min()), float(priors.prob.max()), pipeline.plan.shadows
    if as_json:
        echo(to_json({"folder": str(out), "num_samples": shadows, "prior_prob": {"min": low, "max": high}}))
    else:
        echo(f"{shadows:,} samples in {out / 'memberships.npz'}; γ from {low:.4f} to {high:.4f}")
