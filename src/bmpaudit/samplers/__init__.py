"""Samplers: who is in the training graph (𝒮 in the paper), and the prior probabilities that follow."""

from bmpaudit.samplers.any_sampler import AnySampler
from bmpaudit.samplers.bernoulli import Bernoulli
from bmpaudit.samplers.degree_weighted import DegreeWeighted
from bmpaudit.samplers.distance import sampler_distance
from bmpaudit.samplers.draw import count_memberships, draw_memberships
from bmpaudit.samplers.fit import MembershipFit, check_memberships
from bmpaudit.samplers.floor import PriorFloor
from bmpaudit.samplers.prior_draws import prior_probabilities
from bmpaudit.samplers.priors import Priors
from bmpaudit.samplers.random_walk import RandomWalk
from bmpaudit.samplers.snowball import Snowball
from bmpaudit.samplers.stratified import Stratified
from bmpaudit.samplers.uniform import Uniform

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
    "count_memberships",
    "draw_memberships",
    "prior_probabilities",
    "sampler_distance",
]
