"""The attack: who was in the training sample, inferred from shadow models, and how often that inference is wrong."""

from bmpaudit.attack.challenges import Challenges, ChallengeScores, challenge, node_mia, split_mia
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import (
    SHADOW_FREQUENCY,
    Evidence,
    NotAuditable,
    Scores,
    SplitModels,
    split_models,
)
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.other_attacks import RMIA, Base, RightOrWrong
from bmpaudit.attack.performance import (
    AttackPerformance,
    PermutationTest,
    RocCurve,
    attack_performance,
    permutation_test,
)
from bmpaudit.attack.rules import DecisionSettings, RuleErrors, RuleName, Strong, Weak, decide, log_likelihood_ratio
from bmpaudit.attack.student import Student

__all__ = [
    "RMIA",
    "SHADOW_FREQUENCY",
    "AttackPerformance",
    "Base",
    "ChallengeScores",
    "Challenges",
    "DecisionSettings",
    "ErrorCounts",
    "Evidence",
    "Gaussian",
    "NotAuditable",
    "PermutationTest",
    "RightOrWrong",
    "RocCurve",
    "RuleErrors",
    "RuleName",
    "Scores",
    "SplitModels",
    "Strong",
    "Student",
    "Weak",
    "attack_performance",
    "challenge",
    "decide",
    "log_likelihood_ratio",
    "node_mia",
    "permutation_test",
    "split_mia",
    "split_models",
]
