"""Pictures of an audit, for papers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.auditing.audit import Audit
from bmpaudit.estimation import Posterior
from bmpaudit.privacy import Region
from bmpaudit.report import figures
from bmpaudit.report.figures import Width

PICTURES = ("posteriors", "prior_against_epsilon", "leakage_by_class", "leakage_by_degree", "roc", "null_control")
PICTURES_OF_SOME = ("variants", "joint_samples", "regions")
NODES_IN_REGIONS = 4
DRAWS = 2_000
EXCESS = r"above the floor, $e_R - \log\,\eta$ [nats]"


def remove_pictures(folder: Path) -> None:
    """Removes what `AuditPlots.save_all` writes."""
    for name in (*PICTURES, *PICTURES_OF_SOME):
        for suffix in (".pdf", ".png"):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)


class AuditPlots:
    """Each method draws one picture of the main variant; `width` is one column of a paper or two."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._main = audit.plan.main_variant.name

    def posteriors(self, width: Width = "one") -> Figure:
        """Densities of the headline's ε."""
        rows, found = self._audit.headline, self._audit.estimates.posteriors[self._main]
        row = rows[0]
        return figures.posteriors(
            {row.definition: found[row.definition]},
            row.parameter,
            floor=row.floor if np.isfinite(row.floor) else None,
            lower_bound=row.proven,
            width=width,
        )

    def variants(self, width: Width = "one") -> Figure:
        """The first one-parameter posterior of every variant of the attack."""
        name = next(name for name, each in self._first().items() if not each.definition.is_joint)
        found = self._audit.estimates.posteriors
        labels = {variant.name: variant.short_label for variant in self._audit.plan.variants}
        return figures.posteriors(
            {labels[variant]: posteriors[name] for variant, posteriors in found.items()}, panels=True, width=width
        )

    def joint_samples(self, width: Width = "one") -> Figure:
        """Draws of (ε_L, ε_R)."""
        draws = self._first()["bmp"].sample(DRAWS, seed=self._audit.plan.seed)
        pairs = np.column_stack([draws["epsilon_left"], draws["epsilon_right"]])
        return figures.joint_samples({self._audit.plan.main_variant.short_label: pairs}, width=width)

    def regions(self, width: Width = "two") -> Figure:
        """The region that the estimated (ε_L, ε_R) allows the nodes that leak most, with their errors."""
        counts, order = self._audit.attacks.counts[self._main], self._audit.estimates.leakage.ranked()
        is_informative = ~counts.is_constant[order]
        chosen = order[is_informative][:NODES_IN_REGIONS]
        left, right = self._medians()
        names = self._audit.nodes["name"]
        regions = {
            f"node {names[counts.node[k]]}": Region(float(counts.prior_odds[k]), left, right) for k in chosen.tolist()
        }
        kept = figures.ErrorRates.from_counts(counts.take(chosen))
        return figures.regions(regions, observed=kept, width=width)

    def prior_against_epsilon(self, width: Width = "one") -> Figure:
        """The paper's Figure 3."""
        leakage = self._audit.estimates.leakage
        right = leakage.right
        return figures.prior_against_epsilon(
            leakage.counts.prior_prob, right.median, right.low, right.high, leakage.is_constant, width=width
        )

    def leakage_by_class(self, width: Width = "one") -> Figure:
        """e_R - log η by class."""
        nodes = self._audit.nodes.dropna(subset=["excess_right_median"])
        return figures.leakage_by(
            nodes["excess_right_median"].to_numpy(),
            nodes["class"].to_numpy(),
            group_label="class",
            value_label=EXCESS,
            categorical=True,
            width=width,
        )

    def leakage_by_degree(self, width: Width = "one") -> Figure:
        """e_R - log η by degree."""
        nodes = self._audit.nodes.dropna(subset=["excess_right_median"])
        return figures.leakage_by(
            nodes["excess_right_median"].to_numpy(),
            nodes["degree"].to_numpy(),
            group_label="degree",
            value_label=EXCESS,
            width=width,
        )

    def roc(self, width: Width = "one") -> Figure:
        """The attack's ROC, every variant."""
        labels = {variant.name: variant.short_label for variant in self._audit.plan.variants}
        curves = {
            labels[name]: (found.roc.false_positive_rate, found.roc.true_positive_rate)
            for name, found in self._audit.attacks.performance.items()
        }
        return figures.roc(curves, width=width)

    def null_control(self, width: Width = "one") -> Figure:
        """The attack's statistic beside those of exchanged memberships."""
        control = self._audit.attacks.null_control
        return figures.permutation_test(control.statistic, control.null_statistics, width=width)

    def save_all(self, folder: str | Path) -> list[Path]:
        """Writes every picture that there is something for, as PDF and PNG, and returns the paths."""
        wanted = [*PICTURES]
        if any(not each.definition.is_joint for each in self._first().values()):
            wanted.append("variants")
        if "bmp" in self._first():
            wanted += ["joint_samples", "regions"]
        paths: list[Path] = []
        for name in wanted:
            saved = figures.save_figure(getattr(self, name)(), Path(folder) / name)
            paths += [saved.pdf, saved.png]
        return paths

    def _first(self) -> Mapping[str, Posterior]:
        return self._audit.estimates.posteriors[self._main]

    def _medians(self) -> tuple[float, float]:
        posterior = self._first()["bmp"]
        return float(posterior.quantile(0.5, "epsilon_left")), float(posterior.quantile(0.5, "epsilon_right"))
