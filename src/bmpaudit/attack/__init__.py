"""The attack: who was in the training sample, inferred from shadow models, and how often that inference is wrong."""

from bmpaudit.attack.certain import CertainNodes, certain_nodes
from bmpaudit.attack.challenges import Challenges, ChallengeScores, challenge, node_mia
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import SHADOW_FREQUENCY, Evidence, NotAuditable, Scores, SplitModels, split_models
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.other_attacks import RMIA, Base, OfflineLiRA, Raw, RightOrWrong
from bmpaudit.attack.performance import AttackPerformance, RocCurve, attack_performance
from bmpaudit.attack.permutation import PermutationTest, permutation_test
from bmpaudit.attack.rows import RowAttack
from bmpaudit.attack.rules import DecisionSettings, RuleErrors, Strong, Weak
from bmpaudit.attack.student import Student
from bmpaudit.util.matrices import Rows

__all__ = [
    "RMIA",
    "SHADOW_FREQUENCY",
    "AttackPerformance",
    "Base",
    "CertainNodes",
    "ChallengeScores",
    "Challenges",
    "DecisionSettings",
    "ErrorCounts",
    "Evidence",
    "Gaussian",
    "NotAuditable",
    "OfflineLiRA",
    "PermutationTest",
    "Raw",
    "RightOrWrong",
    "RocCurve",
    "RowAttack",
    "Rows",
    "RuleErrors",
    "Scores",
    "SplitModels",
    "Strong",
    "Student",
    "Weak",
    "attack_performance",
    "certain_nodes",
    "challenge",
    "node_mia",
    "permutation_test",
    "split_models",
]
