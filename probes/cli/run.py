"""The run that prints: plans, computes what remains, writes and shows the tables."""

from __future__ import annotations

from collections.abc import Sequence

from probes import __version__
from probes.boards.comparison import comparison_tables
from probes.boards.layer_tables import score_tables
from probes.boards.leaderboard_csv import write_leaderboard
from probes.cli.closing import compare_models, write_model_tables
from probes.cli.results import Results
from probes.common.errors import UserError
from probes.common.files import require_writable
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.locks import sweep_locks
from probes.common.terminal import output_console, progress, tolerate_broken_output
from probes.common.wording import counted
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyCorpus, LazyModel
from probes.engines.omissions import Omissions
from probes.engines.plan import Plan, make_plan
from probes.engines.task_choice import choose_tasks
from probes.records.result import Result
from probes.rendering.terminal import print_table

RUNS = "runs"
"""Folder within the results that holds the logs of runs."""


def run_models(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str = ""
) -> Results:
    """Probe every model on the corpus `source`; write and print the results.

    Torch is imported, and the corpus read, only if something remains to be computed.

    Args:
        command: the command line, which results record; empty for a run from Python.
    """
    require_writable(config.output)
    recorded = progress.recorded(
        config.output / RUNS,
        version=__version__,
        command=command,
        models=[model.source.name for model in models],
        config=config.model_dump(mode="json"),
    )
    with recorded as log, infrequent_garbage_collection():
        progress.detail(f"log     {log}")
        return _run(config, source, models, command)


def _run(config: RunConfig, source: Source, models: Sequence[LazyModel], command: str) -> Results:
    corpus, omissions = LazyCorpus(source), Omissions()
    tasks = choose_tasks(config, corpus, omissions)
    plans = [make_plan(config, model.source, source, tasks) for model in models]
    if any(plan.todo for plan in plans):
        _prepare_torch(config)
    found = [list(plan.done) for plan in plans]
    try:
        for model, plan, results in zip(models, plans, found, strict=True):
            if plan.done:
                name, exist = model.source.name, ("result exists", "results exist")
                n_exist = counted(len(plan.done), *exist)
                progress.say(f"{name}: {n_exist} already", "present", model=name)
            if plan.todo:
                from probes.engines.local import LocalRun

                for result in LocalRun(config, model, corpus, plan, command, omissions).run():
                    results.append(result)
    finally:
        # Whatever stops a run, the tables show what it finished.
        _close(config, models, plans, found, omissions)
    if omissions.unserved and not any(found):
        raise UserError(" ".join(dict.fromkeys(omissions.unserved.values())))
    every = tuple(result for results in found for result in results)
    return Results(every, omissions.skipped, omissions.failed)


def _prepare_torch(config: RunConfig) -> None:
    """Set the number of threads, and check the device before anything is computed.

    Raises:
        UserError: there is no such device.
    """
    import torch

    from probes.compute.devices import MAP, pick_device

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if config.device != MAP:
        pick_device(config.device)


def _close(
    config: RunConfig,
    models: Sequence[LazyModel],
    plans: Sequence[Plan],
    found: Sequence[Sequence[Result]],
    omissions: Omissions,
) -> None:
    """Write and print the tables, and list what is missing from them."""
    tables = write_model_tables(models, plans, found)
    if any(found):
        progress.say(f"wrote   {write_leaderboard(config.output)}", "wrote")
    for folder in (config.cache_dir / "vectors", *(plan.folder for plan in plans)):
        sweep_locks(folder)
    comparisons = compare_models(plans, found, omissions)
    # Printed last, when everything is on disk: standard output may be closed.
    with tolerate_broken_output():
        console = output_console(progress.quiet)
        scores = [table for results in tables for table in score_tables(results)]
        for table in (*scores, *comparison_tables(comparisons)):
            print_table(table, console)
    if any(found):
        omissions.failed |= omissions.unserved
    for what, why in omissions.failed.items():
        progress.warn(f"missing {what}: {why}")
