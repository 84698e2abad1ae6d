"""How often proven bounds exceed the truth, on thousands of finite mechanisms with known ε, as Markdown tables.

Memberships depend on each other, and the adversary is the best there is: they know the exact posterior of every node
given every output. Two families of mechanisms:

- random: law of memberships and likelihoods drawn from Dirichlet distributions;
- worst case: all nodes are in together or not at all, and the output tells which, wrongly with a fixed probability.
  Every guess is right with exactly the largest probability that ε allows, so the bound fails as often as it may.

    python examples/proof_validity.py
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.stats

from bmpaudit.attack import Evidence, Raw
from bmpaudit.privacy import FiniteMechanism, PrivacyLevels, privacy_levels
from bmpaudit.privacy.membership_law import membership_table
from bmpaudit.proof import Proof, epsilon_bound, prove
from bmpaudit.proof.bounds import LOG_WEIGHTS, STAKES
from bmpaudit.proof.guesses import most_confident

LEVEL = 0.95
PARAMETERS = ("epsilon_right", "epsilon_left", "mp")
ANYTIME = "epsilon_right, anytime, stopped when highest"
FIXED = "epsilon_right, fixed-sample, stopped when highest: not allowed"
NUM_MODELS = 300
HORIZON = 1_000
MANY_MODELS = 100_000
NOT_RARE = 0.02
TOLERANCE = 1e-9
SURE = 1e30  # in place of an infinite score

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def random_mechanism(rng: np.random.Generator) -> FiniteMechanism:
    """One to four nodes whose memberships depend on each other, two to six outputs."""
    num_nodes, num_outputs = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    # Some of the uniform law, so that every node is in some of the models and not in others.
    law = 0.7 * rng.dirichlet(np.full(2**num_nodes, rng.choice([0.3, 1.0, 3.0]))) + 0.3 / 2**num_nodes
    return FiniteMechanism(law, rng.dirichlet(np.full(num_outputs, rng.choice([0.5, 1.0, 3.0])), size=2**num_nodes))


def worst_case(rng: np.random.Generator) -> FiniteMechanism:
    """All nodes in, or none; the output is wrong with the same probability either way."""
    num_nodes = int(rng.integers(1, 5))
    law, table = np.zeros(2**num_nodes), np.full((2**num_nodes, 2), 0.5)
    law[[0, -1]] = 0.5
    wrong = rng.uniform(0.002, 0.3)
    table[0], table[-1] = (1 - wrong, wrong), (wrong, 1 - wrong)
    return FiniteMechanism(law, table)


@dataclass(frozen=True, eq=False)
class Models:
    """Draws from a mechanism: memberships (J, N) and outputs (J,)."""

    memberships: Flags
    output: Ints


def draw(mechanism: FiniteMechanism, num_models: int, rng: np.random.Generator) -> Models:
    """Independent models."""
    cells = rng.choice(mechanism.joint.size, size=num_models, p=mechanism.joint.ravel() / mechanism.joint.sum())
    m, output = np.divmod(cells, mechanism.joint.shape[1])
    return Models(membership_table(mechanism.num_nodes)[m], output)


def best_scores(mechanism: FiniteMechanism) -> Floats:
    """Exact log-likelihood ratios, shape (num_outputs, N)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = mechanism.posterior_log_odds - np.log(mechanism.prior_odds)[:, None]
    return np.nan_to_num(ratios.T, nan=0.0, posinf=np.inf, neginf=-np.inf)


def audit(mechanism: FiniteMechanism, num_models: int, rng: np.random.Generator) -> Proof:
    """One guess per model by the best adversary, with abstention learnt on the first third of the models."""
    models, scores = draw(mechanism, num_models, rng), best_scores(mechanism)
    seen = {"best": scores[models.output].clip(-SURE, SURE).astype(np.float32)}
    evidence = Evidence(seen, models.memberships, np.arange(num_models))
    return prove(Raw(), evidence, mechanism.prior_prob, level=LEVEL, num_fitting=num_models // 3)


def surest_hits(mechanism: FiniteMechanism, num_models: int, rng: np.random.Generator) -> Flags:
    """Guesses of members by an adversary who waits for the output that attains ε_R: whether each is right."""
    scores, log_prior_odds = best_scores(mechanism), np.log(mechanism.prior_odds)
    surest = (scores + log_prior_odds).max()
    models = draw(mechanism, num_models, rng)
    claims = most_confident(scores[models.output], log_prior_odds)["in by odds"]
    return claims.are_hits(models.memberships)[claims.confidence >= surest - TOLERANCE]


def anytime_ever_exceeds(hits: Flags, epsilon: float) -> bool:
    """Whether the anytime bound lies above the truth after any of the guesses.

    The bound exceeds ε as soon as the wealth at ε reaches 1/a, so it is enough to follow that.
    """
    right, wrong = np.cumsum(hits)[:, None], np.cumsum(~hits)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(wrong > 0, wrong * np.log1p(-STAKES), 0.0)
    wealth = np.exp(LOG_WEIGHTS + right * np.log1p(STAKES * np.exp(-epsilon)) + losses).sum(axis=1)
    return bool((wealth >= 1 / (1 - LEVEL)).any())


def fixed_ever_exceeds(hits: Flags, epsilon: float) -> bool:
    """The same for the fixed-sample bound, which does not allow for stopping when it looks good."""
    right = np.cumsum(hits)
    times = np.unique(np.geomspace(5, max(len(hits), 5), 60).astype(int))
    bounds = [epsilon_bound(int(right[time - 1]), int(time), LEVEL) for time in times if time <= len(hits)]
    return any(bound is not None and bound > epsilon + TOLERANCE for bound in bounds)


def true_values(truth: PrivacyLevels) -> dict[str, float]:
    """By parameter."""
    return {"epsilon_right": truth.bmp.right, "epsilon_left": truth.bmp.left, "mp": truth.mp}


def violations(proof: Proof, truth: PrivacyLevels) -> list[bool]:
    """Whether each bound exceeds the truth."""
    values = true_values(truth)
    return [bound.proven is not None and bound.proven > values[bound.parameter] + TOLERANCE for bound in proof.bounds]


def print_violations(num_mechanisms: int, seed: int) -> None:
    """The table of violations."""
    print("| mechanisms | bound | number | above the truth | share | a valid bound has at most (99.9 %) |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make in (("random", random_mechanism), ("worst case", worst_case)):
        rng = np.random.default_rng([seed, len(name)])
        counts = dict.fromkeys((*PARAMETERS, ANYTIME, FIXED), 0)
        for _ in range(num_mechanisms):
            mechanism = make(rng)
            truth = privacy_levels(mechanism)
            for parameter, is_above in zip(
                PARAMETERS, violations(audit(mechanism, NUM_MODELS, rng), truth), strict=True
            ):
                counts[parameter] += is_above
            hits = surest_hits(mechanism, HORIZON, rng)
            counts[ANYTIME] += anytime_ever_exceeds(hits, truth.bmp.right)
            counts[FIXED] += fixed_ever_exceeds(hits, truth.bmp.right)
        most = int(scipy.stats.binom.isf(1e-3, num_mechanisms, 1 - LEVEL))
        for bound, number in counts.items():
            share = f"{100 * number / num_mechanisms:.2f} %"
            print(f"| {name} | {bound} | {num_mechanisms:,} | {number:,} | {share} | {most:,} |")


def print_consistency(num_mechanisms: int, num_models: int, seed: int) -> None:
    """The table of bound over truth with many models."""
    rng = np.random.default_rng([seed, 1])
    ratios: dict[str, list[float]] = {parameter: [] for parameter in PARAMETERS}
    while min(map(len, ratios.values())) < num_mechanisms:
        mechanism = random_mechanism(rng)
        truth = privacy_levels(mechanism)
        wanted = [
            name for name in PARAMETERS if len(ratios[name]) < num_mechanisms and is_learnable(mechanism, truth, name)
        ]
        if wanted:
            proof = audit(mechanism, num_models, rng)
            for bound in proof.bounds:
                if bound.parameter in wanted:
                    ratios[bound.parameter].append((bound.proven or 0.0) / true_values(truth)[bound.parameter])
    print("\n| bound | mechanisms | models | mean of bound / ε | smallest |")
    print("| --- | --- | --- | --- | --- |")
    for parameter, values in ratios.items():
        print(f"| {parameter} | {len(values):,} | {num_models:,} | {np.mean(values):.3f} | {np.min(values):.3f} |")


def is_learnable(mechanism: FiniteMechanism, truth: PrivacyLevels, parameter: str) -> bool:
    """Whether ε is at least 0.5 and the outputs that attain it come with a probability of at least 2 %."""
    value = true_values(truth)[parameter]
    odds, ratios = mechanism.posterior_log_odds, best_scores(mechanism).T
    attained = {"epsilon_right": odds, "epsilon_left": -odds, "mp": np.abs(ratios)}[parameter] >= value - TOLERANCE
    prob = mechanism.output_prob[attained.any(axis=0)].sum()
    return bool(0.5 <= value < np.inf and prob >= NOT_RARE)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mechanisms", type=int, default=5_000, help="number of mechanisms of each family")
    parser.add_argument("--consistency", type=int, default=50, help="number of mechanisms with many models")
    parser.add_argument("--models", type=int, default=MANY_MODELS, help="number of models of each of these")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    options = parser.parse_args()
    print_violations(options.mechanisms, options.seed)
    print_consistency(options.consistency, options.models, options.seed)


if __name__ == "__main__":
    main()
