"""Samplers: who is in the training graph (𝒮 in the paper), and the prior probabilities that follow."""

from bmpaudit.samplers.bernoulli import Bernoulli
from bmpaudit.samplers.degree_weighted import DegreeWeighted
from bmpaudit.samplers.draw import draw_memberships
from bmpaudit.samplers.priors import Priors, prior_probabilities
from bmpaudit.samplers.protocol import AnySampler, Sampler
from bmpaudit.samplers.random_walk import RandomWalk
from bmpaudit.samplers.snowball import Snowball
from bmpaudit.samplers.stratified import Stratified
from bmpaudit.samplers.uniform import Uniform

__all__ = [
    "AnySampler",
    "Bernoulli",
    "DegreeWeighted",
    "Priors",
    "RandomWalk",
    "Sampler",
    "Snowball",
    "Stratified",
    "Uniform",
    "draw_memberships",
    "prior_probabilities",
]
