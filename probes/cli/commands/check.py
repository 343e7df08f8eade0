"""`python -m probes check`: checks a task on a corpus without loading a model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from probes.cli.arguments import add_format, add_places, add_setting
from probes.cli.check_task import TaskReport, check_task, number_range
from probes.common.errors import UserError, printable
from probes.common.registry import did_you_mean
from probes.data.find import find_corpus, require_known
from probes.data.sentence import SPLITS
from probes.measurements.plugins import load_file
from probes.run.inputs import LazyCorpus
from probes.statistics.metrics import printed_score
from probes.tables.printing import printer
from probes.tables.table import Cell, Table, TableRow
from probes.tasks.builtin import tasks
from probes.tasks.task import Task

SHOWN = 12
"""Maximum number of labels in the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("task", nargs="+", help="a Python file with tasks, or the name of a task")
    add("--corpus", nargs="+", default=["sample"], metavar="C", help="default: sample")
    for name in ("annotate", "split_by", "drop_overlap"):
        add_setting(parser, name)
    add("--limit", type=int, metavar="N", help="keep the first N sentences of each split")
    add_places(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print a report for each task; the status is 2 if one of them has errors.

    Raises:
        UserError: there is no such task, its rule fails, or the corpus does not serve it.
    """
    if options.limit is not None and options.limit < 1:
        raise UserError(f"--limit {options.limit}: give a number of at least 1.")
    chosen_tasks = [task for source in options.task for task in _tasks_of(source, options.quiet)]
    if not chosen_tasks:
        return 0
    # No dataset of the hub: this command has no flag that names its labels.
    require_known(options.corpus, ())
    setting_names = ("annotate", "split_by", "drop_overlap", "limit", "data_dir", "cache_dir")
    corpus_settings = {name: getattr(options, name) for name in setting_names}
    corpus = LazyCorpus(find_corpus(*options.corpus, **corpus_settings))
    sound = True
    for task in chosen_tasks:
        if layers := task.missing(corpus.layers):
            raise UserError(
                f"Task {task.name!r}: {corpus.source.why_missing(layers)}, which it needs; choose "
                "another --corpus."
            )
        report = check_task(task, corpus.value)
        _print_report(report, options.quiet)
        sound = sound and not report.errors
    return 0 if sound else 2


def _tasks_of(source: str, quiet: bool) -> list[Task]:
    """The tasks of a file, or the task of that name; print other things that a file registers."""
    if source in tasks:
        return [tasks.get(source)]
    path = Path(source)
    if path.suffix != ".py" and not path.exists():
        raise UserError(
            f"check {source}: neither a file nor a task. {did_you_mean(source, tasks)} "
            "python -m probes new-task NAME writes a task to start from."
        )
    try:
        loaded = load_file(source)
    except UserError as error:
        # The file was named as the task.
        raise UserError(str(error).removeprefix("--include ")) from error
    for noun in ("corpus", "probe family", "metric"):
        if names := loaded.names(noun):
            printer.say(f"{source} registers the {noun} {', '.join(names)}", quiet=quiet)
    return [tasks.get(name) for name in loaded.names("task")]


def _print_report(report: TaskReport, quiet: bool) -> None:
    say, task = partial(printer.say, quiet=quiet), report.task
    needs = f"needs {', '.join(task.needs)}" if task.needs else "needs no annotation"
    words = (f"version {task.version}", task.shape, task.kind, task.metric, needs)
    say(f"{task.name} on {report.corpus.name}", "bold")
    say(task.summary or "no summary")
    say(" · ".join(words))
    printer.show(
        (_splits_table(report), _labels_table(report), _facts_of_task(report)), quiet=quiet
    )
    for text in report.errors:
        say(f"error: {text}", "red")
    for text in report.warnings:
        say(f"warning: {text}", "yellow")
    if not report.errors and not report.warnings:
        say("no problems found")


def _report_title(report: TaskReport, section: str) -> str:
    return f"{report.task.name} on {report.corpus.name} · {section}"


def _splits_table(report: TaskReport) -> Table:
    rows = []
    for split in SPLITS:
        part = report.examples.splits[split]
        out = ", ".join(f"{reason} {n:,}" for reason, n in sorted(part.excluded.items()))
        served = len(set(part.sentence.tolist()))
        numbers = (len(report.corpus.splits[split]), served, len(part.examples))
        rows.append(TableRow.of(split, *(f"{n:,}" for n in numbers), out or "0"))
    heads = ("split", "sentences", "with examples", "examples", "left out")
    return Table(_report_title(report, "splits"), heads, tuple(rows))


def _labels_table(report: TaskReport) -> Table:
    examples, rows = report.examples, []
    if report.task.kind == "regression":
        for split in SPLITS:
            numbers = number_range(examples.splits[split].examples)
            rows.append(TableRow.of(split, *(Cell(f"{n:.3g}", value=n) for n in numbers)))
        spread = ("label", "smallest", "mean", "largest")
        return Table(_report_title(report, "labels"), spread, tuple(rows))
    counts = examples.label_counts
    total = len(examples.splits["train"].examples)
    for label, count in list(counts.items())[:SHOWN]:
        share = Cell(f"{count[0] / total:.1%}", value=count[0] / total)
        rows.append(TableRow.of(printable(label), *(f"{n:,}" for n in count), share))
    if rare_counts := list(counts.values())[SHOWN:]:
        sums = [sum(count) for count in zip(*rare_counts, strict=True)]
        # Shares do not add up if examples have several labels.
        share = Cell("" if examples.label_sets else f"{sums[0] / total:.1%}")
        rows.append(TableRow.of(f"{len(rare_counts)} more", *(f"{n:,}" for n in sums), share))
    heads = ("label", *SPLITS, "share of train")
    return Table(_report_title(report, "labels"), heads, tuple(rows))


def _facts_of_task(report: TaskReport) -> Table:
    rows = tuple(TableRow.of(name, value) for name, value in _facts_of(report))
    return Table(_report_title(report, "properties"), ("property", "value"), rows, left=2)


def _facts_of(report: TaskReport) -> Iterator[tuple[str, str]]:
    leaks, task = report.leakage, report.task
    if report.majority is not None:
        yield "most frequent label", f"{report.majority:.1%} of train"
    if leaks.seen is not None:
        yield "types", f"{leaks.types:,} in train, which cover {leaks.seen:.1%} of test examples"
    if leaks.by_type is not None:
        yield "type predicts the label", f"in {leaks.by_type:.1%} of these"
    yield "test examples in train", f"{leaks.in_train:,} of {leaks.n_test:,}, word for word"
    yield "reads", ", ".join(sorted(report.read_layers)) or "only the words"
    yield "time", f"{1e6 * report.seconds:.0f} µs per sentence"
    yield "applied twice", "gives the same examples"
    for kind, scores_by_rule in (("baseline", report.baselines), ("reference", report.references)):
        for name, scores in scores_by_rule.items():
            parts = (
                f"{metric} {printed_score(scores[metric], metric)}"
                for metric in (task.metric, *task.also)
            )
            yield f"{kind}: {name}", ", ".join(parts)
