"""The pictures of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.auditing.stages import Attacks, Findings
from bmpaudit.estimation import Posterior
from bmpaudit.privacy import Region
from bmpaudit.report.drawing import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bmpaudit.report.figures import Width


def pictures_of_attacks(attacks: Attacks) -> dict[str, Picture]:
    """Those of the attacks alone, by name, for any process to draw."""
    return {"roc": roc_picture(attacks), "permutation_test": permutation_test_picture(attacks)}


def pictures_of_findings(attacks: Attacks, findings: Findings) -> dict[str, Picture]:
    """Those of what the attacks expose, by name, for any process to draw."""
    return {"exposure": exposure_picture(attacks, findings), "reliability": reliability_picture(findings)}


def exposure_picture(attacks: Attacks, findings: Findings, width: Width = "one") -> Picture:
    """Members named from one released model against certainty, every release."""
    curves = {release: each.exposure.exposure.members for release, each in findings.items()}
    main = curves[attacks.releases[0]]
    by_prior = dict(zip(main.precision.tolist(), main.by_prior.tolist(), strict=True))
    return Picture("exposure", {"curves": curves, "without_model": by_prior, "width": width})


def reliability_picture(findings: Findings, width: Width = "one") -> Picture:
    """Stated against observed probabilities of membership, every release."""
    diagrams = {release: each.exposure.reliability for release, each in findings.items()}
    return Picture("reliability", {"diagrams": diagrams, "width": width})


def roc_picture(attacks: Attacks, width: Width = "one") -> Picture:
    """The attack's ROC, every variant."""
    labels = {variant.name: variant.short_label for variant in attacks.variants}
    curves = {
        labels[name]: (each.roc.false_positive_rate, each.roc.true_positive_rate)
        for name, each in attacks.performance.items()
    }
    return Picture("roc", {"curves": curves, "width": width})


def permutation_test_picture(attacks: Attacks, width: Width = "one") -> Picture:
    """The attack's statistic beside those after shuffling memberships between models."""
    test = attacks.permutation_test
    values = {"statistic": test.statistic, "null_statistics": test.null_statistics, "width": width}
    return Picture("permutation_test", values)


# Pictures of an audit, for papers.


PICTURES = (
    *("exposure", "reliability", "exposure_by_class", "exposure_by_degree", "roc", "permutation_test"),
    *("posteriors", "prior_against_epsilon"),
)
NODES_IN_REGIONS = 4
DRAWS = 2_000

P = ParamSpec("P")


def drawn(picture: Callable[P, Picture]) -> Callable[P, Figure]:
    """Makes a method that describes a picture draw it; the description stays, as `__wrapped__`, for other processes."""

    @wraps(picture)
    def draw(*args: P.args, **kwargs: P.kwargs) -> Figure:
        return picture(*args, **kwargs).draw()

    return draw


class AuditPlots:
    """Each method draws one picture of the main variant; `width` is one column of a paper or two."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._main = audit.attacks.main

    @drawn
    def exposure(self, width: Width = "one") -> Picture:
        """Members named from one released model against certainty, every release."""
        return exposure_picture(self._audit.attacks, self._audit.findings, width)

    @drawn
    def reliability(self, width: Width = "one") -> Picture:
        """Stated against observed probabilities of membership, every release."""
        return reliability_picture(self._audit.findings, width)

    @drawn
    def posteriors(self, width: Width = "one") -> Picture:
        """Density of the headline's first ε, with what is proven where that is more than the sampling gives away."""
        row = self._audit.headline[0]
        values = {
            "posteriors": {f"{row.name} ({row.definition})": self._main_posteriors()[row.definition]},
            "parameter": row.parameter,
            "floor": row.floor if np.isfinite(row.floor) else None,
            "lower_bound": row.proven,
            "width": width,
        }
        return Picture("posteriors", values)

    @drawn
    def variants(self, width: Width = "one") -> Picture:
        """The first one-parameter posterior of every variant of the attack."""
        name = next(name for name, each in self._main_posteriors().items() if len(each.definition.parameters) == 1)
        labels = {variant.name: variant.short_label for variant in self._audit.attacks.variants}
        shown = {labels[variant]: row[name] for variant, row in self._audit.estimates.posteriors.items()}
        return Picture("posteriors", {"posteriors": shown, "width": width})

    @drawn
    def joint_samples(self, width: Width = "one") -> Picture:
        """Draws of (ε_L, ε_R)."""
        draws = self._main_posteriors()["bmp"].sample(DRAWS, seed=self._audit.plan.seed)
        pairs = np.column_stack([draws["epsilon_left"], draws["epsilon_right"]])
        title = self._audit.attacks.variants[0].short_label
        return Picture("joint_samples", {"draws": pairs, "title": title, "width": width})

    @drawn
    def regions(self, width: Width = "two") -> Picture:
        """The region that the estimated (ε_L, ε_R) allows the nodes most at risk, with their errors.

        If the model has a guarantee, what it allows any node is outlined.
        """
        counts = self._audit.attacks.counts[self._main]
        place = np.full(self._audit.graph.num_nodes, -1)
        place[counts.node[~counts.is_constant]] = np.flatnonzero(~counts.is_constant)
        order = place[ranked_nodes(self._audit.nodes)["node"].to_numpy()]
        chosen = order[order >= 0][:NODES_IN_REGIONS]
        left, right = self._medians()
        names = self._audit.nodes["name"]
        regions = {
            f"node {names[counts.node[k]]}": Region(float(counts.prior_odds[k]), left, right) for k in chosen.tolist()
        }
        kept = counts.take(chosen)
        guaranteed = self._audit.guaranteed
        promised = None if guaranteed is None else guaranteed.guarantee.mp
        return Picture("regions", {"regions": regions, "observed": kept, "guarantee": promised, "width": width})

    @drawn
    def prior_against_epsilon(self, width: Width = "one") -> Picture:
        """The paper's Figure 3."""
        leakage = self._audit.estimates.leakage
        values = {
            "prior_prob": leakage.counts.prior_prob,
            "median": leakage.right.median,
            "low": leakage.right.low,
            "high": leakage.right.high,
            "is_flagged": leakage.is_constant,
            "width": width,
        }
        return Picture("prior_against_epsilon", values)

    @drawn
    def exposure_by_class(self, width: Width = "one") -> Picture:
        """How often nodes are named, by class."""
        return self._exposure_by("class", width)

    @drawn
    def exposure_by_degree(self, width: Width = "one") -> Picture:
        """How often nodes are named, by degree."""
        return self._exposure_by("degree", width, log_axis=True)

    def _exposure_by(self, column: str, width: Width, *, log_axis: bool = False) -> Picture:
        nodes = self._audit.nodes.dropna(subset=["member_exposure"])
        values = {
            "values": nodes["member_exposure"].to_numpy(dtype=np.float64),
            "groups": np.asarray(nodes[column]),
            "group_label": column,
            "log_axis": log_axis,
            "width": width,
        }
        return Picture("exposure_by", values)

    @drawn
    def roc(self, width: Width = "one") -> Picture:
        """The attack's ROC, every variant."""
        return roc_picture(self._audit.attacks, width)

    @drawn
    def permutation_test(self, width: Width = "one") -> Picture:
        """The attack's statistic beside those after shuffling memberships between models."""
        return permutation_test_picture(self._audit.attacks, width)

    def names(self) -> list[str]:
        """The pictures that there is something for."""
        names = [*PICTURES]
        if any(len(posterior.definition.parameters) == 1 for posterior in self._main_posteriors().values()):
            names.append("variants")
        if "bmp" in self._main_posteriors():
            names += ["joint_samples", "regions"]
        return names

    def pictures(self) -> dict[str, Picture]:
        """All of them, by name, for any process to draw."""
        return {name: getattr(self, name).__wrapped__(self) for name in self.names()}

    def _main_posteriors(self) -> Mapping[str, Posterior]:
        return self._audit.estimates.posteriors[self._main]

    def _medians(self) -> tuple[float, float]:
        posterior = self._main_posteriors()["bmp"]
        return float(posterior.quantile(0.5, "epsilon_left")), float(posterior.quantile(0.5, "epsilon_right"))
