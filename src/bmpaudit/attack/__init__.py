"""The attack: who was in the training sample, inferred from shadow models, and how often that inference is wrong."""

from bmpaudit.attack.base_attack import Base
from bmpaudit.attack.challenges import Challenges, challenge
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.decision import decide, log_likelihood_ratio
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.attack.node_mia import node_mia, split_mia
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.attack.performance import AttackPerformance, RocCurve, attack_performance
from bmpaudit.attack.permutation_test import PermutationTest, permutation_test
from bmpaudit.attack.right_or_wrong import RightOrWrong
from bmpaudit.attack.rmia import RMIA
from bmpaudit.attack.rules import RuleErrors, RuleName, Strong, Weak
from bmpaudit.attack.scores import ChallengeScores, Scores
from bmpaudit.attack.settings import DecisionSettings
from bmpaudit.attack.split import SplitModels, split_models
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
