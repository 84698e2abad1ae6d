import math
from functools import reduce

import numpy as np
import pytest

from bmpaudit.privacy import Guarantee, approximate_mdp_to_mp, approximate_mp_to_bmp, hockey_stick


def test_follows_the_conversions() -> None:
    guarantee = Guarantee("mechanism", epsilon=0.5, delta=1e-5, distance=2)
    mp = approximate_mdp_to_mp(0.5, 1e-5, 2)
    assert guarantee.mp == mp
    assert guarantee.bmp([0.5, 2.0]) == approximate_mp_to_bmp(mp.epsilon, mp.delta, [0.5, 2.0])


def test_pure_guarantee_on_independent_memberships() -> None:
    guarantee = Guarantee("mechanism", epsilon=0.5)
    assert guarantee.mp.epsilon == 0.5
    bmp = guarantee.bmp(1 / 3)
    assert [bmp.left, bmp.right, bmp.delta] == pytest.approx([0.5 + math.log(3), 0.5 - math.log(3), 0])


def test_in_words() -> None:
    assert Guarantee("This", epsilon=1.0).sentence(1.0) == (
        "This is 1-MDP. With this sampler memberships are independent, so it is 1-MP and (1, 1)-BMP."
    )
    assert "(1, 1e-06)-MDP" in Guarantee("This", 1.0, 1e-6, 3).sentence(1.0)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be ≥ 0 and distance ≥ 1, got epsilon=-1, distance=1"):
        Guarantee("This", epsilon=-1)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got delta=1.5"):
        Guarantee("This", epsilon=1.0, delta=1.5)


def test_several_models_of_one_sample_against_their_joint_law() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        first, second = rng.dirichlet(np.full(4, 0.5), size=2)  # outputs of one model for two neighbouring samples
        epsilon = float(rng.uniform(0, 2))
        delta = float(hockey_stick(first, second, epsilon))
        for times in (2, 3):
            one, other = (reduce(np.multiply.outer, [law] * times).ravel() for law in (first, second))
            together = Guarantee("mechanism", epsilon, delta).repeated(times)
            assert hockey_stick(one, other, together.epsilon) <= together.delta + 1e-12
    assert Guarantee("mechanism", 1.0).repeated(1) == Guarantee("mechanism", 1.0)
