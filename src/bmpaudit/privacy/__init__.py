"""The theory of Bayesian membership privacy; docs/theory.md maps the paper's statements to these names."""

from bmpaudit.privacy.approximate import (
    ApproximateBMP,
    ApproximateMP,
    Guarantee,
    approximate_bmp_to_mp,
    approximate_mdp_to_mp,
    approximate_mp_to_bmp,
    bmp_delta,
    hockey_stick,
    mdp_delta,
    mp_delta,
    non_empty_mdp_to_mp,
)
from bmpaudit.privacy.conversions import (
    bmp_to_mp,
    bmp_to_positive_pmp,
    compose_bmdp_with_mdp,
    compose_bmp_with_conditional_mp,
    compose_independent_samples,
    compose_mdp,
    mdp_to_mp,
    mp_to_bmp,
    prior_floor,
)
from bmpaudit.privacy.epsilon import EpsilonPair
from bmpaudit.privacy.mechanism import ErrorPair, FiniteMechanism, PrivacyLevels, privacy_levels
from bmpaudit.privacy.membership_law import fixed_size_memberships, independent_memberships, membership_distance
from bmpaudit.privacy.region import Region, attained_cost_bound, bayes_decision, expected_cost_bound, implied_epsilon

__all__ = [
    "ApproximateBMP",
    "ApproximateMP",
    "EpsilonPair",
    "ErrorPair",
    "FiniteMechanism",
    "Guarantee",
    "PrivacyLevels",
    "Region",
    "approximate_bmp_to_mp",
    "approximate_mdp_to_mp",
    "approximate_mp_to_bmp",
    "attained_cost_bound",
    "bayes_decision",
    "bmp_delta",
    "bmp_to_mp",
    "bmp_to_positive_pmp",
    "compose_bmdp_with_mdp",
    "compose_bmp_with_conditional_mp",
    "compose_independent_samples",
    "compose_mdp",
    "expected_cost_bound",
    "fixed_size_memberships",
    "hockey_stick",
    "implied_epsilon",
    "independent_memberships",
    "mdp_delta",
    "mdp_to_mp",
    "membership_distance",
    "mp_delta",
    "mp_to_bmp",
    "non_empty_mdp_to_mp",
    "prior_floor",
    "privacy_levels",
]
