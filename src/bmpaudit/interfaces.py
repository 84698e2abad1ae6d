"""The seams of bmpaudit on one page: what each part of the pipeline takes, returns and promises.

    Graph ─▶ Sampler ─▶ Engine ─▶ Release × Query ─▶ Statistic ─▶ Attack ─▶ DecisionRule ─▶ Definition ─▶ report
            who is in   J trained  what is given      one number   log       errors          which ε
            a sample    models     out, how it        a model      ratio     at a
                                   is asked           and node               threshold

Beside that line, `proof/` counts and proves what the Attack's log ratios let an adversary name, and
`attack/permutation.py` tests every node's statistic; both lead the report.

Anything with these methods is a part: no base class is needed. Built-in parts are listed in `registry.py`, your own are
named `module:Name` on the command line and in plan files (docs/extending.md).

What no result proves: an ε that was estimated holds under the estimator's model, for the attack that was run. A better
attack may find more. A small ε is not a guarantee; only a mechanism with a proof has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bmpaudit.util.values import Flags, Floats, Floats32, Ints

if TYPE_CHECKING:
    from bmpaudit.attack.evidence import Evidence, Scores
    from bmpaudit.estimation.definitions import Parameter
    from bmpaudit.graph import Graph
    from bmpaudit.shadow.batch import ShadowBatch

Progress = Callable[[int], None]
"""Called with the number of items done so far."""


@runtime_checkable
class Sampler(Protocol):
    """Who is in a training sample, decided by the graph and a random generator alone (𝒮 in the paper)."""

    def sample(self, graph: Graph, rng: np.random.Generator) -> Ints:
        """Draws one sample: distinct node ids. All randomness comes from `rng`."""


@runtime_checkable
class ExactPriors(Sampler, Protocol):
    """A sampler whose inclusion probabilities have a closed form; others are estimated from many draws."""

    def exact_priors(self, graph: Graph) -> Floats:
        """γ_i(1) = Pr(node i is in the sample), shape (num_nodes,)."""


@runtime_checkable
class TrainingEdges(Sampler, Protocol):
    """A sampler that says which edges are trained on; with others, all edges among the sampled nodes are."""

    def training_edges(self, graph: Graph, rng: np.random.Generator) -> Ints | None:
        """Pairs of nodes of the sample that `sample` draws with the same `rng`, shape (num_edges, 2); None for all."""


@runtime_checkable
class Engine(Protocol):
    """Trains the shadow models of one graph and plan."""

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """Trains and scores the models of a batch, writing into its arrays.

        Model j depends on (graph, plan, j) and nothing else. If interrupted, finished models stay in the batch. An
        engine with an attribute `num_weights`, the number of weights of a model, also fills in `batch.weights` if they
        are kept. A model whose weights are there already is not trained, only asked.
        """


@runtime_checkable
class Release(Protocol):
    """What the owner gives out of a trained model; a defence of the output lives here. Releases are never fused.

    A release with an attribute `num_models` above 1 takes so many models, trained on the same sample: `outputs` is then
    given logits of shape (num_models, num_nodes, num_classes). One whose attribute `gives_embeddings` is true is given
    activations of the last hidden layer instead, which `releases.probe_scores` turns into scores of the classes.
    """

    @property
    def last_layer_noise(self) -> float:
        """Standard deviation of Gaussian noise on the last layer's parameters when the model is asked; 0 for none."""

    @property
    def changes_outputs(self) -> bool:
        """Whether `outputs` does anything; if not, engines skip it."""

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:
        """What is given out in place of one model's logits, both of shape (num_nodes, num_classes).

        A model's `rng` starts anew for each release and goes on from query to query, in the plan's order.
        """


@runtime_checkable
class Query(Protocol):
    """How the adversary asks: on which edges the model is evaluated. One adversary may use several queries."""

    def graph(self, graph: Graph) -> Graph:
        """The graph shown to the model, with the same nodes, features and labels."""


class Statistic(Protocol):
    """What an attack looks at: one number a node, the higher the surer the model is of the node's true label."""

    def __call__(self, outputs: Floats32, labels: Ints, /) -> Floats32:
        """From outputs of shape (…, num_nodes, num_classes) to statistics of shape (…, num_nodes)."""


@runtime_checkable
class Attack(Protocol):
    """From the statistics of models under one release to a log-likelihood ratio for each model and node."""

    @property
    def fuses_queries(self) -> bool:
        """Whether all queries of a release go into one score; if not, each query is attacked by itself."""

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        """Scores the challenged models with a rule fitted on others; higher means more likely a member.

        One row per challenged model, one column per node of `challenged.nodes`; the statistics of all other nodes can
        be used. The memberships of the challenged models are withheld, and their statistics must not enter the fit.
        """


@runtime_checkable
class LeaveOneOutAttack(Attack, Protocol):
    """An attack that scores each model with a rule fitted on all others (Algorithm 1); others are cross-fitted."""

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """As `score`, for each model with all other models as the fitting ones."""


@runtime_checkable
class DecisionRule(Protocol):
    """From a log-likelihood ratio to a decision: "member" where the decision score exceeds log(c_0/c_1)."""

    def decision_score(self, log_likelihood_ratio: Floats, log_prior_odds: Floats) -> Floats:
        """Scores of shape (num_models, num_nodes); `log_prior_odds` has shape (num_nodes,)."""


@runtime_checkable
class Definition(Protocol):
    """Which ε is estimated: a curve, or all, of the pairs (ε_L, ε_R) that set the region of Theorem 6."""

    @property
    def parameters(self) -> Sequence[Parameter]:
        """One parameter, or two for (ε_L, ε_R) itself."""

    @property
    def uses_prior(self) -> bool:
        """Whether a node's prior odds count; if not, η = 1 for every node as in MP."""

    @property
    def epsilons(self) -> Callable[..., tuple[npt.ArrayLike, npt.ArrayLike]]:
        """A method: (ε_L, ε_R) for an array of values of each parameter; neither may fall, ∞ means not bounded."""

    def empties_support(self, log_prior_odds: Floats) -> Flags:
        """Which nodes, by a certain prior, rule out every finite value."""
