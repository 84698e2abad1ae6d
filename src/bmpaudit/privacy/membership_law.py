"""Laws of the membership vector M, as a table over all 2^N vectors, and how far two conditional laws lie apart."""

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse

from bmpaudit.privacy.epsilon import Floats, check_probability

# Transport that a distance leaves no room for shows as mass of the order of the probabilities, far above this.
_NO_MASS = 1e-9


def membership_table(num_nodes: int) -> npt.NDArray[np.bool_]:
    """All membership vectors, shape (2^N, N): row m has node i in iff bit i of m is set."""
    return (np.arange(2**num_nodes)[:, None] >> np.arange(num_nodes) & 1).astype(np.bool_)


def independent_memberships(prior_prob: npt.ArrayLike) -> Floats:
    """The law of independent memberships with these probabilities, shape (2^N,).

    >>> independent_memberships([0.5, 0.25])
    array([0.375, 0.375, 0.125, 0.125])
    """
    (prob,) = check_probability(prior_prob=prior_prob)
    return np.where(membership_table(len(prob)), prob, 1 - prob).prod(axis=1)


def fixed_size_memberships(num_nodes: int, size: int) -> Floats:
    """The law of a uniformly drawn set of fixed size, shape (2^N,).

    >>> fixed_size_memberships(2, 1)
    array([0. , 0.5, 0.5, 0. ])
    """
    if not 0 <= size <= num_nodes:
        raise ValueError(f"size must be in [0, {num_nodes}], got size={size}")
    allowed = membership_table(num_nodes).sum(axis=1) == size
    return allowed / allowed.sum()


def membership_distance(membership_prob: npt.ArrayLike) -> int:
    """D: how many memberships must change, at most, to turn M given M_i = 1 into M given M_i = 0, for the worst i.

    The ∞-Wasserstein distance between the two conditional laws under the Hamming metric: the smallest D for which
    mass can be moved from one to the other without any of it going further than D. It is 1 for independent
    memberships and 2 for uniform sampling without replacement. ε-MDP implies D·ε-MP.

    Nodes whose membership is certain have no such pair of laws and do not count.

    >>> membership_distance(independent_memberships([0.3, 0.6, 0.5])), membership_distance(fixed_size_memberships(4, 2))
    (1, 2)
    """
    (law,) = check_probability(membership_prob=membership_prob)
    table = membership_table(int(np.log2(len(law))))
    distance = 1
    for is_in in table.T:
        given_in, given_out = np.where(is_in, law, 0.0), np.where(is_in, 0.0, law)
        if given_in.sum() > 0 and given_out.sum() > 0:
            distance = max(
                distance, _infinite_wasserstein(table, given_in / given_in.sum(), given_out / given_out.sum())
            )
    return distance


def _infinite_wasserstein(table: npt.NDArray[np.bool_], first: Floats, second: Floats) -> int:
    rows, columns = np.flatnonzero(first), np.flatnonzero(second)
    hamming = (table[rows, None, :] != table[None, columns, :]).sum(axis=2)
    # One variable for each pair of vectors; row sums and column sums are given.
    sends = scipy.sparse.kron(scipy.sparse.eye_array(len(rows)), np.ones((1, len(columns))))
    receives = scipy.sparse.kron(np.ones((1, len(rows))), scipy.sparse.eye_array(len(columns)))
    marginals = scipy.sparse.vstack([sends, receives])
    masses = np.concatenate([first[rows], second[columns]])
    for distance in np.unique(hamming):
        too_far = (hamming > distance).ravel().astype(np.float64)
        plan = scipy.optimize.linprog(too_far, A_eq=marginals, b_eq=masses, method="highs")
        if plan.fun < _NO_MASS:
            return int(distance)
    raise AssertionError("the largest distance leaves nothing out of reach")
