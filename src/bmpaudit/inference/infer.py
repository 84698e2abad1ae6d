"""What was inferred about one released model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit import registry
from bmpaudit.attack import Evidence
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.auditing.context import Runtime, Subject, attack_on
from bmpaudit.auditing.finished import Audit, read_priors, read_runs, stored_subject
from bmpaudit.auditing.nodes import class_names
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph import Graph
from bmpaudit.inference.released import (
    CERTAINTIES,
    BehaviourCheck,
    Calibration,
    InferenceScore,
    LogOdds,
    Named,
    Posterior,
    attack_released,
    behaviour,
    calibrate,
    count_named,
    declared_prior,
    known_members,
    score_inference,
)
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.proof import Recalibration
from bmpaudit.registry import ATTACK, RELEASE, UntrustedPart
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.released import read_released
from bmpaudit.util.errors import InputError
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats, plain
from bmpaudit.util.words import count, odds, percent

if TYPE_CHECKING:
    import pandas as pd


IN, OUT = "member", "non-member"
SHOWN_NODES = 20


@dataclass(frozen=True, eq=False)
class Inference:
    """Who was in the training sample of one released model, as far as an adversary can tell.

    Attributes:
        title: Graph, sampler and model of the plan.
        model: What was looked at: a path, or `weights`, `outputs`, `module` or `classifier`.
        came_as: In what form the model came: `weights`, `outputs`, `module` or `classifier`.
        release: Label of the release.
        queries: Labels of the queries that were answered.
        source: Attack and queries that the odds rest on.
        has_declared_prior: Whether the prior was declared; if not, it is the sampler's.
        check: Whether the model behaves like the shadow models.
        named: Who is named, for each certainty.
        score: How right this is, if it is known who was in.
        recalibration: How the attack's log-odds became log-odds that can be believed.
        table: One row for each node, the most likely members first: `node`, `name`, `class`, `degree`, `prior_prob`,
            `log_odds` and `posterior_prob` (calibrated), `score` (the attack's log-odds before recalibration),
            `named_95` and `named_99` (`member`, `non-member` or empty), `flag` (why a node could not be attacked; its
            odds are those of the prior) and, if it is known, `member`.
    """

    title: str
    model: str
    came_as: str
    release: str
    queries: tuple[str, ...]
    source: str
    has_declared_prior: bool
    check: BehaviourCheck
    named: tuple[Named, ...]
    score: InferenceScore | None
    recalibration: Recalibration
    table: pd.DataFrame

    def at(self, certainty: float) -> Named:
        """Who is named at a certainty, 0.95 or 0.99.

        Raises:
            InputError: if it is neither.
        """
        for each in self.named:
            if each.certainty == certainty:
                return each
        raise InputError(f"certainty must be one of {', '.join(map(str, CERTAINTIES))}, got {certainty}")

    @property
    def verdict(self) -> str:
        """The answer in a sentence about this model."""
        likely, sure = (self.at(certainty) for certainty in CERTAINTIES)
        if not self.check.is_like_shadows:
            return (
                "Cannot say whom this model gives away: it was not trained as the plan says. Audit models that are "
                "trained as this one was."
            )
        if sure.members:
            about = f"about {sure.expected_members:,.0f}" if sure.members > 1 else "one"
            text = f"An adversary can name {about} of this model's training nodes with 99 % certainty"
        elif likely.members:
            about = f"about {likely.expected_members:,.0f}" if likely.members > 1 else "one"
            text = f"An adversary can name {about} of this model's training nodes with 95 % certainty, none with 99 %"
        else:
            return "An adversary can name none of this model's training nodes with 95 % certainty."
        by_prior = (sure if sure.members else likely).members_by_prior
        return text + (f"; the prior alone names {by_prior:,}." if by_prior else ".")

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
        reachable = float(scipy.special.expit(self.recalibration.log_odds[-1]))
        if reachable < CERTAINTIES[-1]:
            messages.append(
                f"On {count(self.recalibration.num_models, 'shadow model')} the attack's surest statements that a node "
                f"was in were right {percent(reachable, 1)} of the time: more certainty would need a stronger attack "
                "or more shadow models."
            )
        return tuple(messages)

    def nodes(self, top: int | None = None) -> list[dict[str, Any]]:
        """Rows of the table as plain values, all or the first `top`."""
        rows = self.table if top is None else self.table.head(top)
        return [plain(row) for row in rows.to_dict(orient="records")]

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
            "score": None if self.score is None else self.score.to_plain(),
            "nodes": self.nodes(top),
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
        lines = []
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
        head = ["named as", "certainty", "nodes", "expected right", "by the prior alone"]
        rows = []
        for each in self.named:
            certainty = f"{100 * each.certainty:g} %"
            rows += [
                [f"{IN}s", certainty, *_counts(each.members, each.expected_members, each.members_by_prior)],
                [
                    f"{OUT}s",
                    certainty,
                    *_counts(each.non_members, each.expected_non_members, each.non_members_by_prior),
                ],
            ]
            if self.score is not None:
                rows[-2].append(f"{each.members_right:,}")
                rows[-1].append(f"{each.non_members_right:,}")
        rows.sort(key=lambda row: row[0])
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
    graph: Graph, prior_prob: Floats, log_odds: Floats, posterior: Posterior, truth: Flags | None
) -> pd.DataFrame:
    """One row for each node, the most likely members first; see `Inference.table`."""
    import pandas as pd

    flag = np.full(graph.num_nodes, "", dtype=object)
    for left in posterior.not_auditable:
        flag[left.node] = left.reason
    for node in np.flatnonzero(posterior.is_attacked & ((prior_prob <= 0) | (prior_prob >= 1))):
        flag[node] = f"its declared prior is {prior_prob[node]:g}"
    columns = {
        "node": np.arange(graph.num_nodes),
        "name": list(graph.node_names or map(str, range(graph.num_nodes))),
        "class": np.array(class_names(graph), dtype=object)[graph.labels],
        "degree": graph.degrees,
        "prior_prob": prior_prob,
        "log_odds": log_odds,
        "posterior_prob": scipy.special.expit(log_odds),
        "score": posterior.log_odds.score,
    }
    for certainty in CERTAINTIES:
        threshold = scipy.special.logit(certainty)
        columns[f"named_{100 * certainty:g}"] = np.select(
            [log_odds >= threshold, log_odds <= -threshold], [IN, OUT], ""
        )
    columns["flag"] = flag
    if truth is not None:
        columns["member"] = truth
    order = np.lexsort((np.arange(graph.num_nodes), -posterior.log_odds.score, -log_odds))
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def node_cells(inference: Inference, top: int) -> tuple[list[str], list[list[str]]]:
    """The head and the first `top` rows of the table of nodes, as people read them."""
    has_truth = inference.score is not None
    head = ["node", "class", "degree", "prior", "odds", "probability", "named"]
    rows = []
    for row in inference.table.head(top).to_dict(orient="records"):
        named = next((f"{row[f'named_{c}']}, {c} %" for c in ("99", "95") if row[f"named_{c}"]), "")
        cells = [str(row["name"]), str(row["class"]), f"{row['degree']:,}", f"{row['prior_prob']:.3f}"]
        cells += [odds(row["log_odds"]), f"{row['posterior_prob']:.4f}", named]
        rows.append([*cells, *([("yes" if row["member"] else "no")] if has_truth else []), row["flag"]])
    return [*head, *(["was in"] if has_truth else []), ""], rows


def _counts(named: int, expected: float, by_prior: int) -> list[str]:
    return [f"{named:,}", f"{expected:,.1f}", f"{by_prior:,}"]


def _difference(check: BehaviourCheck) -> str:
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
    num_threads: int | None = None,
    runtime: Runtime | None = None,
) -> Inference:
    """Infers who was in the training sample of one released model, with shadow models as the reference.

    The attack is the plan's, fitted on all shadow models under the release, on those of the plan's queries that are
    answered. Its log-odds are recalibrated on the shadow models, each scored by a fit on the others. Nothing is
    written.

    Args:
        folder_or_audit: An audit folder with shadow models, or a finished audit.
        model: The released model: a file, arrays by name, an `nn.Module` or a fitted classifier (see `read_released`).
        release: Label of the release that the model was given out under; the plan's first if None.
        prior: Declared prior probabilities (see `declared_prior`); the sampler's if None. It shifts the log-odds.
        truth: Who was in, if that is known (see `known_members`).
        trust_code: Whether code that the folder names `module:Name` may run.
        num_threads: Number of threads; all cores if None.
        runtime: Progress and notices.

    Raises:
        DataError: if a file is missing or damaged, or the folder has no shadow models.
        InputError: if the model does not fit the plan or the graph, or an argument is impossible.
    """
    runtime = runtime or Runtime(num_threads)
    subject, runs, priors = _reference(folder_or_audit, runtime, trust_code)
    graph, plan = subject.graph, subject.plan
    if isinstance(plan.attack, UntrustedPart):
        raise registry.untrusted(ATTACK, plan.attack.target)
    release = _chosen_release(plan, release)
    released = read_released(model, graph, plan.shadow_plan, release)
    declared = priors.prob if prior is None else declared_prior(prior, graph)
    members = None if truth is None else known_members(truth, graph)

    shadows = Evidence.of_runs(runs, release, list(released.statistics), graph)
    calibration = calibrate(attack_on(plan, release), shadows, priors.prob, num_threads)
    posterior = attack_released(calibration, shadows, released.statistics, priors.prob, num_threads)
    shift = _prior_shift(declared, priors.prob, posterior)
    log_odds = np.where(posterior.is_attacked, posterior.log_odds.calibrated + shift, log_prior_odds(declared))
    behaves = behaviour(shadows.statistics, released.statistics)
    score = None
    if members is not None:
        score = _score(calibration, posterior, shift, members, behaves.has_learnt_little)
    declared_odds = log_prior_odds(declared)
    return Inference(
        title=f"{Path(subject.source).name.removesuffix('.npz') or 'graph'}, {plan.title}",
        model=str(model) if isinstance(model, (str, Path)) else released.came_as,
        came_as=released.came_as,
        release=release,
        queries=tuple(released.statistics),
        source=calibration.source.name,
        has_declared_prior=prior is not None,
        check=behaves.check,
        named=tuple(count_named(certainty, log_odds, declared_odds, members) for certainty in CERTAINTIES),
        score=score,
        recalibration=calibration.recalibration,
        table=inference_table(graph, declared, log_odds, posterior, members),
    )


def _reference(
    folder_or_audit: str | Path | Audit, runtime: Runtime, trust_code: bool
) -> tuple[Subject, ShadowRuns, Priors]:
    if isinstance(folder_or_audit, Audit):
        audit = folder_or_audit
        return Subject(audit.graph, audit.source, audit.plan), audit.runs, audit.priors
    workspace = Workspace(folder_or_audit)
    with workspace.unchanged():
        subject = stored_subject(workspace, trust_code=trust_code)
        runs = read_runs(workspace, subject.graph, subject.plan)
        if workspace.has("priors"):
            return subject, runs, read_priors(workspace, subject.plan.sampler)
    sampler = subject.plan.sampler
    if isinstance(sampler, UntrustedPart):
        raise registry.untrusted(sampler.kind, sampler.target)
    return subject, runs, Pipeline(subject, None, runtime).priors


def _chosen_release(plan: AuditPlan, release: str | None) -> str:
    labels = [registry.label(RELEASE, each) for each in plan.releases]
    if release is not None and release not in labels:
        raise InputError(f"release must be one of {', '.join(labels)}, got {release!r}")
    return release or labels[0]


def _prior_shift(declared: Floats, prior_prob: Floats, posterior: Posterior) -> Floats:
    """What the declared prior adds to the log-odds: infinite where it is certain, 0 where there was no attack."""
    shift = np.zeros_like(declared)
    attacked = posterior.is_attacked
    shift[attacked] = log_prior_odds(declared[attacked]) - log_prior_odds(prior_prob[attacked])
    return shift


def _score(
    calibration: Calibration, posterior: Posterior, shift: Floats, members: Flags, has_learnt_little: Flags
) -> InferenceScore:
    # Nodes that can be attacked here and in the leave-one-out fits of the shadow models, which have one model less.
    is_common = posterior.is_attacked[calibration.node]
    node = calibration.node[is_common]
    return score_inference(
        LogOdds(posterior.log_odds.score[node], posterior.log_odds.calibrated[node]),
        members[node],
        shift[node],
        LogOdds(calibration.log_odds.score[:, is_common], calibration.log_odds.calibrated[:, is_common]),
        calibration.memberships[:, is_common],
        has_learnt_little,
    )


# The page of an inference: one HTML file without a script, which opens offline and asks nothing of the network.


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render_inference_page(inference: Inference, top: int) -> str:
    """The page, with the `top` most likely members; every text is escaped."""
    head, rows = node_cells(inference, top)
    sections = [
        _section(
            "summary",
            "In short",
            "".join(f'<p class="notice">{escape(warning)}</p>' for warning in inference.warnings)
            + f'<p class="verdict">{escape(inference.verdict)}</p>'
            + _table(*inference.named_cells(), num_texts=1)
            + "".join(f"<p>{escape(line)}</p>" for line in (*inference.findings(), f"{inference.setting}.")),
        ),
        _section(
            "check",
            "Does this model behave like the shadow models?",
            _check(inference.check)
            + '<p class="note">Deviation: distance from the median of the shadow models, in units of the distance from '
            "there to their 5 % or 95 % quantile. The largest one is ranked among those of the shadow models.</p>",
        ),
    ]
    if inference.score is not None:
        sections.append(
            _section("score", "Does it give away what the shadow models do?", _check(inference.score.standing))
        )
    sections.append(
        _section(
            "nodes",
            "Nodes",
            f"<p>The {len(rows):,} most likely members of {len(inference.table):,} nodes.</p>"
            + _table(head, rows, num_texts=2)
            + '<p class="note">Odds are posterior odds of membership, recalibrated on the shadow models: of nodes with '
            "odds of 99 : 1, 99 in 100 are members, on average over nodes and models.</p>",
        )
    )
    style = "".join(
        (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")
        for name in ("page.css", "compare.css")
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(inference.model)} – members of a released model</title>\n"
        f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>\n'
        '<a class="skip" href="#summary">Skip to the answer</a>\n<header class="page-head">\n'
        f'<p class="kicker">Members of a released model</p>\n<h1 class="name">{escape(inference.model)}</h1>\n'
        f'<p id="subtitle">{escape(inference.title)}</p>\n</header>\n<main class="compared">\n'
        + "\n".join(sections)
        + f'\n<p class="note">bmpaudit {escape(version("bmpaudit"))}. This page makes no network requests and runs no '
        "scripts.</p>\n</main>\n</body>\n</html>\n"
    )


def _check(check: BehaviourCheck) -> str:
    answer = "Nothing speaks against it" if check.is_like_shadows else "No"
    rows = [
        [each.name, f"{each.value:.4g}", f"{each.low:.4g} to {each.high:.4g}", f"{each.deviation:.2f}"]
        for each in check.standings
    ]
    head = ["quantity", "this model", "98 % of the shadow models", "deviation"]
    return f"<p>{answer}: p = {check.p_value:.2g}.</p>{_table(head, rows, num_texts=1)}"


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{content}\n</section>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], num_texts: int) -> str:
    kinds = ["name" if k == 0 else "text" if k < num_texts else "number" for k in range(len(head))]
    top = "".join(f'<th scope="col" class="{kind}">{escape(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{escape(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{table}</div>'
