"""The attack: who was in the training sample, judged by the shadow models, and how often that judgement is wrong."""

from bmpaudit.attack.challenges import Challenges, ChallengeScores, challenge_models, challenge_scores
from bmpaudit.attack.counts import ErrorCounts, NotAuditable
from bmpaudit.attack.decision import Decision, decide, log_likelihood_ratio
from bmpaudit.attack.node_mia import node_mia, split_mia
from bmpaudit.attack.null_control import NullControl, null_control
from bmpaudit.attack.performance import AttackPerformance, attack_performance
from bmpaudit.attack.settings import AttackSettings
from bmpaudit.attack.split import SplitRuns, split_runs

__all__ = [
    "AttackPerformance",
    "AttackSettings",
    "ChallengeScores",
    "Challenges",
    "Decision",
    "ErrorCounts",
    "NotAuditable",
    "NullControl",
    "SplitRuns",
    "attack_performance",
    "challenge_models",
    "challenge_scores",
    "decide",
    "log_likelihood_ratio",
    "node_mia",
    "null_control",
    "split_mia",
    "split_runs",
]
