"""Looking at graphs, at finished audits, side by side or many at once, at one released model, and at error counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bmpaudit.cli.options import FILE, SectionedCommand, answer, asked, make_runtime, option, print_json, shared
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.registry import DEFINITION, ENTRIES, build
from bmpaudit.util.words import count

if TYPE_CHECKING:
    import pandas as pd

    from bmpaudit.attack import ErrorCounts
    from bmpaudit.auditing.nodes import Side
    from bmpaudit.estimation import Posterior
    from bmpaudit.pipeline.pipeline import Pipeline

SIDES: dict[str, Side] = {"right": "member", "left": "non_member"}
TOP, TOP_OF_PAGE = 20, 1_000  # nodes that infer shows


@cli.group()
def data() -> None:
    """List and download data sets.

    \b
    bmpaudit data list
    """


@data.command("list")
@shared("json")
def data_list() -> None:
    """Show which data sets are available, and which folders are searched.

    \b
    bmpaudit data list
    """
    from bmpaudit import datasets

    here, names = datasets.at_hand(), list(datasets.NAMED_DATASETS)
    folders, every = [str(folder) for folder in datasets.search_path()], dict.fromkeys([*names, *here])
    lines = [
        f"{name:<16}{'available' if name in here else f'to download it: bmpaudit data get {name}'}" for name in every
    ]
    answer({"at_hand": here, "named": names, "search_path": folders}, "\n".join(lines))
    if not asked("json"):
        tell(f"looked in {', '.join(folders)}")


@data.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@option("--to", "destination", metavar="DIR", default_text="the user's cache", help="Folder to download to.")
def data_get(names: tuple[str, ...], destination: Path | None) -> None:
    """Download data sets (cora, citeseer, pubmed) and check the SHA-256 of every file.

    \b
    bmpaudit data get cora citeseer
    """
    from bmpaudit import datasets

    for name in names:
        echo(datasets.get(name, destination, report=tell))


@cli.command("graph")
@click.argument("graph", metavar="GRAPH")
@shared("json")
def show_graph(graph: str) -> None:
    """Show the size of a graph: a data set's name, an .npz archive, a folder of tables, or module:function.

    \b
    bmpaudit graph cora
    """
    from bmpaudit import datasets

    loaded = datasets.load(graph)
    names = ("num_nodes", "num_edges", "num_features", "num_classes", "content_hash")
    answer({name: getattr(loaded, name) for name in names}, loaded)


# Finished audits.


@cli.command()
@shared("folder")
@option("--top", metavar="INTEGER", type=click.IntRange(min=1), default=20, help="Number of nodes to show.")
@option("--node", "wanted", multiple=True, help="Show this node, by name or number; can be repeated.")
@option("--class", "class_name", help="Show only nodes of this class.")
@option(
    "--side",
    type=click.Choice(list(SIDES)),
    default="right",
    help="Rank by how often a node is named as a member (right) or as a non-member (left).",
)
@shared("json")
def nodes(folder: Path, top: int, wanted: tuple[str, ...], class_name: str | None, side: str) -> None:
    """Show which nodes of an audit can be named most often.

    \b
    bmpaudit nodes cora-gat --top 10 --class 3
    """
    from bmpaudit.auditing import Workspace, finished
    from bmpaudit.auditing.nodes import ranked_nodes
    from bmpaudit.cli.show import print_nodes, say

    table, role = finished.read_nodes(Workspace(folder)), SIDES[side]
    ranked = ranked_nodes(_chosen(table, wanted, class_name), role)
    shown = ranked.head(top)
    if asked("json"):
        print_json(shown.astype(object).where(shown.notna(), None).to_dict(orient="records"))
        return
    print_nodes(shown, role)
    models, named = ("with", "a member") if side == "right" else ("without", "a non-member")
    ranking = (
        f"ranked by the lower limit of the exposure; exposure is the share of models {models} the node that name it "
        f"as {named} with 99 % certainty"
    )
    if not (table[f"{role}_named"] > 0).any():
        ranking = (
            f"those proven to leak first, then by p-value: in these models nobody is named as {named} with 99 % "
            "certainty"
        )
    say(f"{len(shown):,} of {len(ranked):,} nodes, {ranking}")
    num_leaking, num_tested = int(table["is_leaking"].sum()), int(table["p_value"].notna().sum())
    say(f"proven to leak, by shuffled memberships: {num_leaking:,} of {num_tested:,} nodes")
    if (shown[f"{role}_certain"].fillna(0) > 0).any():
        say("certain: models of which logic alone shows it, and the feature that tells")


def _chosen(table: pd.DataFrame, wanted: tuple[str, ...], class_name: str | None) -> pd.DataFrame:
    """The nodes with one of some names or numbers, and of one class."""
    classes = sorted(table["class"].unique())
    if wanted:
        is_wanted = table["name"].isin([])
        for name in wanted:
            is_it = table["name"] == name
            if not is_it.any():
                is_it = table["node"].astype(str) == name
            if not is_it.any():
                raise click.UsageError(f"--node: there is no node {name!r}")
            is_wanted |= is_it
        table = table[is_wanted]
    if class_name is not None:
        if class_name not in classes:
            raise click.UsageError(f"--class must be one of {', '.join(classes)}, got {class_name!r}")
        table = table[table["class"] == class_name]
    return table


@cli.command()
@shared("folder")
@shared("pictures", "trust-code", "threads", "quiet")
def report(folder: Path, pictures: str, trust_code: bool) -> None:
    """Write the page, the tables and the pictures of an audit folder.

    \b
    bmpaudit report cora-gat
    """
    with _stored_pipeline(folder, trust_code, "report") as pipeline:
        echo(pipeline.report(pictures=pictures))


@contextmanager
def _stored_pipeline(folder: Path, trust_code: bool, step: str) -> Iterator[Pipeline]:
    """The pipeline of an audit folder, which may run this step anew."""
    from bmpaudit.auditing import Workspace, finished
    from bmpaudit.pipeline.pipeline import Pipeline

    workspace = Workspace(folder)
    subject = finished.stored_subject(workspace, trust_code=trust_code)
    pipeline = Pipeline(subject, workspace, make_runtime(), may_run=(step,))
    with pipeline.prepared():
        yield pipeline


@cli.command()
@click.argument("audits", metavar="DIR[:RELEASE] DIR[:RELEASE]...", nargs=-1)
@option("--out", metavar="DIR", help="Folder for the comparison as a page, figures, JSON and a table of nodes.")
@option(
    "--definition",
    metavar="NAME",
    default_text="bmp-r, with --side left bmp-l; else the first that all have",
    help="Privacy definition whose estimated ε is compared; the audits must have estimated it.",
)
@option(
    "--side",
    type=click.Choice(list(SIDES)),
    default_text="right",
    help="Which nodes are named: members (right) or non-members (left); and which ε of a definition with two.",
)
@option(
    "--variant",
    metavar="NAME",
    default_text="the strongest on each release",
    help="Variant of the attack for the estimated ε, such as none_clean_weak; its release is what is compared.",
)
@option("--top", metavar="INTEGER", type=click.IntRange(min=0), default=10, help="Number of nodes to show.")
@shared("json")
def compare(audits: tuple[str, ...], out: Path | None, top: int, **choices: str | None) -> None:
    """Compare finished audits, or releases of one: does the defence help, and what does it cost?

    Shows side by side how many nodes can be named, what is proven, and the held-out accuracy; differences from the
    first audit, with intervals from the same training samples where both have them; and which nodes changed. Each
    audit's main release is compared unless another is named.

    \b
    bmpaudit compare cora-gcn cora-gat --out gcn-against-gat
    bmpaudit compare cora-gcn:clean cora-gcn:noisy
    """
    from bmpaudit.cli.show import print_comparison, say
    from bmpaudit.comparison import compare as comparison

    if len(audits) < 2:
        raise click.UsageError(f"compare takes at least two audit folders or releases, got {len(audits)}")
    result = comparison.compare(audits, **choices)
    if asked("json"):
        print_json(result.to_dict(top))
    else:
        print_comparison(result, top)
    if out is not None:
        from bmpaudit.comparison.page import write_comparison

        page = write_comparison(result, out)
        if not asked("json"):
            say(f"page: {page}", soft_wrap=True)


@cli.command(cls=SectionedCommand)
@click.argument("path", metavar="FILE", type=FILE)
@option("--out", metavar="DIR", required=True, help="Folder of the sweep: a new one, or one to resume or extend.")
@option(
    "--confirm",
    is_flag=True,
    help="Audit the points that no other beats again, with fresh models: the best of many looks better than it is.",
)
@shared("pictures", "trust-code", "threads", "dask", "quiet", "json")
def sweep(path: Path, out: Path, confirm: bool, pictures: str, trust_code: bool) -> None:
    """Audit many settings, and show which of them no other beats in accuracy and privacy.

    FILE is a plan with a table of alternatives for any of its keys. Every release of the plan is a point of its own,
    and releases share their shadow models. Running the command again resumes a stopped sweep; points and models can
    be added to the file.

    \b
    [sweep.grid]
    training.epochs = [50, 200]
    model.dropout = [0.0, 0.5, 0.8]

    \b
    bmpaudit sweep defences.toml --out defences --confirm
    """
    from bmpaudit import datasets, sweeps
    from bmpaudit.cli.show import print_sweep, say
    from bmpaudit.pipeline.pipeline import source_name

    source, audits = sweeps.read_sweep(path, trust_code=trust_code)
    graph, runtime = datasets.load(source, trust_code=trust_code), make_runtime()
    if not runtime.quiet:
        tell(sweeps.describe(audits))
    source = source_name(source)
    result = sweeps.run_sweep(graph, source, audits, out, confirm=confirm, pictures=pictures, runtime=runtime)
    if asked("json"):
        print_json(result.to_dict())
        return
    print_sweep(result)
    say(f"table: {out / 'sweep.csv'}", soft_wrap=True)
    for picture in sorted(out.glob("frontier.*")):
        say(f"picture: {picture}", soft_wrap=True)


# Who was in the training sample of one released model.


@cli.command("infer", cls=SectionedCommand)
@click.argument("subject", metavar="DIR|GRAPH")
@option(
    "--model",
    metavar="FILE",
    required=True,
    help="Released model: weights (.npz, .safetensors; with DIR of a built-in model), or outputs by query (.npz; .npy "
    "or .parquet if there is one query).",
)
@option(
    "--release",
    metavar="NAME",
    default_text="the plan's first",
    help="Release that the model was given out under, such as clean or noisy.",
)
@option(
    "--prior",
    metavar="FILE|FLOAT",
    default_text="the sampler's",
    help="Prior probability of membership: one number, or a file with one for each node (.npy, .csv, .parquet).",
)
@option(
    "--truth",
    metavar="FILE",
    help="Who was in, to score the answer: members or flags (.npy, .npz, .csv, .parquet, .txt).",
)
@option(
    "--top",
    metavar="INTEGER",
    type=click.IntRange(min=0),
    default_text=f"{TOP}; {TOP_OF_PAGE:,} on the page, all with --json",
    help="Number of nodes to show, the most likely members first.",
)
@option("--out", metavar="FILE.html", help="Page with the answer.")
@shared("trust-code", "threads", "quiet", "json")
def infer_members(subject: str, model: Path, top: int | None, out: Path | None, **how: Any) -> None:
    """Infer who was in the training sample of one released model.

    DIR is an audit folder with shadow models. For every node: calibrated odds of membership, and whether it is named
    with 95 and 99 % certainty, or answers beyond every non-member of the shadow models; and a check whether the model
    was trained as the plan says. GRAPH is a data set, file or module:function, without any shadow model: which nodes
    the weights leave no doubt about.

    \b
    bmpaudit infer cora-gcn --model released.safetensors
    bmpaudit infer cora-gcn --model logits.npz --truth members.txt --out released.html
    bmpaudit infer cora --model released.safetensors
    """
    from bmpaudit.cli.show import print_inference, say
    from bmpaudit.inference.infer import infer, render_inference_page
    from bmpaudit.util.files import write_text

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"--out must be a page, FILE.html, got {out}")
    path = Path(subject)
    if not path.is_dir() or (any(path.glob("nodes.*")) and not (path / "plan.toml").exists()):
        _infer_certain(
            subject, model, top, how["truth"], {"release": how["release"], "prior": how["prior"], "out": out}
        )
        return
    result = infer(path, model, runtime=make_runtime(), **how)
    if out is not None:
        write_text(out, render_inference_page(result, TOP_OF_PAGE if top is None else top))
    if asked("json"):
        print_json(result.to_plain(top))
        return
    print_inference(result, TOP if top is None else top)
    if out is not None:
        say(f"page: {out}", soft_wrap=True)


def _infer_certain(graph: str, model: Path, top: int | None, truth: str | None, for_folders: dict[str, Any]) -> None:
    """What the weights of a model leave no doubt about, with a graph and no shadow models."""
    from bmpaudit import datasets
    from bmpaudit.cli.show import print_rows, say
    from bmpaudit.inference.certain import infer_certain

    given = [f"--{name}" for name, value in for_folders.items() if value is not None]
    if given:
        raise click.UsageError(f"infer takes {', '.join(given)} with an audit folder, got the graph {graph}")
    result = infer_certain(datasets.load(graph), model, truth)
    if asked("json"):
        print_json(result.to_plain(top))
        return
    say(result.verdict, style="bold")
    say(*result.findings)
    shown = result.table.head(TOP if top is None else top)
    if len(shown):
        rows = shown.astype(str).to_numpy().tolist()
        print_rows(["node", "name", "class", "degree", "certainly", "feature", "length of its weights"], rows, 3)
        say(f"{len(shown):,} of {len(result.table):,} certain nodes, members first")


# From a table of error counts to a posterior.

DEFAULT_LEVEL = 0.9  # of the interval that the table's 5 % and 95 % make
DRIVERS_SHOWN = 3
NAMED = 5  # nodes left out that are named


def _check_save(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Before the work, not after it."""
    if path is not None and path.suffix != ".npz":
        raise click.BadParameter(f"the name must end in .npz, got {path}")
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"no such folder: {path.parent}")
    return path


@cli.command(
    epilog="""\b
Examples:
  bmpaudit estimate counts.csv
  bmpaudit estimate counts.csv --definition bmp --json
  bmpaudit estimate counts.csv --definition mp --strength-prior 1 1 --save mp.npz
  bmpaudit estimate counts.csv --method mhaar --correlated --chains 8
  bmpaudit estimate cora-gat"""
)
@click.argument("counts", metavar="COUNTS|DIR", type=click.Path(path_type=Path))
@option(
    "--definition",
    metavar="NAME",
    default="bmp-r",
    help=f"Privacy definition to estimate ({', '.join(ENTRIES[DEFINITION])}, or module:Name).",
)
@option(
    "--method",
    type=click.Choice(["exact", "mhaar"]),
    default="exact",
    help="Exact quadrature, or the Markov chains of Algorithm 3 (mhaar).",
)
@option("--prior-mean", type=float, default=0.0, help="Mean of the normal prior of ε.")
@option("--prior-variance", type=float, default=10.0, help="Variance of the normal prior of ε.")
@option("--strength", type=float, default_text="0", help="Assumed attack strength s, in [0, 1).")
@option(
    "--strength-prior",
    type=float,
    nargs=2,
    metavar="A B",
    help="Estimate s as well, with the prior Beta(A, B); for definitions with one parameter.",
)
@option(
    "--iterations", type=int, default_text="10,000; two parameters: 50,000", help="Number of steps of a chain (mhaar)."
)
@option("--chains", type=int, default_text="4", help="Number of chains (mhaar).")
@option("--auxiliary", type=int, default_text="50", help="Number of auxiliary points per node and step (mhaar).")
@option("--correlated", is_flag=True, help="Let the errors of a node be correlated, not binomial (mhaar).")
@option("--seed", type=int, default=0, help="Random seed of the chains (mhaar).")
@option(
    "--level",
    metavar="FLOAT",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=DEFAULT_LEVEL,
    help="Probability of the credible interval that is shown.",
)
@option(
    "--save",
    metavar="FILE.npz",
    callback=_check_save,
    help="File to save the posterior to; bmpaudit.Posterior.load reads it.",
)
@shared("trust-code", "threads", "quiet", "json")
def estimate(counts: Path, level: float, save: Path | None, trust_code: bool, **settings: Any) -> None:
    """Estimate ε from the errors of an attack: those of a table, or those of an audit folder.

    COUNTS is a CSV or Parquet file with the columns node, num_out, num_in, false_positives, false_negatives and
    prior_prob. DIR is an audit folder, whose plan says what to estimate; the other options are for COUNTS.
    """
    from bmpaudit.attack import ErrorCounts

    if counts.is_dir():
        _estimate_folder(counts, trust_code)
        return
    posterior = _estimate(ErrorCounts.from_table(counts), **settings)
    if save is not None:
        posterior.save(save)
    if not asked("json"):
        echo("\n".join(_table(posterior, level)))
        return
    summary = posterior.summary()
    for name in posterior.marginals:
        interval = posterior.interval(level, name)
        summary[name]["interval"] = {"level": level, "low": interval.low, "high": interval.high}
    drivers = {name: [vars(node) for node in posterior.influence(name).drivers()] for name in posterior.parameter_names}
    print_json({**summary, "drivers": drivers})


def _estimate_folder(folder: Path, trust_code: bool) -> None:
    from bmpaudit.cli.show import show_audit

    context = click.get_current_context()
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if is_given and parameter.name not in ("counts", "trust_code", "threads", "json", "quiet"):
            option_name = parameter.opts[0]
            raise click.UsageError(f"{option_name} is for a table of errors; {folder} has a plan, see bmpaudit audit")
    with _stored_pipeline(folder, trust_code, "estimate") as pipeline:
        audit = pipeline.audit
    show_audit(audit, None)


def _estimate(
    counts: ErrorCounts,
    *,
    definition: Any,
    method: Any,
    prior_mean: float,
    prior_variance: float,
    strength: float | None,
    strength_prior: tuple[float, float] | None,
    seed: int,
    **of_chains: Any,
) -> Posterior:
    """The posterior that the options ask for."""
    from bmpaudit import estimation
    from bmpaudit.estimation.mhaar import DEFAULT_ITERATIONS, DEFAULT_JOINT_ITERATIONS
    from bmpaudit.util.progress import progress_bar

    if strength is not None and strength_prior is not None:
        raise click.UsageError("--strength fixes what --strength-prior estimates: give one of the two")
    given = {name: value for name, value in of_chains.items() if value is not None and value is not False}
    if method != "mhaar" and given:
        raise click.UsageError(f"--{next(iter(given))} is for --method mhaar, got --method {method}")
    part = build(DEFINITION, definition)
    default = DEFAULT_JOINT_ITERATIONS if len(part.parameters) > 1 else DEFAULT_ITERATIONS
    iterations, chains = given.get("iterations", default), given.get("chains", 4)
    runtime = make_runtime()
    with progress_bar("iterations", iterations * chains, quiet=runtime.quiet or method != "mhaar") as progress:
        return estimation.estimate(
            counts,
            part,
            method=method,
            prior=estimation.NormalPrior(prior_mean, prior_variance),
            strength=(strength or 0.0) if strength_prior is None else estimation.StrengthPrior(*strength_prior),
            correlated=estimation.CorrelatedCounts() if "correlated" in given else None,
            num_iterations=iterations,
            num_auxiliary=given.get("auxiliary", 50),
            num_chains=chains,
            seed=seed,
            progress=progress,
            num_threads=runtime.num_threads,
        )


def _table(posterior: Posterior, level: float) -> list[str]:
    """The lines printed."""
    lines = [str(posterior)]
    if posterior.status == "converged":
        lines.append("  status: converged")
    if level != DEFAULT_LEVEL:
        for name in posterior.marginals:
            interval = posterior.interval(level, name)
            lines.append(f"  {f'{100 * level:g} % interval':<14} {name} from {interval.low:.3f} to {interval.high:.3f}")
    lines.append(f"  floor          ε_L ≥ {posterior.floor.left:.3f}, ε_R ≥ {posterior.floor.right:.3f}   (Prop. 1)")
    if posterior.left_out:
        named = ", ".join(map(str, posterior.left_out[:NAMED])) + (", ..." if len(posterior.left_out) > NAMED else "")
        lines.append(f"  left out       {count(len(posterior.left_out), 'node')} whose membership is certain: {named}")
    for name in posterior.parameter_names:
        lines.append(f"  proven*        {name} {posterior.proven(name)}")
        of = f" of {name}" if len(posterior.parameter_names) > 1 else ""
        share = posterior.tail_prior_share(name)
        lines.append(f"  upper tail     {share:.0%} of the top 5 %{of} has the shape of the prior")
        nodes = posterior.influence(name).drivers(DRIVERS_SHOWN)
        shifts = [f"{node.node} ({node.shift:+.3f}{', never varies' if node.is_constant else ''})" for node in nodes]
        lines.append(f"  driven by      {'nodes' if nodes[1:] else 'node'} {', '.join(shifts)}: shift of the mean")
    return [*lines, "  * with 95 % confidence, if these counts come from Algorithm 4"]
