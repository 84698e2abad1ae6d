"""From a plan to the engine that trains its models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine
from bmpaudit.releases import gives_embeddings, models_of
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError, thread_count

EXTRAS = {
    **dict.fromkeys(("torch", "torch_geometric"), ("torch", "PyTorch Geometric")),
    **dict.fromkeys(("sklearn", "threadpoolctl"), ("sklearn", "scikit-learn")),
}
"""By module, the extra that installs it and the library's name."""


def make_engine(graph: Graph, plan: ShadowPlan) -> Engine:
    """The engine that a plan names, ready to train its models.

    Raises:
        UntrustedCodeError: if the engine or another part is code that a file names.
    """
    plan.check_trusted()
    try:
        engine: Callable[[Graph, ShadowPlan], Engine] = registry.load(registry.ENGINE, plan.engine_name)
    except InputError as failure:
        missing = failure.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name in EXTRAS:
            extra, library = EXTRAS[missing.name]
            message = f"engine={plan.engine_name!r} needs {library}: pip install 'bmpaudit[{extra}]' ({missing})"
            raise InputError(message) from None
        raise
    made = engine(graph, plan)
    _check_releases(plan, made)
    return made


def _check_releases(plan: ShadowPlan, engine: Engine) -> None:
    """Raises `InputError` if a release takes what the engine cannot give."""
    gives: frozenset[str] = getattr(engine, "gives", frozenset())
    for release in plan.releases:
        name, engine_name = registry.label(registry.RELEASE, release), plan.engine_name
        if models_of(release) > 1 and "repeats" not in gives:
            raise InputError(f"release {name} takes several models, which engine {engine_name} does not give")
        if gives_embeddings(release) and "embeddings" not in gives:
            raise InputError(f"release {name} takes a hidden layer, which engine {engine_name} does not give")


def num_weights(graph: Graph, plan: ShadowPlan) -> int:
    """How many weights a model of the plan has.

    Raises:
        InputError: if its engine cannot keep them.
    """
    engine = make_engine(graph, plan)
    with closing(engine):
        if not hasattr(engine, "num_weights"):
            raise InputError(f"the engine {plan.engine_name} cannot keep weights")
        return int(engine.num_weights)


def threads_for(engine: Engine, num_threads: int | None) -> int:
    """Number of threads to train on.

    If not given, all cores for an engine that says of itself that it `trains_in_parallel`, and one for others.
    """
    if num_threads is None and not getattr(engine, "trains_in_parallel", False):
        return 1
    return thread_count(num_threads)


@contextmanager
def closing(engine: Engine) -> Iterator[None]:
    """Ends what an engine has started, if it has a method `close`."""
    try:
        yield
    finally:
        getattr(engine, "close", lambda: None)()
