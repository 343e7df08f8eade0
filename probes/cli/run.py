"""The run that prints: scores first, with their tables, then the evidence behind them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from probes import __version__
from probes.boards.breakdown_tables import tables_by_unit
from probes.boards.floors import with_floor
from probes.boards.layer_tables import score_tables, with_stored
from probes.boards.leaderboard_csv import write_leaderboard
from probes.boards.overview import sentence
from probes.boards.paired import LayerScore, best_layer_score, closing_tables
from probes.cli.results import Results, merged
from probes.common.errors import UserError
from probes.common.files import require_writable
from probes.common.grouping import grouped
from probes.common.locks import SUFFIX, locked, sweep_locks
from probes.common.origin import described
from probes.common.process import infrequent_garbage_collection
from probes.common.terminal import progress, tolerate_broken_output
from probes.data.find import find_corpus
from probes.data.sources import Source
from probes.frames import measurement_tables
from probes.measurements.catalogue import family_modules
from probes.measurements.measurement import TRANSFER, get_measurement
from probes.pages.layers_md import numbers_path, write_numbers, write_tables
from probes.probing.scores import SUMS, read_predictions
from probes.records.record import subject_title
from probes.records.record_files import has_arrays
from probes.records.result import SCORES, Result
from probes.run.config import RunConfig
from probes.run.inputs import LazyModel
from probes.run.loop import make_records
from probes.run.model_run import ModelRun
from probes.run.plan import Stage, announce_stored, model_runs, refuse_existing
from probes.tables.printing import printer
from probes.tables.table import Table

RUNS = "runs"
"""Folder within the results that holds the logs of runs."""


def run_models(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str = ""
) -> Results:
    """Measure every model on the corpus `source`; write and print the results.

    Torch is imported, and the corpus read, only if something remains to be computed.

    Args:
        command: the command line, which records name; empty for a run from Python.
    """
    if config.dry_run:
        from probes.cli.dry_run import print_plan

        print_plan(_runs(config, source, models, command))
        return Results()
    require_writable(config.output)
    run_log = progress.log_to(
        config.output / RUNS,
        version=__version__,
        command=command,
        models=[model.source.name for model in models],
        config=config.model_dump(mode="json"),
    )
    with run_log as log, infrequent_garbage_collection():
        progress.detail(f"log     {log}")
        return _measure(_runs(config, source, models, command))


def run_corpora(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str = ""
) -> Results:
    """Measure on one corpus; with `--transfer` on each, and then again with probes of the others.

    Args:
        source: the first of the corpora.

    Raises:
        UserError: several corpora have one name, or cannot be found.
    """
    if not config.transfer:
        return run_models(config, source, models, command)
    request, names = config.corpus_request, config.corpus
    sources = [source, *(find_corpus(name, **request) for name in names[1:])]
    if twice := [name for name, n in Counter(x.name for x in sources).items() if n > 1]:
        raise UserError(f"--corpus {' '.join(names)}: several are called {twice[0]}; rename them.")
    if not config.dry_run:
        singles = [
            (config.model_copy(update={"corpus": (name,), "transfer": False}), x)
            for name, x in zip(names, sources, strict=True)
        ]
        for single in singles:  # what one of them does not serve is refused before any is measured
            model_runs(*single, models)
        for single in singles:
            run_models(*single, models, command)
    results = []
    for name, corpus_source in zip(names, sources, strict=True):
        other_names = [other for other in names if other != name]
        transfer_config = config.model_copy(update={"corpus": (name, *other_names)})
        if config.overwrite == "never":  # nothing of before, but what has just been measured
            transfer_config = transfer_config.model_copy(update={"overwrite": "missing"})
        results.append(run_models(transfer_config, corpus_source, models, command))
    all_results = merged(results)
    with tolerate_broken_output():
        for module in family_modules("transfer"):
            printer.show(module.transfer_tables(all_results.results), quiet=progress.quiet)
    return all_results


def _runs(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str
) -> list[ModelRun]:
    runs = model_runs(config, source, models, command)
    if config.overwrite == "never":
        refuse_existing(runs)
    return runs


def _measure(runs: Sequence[ModelRun]) -> Results:
    omissions, is_shown = runs[0].omissions, False

    def show(stage: Stage) -> None:
        """Print the tables of the first scores, once."""
        nonlocal is_shown
        # Other formats are printed at the end, where the complete tables are; with --transfer, the
        # run of each corpus by itself has printed these.
        if not is_shown and printer.immediate and not runs[0].config.transfer:
            is_shown = True
            with tolerate_broken_output(), progress.aside():
                for results in write_model_tables(runs, early=True):
                    printer.show(map(_preliminary, score_tables(results)), quiet=progress.quiet)

    try:
        announce_stored(runs)
        make_records(runs, show)
    except KeyboardInterrupt:
        # Whoever stops a run may kill it seconds later, so tables are left to other commands.
        if folders := [str(run.folder) for run in runs if run.results]:
            progress.say(f"tables of what is done: python -m probes show {shlex.join(folders)}")
        raise
    except Exception as failure:
        # The tables show what was finished; what fails in writing them must not hide the error.
        try:
            _close(runs)
        except (UserError, OSError) as error:
            if str(error) != str(failure):
                progress.warn(
                    f"the tables are not written ({described(error)}); run again for them"
                )
        raise
    _close(runs)
    results = {run.paths[r.key]: r for run in runs for r in run.results.values()}
    measured = {run.path_of(name): record for run in runs for name, record in run.others.items()}
    if omissions.unserved and not (results or measured):
        raise UserError(" ".join(dict.fromkeys(omissions.unserved.values())))
    return Results(results, omissions.skipped, omissions.failed, measured)


def _write_tables(runs: Sequence[ModelRun]) -> list[list[Result]]:
    """Write all tables; returns the results to print, as `write_model_tables` does."""
    tables = write_model_tables(runs)
    for run in runs:
        for name, record in run.others.items():
            with locked(run.folder / f"{name}{SUFFIX}"):
                write_numbers(run.folder, record)
    if any(run.results or run.others for run in runs):
        write_leaderboard(runs[0].config.output, runs[0].index.read)
    return tables


def _preliminary(table: Table) -> Table:
    """Layers and floor of a table of scores, to which more will be added."""
    rows = tuple(row for row in table.rows if not row.faint or row.cells[0].text == "floor")
    notes = ("The final table comes at the end: floors may still rise.",)
    return replace(table, title=f"{table.title} · preliminary", rows=rows, notes=notes)


def _findings(results: Sequence[Result], family: str) -> Iterator[str]:
    """A title, and a sentence for each task: the results of a probe family, or of the first."""
    by_family = grouped(results, lambda x: x.probe.family)
    family = family if family in by_family else next(iter(by_family))
    yield f"{subject_title(results[0])} · {family} probe"
    yield from (f"- {sentence(result)}" for result in by_family[family])


def _other_tables(runs: Sequence[ModelRun]) -> Iterator[Table]:
    """Tables of evidence that was asked for by name, and of measurements of the corpus."""
    yield from _evidence_tables(runs, [name for run in runs for name in run.config.asked_by_name])
    for run in runs:
        for name, record in run.others.items():
            yield from measurement_tables.measurement_tables(get_measurement(name), [record])


def _evidence_tables(runs: Sequence[ModelRun], names: Sequence[str]) -> Iterator[Table]:
    for name in dict.fromkeys(names):
        for _, tables in tables_by_unit((x for run in runs for x in run.results.values()), name):
            yield from tables


def _close(runs: Sequence[ModelRun]) -> None:
    """Write and print the tables and findings, and list what is missing from them."""
    config, omissions = runs[0].config, runs[0].omissions
    results = _write_tables(runs)
    for folder in (config.cache_dir / "vectors", *(run.folder for run in runs)):
        sweep_locks(folder)
    compared, answers = compare_models(runs), answers_compared(runs)
    # Printed last, when everything is on disk: standard output may be closed.
    tables = chain(compared, _other_tables(runs), answers)
    if config.transfer:  # the run of each corpus by itself has printed all others
        results, tables = [], chain(_evidence_tables(runs, [TRANSFER]))
    with tolerate_broken_output():
        printer.show(chain(*map(score_tables, results), tables), quiet=progress.quiet)
        for line in chain.from_iterable(_findings(x, config.probes[0]) for x in results):
            printer.say(line, quiet=progress.quiet)
    has_records = any(run.results or run.others for run in runs)
    if has_records:
        omissions.failed |= omissions.unserved
    for subject, reason in omissions.failed.items():
        progress.warn(f"missing {subject}: {reason}")
    made = {name for run in runs for name in run.others}
    made |= {name for run in runs for x in run.results.values() for name in (SCORES, *x.evidence)}
    for (measurement, title), reason in omissions.unmade.items():
        if measurement not in made:  # by any model or task: said before, but long ago
            progress.warn(f"left out {title}: {reason}")
    if has_records:
        for run in runs:
            say = progress.detail if run.model.is_twin else progress.say
            say(f"results {run.folder}", "wrote")
            if run.results:
                say(f"tables  {run.folder / 'layers.md'}", "wrote")
            if (picture := run.folder / "layers.png").is_file():
                say(f"picture {picture}", "wrote")
        progress.say("next    " + next_step(runs), "next")


def write_model_tables(runs: Sequence[ModelRun], *, early: bool = False) -> list[list[Result]]:
    """Write each model's tables, with the scores of its random twins among the baselines.

    Args:
        early: whether more is to come: nothing is written, and nothing added of what is stored,
            which other processes may be adding to.

    Returns:
        the results to print: a list for each model that is not the twin of another one. Tasks
        and probes of earlier runs, which are in the files, are printed only with `--all-tasks`.
    """
    tables = []
    scores = [x for run in runs for x in (run.results if early else run.stored_results).values()]
    for run in runs:
        results = list(run.results.values())
        if not results:
            continue
        # Locked, so that of two runs that end together the one that read first cannot write last.
        with locked(run.folder / f"layers{SUFFIX}"):
            stored_and_new = with_stored({} if early else run.stored_results, results)
            table = [with_floor(x, scores) for x in stored_and_new]
            if not early:
                write_tables(run.folder, table)
        if not any(run.model.source.is_twin_of(other.model.source) for other in runs):
            run_keys = {(x.task.name, x.probe.family) for x in results}
            run_results = [x for x in table if (x.task.name, x.probe.family) in run_keys]
            tables.append(table if run.config.all_tasks else run_results)
    return tables


def compare_models(runs: Sequence[ModelRun]) -> list[Table]:
    """Compare the models of a run; predictions that cannot be read are added to its omissions."""
    paths = {key: path for run in runs for key, path in run.paths.items()}

    def score_of(result: Result) -> LayerScore:
        path = paths[result.key]
        try:
            if not has_arrays(path, SUMS):
                read_predictions(path)  # which a run's own results must have
            return best_layer_score(result)
        except UserError as error:
            title = f"{result.model.name} · {result.task.name} · {result.probe.family}"
            runs[0].omissions.failed[f"{title} in the comparison"] = str(error)
            raise

    return closing_tables((x for run in runs for x in run.results.values()), score_of)


def answers_compared(runs: Sequence[ModelRun]) -> list[Table]:
    """Tables of families that compare the models of a run with the first of them."""
    records = {run.path_of(name): record for run in runs for name, record in run.others.items()}
    modules = family_modules("comparison")
    return [table for x in modules for table in x.paired_tables(x.compared(records))]


def next_step(runs: Sequence[ModelRun]) -> str:
    """The command that a user will most likely want next."""
    config = runs[0].config
    output = config.output
    if not any(run.results for run in runs):
        name, folder = next((name, run.folder) for run in runs for name in run.others)
        return f"see {numbers_path(folder, name)} for the numbers"
    if not (config.evidence_names or config.about_corpus):
        flag, setting = (
            ("--quick", "quick=True") if config.quick else ("--evidence none", "evidence='none'")
        )
        again = (
            f"the same command without {flag}" if runs[0].command else f"the call without {setting}"
        )
        return f"{again} adds the evidence behind these scores"
    trained = [run.folder for run in runs if run.results and not run.model.is_twin]
    if len(trained) > 1:
        families = sorted({family for run in runs for _, family in run.results})
        probe = "" if "linear" in families else f" --probe {families[0]}"
        return f"python -m probes compare {' '.join(map(str, trained))}{probe}"
    return f"python -m probes report {output}"
