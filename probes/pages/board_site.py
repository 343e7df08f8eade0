"""Writes the board: its rankings, a page for each model, and the numbers as files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from probes import __version__
from probes.boards.leaderboard_csv import tidy, write_tidy
from probes.boards.ranking_tables import (
    MEAN,
    csv_rows,
    ranking_frame,
    rules,
    table_apart,
    table_of_all,
)
from probes.boards.rankings import Ranking, by_task_group, make_rankings, named_candidates
from probes.boards.shown_together import model_key, model_labels
from probes.boards.submissions import LeftOff, Submission, by_submission, place_of_submission
from probes.common.errors import UserError
from probes.common.files import folder_name, published, writing
from probes.extraction.models.model_names import is_twin_name
from probes.pages.page import templates, write_page, write_text
from probes.pages.page_charts import page_models
from probes.records.record import SCHEMA_VERSION
from probes.records.record_files import path_in_results
from probes.records.result import Result
from probes.tables.figures import printable_spec
from probes.tables.table import Table, TableRow

INDEX, JSON, CSV, PARQUET = "index.html", "board.json", "leaderboard.csv", "leaderboard.parquet"

MODELS = "models"
"""The folder of the models' pages."""


CLAIMED = ("model", "revision", "parameters", "layers", "encoders")
"""Columns of the rankings that nothing stored can confirm."""


class RankingSection(NamedTuple):
    """The ranking of a group of tasks.

    Attributes:
        filters: by which a reader may choose it.
        apart: what cannot be compared with the others, if there is any.
        rows: what `python -m probes leaderboard --format csv` says of it, by column.
        rules: what its scores and ranks are.
    """

    filters: dict[str, str]
    table: Table
    apart: Table | None
    rows: list[dict[str, Any]]
    rules: tuple[str, ...]


def _section(group: str, ranking: Ranking) -> RankingSection:
    frame = ranking_frame(ranking)
    table = table_of_all(ranking, frame)
    return RankingSection(
        {
            "corpus": ranking.corpus,
            "tasks": group,
            "encoders": ranking.kind,
            "probe": ranking.probe,
        },
        # Scores come first, since a phone shows few columns.
        replace(
            table.with_columns([0, *range(3, len(table.heads)), 1, 2]),
            notes=(),
            title=f"{table.title} · {group}",
        ),
        table_apart(ranking) if ranking.apart else None,
        [{"group": group, **row} for row in csv_rows(ranking, frame)],
        rules(frame),
    )


def require_free(folder: Path) -> None:
    """Check that a folder is empty or has a board, which will be replaced.

    Raises:
        UserError: it has something else in it, or is a file.
    """
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JSON).exists():
        raise UserError(f"{folder}: has files, and none of a board; name an empty folder.")


def write_site(submission: Submission, folder: Path) -> Path:
    """Write the site; pages of models that are no longer on it are deleted.

    Returns:
        the path of its first page.
    """
    results = submission.results
    candidates = named_candidates(results, place_of_submission)
    sections = [
        _section(group, ranking)
        for whole_ranking in make_rankings(candidates)
        for group, ranking in by_task_group(whole_ranking).items()
    ]
    content = {
        "suite_version": __version__,
        "schema_version": SCHEMA_VERSION,
        "claimed": CLAIMED,
        "rankings": [row for section in sections for row in section.rows],
        "left_off": [
            {
                "file": path_in_results(x.path).as_posix(),
                "measurement": x.record.measurement,
                "why": x.reason,
            }
            for x in submission.left_off
        ],
    }
    with writing(folder):
        (folder / MODELS).mkdir(parents=True, exist_ok=True)
    pages, labels, models = _pages(results), model_labels(results), page_models(results)
    for file, (name, page_results) in pages.items():
        write_page(page_results, folder / file, name, home=f"../{INDEX}", site_models=[*models])
    for path in set((folder / MODELS).glob("*.html")) - {folder / file for file in pages}:
        path.unlink()
    write_tidy(folder / CSV, results.values())
    with published(folder / PARQUET) as temporary:
        tidy(results.values()).to_parquet(temporary, index=False)
    text = json.dumps(printable_spec(content), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / JSON, text)
    environment = templates()
    text = environment.get_template(INDEX).render(
        version=__version__,
        sections=sections,
        choices={name: _filter_values(sections, name) for name in sections[0].filters},
        # Of several, the first counts.
        links={
            c.name: file
            for c in reversed(candidates)
            for file, page in reversed(pages.items())
            if c.path in page.results
        },
        models={c.name: models[labels[model_key(results[c.path])]] for c in candidates},
        n_models=len(pages),
        rules=(*dict.fromkeys(rule for section in sections for rule in section.rules), MEAN),
        claimed=CLAIMED,
        left_off=_left_off(submission.left_off),
        downloads=(CSV, PARQUET, JSON),
    )
    return write_text(folder / INDEX, text)


class ModelPage(NamedTuple):
    """The results of a model of a submission, with those of its random twins."""

    name: str
    results: dict[Path, Result]


def _pages(results: Mapping[Path, Result]) -> dict[str, ModelPage]:
    """The page of each model, by file. It has nothing of what others submitted."""
    pages: dict[str, ModelPage] = {}
    for group in by_submission(results).values():
        models = {x.model.name: x.model.random_seed is not None for x in group.values()}
        pretrained = [name for name, random in models.items() if not random]
        alone = [name for name in models if not any(_names_model(name, of) for of in pretrained)]
        for name in sorted({*pretrained, *alone}):
            n = sum(page.name == name for page in pages.values())
            # Several submissions may have a model of this name.
            file = f"{MODELS}/{folder_name(name)}{f'-{n + 1}' if n else ''}.html"
            of_name = {path: x for path, x in group.items() if _names_model(x.model.name, name)}
            pages[file] = ModelPage(name, of_name)
    return pages


def _names_model(name: str, model: str) -> bool:
    """Whether a name is that of a model or its random twin."""
    return name == model or is_twin_name(name, model)


def _filter_values(sections: Iterable[RankingSection], name: str) -> list[str]:
    """Values to choose from; none if there is no choice."""
    choices = list(dict.fromkeys(section.filters[name] for section in sections))
    return choices if len(choices) > 1 else []


def _left_off(records: Iterable[LeftOff]) -> Table:
    counts = Counter((x.record.measurement, x.reason) for x in records)
    rows = (TableRow.of(name, str(n), reason) for (name, reason), n in sorted(counts.items()))
    return Table("Left off the board", ("measurement", "records", "why"), tuple(rows), left=3)
