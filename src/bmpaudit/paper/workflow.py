"""Everything that `bmpaudit reproduce` does, in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bmpaudit.paper.disagreement import looking_tasks
from bmpaudit.paper.experiments import COUNTINGS, NUM_MODELS, QUICK_SHARE, Configuration
from bmpaudit.paper.output import Summary, all_runs, num_seeds_there, verdicts_of, write_outputs
from bmpaudit.paper.reproduce import (
    Watch,
    cell_tasks,
    compute_all,
    figure_tasks,
    mhaar_tasks,
    run_folder_lock,
    train_and_attack,
    unflagged_tasks,
)
from bmpaudit.paper.study import STUDY_MODELS, study_tasks


def run_everything(
    out: Path,
    configurations: Sequence[Configuration],
    *,
    num_seeds: int,
    watch: Watch,
    quick: bool = False,
    beyond: bool = False,
    study: bool = False,
    page_only: bool = False,
    keep_shadows: bool = False,
    num_threads: int | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Runs what is not there yet, then writes tables, figures and page from all that is there.

    The order: shadow models and attacks of all runs; posteriors the paper's way, then ours; figures; what the
    disagreeing cells hang on; Algorithm 3 on the chosen subset; then, if asked for, what goes beyond the paper.

    Args:
        out: Folder for all results; may hold some of them already.
        configurations: Those of the paper to run.
        num_seeds: Seeds 0, 1, … to run.
        watch: Shows progress.
        quick: A tenth of the models.
        beyond: Also PubMed and MLP.
        study: Also the study of training fractions.
        page_only: Run nothing.
        keep_shadows: Keep shadow models when their attacks are done.
        num_threads: To train and attack on; all cores if not given.
        report: Is told of each finished set of models, and of damage that was found.

    Raises:
        InputError: if the folder is in use, or holds results of another plan.
    """
    share = QUICK_SHARE if quick else 1
    sizes = (NUM_MODELS // share, STUDY_MODELS // share)
    with run_folder_lock(out):
        if not page_only:
            runs = all_runs(out, sizes[0], num_seeds, sizes[1])
            paper = [run for run in runs["paper"] if run.configuration in configurations]
            extra = runs["beyond"] if beyond else []
            fractions = runs["study"] if study else []
            train_and_attack(
                [*paper, *extra, *fractions],
                watch,
                num_threads=num_threads,
                keep_shadows=keep_shadows,
                report=report,
            )
            for counting in COUNTINGS:
                compute_all(cell_tasks(paper, counting), watch, report=report)
            compute_all(figure_tasks(paper), watch, "joint posteriors and nodes")
            compute_all(unflagged_tasks(paper), watch, report=report)
            compute_all(looking_tasks(verdicts_of(paper), paper), watch, "looks at disagreements", report)
            compute_all(mhaar_tasks(paper), watch, "chains", report)
            compute_all(study_tasks(fractions), watch, report=report)
            for counting in COUNTINGS:
                compute_all(cell_tasks(extra, counting), watch, report=report)
        there = all_runs(out, sizes[0], max(num_seeds, num_seeds_there(out)), sizes[1])
        return write_outputs(out, there)
