"""An open API is enough: ask a model about made-up nodes that have one word each, and name its training nodes.

python examples/one_word.py

Cora: 2,708 papers, 1,433 words, 7 classes; a GCN is trained on a random quarter of the papers. The adversary trains 64
models in the same way, on samples of their own, and asks every model about 1,433 nodes that do not exist: one for each
word, without edges. The rest is linear algebra on the answers; for the attack that bmpaudit runs see `attack/rows.py`.
"""

import tempfile

import numpy as np
from scipy.stats import norm

from bmpaudit import datasets
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows

SHADOWS, RELEASED = 64, 40


def main() -> None:
    """Trains, asks, learns from the shadow models, and names members of the released ones."""
    graph = datasets.load("cora")
    plan = ShadowPlan(Uniform(0.25), releases=(Clean(),), rows=("queries",))
    with tempfile.TemporaryDirectory() as folder:
        models = train_shadows(graph, plan, SHADOWS + RELEASED, folder)
    member = np.asarray(models.memberships)
    # What each model says of each word: its logits, less those of a node without words.
    answers = models.rows["queries_clean"].values  # models x words x classes
    words = graph.dense_features.astype(np.float64)  # nodes x words
    mine, released = np.arange(SHADOWS), np.arange(SHADOWS, SHADOWS + RELEASED)

    # 1. Nobody in the sample has the word: weight decay has emptied its row. Who has such a word was not in the sample.
    strength = np.linalg.norm(answers, axis=2)
    is_touched = (member @ words) > 0
    threshold = np.sqrt(strength[mine][~is_touched[mine]].max() * strength[mine][is_touched[mine]].min())
    is_out = ((strength < threshold).astype(np.float64) @ words.T) > 0

    # 2. A word's row is about the sum over the members that have it, each pulling towards its own class. So how
    #    strongly each node pulls solves a system of linear equations, the same for all models.
    rows = answers - answers.mean(axis=2, keepdims=True)
    rows /= np.sqrt((rows**2).mean(axis=(1, 2), keepdims=True))
    pull = np.eye(graph.num_classes)[graph.labels] - 1 / graph.num_classes  # nodes x classes
    rare = words / np.maximum(words.sum(axis=0), 1)  # a rare word tells more
    seen = np.stack([((rare @ each) * pull).sum(axis=1) for each in rows])
    equations = (rare @ words.T) * (pull @ pull.T)
    strengths = seen @ np.linalg.inv(equations + 0.3 * np.median(np.diag(equations)) * np.eye(len(words)))

    # 3. The paper's test for each node: two normal distributions, learnt from the adversary's own models.
    inside = np.where(member[mine], strengths[mine], np.nan)
    outside = np.where(member[mine], np.nan, strengths[mine])
    means = np.nanmean(inside, axis=0), np.nanmean(outside, axis=0)
    spread = np.sqrt((np.nansum((inside - means[0]) ** 2, 0) + np.nansum((outside - means[1]) ** 2, 0)) / SHADOWS)
    fits = [norm.logpdf(strengths[released], mean, spread) for mean in means]
    is_named = (fits[0] - fits[1] + np.log(0.25 / 0.75) > np.log(0.99 / 0.01)) & ~is_out[released]

    truth, excluded = member[released], is_out[released]
    print(f"members of a model: {truth.sum(axis=1).mean():.0f}")
    print(f"certain non-members of a model: {excluded.sum(axis=1).mean():.0f}, of which {excluded[truth].sum()} wrong")
    print(f"named as members: {is_named.sum(axis=1).mean():.0f} a model, {truth[is_named].mean():.1%} of them right")


if __name__ == "__main__":
    main()
