"""What was inferred about one released model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit import registry
from bmpaudit.attack import Evidence
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.auditing import Audit, Runtime, Subject, Workspace, context, nodes, stages
from bmpaudit.graph import Graph
from bmpaudit.inference import released
from bmpaudit.pipeline.pipeline import stored_models
from bmpaudit.releases import ACCESSES
from bmpaudit.report import page
from bmpaudit.shadow.released import read_released
from bmpaudit.util.errors import InputError
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats, plain
from bmpaudit.util.words import count, odds, percent

if TYPE_CHECKING:
    import pandas as pd


IN, OUT = "member", "non-member"
SHOWN_NODES = 20
MOST_LISTED = 5  # nodes in a sentence


@dataclass(frozen=True, eq=False)
class Inference:
    """Who was in the training sample of one released model, as far as an adversary can tell."""

    title: str  # graph, sampler and model of the plan
    model: str  # what was looked at: a path, or `weights`, `outputs`, `module` or `classifier`
    came_as: str  # in what form the model came: `weights`, `outputs`, `module` or `classifier`
    release: str  # its label
    queries: tuple[str, ...]  # labels of the queries that were answered
    source: str  # attack and queries that the odds rest on
    has_declared_prior: bool  # if not, it is the sampler's
    check: released.BehaviourCheck  # whether the model behaves like the shadow models
    named: tuple[released.Named, ...]  # who is named, for each certainty
    score: released.InferenceScore | None  # how right this is, if it is known who was in
    # One row for each node, the most likely members first: `node`, `name`, `class`, `degree`, `prior_prob`, `log_odds`
    # and `posterior_prob` (calibrated), `score` (the attack's log-odds before recalibration), `named_95` and `named_99`
    # (`member`, `non-member` or empty), `beyond` (whether the score is beyond those of every `non-member`, or every
    # `member`, of equal strength among the shadow models, or empty), `flag` (why a node could not be attacked; its odds
    # are those of the prior) and, if it is known, `member`.
    table: pd.DataFrame

    def at(self, certainty: float) -> released.Named:
        """Who is named at a certainty, 0.95 or 0.99."""
        if certainty not in released.CERTAINTIES:
            raise InputError(f"certainty must be one of {', '.join(map(str, released.CERTAINTIES))}, got {certainty}")
        return self.named[released.CERTAINTIES.index(certainty)]

    @property
    def verdict(self) -> str:
        """The answer in a sentence about this model."""
        if not self.check.is_like_shadows:
            return (
                "Cannot say whom this model gives away: it was not trained as the plan says. Audit models that are "
                "trained as this one was."
            )
        likely, sure = self.named
        named, sentences = (sure if sure.members else likely), []
        if named.members:
            about = f"about {named.expected_members:,.0f}" if named.members > 1 else "one"
            by_prior = f"; the prior alone names {named.members_by_prior:,}" if named.members_by_prior else ""
            sentences.append(
                f"From this model an adversary can name {about} of its training nodes with "
                f"{percent(named.certainty)} certainty{by_prior}."
            )
        wanted = sure if named.members else likely
        if wanted.members_undecidable:
            number, total = wanted.members_undecidable, len(self.table)
            some = f"{number:,} of {count(total, 'node')} {'was' if number == 1 else 'were'}"
            who = "any node was" if number == total else some
            sentences.append(
                f"With {count(self.check.num_models, 'shadow model')} it cannot be decided with "
                f"{percent(wanted.certainty)} certainty whether {who} in its training sample."
            )
        if not sure.members:
            name, prob = self.table["name"].iloc[0], float(self.table["posterior_prob"].iloc[0])
            sentences.append(f"The most likely member is node {name}, at {percent(prob, 1)}.")
        if unnamed := self.beyond(OUT, only_unnamed=True):
            number, more = len(unnamed), " more" if sure.members else ""
            answer = "node answers like a member" if number == 1 else "nodes answer like members"
            listed = ", ".join(unnamed[:MOST_LISTED])
            rest = f" and {count(number - MOST_LISTED, 'other')}" if number > MOST_LISTED else ""
            sentences.append(
                f"{number:,}{more} {answer}, beyond every non-member of the shadow models: {listed}{rest}."
            )
        return " ".join(sentences)

    def beyond(self, side: str, *, only_unnamed: bool = False) -> list[str]:
        """Names of the nodes whose scores are beyond those of every `member`, or `non-member`, of the shadow models.

        All of them, or those alone that are not named with 99 % certainty.
        """
        is_meant = self.table["beyond"] == side
        if only_unnamed:
            is_meant &= self.table["named_99"] == ""
        return list(map(str, self.table.loc[is_meant, "name"]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against believing the odds."""
        messages = []
        check = self.check
        if not check.is_like_shadows:
            messages.append(
                f"This model was not trained as the plan says: {_difference(check)}. Of models that were, at most "
                f"{percent(check.p_value, 1)} differ as much. What follows assumes that it was, and can be wrong."
            )
        if self.score is not None and not self.score.standing.is_like_shadows:
            messages.append(
                f"This model does not give away what the shadow models do: {_difference(self.score.standing)}."
            )
        if check.level == 0:
            messages.append(
                f"{count(check.num_models, 'shadow model')} are too few to tell whether this model was trained as the "
                "plan says; 40 would do for a rough answer, 200 for a better one."
            )
        return tuple(messages)

    def to_plain(self, top: int | None = None) -> dict[str, Any]:
        """Everything as JSON can hold it, with all nodes or the first `top`."""
        return {
            "title": self.title,
            "model": self.model,
            "came_as": self.came_as,
            "release": self.release,
            "queries": list(self.queries),
            "source": self.source,
            "prior": "declared" if self.has_declared_prior else "sampler",
            "verdict": self.verdict,
            "warnings": list(self.warnings),
            "check": self.check.to_plain(),
            "named": [asdict(each) for each in self.named],
            "beyond_non_members": self.beyond(OUT),
            "beyond_members": self.beyond(IN),
            "score": None if self.score is None else self.score.to_plain(),
            "nodes": plain((self.table if top is None else self.table.head(top)).to_dict(orient="records")),
        }

    @property
    def setting(self) -> str:
        """What was attacked, and how, in a line."""
        return (
            f"{self.title}; {self.model}, release {self.release}; attack {self.source}, fitted on "
            f"{count(self.check.num_models, 'shadow model')}; {'declared' if self.has_declared_prior else 'sampler’s'} "
            "prior"
        )

    def findings(self) -> list[str]:
        """What the check found, and how good the answer is if it is known who was in."""
        check, score = self.check, self.score
        lines = [
            f"Beyond every non-member of equal strength among the shadow models: {len(self.beyond(OUT)):,} of "
            f"{count(len(self.table), 'node')}; beyond every member: {len(self.beyond(IN)):,}."
        ]
        if check.is_like_shadows and check.level:
            lines.append(
                f"Nothing speaks against its having been trained as the plan says (p = {check.p_value:.2g}). What "
                f"deviates most: {_difference(check)}."
            )
        if score is not None:
            lines.append(
                f"Scored on {score.num_members:,} members: AUC {score.auc:.3f}, TPR "
                f"{percent(score.tpr_at_1_percent, 1)} at FPR 1 %."
            )
            if score.standing.is_like_shadows and score.standing.level:
                lines.append(
                    f"It gives away as much as the shadow models do (p = {score.standing.p_value:.2g}). What deviates "
                    f"most: {_difference(score.standing)}."
                )
        return lines

    def named_cells(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of a table of who is named at each certainty."""
        head = ["named as", "certainty", "nodes", "expected right", "cannot be decided", "by the prior alone"]
        rows = []
        for kind in ("members", "non_members"):
            for each in self.named:
                names = (kind, f"expected_{kind}", f"{kind}_undecidable", f"{kind}_by_prior", f"{kind}_right")
                number, expected, undecidable, by_prior, right = (getattr(each, name) for name in names)
                row = [kind.replace("_", "-"), f"{100 * each.certainty:g} %", f"{number:,}", f"{expected:,.1f}"]
                rows.append([*row, f"{undecidable:,}", f"{by_prior:,}", *([] if right is None else [f"{right:,}"])])
        return [*head, *(["right"] if self.score is not None else [])], rows

    def __str__(self) -> str:
        head, rows = self.named_cells()
        width = max(map(len, head))
        table = ["  ".join(cell.rjust(width) for cell in row) for row in (head, *rows)]
        warnings = [f"! {warning}" for warning in self.warnings]
        return "\n".join([*warnings, self.verdict, self.setting, *table, *self.findings()])

    def _repr_html_(self) -> str:
        warnings = "".join(f"<p><b>{escape(warning)}</b></p>" for warning in self.warnings)
        lines = paragraphs((self.setting, *self.findings()))
        tables = "".join(html_table(*cells) for cells in (self.named_cells(), node_cells(self, SHOWN_NODES)))
        return f"{warnings}<p><b>{escape(self.verdict)}</b></p>{lines}{tables}"


def inference_table(
    graph: Graph, prior_prob: Floats, log_odds: Floats, posterior: released.Posterior, truth: Flags | None
) -> pd.DataFrame:
    """One row for each node, the most likely members first; see `Inference.table`."""
    import pandas as pd

    flag = np.full(graph.num_nodes, "", dtype=object)
    for left in posterior.not_auditable:
        flag[left.node] = left.reason
    is_certain = (prior_prob <= 0) | (prior_prob >= 1)
    for node in np.flatnonzero(posterior.is_attacked & is_certain):
        flag[node] = f"its declared prior is {prior_prob[node]:g}"
    columns = {
        **nodes.node_columns(graph),
        "prior_prob": prior_prob,
        "log_odds": log_odds,
        "posterior_prob": scipy.special.expit(log_odds),
        "score": posterior.score,
    }
    for certainty in released.CERTAINTIES:
        threshold = scipy.special.logit(certainty)
        columns[f"named_{100 * certainty:g}"] = np.select(
            [log_odds >= threshold, log_odds <= -threshold], [IN, OUT], ""
        )
    columns["beyond"] = np.select([posterior.is_above & ~is_certain, posterior.is_below & ~is_certain], [OUT, IN], "")
    columns["flag"] = flag
    if truth is not None:
        columns["member"] = truth
    order = np.lexsort((np.arange(graph.num_nodes), -posterior.score, -log_odds))
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def node_cells(inference: Inference, top: int) -> tuple[list[str], list[list[str]]]:
    """The head and the first `top` rows of the table of nodes, as people read them."""
    has_truth = inference.score is not None
    head = ["node", "class", "degree", "prior", "odds", "probability", "named", "beyond every"]
    rows = []
    for row in inference.table.head(top).to_dict(orient="records"):
        named = next((f"{row[f'named_{c}']}, {c} %" for c in ("99", "95") if row[f"named_{c}"]), "")
        cells = [str(row["name"]), str(row["class"]), f"{row['degree']:,}", f"{row['prior_prob']:.3f}"]
        cells += [odds(row["log_odds"]), f"{row['posterior_prob']:.4f}", named, row["beyond"]]
        rows.append([*cells, *([("yes" if row["member"] else "no")] if has_truth else []), row["flag"]])
    return [*head, *(["was in"] if has_truth else []), ""], rows


def _difference(check: released.BehaviourCheck) -> str:
    """The quantity that deviates most."""
    most = check.standings[0]
    return f"{most.name} is {most.value:.4g}, and {most.low:.4g} to {most.high:.4g} in 98 % of the shadow models"


# From one released model to who was in its training sample.


def infer(
    folder_or_audit: str | Path | Audit,
    model: Any,
    *,
    release: str | None = None,
    prior: Any = None,
    truth: Any = None,
    trust_code: bool = False,
    runtime: Runtime | None = None,
) -> Inference:
    """Infers who was in the training sample of one released model, with shadow models as the reference.

    The attack is the plan's, or the row attack if the plan is of more access than to scores and the model comes in a
    form that gives it. It is fitted on all shadow models under the release, on those of the plan's queries that are
    answered. Its log-odds are recalibrated on the shadow models, each scored by a fit on the others, apart for nodes
    that give away little, some, or much. Nothing is written.

    Args:
        folder_or_audit: An audit folder with shadow models, or a finished audit.
        model: The released model: a file, arrays by name, an `nn.Module` or a fitted classifier (see `read_released`).
        release: Label of the release that the model was given out under; the plan's first if None.
        prior: Declared prior probabilities (see `declared_prior`); the sampler's if None. It shifts the log-odds.
        truth: Who was in, if that is known (see `known_members`).
        trust_code: Whether code that the folder names `module:Name` may run.
        runtime: Threads, progress and notices.

    Raises:
        DataError: if a file is missing or damaged, or the folder has no shadow models.
        InputError: if the model does not fit the plan or the graph, or an argument is impossible.
    """
    runtime = runtime or Runtime()
    if isinstance(folder_or_audit, Audit):
        audit = folder_or_audit
        subject, runs, priors = Subject(audit.graph, audit.source, audit.plan), audit.runs, audit.priors
    else:
        subject, runs, priors = stored_models(Workspace(folder_or_audit), runtime, trust_code=trust_code)
    graph, plan = subject.graph, subject.plan
    context.check_trusted(plan, ("attack",))
    labels = [registry.label(registry.RELEASE, each) for each in plan.releases]
    if release not in (None, *labels):
        raise InputError(f"release must be one of {', '.join(labels)}, got {release!r}")
    release = release or labels[0]
    own = context.own_access(plan, release)
    answers = read_released(model, graph, plan.shadow_plan, release, own)
    declared = priors.prob if prior is None else released.declared_prior(prior, graph)
    members = None if truth is None else released.known_members(truth, graph)

    access = next((each for each in reversed(ACCESSES) if each in answers.rows), own)
    attack = stages.proof_attacks(plan, release, access=access)[0]
    shadows = Evidence.of_runs(runs, release, list(answers.statistics), graph, access)
    calibration = released.calibrate(attack, shadows, priors.prob, runtime.num_threads)
    posterior = released.attack_released(
        calibration, shadows, answers.statistics, priors.prob, runtime.num_threads, answers.rows.get(access)
    )
    declared_odds, attacked = log_prior_odds(declared), posterior.is_attacked
    shift = np.zeros_like(declared)  # infinite where the declared prior is certain
    shift[attacked] = declared_odds[attacked] - log_prior_odds(priors.prob[attacked])
    log_odds, *reachable = (
        np.where(attacked, values + shift, declared_odds) for values in (posterior.calibrated, *posterior.reachable)
    )
    behaves = released.behaviour(shadows.statistics, answers.statistics)
    score = None
    if members is not None:
        score = released.score_inference(calibration, posterior, shift, members, behaves.has_learnt_little)
    return Inference(
        title=f"{Path(subject.source).name.removesuffix('.npz') or 'graph'}, {plan.title}",
        model=str(model) if isinstance(model, (str, Path)) else answers.came_as,
        came_as=answers.came_as,
        release=release,
        queries=tuple(answers.statistics),
        source=calibration.source.name,
        has_declared_prior=prior is not None,
        check=behaves.check,
        named=tuple(
            released.count_named(certainty, log_odds, declared_odds, (reachable[0], reachable[1]), members)
            for certainty in released.CERTAINTIES
        ),
        score=score,
        table=inference_table(graph, declared, log_odds, posterior, members),
    )


def render_inference_page(inference: Inference, top: int) -> str:
    """A page without a script, with the `top` most likely members."""
    cells, title = node_cells(inference, top), "Does it give away what the shadow models do?"
    shown = "" if inference.score is None else _check(inference.score.standing)
    texts = {
        "kicker": "Members of a released model",
        "name": inference.model,
        "subtitle": inference.title,
        "version": version("bmpaudit"),
    }
    count_of_nodes = f"The {len(cells[1]):,} most likely members of {len(inference.table):,} nodes."
    parts = {
        "warnings": page.paragraphs(inference.warnings, "notice"),
        "verdict": page.paragraphs([inference.verdict], "verdict"),
        "named": page.table(inference.named_cells(), "Table"),
        "lines": page.paragraphs([*inference.findings(), f"{inference.setting}."]),
        "check": _check(inference.check),
        "score": shown and f'<section id="score">\n  <h2>{title}</h2>\n  {shown}\n</section>\n',
        "nodes": page.paragraphs([count_of_nodes]) + page.table(cells, "Table", num_texts=2),
    }
    return page.static_page("infer.html", texts, parts)


def _check(check: released.BehaviourCheck) -> str:
    answer = "Nothing speaks against it" if check.is_like_shadows else "No"
    rows = [
        [each.name, f"{each.value:.4g}", f"{each.low:.4g} to {each.high:.4g}", f"{each.deviation:.2f}"]
        for each in check.standings
    ]
    head = ["quantity", "this model", "98 % of the shadow models", "deviation"]
    return page.paragraphs([f"{answer}: p = {check.p_value:.2g}."]) + page.table((head, rows), "Table")
