"""Laws of the membership vector M, as a table over all 2^N vectors, and how far two conditional laws lie apart."""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.privacy.epsilon import Floats, check_probability

_SUM_TOLERANCE = 1e-9
# The solver keeps the constraints of the transport up to its tolerance, so less mass than this cannot be told from 0.
_NO_MASS = 1e-9
_SOLVER_OPTIONS = {"primal_feasibility_tolerance": 1e-10}


def membership_table(num_nodes: int) -> npt.NDArray[np.bool_]:
    """All membership vectors, shape (2^N, N): row m has node i in iff bit i of m is set."""
    return (np.arange(2**num_nodes)[:, None] >> np.arange(num_nodes) & 1).astype(np.bool_)


def independent_memberships(prior_prob: npt.ArrayLike) -> Floats:
    """The law of independent memberships with these probabilities, shape (2^N,).

    >>> independent_memberships([0.5, 0.25])
    array([0.375, 0.375, 0.125, 0.125])
    """
    (prob,) = check_probability(prior_prob=prior_prob)
    law: Floats = np.where(membership_table(len(prob)), prob, 1 - prob).prod(axis=1)
    return law


def fixed_size_memberships(num_nodes: int, size: int) -> Floats:
    """The law of a uniformly drawn set of fixed size, shape (2^N,).

    >>> fixed_size_memberships(2, 1)
    array([0. , 0.5, 0.5, 0. ])
    """
    if not 0 <= size <= num_nodes:
        raise ValueError(f"size must be in [0, {num_nodes}], got size={size}")
    allowed = membership_table(num_nodes).sum(axis=1) == size
    law: Floats = allowed / allowed.sum()
    return law


def check_law(membership_prob: npt.ArrayLike) -> Floats:
    """What must be a law of the membership vector, as an array of shape (2^N,)."""
    (law,) = check_probability(membership_prob=membership_prob)
    if law.ndim != 1 or len(law) < 2 or len(law) & (len(law) - 1):
        raise ValueError(f"membership_prob must have 2^N entries for N ≥ 1 nodes, got shape {law.shape}")
    if abs(law.sum() - 1) > _SUM_TOLERANCE:
        raise ValueError(f"membership_prob must sum to 1, got {law.sum()}")
    return law


def membership_distance(membership_prob: npt.ArrayLike) -> int:
    """D: how many memberships must change, at most, to turn M given M_i = 1 into M given M_i = 0, for the worst i.

    The ∞-Wasserstein distance between the two conditional laws under the Hamming metric: the smallest D for which
    mass can be moved from one to the other without any of it going further than D. It is 1 for independent
    memberships and 2 for uniform sampling without replacement. ε-MDP implies D·ε-MP.

    Nodes whose membership is certain have no such pair of laws and do not count; nor does conditional probability
    below 1e-9, which cannot be told from rounding.

    >>> membership_distance(independent_memberships([0.3, 0.6, 0.5])), membership_distance(fixed_size_memberships(4, 2))
    (1, 2)
    """
    law = check_law(membership_prob)
    table = membership_table(len(law).bit_length() - 1)
    distance = 1
    for is_in in table.T:
        given_in, given_out = np.where(is_in, law, 0.0), np.where(is_in, 0.0, law)
        if given_in.sum() > 0 and given_out.sum() > 0:
            distance = max(
                distance, _infinite_wasserstein(table, given_in / given_in.sum(), given_out / given_out.sum())
            )
    return distance


def _infinite_wasserstein(table: npt.NDArray[np.bool_], first: Floats, second: Floats) -> int:
    from scipy.optimize import linprog  # takes long to import, and no audit needs it

    rows, columns = np.flatnonzero(first), np.flatnonzero(second)
    hamming = (table[rows, None, :] != table[None, columns, :]).sum(axis=2)
    # One variable for each pair of vectors; row sums and column sums are given.
    sends = scipy.sparse.kron(scipy.sparse.eye_array(len(rows)), np.ones((1, len(columns))))
    receives = scipy.sparse.kron(np.ones((1, len(rows))), scipy.sparse.eye_array(len(columns)))
    marginals = scipy.sparse.vstack([sends, receives])
    masses = np.concatenate([first[rows], second[columns]])
    for distance in np.unique(hamming):
        # The most that can be moved within reach; at most `masses`, not exactly, so that there always is a plan.
        gain = -(hamming <= distance).ravel().astype(np.float64)
        plan = linprog(gain, A_ub=marginals, b_ub=masses, method="highs", options=_SOLVER_OPTIONS)
        if 1 + plan.fun < _NO_MASS:
            return int(distance)
    raise AssertionError("the largest distance leaves nothing out of reach")
