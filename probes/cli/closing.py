"""The tables and comparisons that close a run."""

from __future__ import annotations

from collections.abc import Sequence

from probes.boards.behaviour import of_items
from probes.boards.behaviour_tables import paired_tables
from probes.boards.comparison import Comparison, compare
from probes.boards.layer_tables import stored_like, with_stored, with_twins
from probes.boards.paired import LayerScore, layer_scores
from probes.common.errors import UserError
from probes.common.locks import SUFFIX, locked
from probes.engines.model_run import ModelRun
from probes.measurements.scores import SUMS, read_predictions
from probes.records.files import has_arrays
from probes.records.result import Result
from probes.records.table import Table
from probes.rendering.folder import numbers_path, write_numbers, write_tables


def write_model_tables(runs: Sequence[ModelRun], *, write: bool = True) -> list[list[Result]]:
    """Write each model's tables, with the scores of its random twins among the baselines.

    Returns:
        the results to print: a list for each model that is not the twin of another one.
    """
    tables = []
    for run in runs:
        results = list(run.results.values())
        if not results:
            continue
        twins = [
            twin
            for other in runs
            if other.model.source.is_twin_of(run.model.source)
            for twin in stored_like(
                other.stored_results, results[0], other.model.source.digest
            ).values()
        ]
        # Locked, so that of two runs that end together the one that read first cannot write last.
        with locked(run.folder / f"layers{SUFFIX}"):
            table = with_twins(with_stored(run.stored_results, results), twins)
            if write:
                write_tables(run.folder, table)
        if not any(run.model.source.is_twin_of(other.model.source) for other in runs):
            tables.append(table)
    return tables


def write_corpus_tables(runs: Sequence[ModelRun]) -> None:
    """Write the numbers of each measurement of the corpus into the folder of its model."""
    for run in runs:
        for name, record in run.others.items():
            with locked(run.folder / f"{name}{SUFFIX}"):
                write_numbers(run.folder, record)


def compare_models(runs: Sequence[ModelRun]) -> list[Comparison]:
    """Compare the models of a run; predictions that cannot be read are added to its omissions."""
    paths = {key: path for run in runs for key, path in run.paths.items()}

    def score_of(result: Result) -> LayerScore:
        path = paths[result.key]
        try:
            if not has_arrays(path, SUMS):
                read_predictions(path)  # which a run's own results must have
            (score,) = layer_scores(result, path, [result.best_layer])
        except UserError as error:
            what = f"{result.model.name} · {result.task.name} · {result.probe.family}"
            runs[0].omissions.failed[f"{what} in the comparison"] = str(error)
            raise
        return score

    return compare([result for run in runs for result in run.results.values()], score_of)


def answers_compared(runs: Sequence[ModelRun]) -> list[Table]:
    """What the models of a run say of items, beside the first of them."""
    found = {run.path_of(name): record for run in runs for name, record in run.others.items()}
    return list(paired_tables(of_items(found)))


def next_step(runs: Sequence[ModelRun]) -> str:
    """The command that a user will most likely want next."""
    config = runs[0].config
    output = config.output
    if not any(run.results for run in runs):
        name, folder = next((name, run.folder) for run in runs for name in run.others)
        return f"see {numbers_path(folder, name)} for the numbers"
    if not config.evidence_names:
        flag, setting = (
            ("--quick", "quick=True") if config.quick else ("--evidence none", "evidence='none'")
        )
        again = f"the same command without {flag}" if runs[0].command else f"without {setting} it"
        return f"{again} adds the evidence behind these scores"
    trained = [run.folder for run in runs if run.results and not run.model.is_twin]
    if len(trained) > 1:
        families = sorted({family for run in runs for _, family in run.results})
        probe = "" if "linear" in families else f" --probe {families[0]}"
        return f"python -m probes compare {' '.join(map(str, trained))}{probe}"
    return f"python -m probes report {output}"
