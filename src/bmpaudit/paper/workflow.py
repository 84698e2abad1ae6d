"""Everything that `bmpaudit reproduce` does, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bmpaudit.auditing import Runtime
from bmpaudit.files import folder_lock, remove_leftovers
from bmpaudit.paper.disagreement import disagreement_tasks
from bmpaudit.paper.experiments import COUNTINGS, NUM_MODELS, QUICK_SHARE, Configuration
from bmpaudit.paper.growth import GROWTH_MODELS, study_growth
from bmpaudit.paper.output import FOLDER, RunSizes, Summary, all_runs, num_seeds_there, write_outputs
from bmpaudit.paper.records import cell_records
from bmpaudit.paper.run import train_and_attack
from bmpaudit.paper.study import STUDY_MODELS, study_tasks
from bmpaudit.paper.tasks import cell_tasks, compute_all, figure_tasks, mhaar_tasks, unflagged_tasks
from bmpaudit.paper.verdict import judge_cells


def run_everything(
    out: Path,
    configurations: Sequence[Configuration],
    *,
    num_seeds: int,
    runtime: Runtime | None = None,
    quick: bool = False,
    beyond: bool = False,
    study: bool = False,
    growth: bool = False,
    page_only: bool = False,
    keep_shadows: bool = False,
) -> Summary:
    """Runs what is missing, then writes tables, figures and page from all results in the folder.

    The order: shadow models, attacks and proofs of all runs; posteriors counted the paper's way, then ours; figures;
    what the disagreeing cells depend on; Algorithm 3 on the chosen subset; then, if asked for, what goes beyond the
    paper.

    Args:
        out: Folder for all results; may hold some of them already.
        configurations: Configurations of the paper to run.
        num_seeds: Number of seeds to run: 0, 1, …
        runtime: Threads and progress.
        quick: Whether to train a tenth of the models.
        beyond: Whether to run PubMed and MLP too.
        study: Whether to run the study of training fractions too.
        growth: Whether to run the study of the number of models too.
        page_only: Whether to run nothing.
        keep_shadows: Whether to keep the shadow models once they have been attacked.

    Raises:
        InputError: if the folder is in use, or holds results of another plan or another version of bmpaudit.
    """
    runtime = runtime or Runtime()
    share = QUICK_SHARE if quick else 1
    sizes = RunSizes(NUM_MODELS // share, STUDY_MODELS // share, GROWTH_MODELS // share)
    with folder_lock(out):
        for folder in ("runs", FOLDER):
            remove_leftovers(out / folder)
        if not page_only:
            runs = all_runs(out, num_seeds, sizes)
            paper = [run for run in runs["paper"] if run.configuration in configurations]
            extra = runs["beyond"] if beyond else []
            fractions = runs["study"] if study else []
            train_and_attack([*paper, *extra, *fractions], runtime, proven=paper, keep_shadows=keep_shadows)
            for counting in COUNTINGS:
                compute_all(cell_tasks(paper, counting), runtime)
            compute_all(figure_tasks(paper), runtime, "joint posteriors and summaries of nodes")
            compute_all(unflagged_tasks(paper), runtime)
            compute_all(disagreement_tasks(judge_cells(cell_records(paper)), paper), runtime, "checks of disagreements")
            compute_all(mhaar_tasks(paper), runtime, "chains")
            compute_all(study_tasks(fractions), runtime)
            for counting in COUNTINGS:
                compute_all(cell_tasks(extra, counting), runtime)
            if growth:
                study_growth(runs["growth"][0], runtime, keep_shadows=keep_shadows)
        return write_outputs(out, all_runs(out, max(num_seeds, num_seeds_there(out)), sizes))
