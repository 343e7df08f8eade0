"""The tables and comparisons that close a run."""

from __future__ import annotations

from collections.abc import Sequence

from probes.boards.comparison import Comparison, compare
from probes.boards.layer_tables import stored_like, with_stored, with_twins
from probes.boards.paired import LayerScore, layer_scores
from probes.common.errors import UserError
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.engines.inputs import LazyModel
from probes.engines.omissions import Omissions
from probes.engines.plan import Plan
from probes.records.files import read_arrays
from probes.records.result import Result
from probes.rendering.folder import write_tables


def write_model_tables(
    models: Sequence[LazyModel], plans: Sequence[Plan], found: Sequence[Sequence[Result]]
) -> list[list[Result]]:
    """Write each model's tables, with the scores of its random twins among the baselines.

    Returns:
        the results to print: a list for each model that is not the twin of another one.
    """
    tables = []
    for model, plan, results in zip(models, plans, found, strict=True):
        if not results:
            continue
        twins = [
            twin
            for other, plan_of_other in zip(models, plans, strict=True)
            if other.source.is_twin_of(model.source)
            for twin in stored_like(plan_of_other.folder, results[0], other.source.digest).values()
        ]
        # Locked, so that of two runs that end together the one that read first cannot write last.
        with locked(plan.folder / f"layers{SUFFIX}"):
            table = with_twins(with_stored(plan.folder, results), twins)
            paths = write_tables(plan.folder, table)
        if not any(model.source.is_twin_of(other.source) for other in models):
            tables.append(table)
        progress.say("wrote   " + ", ".join(str(path) for path in paths), "wrote")
    return tables


def compare_models(
    plans: Sequence[Plan], found: Sequence[Sequence[Result]], omissions: Omissions
) -> list[Comparison]:
    """Compare the models of a run; predictions that cannot be read are added to `omissions`."""
    paths = {key: path for plan in plans for key, path in plan.paths.items()}

    def score_of(result: Result) -> LayerScore:
        path = paths[result.key]
        try:
            read_arrays(path)  # which a run's own results must have
            (score,) = layer_scores(result, path, [result.best_layer])
        except UserError as error:
            what = f"{result.model.name} · {result.task.name} · {result.probe.family}"
            omissions.failed[f"{what} in the comparison"] = str(error)
            raise
        return score

    return compare([result for results in found for result in results], score_of)
