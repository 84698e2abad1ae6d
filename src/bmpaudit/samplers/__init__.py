"""Samplers: who is in the training graph (𝒮 in the paper), and the prior probabilities that follow."""

from bmpaudit.samplers.builtin import Bernoulli, DegreeWeighted, RandomWalk, Snowball, Stratified, Uniform
from bmpaudit.samplers.draw import AnySampler, draw_memberships
from bmpaudit.samplers.fit import MembershipFit, check_memberships
from bmpaudit.samplers.priors import PriorFloor, Priors, prior_probabilities, sampler_distance

__all__ = [
    "AnySampler",
    "Bernoulli",
    "DegreeWeighted",
    "MembershipFit",
    "PriorFloor",
    "Priors",
    "RandomWalk",
    "Snowball",
    "Stratified",
    "Uniform",
    "check_memberships",
    "draw_memberships",
    "prior_probabilities",
    "sampler_distance",
]
