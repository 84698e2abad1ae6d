"""The pictures of an audit."""

from collections.abc import Mapping

import numpy as np

from bmpaudit import estimation, privacy
from bmpaudit.auditing import Audit, stages
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.report.drawing import Picture


def pictures_of_attacks(attacks: stages.Attacks) -> dict[str, Picture]:
    """Those of the attacks alone, by name, for any process to draw."""
    labels = {variant.name: variant.short_label for variant in attacks.variants}
    rocs = {labels[name]: each.roc for name, each in attacks.performance.items()}
    curves = {label: (roc.false_positive_rate, roc.true_positive_rate) for label, roc in rocs.items()}
    largest = attacks.permutation_test.largest
    statistics = {"statistic": float(largest[0]), "null_statistics": largest[1:]}
    return {"roc": Picture("roc", {"curves": curves}), "permutation_test": Picture("permutation_test", statistics)}


def pictures_of_findings(attacks: stages.Attacks, findings: stages.Findings) -> dict[str, Picture]:
    """Those of what the attacks expose, by name, for any process to draw."""
    curves = {release: each.exposure.exposure.members for release, each in findings.items()}
    main = curves[attacks.releases[0]]
    by_prior = dict(zip(main.precision.tolist(), main.by_prior.tolist(), strict=True))
    diagrams = {release: each.exposure.reliability for release, each in findings.items()}
    return {
        "exposure": Picture("exposure", {"curves": curves, "without_model": by_prior}),
        "reliability": Picture("reliability", {"diagrams": diagrams}),
    }


NODES_IN_REGIONS = 4
DRAWS = 2_000


class AuditPlots:
    """The pictures of the main variant: `plots.roc()` draws one, `plots.roc(width="two")` as wide as two columns."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    @property
    def exposure(self) -> Picture:
        """Members named from one released model against certainty, every release."""
        return pictures_of_findings(self._audit.attacks, self._audit.findings)["exposure"]

    @property
    def reliability(self) -> Picture:
        """Stated against observed probabilities of membership, every release."""
        return pictures_of_findings(self._audit.attacks, self._audit.findings)["reliability"]

    @property
    def posteriors(self) -> Picture:
        """Density of the headline's first ε, with what is proven where that is more than the sampling gives away."""
        row = self._audit.headline[0]
        posterior = {f"{row.name} ({row.definition})": self._main_posteriors[row.definition]}
        marks = {"floor": row.floor if np.isfinite(row.floor) else None, "lower_bound": row.proven}
        return Picture("posteriors", {"posteriors": posterior, "parameter": row.parameter, **marks})

    @property
    def variants(self) -> Picture:
        """The first one-parameter posterior of every variant of the attack."""
        name = next(name for name, each in self._main_posteriors.items() if len(each.definition.parameters) == 1)
        labels = {variant.name: variant.short_label for variant in self._audit.attacks.variants}
        shown = {labels[variant]: row[name] for variant, row in self._audit.estimates.posteriors.items()}
        return Picture("posteriors", {"posteriors": shown})

    @property
    def joint_samples(self) -> Picture:
        """Draws of (ε_L, ε_R)."""
        draws = self._main_posteriors["bmp"].sample(DRAWS, seed=self._audit.plan.seed)
        pairs = np.column_stack([draws["epsilon_left"], draws["epsilon_right"]])
        labels = {variant.name: variant.short_label for variant in self._audit.attacks.variants}
        return Picture("joint_samples", {"draws": pairs, "title": labels[self._audit.attacks.main]})

    @property
    def regions(self) -> Picture:
        """The region that the estimated (ε_L, ε_R) allows the nodes most at risk, with their errors.

        If the model has a guarantee, what it allows any node is outlined.
        """
        audit = self._audit
        counts = audit.attacks.counts[audit.attacks.main]
        place = np.full(audit.graph.num_nodes, -1)
        place[counts.node[~counts.is_constant]] = np.flatnonzero(~counts.is_constant)
        order = place[ranked_nodes(audit.nodes)["node"].to_numpy()]
        chosen = order[order >= 0][:NODES_IN_REGIONS]
        posterior = self._main_posteriors["bmp"]
        left, right = (float(posterior.quantile(0.5, name)) for name in ("epsilon_left", "epsilon_right"))
        names = audit.nodes["name"]
        regions = {
            f"node {names[counts.node[k]]}": privacy.Region(float(counts.prior_odds[k]), left, right)
            for k in chosen.tolist()
        }
        guarantee = None if audit.guaranteed is None else audit.guaranteed.mp
        return Picture("regions", {"regions": regions, "observed": counts.take(chosen), "guarantee": guarantee})

    @property
    def prior_against_epsilon(self) -> Picture:
        """The paper's Figure 3."""
        leakage = self._audit.estimates.leakage
        values = {name: getattr(leakage.right, name) for name in ("median", "low", "high")}
        values |= {"prior_prob": leakage.counts.prior_prob, "is_flagged": leakage.is_constant}
        return Picture("prior_against_epsilon", values)

    @property
    def exposure_by_class(self) -> Picture:
        """How often nodes are named, by class."""
        return self._exposure_by("class")

    @property
    def exposure_by_degree(self) -> Picture:
        """How often nodes are named, by degree."""
        return self._exposure_by("degree")

    def _exposure_by(self, column: str) -> Picture:
        nodes = self._audit.nodes.dropna(subset=["member_exposure"])
        values, groups = nodes["member_exposure"].to_numpy(dtype=np.float64), np.asarray(nodes[column])
        labels = {"group_label": column, "log_axis": column == "degree"}
        return Picture("exposure_by", {"values": values, "groups": groups, **labels})

    @property
    def roc(self) -> Picture:
        """The attack's ROC, every variant."""
        return pictures_of_attacks(self._audit.attacks)["roc"]

    @property
    def permutation_test(self) -> Picture:
        """The largest statistic of any node, beside those after shuffling memberships between models."""
        return pictures_of_attacks(self._audit.attacks)["permutation_test"]

    def names(self) -> list[str]:
        """The pictures that there is something for."""
        names = ["exposure", "reliability", "exposure_by_class", "exposure_by_degree", "roc", "permutation_test"]
        names += ["posteriors", "prior_against_epsilon"]
        if any(len(posterior.definition.parameters) == 1 for posterior in self._main_posteriors.values()):
            names.append("variants")
        if "bmp" in self._main_posteriors:
            names += ["joint_samples", "regions"]
        return names

    def pictures(self) -> dict[str, Picture]:
        """All of them, by name, for any process to draw."""
        return {name: getattr(self, name) for name in self.names()}

    @property
    def _main_posteriors(self) -> Mapping[str, estimation.Posterior]:
        return self._audit.estimates.posteriors[self._audit.attacks.main]
