"""Which statements of the paper hold, and how tight they are: a search over small random mechanisms.

Every statement becomes a slack: what it allows minus what a mechanism does. The search draws mechanisms at random and
then climbs from the worst of them towards less slack. A negative slack is a counterexample; a search that finds none
proves nothing, but the tests check the statements that hold in other ways too.

    python examples/theory_slack.py --mechanisms 2000 --seed 0
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from bmpaudit.privacy import (
    EpsilonPair,
    FiniteMechanism,
    attained_cost_bound,
    bayes_decision,
    bmp_to_mp,
    compose_bmdp_with_mdp,
    compose_bmp_with_conditional_mp,
    compose_independent_samples,
    compose_mdp,
    expected_cost_bound,
    fixed_size_memberships,
    implied_epsilon,
    independent_memberships,
    mdp_to_mp,
    membership_distance,
    mp_to_bmp,
    prior_floor,
    privacy_levels,
)
from bmpaudit.privacy.related import differential_identifiability

Floats = npt.NDArray[np.float64]

# Violations below this are rounding.
ROUNDING = 1e-9
# Logits stay in ±this: mechanisms without certainties, whose error rates keep enough digits. (Theorem 6 needs 1-α; with
# ±8 some α come so near to 1 that its rounding alone shows as 2e-9.)
LARGEST_LOGIT = 6.0


@dataclass(frozen=True)
class Draw:
    """What a statement may speak of, as logits: two samplers, three releases, a channel, and two costs."""

    law: Floats
    other_law: Floats
    releases: Floats
    channel: Floats
    costs: Floats

    def moved(self, rng: np.random.Generator, step: float) -> "Draw":
        """A draw nearby."""
        logits = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _clip(old + step * rng.normal(size=old.shape)) for name, old in logits.items()})

    @cached_property
    def first(self) -> FiniteMechanism:
        """The first release."""
        return FiniteMechanism(softmax(self.law), softmax(self.releases[0], axis=1))

    @cached_property
    def second(self) -> FiniteMechanism:
        """The second release, which knows nothing of the first."""
        return FiniteMechanism(softmax(self.law), softmax(self.releases[1], axis=1))

    @cached_property
    def sequel(self) -> Floats:
        """f(w' | w, m): a release that does one thing after output 0 and another after the others."""
        after_0, after_others = softmax(self.releases[1], axis=1), softmax(self.releases[2], axis=1)
        return np.stack([after_0] + [after_others] * (self.releases.shape[2] - 1), axis=1)


def random_draw(rng: np.random.Generator) -> Draw:
    """Two or three nodes and two or three outputs, from nearly constant to nearly deterministic."""
    num_nodes, num_outputs = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    size = 2**num_nodes
    spread = rng.choice([0.3, 1.0, 3.0])
    return Draw(
        law=_random_law(rng, num_nodes),
        other_law=_random_law(rng, num_nodes),
        releases=_clip(spread * rng.normal(size=(3, size, num_outputs))),
        channel=_clip(2 * rng.normal(size=(num_outputs, num_outputs))),
        costs=rng.normal(size=2),
    )


def _random_law(rng: np.random.Generator, num_nodes: int) -> Floats:
    kind = rng.choice(["any", "independent", "fixed size"])
    with np.errstate(divide="ignore"):
        if kind == "independent":
            return np.log(independent_memberships(rng.uniform(0.05, 0.95, size=num_nodes)))
        if kind == "fixed size":
            return np.log(fixed_size_memberships(num_nodes, int(rng.integers(1, num_nodes))))
    return _clip(rng.normal(size=2**num_nodes))


def _clip(logits: Floats) -> Floats:
    """Within bounds, but a probability of 0 stays 0."""
    return np.where(np.isneginf(logits), logits, np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT))


def _room(bound: EpsilonPair[float], actual: EpsilonPair[float]) -> float:
    return min(bound.left - actual.left, bound.right - actual.right)


def prop_1(draw: Draw) -> float:
    """What a mechanism has above the floor."""
    return _room(privacy_levels(draw.first).bmp, prior_floor(draw.first.prior_odds))


def prop_2(draw: Draw) -> float:
    """What a random channel takes away."""
    processed = draw.first.post_process(softmax(draw.channel, axis=1))
    return _room(privacy_levels(draw.first).bmp, privacy_levels(processed).bmp)


def prop_3_mp_to_bmp(draw: Draw) -> float:
    """Its BMP against that which its MP implies."""
    levels = privacy_levels(draw.first)
    return _room(mp_to_bmp(levels.mp, draw.first.prior_odds), levels.bmp)


def prop_3_bmp_to_mp(draw: Draw) -> float:
    """Its MP against that which its BMP implies."""
    levels = privacy_levels(draw.first)
    return bmp_to_mp(levels.bmp.left, levels.bmp.right, draw.first.prior_odds) - levels.mp


def prop_4(draw: Draw) -> float:
    """The first part, with the MP of the later release under the sampler's law."""
    return _bmp_plus(draw.first, privacy_levels(draw.second).mp, draw.second.table)


def prop_4_sequential(draw: Draw) -> float:
    """MP of the later release for each past output, under the sampler's law, as the sentence reads."""
    after = [FiniteMechanism(draw.first.law, draw.sequel[:, w]) for w in range(draw.sequel.shape[1])]
    return _bmp_plus(draw.first, max(privacy_levels(mechanism).mp for mechanism in after), draw.sequel)


def prop_4_other_sampler(draw: Draw) -> float:
    """A_t is MP under its own S_t, while the sample comes from S_0; here W_0 tells nothing."""
    elsewhere = FiniteMechanism(softmax(draw.other_law), draw.second.table)
    silent = FiniteMechanism(draw.first.law, np.ones((len(draw.law), 1)))
    return _bmp_plus(silent, privacy_levels(elsewhere).mp, draw.second.table)


def bmp_then_mdp(draw: Draw) -> float:
    """As Prop. 4, with MDP in place of MP."""
    return _bmp_plus(draw.first, privacy_levels(draw.second).mdp, draw.second.table)


def bmp_then_conditional_mp(draw: Draw) -> float:
    """As Prop. 4, with MP under the law that the past outputs leave."""
    left_over = [FiniteMechanism(draw.first.given_output(w), draw.sequel[:, w]) for w in range(draw.sequel.shape[1])]
    return _bmp_plus(draw.first, max(privacy_levels(mechanism).mp for mechanism in left_over), draw.sequel)


def _bmp_plus(first: FiniteMechanism, epsilon: float, later: Floats) -> float:
    bmp = privacy_levels(first).bmp
    return _room(compose_bmp_with_conditional_mp(bmp.left, bmp.right, [epsilon]), privacy_levels(first.then(later)).bmp)


def bmdp_then_mdp(draw: Draw) -> float:
    """BMP of two releases against the BMDP of the first and the MDP of the second."""
    bmdp = privacy_levels(draw.first).bmdp
    bound = compose_bmdp_with_mdp(bmdp.left, bmdp.right, [privacy_levels(draw.second).mdp])
    return _room(bound, privacy_levels(draw.first.then(draw.second.table)).bmp)


def mdp_twice(draw: Draw) -> float:
    """BMP of two releases against their MDP alone: the way that also serves samples of fixed size."""
    spent = compose_mdp([privacy_levels(draw.first).mdp, privacy_levels(draw.second).mdp])
    mp = mdp_to_mp(spent, membership_distance(draw.first.law))
    return _room(mp_to_bmp(mp, draw.first.prior_odds), privacy_levels(draw.first.then(draw.second.table)).bmp)


def prop_5(draw: Draw) -> float:
    """A node counts as in if it was in one of two samples."""
    parts = [draw.first, FiniteMechanism(softmax(draw.other_law), draw.second.table)]
    bmps = [privacy_levels(part).bmp for part in parts]
    bound = compose_independent_samples([bmp.left for bmp in bmps], [bmp.right for bmp in bmps])
    return _room(bound, privacy_levels(FiniteMechanism.in_any_of(*parts)).bmp)


def theorem_6_only_if(draw: Draw) -> float:
    """The tightest parameters against those that the error rates of all decision rules imply."""
    return _room(privacy_levels(draw.first).bmp, _largest_implied(draw.first))


def theorem_6_if(draw: Draw) -> float:
    """The other way round."""
    return _room(_largest_implied(draw.first), privacy_levels(draw.first).bmp)


def _largest_implied(mechanism: FiniteMechanism) -> EpsilonPair[float]:
    """The smallest (ε_L, ε_R) whose regions hold every decision rule on every node."""
    rules = list(product((0, 1), repeat=mechanism.table.shape[1]))
    implied = [
        implied_epsilon(errors.alpha, errors.beta, mechanism.prior_odds[node])
        for node in range(mechanism.num_nodes)
        for errors in (mechanism.error_pair(node, rule) for rule in rules)
    ]
    return EpsilonPair(left=max(float(e.left) for e in implied), right=max(float(e.right) for e in implied))


def one_test(draw: Draw) -> float:
    """Section IV: the one designed test, here the best, in the region iff the mechanism is BMP."""
    mechanism = draw.first
    implied = []
    for node in range(mechanism.num_nodes):
        errors = mechanism.error_pair(node, bayes_decision(mechanism.posterior_log_odds[node]))
        implied.append(implied_epsilon(errors.alpha, errors.beta, mechanism.prior_odds[node]))
    found = EpsilonPair(left=max(float(e.left) for e in implied), right=max(float(e.right) for e in implied))
    return _room(found, privacy_levels(mechanism).bmp)


def theorem_7(draw: Draw) -> float:
    """The cheapest attack against the first display."""
    c0, c1 = np.exp(draw.costs)
    bmp = privacy_levels(draw.first).bmp
    bounds = expected_cost_bound(draw.first.prior_odds, bmp.left, bmp.right, c0, c1)
    return min(draw.first.smallest_cost(node, c0, c1) - bounds[node] for node in range(draw.first.num_nodes))


def theorem_7_wrong_decision(draw: Draw) -> float:
    """The second display, which leaves out the inner minima of the first."""
    bmp, member = privacy_levels(draw.first).bmp, draw.first.prior_prob
    either = expit(-max(bmp.left, bmp.right))
    bounds = np.maximum(either, np.maximum((1 - member) * np.exp(-bmp.left), member * np.exp(-bmp.right)))
    return min(draw.first.smallest_cost(node) - bounds[node] for node in range(draw.first.num_nodes))


def attained_bound(draw: Draw) -> float:
    """The cheapest attack against the best bound that BMP allows."""
    c0, c1 = np.exp(draw.costs)
    bmp = privacy_levels(draw.first).bmp
    bounds = attained_cost_bound(draw.first.prior_odds, bmp.left + ROUNDING, bmp.right + ROUNDING, c0, c1)
    return min(draw.first.smallest_cost(node, c0, c1) - bounds[node] for node in range(draw.first.num_nodes))


def mdp_is_stronger(draw: Draw) -> float:
    """MDP against MP, as the text compares them."""
    levels = privacy_levels(draw.first)
    return levels.mdp - levels.mp


def mdp_with_factor(draw: Draw) -> float:
    """The same with the distance D between the two conditional laws."""
    levels = privacy_levels(draw.first)
    return mdp_to_mp(levels.mdp, membership_distance(draw.first.law)) - levels.mp


def identifiability(draw: Draw) -> float:
    """If they corresponded, ε-BMDP-R would keep the posterior of differential identifiability below 1/(1 + e^{-ε})."""
    return float(expit(privacy_levels(draw.first).bmdp.right)) - differential_identifiability(draw.first)


def bmdp_implies_bmp(draw: Draw) -> float:
    """The differential version against BMP."""
    levels = privacy_levels(draw.first)
    return _room(levels.bmdp, levels.bmp)


PRINTED: dict[str, Callable[[Draw], float]] = {
    "Prop. 1: floor by the priors": prop_1,
    "Prop. 2: post-processing": prop_2,
    "Prop. 3: MP gives BMP": prop_3_mp_to_bmp,
    "Prop. 3: BMP gives MP": prop_3_bmp_to_mp,
    "Prop. 4: BMP then MP": prop_4,
    "Prop. 4: the same, sequential": prop_4_sequential,
    "Prop. 4: MP under another sampler": prop_4_other_sampler,
    "Prop. 5: independent samples": prop_5,
    "Theorem 6: BMP, so all rules in R": theorem_6_only_if,
    "Theorem 6: all rules in R, so BMP": theorem_6_if,
    "Theorem 7: expected cost": theorem_7,
    "Theorem 7: wrong decision": theorem_7_wrong_decision,
    "Section III: MDP is stronger than MP": mdp_is_stronger,
    "Section III: BMDP-R is identifiability": identifiability,
    "Section IV: one test in R, so BMP": one_test,
}

HOLDS_INSTEAD: dict[str, Callable[[Draw], float]] = {
    "BMP then MP given the past": bmp_then_conditional_mp,
    "BMDP then MDP": bmdp_then_mdp,
    "MDP then MDP, D-fold MP, BMP": mdp_twice,
    "MDP gives D-fold MP": mdp_with_factor,
    "BMDP gives BMP": bmdp_implies_bmp,
    "attained cost bound": attained_bound,
}

TEMPTING: dict[str, Callable[[Draw], float]] = {"BMP then MDP (a repair that fails)": bmp_then_mdp}

STATEMENTS = {**PRINTED, **HOLDS_INSTEAD, **TEMPTING}


@dataclass(frozen=True)
class Finding:
    """What the search found for one statement.

    In units of ε, for Theorem 7 of cost, and for identifiability of probability; for a pair (ε_L, ε_R) on the side
    that has less room.

    Attributes:
        statement: Its name.
        largest_violation: By how much it failed in the worst case found, at least 0.
        smallest_slack: The least room that it left in a case where it held.
        median_slack: Over the random draws, without the climb.
    """

    statement: str
    largest_violation: float
    smallest_slack: float
    median_slack: float


def search(name: str, num_mechanisms: int, seed: int, num_climbs: int = 3, num_steps: int = 300) -> Finding:
    """Random draws, then climbs from those with the least slack.

    Draws on which both sides are infinite, or the bound alone, say nothing and are left out.
    """
    rng = np.random.default_rng(seed)
    slack = STATEMENTS[name]
    draws = [random_draw(rng) for _ in range(num_mechanisms)]
    slacks = np.array([slack(draw) for draw in draws])
    by_slack = [index for index in np.argsort(slacks) if np.isfinite(slacks[index])]
    climbed = [_climb(slack, draws[index], slacks[index], rng, num_steps) for index in by_slack[:num_climbs]]
    found = np.concatenate([slacks[by_slack], *climbed])
    return Finding(
        statement=name,
        largest_violation=max(0.0, -float(found.min())),
        smallest_slack=float(np.abs(found[found > -ROUNDING]).min(initial=np.inf)),
        median_slack=float(np.median(slacks[by_slack])),
    )


def _climb(
    slack: Callable[[Draw], float], draw: Draw, lowest: float, rng: np.random.Generator, num_steps: int
) -> list[float]:
    """Keeps a random step if it lowers the slack; longer steps after a success, shorter ones after a failure."""
    visited = []
    step = 0.5
    for _ in range(num_steps):
        candidate = draw.moved(rng, step)
        value = slack(candidate)
        if value < lowest:
            draw, lowest, step = candidate, value, min(2.0, 1.5 * step)
            visited.append(value)
        else:
            step = max(1e-3, 0.97 * step)
    return visited


def print_table(findings: list[Finding]) -> None:
    """One line a statement."""
    print(f"{'statement':<40}{'largest violation':>18}{'smallest slack':>16}{'median slack':>14}")
    for finding in findings:
        violation = "none" if finding.largest_violation <= ROUNDING else f"{finding.largest_violation:.3f}"
        median = round(finding.median_slack, 3) + 0.0  # no "-0.000"
        print(f"{finding.statement:<40}{violation:>18}{finding.smallest_slack:>16.1e}{median:>14.3f}")


def main() -> None:
    """Searches and prints."""
    parser = argparse.ArgumentParser(description="Search small mechanisms for the slack of the paper's statements.")
    parser.add_argument("--mechanisms", type=int, default=2000, help="random mechanisms per statement")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for title, group in (("As printed", PRINTED), ("Instead", {**HOLDS_INSTEAD, **TEMPTING})):
        print(f"\n{title}")
        print_table([search(name, arguments.mechanisms, arguments.seed) for name in group])


if __name__ == "__main__":
    main()
