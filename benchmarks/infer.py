"""Whether `infer` can be believed: of the nodes it names, how many are right, and which models it calls misfits.

python benchmarks/infer.py [--data cora] [--models 64 200 1000] [--released 20]

GCNs are trained on a quarter of the nodes as the default plan says, with each sampler. Two tables:

1. Named: over other models trained in the same way, given as outputs, the nodes named at 95 and 99 % with the largest
   number of shadow models, and the share that is right.
2. Check: of 400 models trained as the plan says, and of 40 of each other kind, the share that `infer` says was not
   trained as the plan says, by the number of shadow models.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import zarr

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.infer import infer
from bmpaudit.inference.released import behaviour
from bmpaudit.interfaces import Sampler
from bmpaudit.models import GCN, Training
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.values import Floats32

SAMPLERS: dict[str, Snowball | Uniform] = {"snowball": Snowball(0.25), "uniform": Uniform(0.25)}
QUERIES = ("full", "none")
RELEASED_SEED = 31_337
NUM_HONEST, NUM_OTHER = 400, 40


def shadow_plan(sampler: Sampler, model: GCN, training: Training, seed: int) -> ShadowPlan:
    """Models that are given out as they are."""
    return ShadowPlan(sampler, model, training, releases=(Clean(),), seed=seed)


def statistics_of(graph: Graph, plan: ShadowPlan, number: int) -> dict[str, Floats32]:
    """Margins of newly trained models, by query."""
    with tempfile.TemporaryDirectory() as folder:
        runs = train_shadows(graph, plan, number, Path(folder))
    return {query: runs.statistics[f"{query}_clean"] for query in QUERIES}


def named(name: str, graph: Graph, sampler: Sampler, num_models: int, num_released: int) -> None:
    """Prints the first table's rows of one sampler."""
    with tempfile.TemporaryDirectory() as temporary:
        reference, others = Path(temporary) / "audit", Path(temporary) / "released"
        plan = AuditPlan(sampler=sampler, shadows=num_models, releases="clean")
        pipeline = Pipeline(Subject(graph, "", plan), Workspace(reference), Runtime(quiet=True))
        with pipeline.prepared():
            pipeline.runs  # noqa: B018 - trains them
        plan_of_others = shadow_plan(sampler, GCN(), Training(), RELEASED_SEED)
        released = train_shadows(graph, plan_of_others, num_released, others, keep_logits=True)
        outputs = {
            query: np.asarray(zarr.open_group(others / "shadows", mode="r")[f"logits_{query}_clean"])
            for query in QUERIES
        }
        total = np.zeros((2, 4), dtype=np.int64)
        num_misfits = 0
        for model, members in zip(released.indices.tolist(), released.memberships, strict=True):
            result = infer(reference, {query: values[model] for query, values in outputs.items()}, truth=members)
            num_misfits += not result.check.is_like_shadows
            for row, each in enumerate(result.named):
                counts = (each.members, each.members_right, each.non_members, each.non_members_right)
                total[row] += np.array(counts, dtype=np.int64)
    for side, place in (("members", 0), ("non-members", 2)):
        cells = " ".join(f"{count:8,} {right / max(count, 1):7.3f}" for count, right in total[:, place : place + 2])
        print(f"{name:10} {side:12} {cells}", flush=True)
    print(f"{name:10} {num_misfits} of {num_released} called misfits", flush=True)


def other_kinds(sampler: Snowball | Uniform) -> Mapping[str, tuple[Sampler, GCN, Training]]:
    """Recipes by what is different about them."""
    model, training = GCN(), Training()
    kinds: dict[str, tuple[Sampler, GCN, Training]] = {"as the plan says": (sampler, model, training)}
    kinds |= {f"{epochs} epochs": (sampler, model, replace(training, epochs=epochs)) for epochs in (90, 50, 200)}
    kinds |= {f"{hidden} units": (sampler, replace(model, hidden=hidden), training) for hidden in (8, 32)}
    for share in (0.3, 0.5, 0.1):
        kinds[f"{share:.0%} of the nodes"] = (replace(sampler, train_fraction=share), model, training)
    kinds["no dropout"] = (sampler, replace(model, dropout=0.0), training)
    kinds["no weight decay"] = (sampler, model, replace(training, weight_decay=0.0))
    kinds["the other sampler"] = (
        SAMPLERS["uniform" if isinstance(sampler, Snowball) else "snowball"],
        model,
        training,
    )
    return kinds


def check(name: str, graph: Graph, sampler: Snowball | Uniform, numbers: list[int]) -> None:
    """Prints the second table's rows of one sampler."""
    shadows = statistics_of(graph, shadow_plan(sampler, GCN(), Training(), 0), numbers[-1])
    for what, recipe in other_kinds(sampler).items():
        number = NUM_HONEST if what == "as the plan says" else NUM_OTHER
        models = statistics_of(graph, shadow_plan(*recipe, RELEASED_SEED), number)
        shares = []
        for num_models in numbers:
            some = {query: values[:num_models] for query, values in shadows.items()}
            misfits = [
                not behaviour(some, {query: values[k] for query, values in models.items()}).check.is_like_shadows
                for k in range(len(models[QUERIES[0]]))
            ]
            shares.append(f"{np.mean(misfits):8.3f}")
        print(f"{name:10} {what:20} {' '.join(shares)}", flush=True)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--models", nargs="+", type=int, default=[64, 200, 1_000])
    parser.add_argument("--released", type=int, default=20)
    arguments = parser.parse_args()
    graph, numbers = datasets.load(arguments.data), sorted(arguments.models)
    print(f"{'':10} {'':12} {'at 95 %':>8} {'right':>7} {'at 99 %':>8} {'right':>7}")
    for name, sampler in SAMPLERS.items():
        named(name, graph, sampler, numbers[-1], arguments.released)
    print(f"\n{'':10} {'shadow models':20} {' '.join(f'{number:8,}' for number in numbers)}")
    for name, sampler in SAMPLERS.items():
        check(name, graph, sampler, numbers)


if __name__ == "__main__":
    main()
