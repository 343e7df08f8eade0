"""`python -m probes compare`: compares two or more models."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from probes.boards.rankings import Candidate, make_rankings, named_candidates
from probes.boards.recipes import comparison_tables
from probes.boards.side_by_side import side_by_side_tables
from probes.cli.arguments import add_format, add_recipes, names, path_argument
from probes.cli.results import find_recipes, records_below, results_below
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.frames.frame import IDENTITY, load
from probes.frames.header_columns import values
from probes.frames.joined_results import results_with_evidence
from probes.measurements.catalogue import family_modules
from probes.records.record import Record, model_title
from probes.records.record_files import or_published
from probes.records.result import SCORES
from probes.tables.printing import printer
from probes.tables.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "model",
        nargs="+",
        help="two or more: names as in the results, or folders of one model each; with --recipes, "
        "folders of results",
    )
    add(
        "--results",
        type=path_argument,
        default=Path("results"),
        metavar="DIR",
        help="default: results",
    )
    add("--corpus", type=names, metavar="C,…", help="only these corpora")
    add("--task", type=names, metavar="T,…", help="only these tasks")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add_recipes(parser, "compare recipes with the first one, not single models")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        UserError: a model has no results, or no two of them share a corpus and task.
    """
    if options.recipes is not None:
        printer.show(_recipes(options))
        return 0
    if len(dict.fromkeys(options.model)) < 2:
        raise UserError("compare: name two or more models.")
    folders = [Path(name) for name in options.model if _is_folder(name)]
    # Plain names are looked up in --results, which need not exist for folders alone.
    results_folders = [] if len(folders) == len(options.model) else [options.results]
    flag = "--results" if results_folders else ""
    records = records_below([*results_folders, *folders], flag)
    tables = [] if options.task else answer_tables(records, options)
    candidates = named_candidates(results_with_evidence(records))
    # Models without probes may be compared by their answers.
    unscored = {model_title(record) for record in records.values()}
    unscored -= {model_title(c.result) for c in candidates}
    models = resolve_models(options.model, options.results, candidates, unscored)
    matches = [
        c
        for c in candidates
        if c.name in models
        and c.result.probe.family == options.probe
        and (not options.corpus or c.result.corpus.name in options.corpus)
        and (not options.task or c.result.task.name in options.task)
    ]
    rankings = make_rankings(matches, together=True)
    score_tables = [x for ranking in rankings for x in side_by_side_tables(ranking, models)]
    tables = score_tables + tables
    if not tables:
        raise UserError(
            f"{', '.join(models)}: no corpus and task in common, for {options.probe} probes and "
            "these filters."
        )
    printer.show(tables)
    return 0


def _recipes(options: argparse.Namespace) -> list[Table]:
    """Tables of recipes, from folders of results."""
    folders = [Path(name) for name in options.model]
    results = {
        path: result
        for path, result in results_below(folders).items()
        if result.probe.family == options.probe
        and (not options.corpus or result.corpus.name in options.corpus)
        and (not options.task or result.task.name in options.task)
    }
    if not results:
        where = ", ".join(options.model)
        raise UserError(f"{where}: no results of {options.probe} probes with these filters.")
    return list(comparison_tables(find_recipes(results, options)))


def answer_tables(records: Mapping[Path, Record], options: argparse.Namespace) -> list[Table]:
    """Tables of families that compare models with the first one, such as of answers to items."""
    # In the order of the names, since models are compared with the first one.
    matches = {
        path: record
        for name in options.model
        for path, record in records.items()
        if name == model_title(record) or (_is_folder(name) and path.is_relative_to(name))
        if not options.corpus or record.corpus.name in options.corpus
    }
    modules = family_modules("comparison")
    return [table for module in modules for table in module.paired_tables(module.compared(matches))]


def resolve_models(
    arguments: list[str], results: Path, candidates: Sequence[Candidate], unscored: Collection[str]
) -> list[str]:
    """Names of the models to compare, for names and folders.

    Args:
        unscored: models that have records, but no scores.

    Raises:
        UserError: a name has no results, or a folder has results of several models.
    """
    model_names = sorted({*(c.name for c in candidates), *unscored})
    models: list[str] = []
    for name in arguments:
        if _is_folder(name):
            # Of duplicate results only one is a candidate; it need not be the one in this folder.
            headers = load(Path(name), say=False).headers
            scored = headers[headers["measurement"] == SCORES]
            if len(headers) and not len(scored):
                titles = {model_title(record) for record in records_below([Path(name)]).values()}
                if len(titles) == 1:
                    models += titles
                    continue
            identities = {*scored[IDENTITY].itertuples(index=False, name=None)}
            titles = {c.name for c in candidates if values(c.result, IDENTITY) in identities}
            if len(titles) != 1:
                contents = f"results of {', '.join(sorted(titles))}" if titles else "no results"
                raise UserError(f"{name}: {contents}; name a folder of one model, or a model.")
            models += titles
        elif name in model_names:
            models.append(name)
        else:
            hint = did_you_mean(name, model_names)
            raise UserError(f"{name}: no results in {results}{or_published(results)}. {hint}")
    return list(dict.fromkeys(models))


def _is_folder(name: str) -> bool:
    """Whether a name is a path; a plain name is a model, even if such a folder exists."""
    return ("/" in name or name.startswith(".")) and Path(name).is_dir()
