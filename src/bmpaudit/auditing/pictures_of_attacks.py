"""The pictures that can be drawn before anything is estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.proof_step import Findings
from bmpaudit.report.drawing import Picture

if TYPE_CHECKING:
    from bmpaudit.report.figures import Width


def pictures_of_attacks(attacks: Attacks) -> dict[str, Picture]:
    """Those of the attacks alone, by name, for any process to draw."""
    return {"roc": roc(attacks), "permutation_test": permutation_test(attacks)}


def pictures_of_findings(attacks: Attacks, findings: Findings) -> dict[str, Picture]:
    """Those of what the attacks expose, by name, for any process to draw."""
    return {"exposure": exposure(attacks, findings), "reliability": reliability(findings)}


def exposure(attacks: Attacks, findings: Findings, width: Width = "one") -> Picture:
    """Members named from one released model against certainty, every release."""
    curves = {release: each.exposure.exposure.members for release, each in findings.items()}
    main = curves[attacks.releases[0]]
    by_prior = dict(zip(main.precision.tolist(), main.by_prior.tolist(), strict=True))
    return Picture("exposure", {"curves": curves, "without_model": by_prior, "width": width})


def reliability(findings: Findings, width: Width = "one") -> Picture:
    """Stated against observed probabilities of membership, every release."""
    diagrams = {release: each.exposure.reliability for release, each in findings.items()}
    return Picture("reliability", {"diagrams": diagrams, "width": width})


def roc(attacks: Attacks, width: Width = "one") -> Picture:
    """The attack's ROC, every variant."""
    labels = {variant.name: variant.short_label for variant in attacks.variants}
    curves = {
        labels[name]: (each.roc.false_positive_rate, each.roc.true_positive_rate)
        for name, each in attacks.performance.items()
    }
    return Picture("roc", {"curves": curves, "width": width})


def permutation_test(attacks: Attacks, width: Width = "one") -> Picture:
    """The attack's statistic beside those after shuffling memberships between models."""
    test = attacks.permutation_test
    values = {"statistic": test.statistic, "null_statistics": test.null_statistics, "width": width}
    return Picture("permutation_test", values)
