"""What was inferred about one released model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats
from bmpaudit.auditing.infer_attack import Posterior
from bmpaudit.auditing.infer_check import BehaviourCheck
from bmpaudit.auditing.infer_score import CERTAINTIES, InferenceScore, Named
from bmpaudit.auditing.nodes_table import class_names
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.notebook_html import html_table, paragraphs
from bmpaudit.plain import plain
from bmpaudit.proof import Recalibration
from bmpaudit.report.words import count, odds, percent

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
