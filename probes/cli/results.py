"""Results of a run or of folders, and the functions that read folders."""

from __future__ import annotations

import argparse
import os
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd

from probes.boards.floors import with_floor
from probes.boards.layer_tables import layer_frame, model_tables, score_tables
from probes.boards.leaderboard_csv import tidy
from probes.boards.recipes import RecipeResult, read_recipes, recipe_results
from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import RUN
from probes.cli.chart_files import figure
from probes.common.errors import UserError, counted, listed, names_in
from probes.common.registry import did_you_mean
from probes.frames.frame import load
from probes.frames.joined_results import results_with_evidence
from probes.frames.long_frame import long_frame
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement, probe_measurements
from probes.measurements.measurement import measurements as known_measurements
from probes.probing.scores import prediction_frame
from probes.records.record import Record
from probes.records.record_files import or_published
from probes.records.result import SCORES, Result
from probes.records.values import ends
from probes.run.config import NO_NAMES
from probes.tables import figures
from probes.tables.charts import INCH, Chart, Style
from probes.tables.table import Table
from probes.tasks.builtin import table_order

if TYPE_CHECKING:
    from altair.typing import ChartType

R = TypeVar("R", bound=Record)


class UnknownTaskError(UserError, KeyError):
    """A task that no result is of."""

    __str__ = Exception.__str__  # that of KeyError quotes the message


@dataclass(frozen=True)
class Results(Mapping[str, "Results"]):
    """Results of a run or of folders, by task: ``results["pos"]`` are those of one task.

    A notebook shows them as tables. The records themselves are in `results`.

    Attributes:
        found: scores with their evidence, one per model, corpus, task and probe family, by files.
        skipped: by task, why the corpus does not serve it.
        failed: what is missing because a task or a plug-in failed, or because predictions could
            not be read, each with the reason.
        measured: records of measurements of the corpus as a whole, by files.
    """

    found: Mapping[Path, Result] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[Path, Record] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(result.task.name for result in self.results))

    def __len__(self) -> int:
        return len({result.task.name for result in self.results})

    def __getitem__(self, task: str) -> Results:
        """The results of a task, of all models, corpora and probe families.

        Raises:
            UnknownTaskError: there are none.
        """
        of_task = {path: x for path, x in self.found.items() if x.task.name == task}
        if not of_task:
            hints = dict.fromkeys((did_you_mean(str(task), self), f"Known: {', '.join(self)}."))
            raise UnknownTaskError(f"{task}: no results of this task. {' '.join(hints)}")
        return Results(of_task)

    @property
    def results(self) -> tuple[Result, ...]:
        """Scores with their evidence."""
        return tuple(self.found.values())

    @property
    def others(self) -> tuple[Record, ...]:
        """Records of measurements of the corpus as a whole."""
        return tuple(self.measured.values())

    def __repr__(self) -> str:
        records = (*self.results, *self.others)
        models = dict.fromkeys(record.model.name for record in records)
        corpora = dict.fromkeys(record.corpus.name for record in records)
        parts = [
            f"{listed(models, 'and')} on {listed(corpora, 'and')}" if records else "no results",
            ", ".join(self),
            ", ".join(dict.fromkeys(record.measurement for record in self.others)),
            f"{counted(len(self.failed), 'failure')}" if self.failed else "",
        ]
        return f"<Results: {' · '.join(filter(None, parts))}>"

    def _repr_html_(self) -> str:
        from probes.pages.page import table_html

        html = "".join(map(table_html, self._tables()))
        return f"{html}<p>{escape(repr(self))}</p>"

    def table(
        self, probe: str = "linear", model: str | None = None, corpus: str | None = None
    ) -> pd.DataFrame:
        """Headline test scores, not in percent: a row per layer, a column per task.

        Args:
            model: which, if there are several, random twins aside.
            corpus: which, if there are several.

        Raises:
            UserError: there are several and none is named, or no results of this one.
        """
        return layer_frame(self._selected(probe, model, corpus))

    def to_latex(
        self,
        probe: str = "linear",
        model: str | None = None,
        corpus: str | None = None,
        *,
        wide: bool = False,
    ) -> str:
        """The table with intervals, marks, floors and baselines, typeset by `booktabs`.

        Args:
            wide: over both columns of a page.

        Raises:
            UserError: see `table`.
        """
        from probes.tables.latex import latex

        results = self._selected(probe, model, corpus)
        floored = [with_floor(result, self.found.values()) for result in results]
        return "\n".join(latex(table, wide=wide) for table in score_tables(floored))

    @property
    def best(self) -> pd.DataFrame:
        """The layer chosen on dev for each model, corpus, task and probe family, with its score.

        Columns: model, corpus, task, probe, layer, score on test with its 95 % interval (low,
        high), floor (the highest score without a trained layer of the model), gain (score − floor).
        Not in percent. Random twins count to floors, and have rows only if there is nothing else.
        A task of which no score on dev is defined has no row.
        """
        trained = [x for x in self.results if x.model.random_seed is None]
        rows = []
        for x in trained or self.results:
            if (layer := x.best_number) is not None:
                _, floor = with_floor(x, self.results).floor or ("", None)
                about = x.model.name, x.corpus.name, x.task.name, x.probe.family, layer
                rows.append((*about, x.score(layer), *ends(x.interval(layer)), floor))
        numbers = ["score", "low", "high", "floor"]
        columns = ["model", "corpus", "task", "probe", "layer", *numbers]
        frame = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(numbers, float))
        return frame.assign(gain=frame["score"] - frame["floor"])

    def predictions(
        self,
        task: str | None = None,
        layer: int | None = None,
        probe: str = "linear",
        model: str | None = None,
        corpus: str | None = None,
    ) -> pd.DataFrame:
        """Gold and predicted labels behind a score: a row for each test example, in corpus order.

        Columns: see `probes.probing.scores.prediction_frame`.

        Args:
            task: which, if there are several.
            layer: by default the best on dev; -1 is the last.
            model, corpus: see `table`.

        Raises:
            UserError: see `table`; or the layer was not probed, or predictions are not stored.
        """
        result, *others = self[_one("task", task, self)]._selected(probe, model, corpus)
        if others:
            paths = listed((str(x.path) for x in (result, *others)), "and")
            raise UserError(f"{task}: several results ({paths}); load the folder of one.")
        return prediction_frame(result, result.best_layer if layer is None else layer)

    def plot(
        self,
        kind: str = "curves",
        probe: str = "linear",
        *,
        task: str | Sequence[str] | None = None,
        model: str | Sequence[str] | None = None,
        corpus: str | Sequence[str] | None = None,
        measurement: str = "",
        width: float = 6.3,
        title: bool = True,
        path: str | os.PathLike[str] | None = None,
    ) -> ChartType:
        """A chart of Altair, which notebooks show; the same as that of `python -m probes figure`.

        It can be changed by methods of Altair, such as ``properties``, and is an SVG in a notebook.

        Args:
            kind: name of a figure, as `python -m probes figure --help` lists them.
            task, model, corpus: names of what is drawn, or one text with commas; all by default.
            measurement: whose, if several have a chart of this name.
            width: in inches.
            path: also write it to this .pdf, .svg or .png file, as its method ``save`` does.

        Raises:
            UserError: there is no such figure, nothing to draw, no result of a name, or results of
                several corpora; or the file cannot be written.
        """
        if reason := figures.no_room():
            raise UserError(f"plot(): nothing is drawn, since {reason}; lift the limit.")
        style = Style(width * INCH, titled=title)
        filters = {"corpus": corpus, "task": task, "model": model}
        names = {x: names_in(y) if isinstance(y, str) else y or () for x, y in filters.items()}
        for noun, text in filters.items():
            if text not in (None, "") and not names[noun]:
                raise UserError(f"{noun}={text!r}: {NO_NAMES}.")
        records = {**self.found, **self.measured}
        about = kind, only(records, **names), "plot()", style, probe, measurement
        chart = _altair(figure(*about, by_task=bool(task), among=records.values()), style)
        if path is not None:
            chart.save(path)
        return cast("ChartType", chart)

    def report(self, path: str | os.PathLike[str], title: str = "results") -> Path:
        """Write one self-contained HTML page of all results.

        Raises:
            UserError: there are none, or the page cannot be written.
        """
        if not (self.found or self.measured):
            raise UserError(f"{path}: not written, since there are no results.")
        from probes.pages.page import write_page

        return write_page(self.found, Path(path), title, self.measured)

    @property
    def rows(self) -> pd.DataFrame:
        """Every number that was found, with what it is a number of; see `probes.Row`.

        Columns: what headers say (model, corpus, task, probe, measurement, …), the fields of rows,
        and one for each axis.
        """
        of_scores = (r for result in self.results for r in (result, *result.evidence.values()))
        return long_frame([*of_scores, *self.others])

    @property
    def frame(self) -> pd.DataFrame:
        """One row per model, corpus, task, probe and layer, as in `leaderboard.csv`."""
        return tidy(self.results)

    def _selected(self, probe: str, model: str | None, corpus: str | None) -> list[Result]:
        """The results of one table; of a single model or corpus, the name may be left out."""
        names = [(r.probe.family, r.model.name, r.corpus.name) for r in self.results]
        pretrained = {r.model.name for r in self.results if r.model.random_seed is None}
        # Runs add random twins without being asked: they are no reason to name the model.
        if model is None and len(pretrained) == 1:
            (model,) = pretrained
        nouns = ("probe", probe), ("model", model), ("corpus", corpus)
        chosen_names = tuple(_one(*x, [of[i] for of in names]) for i, x in enumerate(nouns))
        of_table = zip(self.results, names, strict=True)
        return [result for result, of in of_table if of == chosen_names]

    def _tables(self) -> Iterator[Table]:
        """Scores of each model that is no twin of another, and what else was measured."""
        yield from model_tables(self.found)
        for record in self.others:
            if record.measurement in known_measurements:
                yield from measurement_tables(get_measurement(record.measurement), [record])


def merged(parts: Sequence[Results]) -> Results:
    """The results of several runs as one."""
    fields = "found", "skipped", "failed", "measured"
    values = {name: [getattr(part, name) for part in parts] for name in fields}
    return Results(**{name: dict(ChainMap(*reversed(of))) for name, of in values.items()})


def _one(noun: str, name: str | None, candidates: Iterable[str]) -> str:
    """The given name, or the only candidate."""
    names = list(dict.fromkeys(candidates))
    if name is None and len(names) == 1:
        return names[0]
    if name is None and names:
        raise UserError(f"There are results of several; give {noun}=, one of {', '.join(names)}.")
    if name not in names:
        raise UserError(
            f"{noun}={name!r}: no results. {did_you_mean(name or '', names) if names else ''}"
        )
    return name


class Figure:
    """A chart of Altair that notebooks and files show in the look of a style, as SVG.

    Attributes:
        style: the look; what ``configure`` and the like set comes before it.
    """

    style: Style

    @property
    def svg(self) -> str:
        """The drawing, which holds no address of the network."""
        from altair.utils import update_nested

        specification = cast(Any, self).to_dict()
        config = update_nested(self.style.config, specification["config"])
        return figures.drawn({**specification, "config": config})

    def _repr_mimebundle_(self, *args: object, **more: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg}

    def save(self, path: str | os.PathLike[str], *, ppi: int = 300) -> Path:
        """Write it as .pdf, .svg or .png.

        Args:
            ppi: pixels per inch of a .png.

        Raises:
            UserError: the format is unknown, or the file cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() not in figures.FORMATS:
            raise UserError(f"{target}: the name must end in one of {', '.join(figures.FORMATS)}.")
        figures.write(target, self.svg, ppi)
        return target


def _altair(chart: Chart, style: Style) -> Any:
    """The chart as a `Figure` that is one of Altair's charts."""
    from altair import Chart as AltairChart

    kind = type(AltairChart.from_dict(chart.to_dict()))
    # A class has the style, since methods of Altair copy nothing else.
    of_style: Any = type("Figure", (Figure, kind), {"style": style})
    return of_style.from_dict(chart.to_dict())


def load_results(*places: str | os.PathLike[str]) -> Results:
    """All results and records below some folders that this version would compute.

    Args:
        places: folders, or patterns such as ``results/*/ewt``.

    Raises:
        UserError: a folder does not exist, or there are no records in any of them.
    """
    folders: list[Path] = []
    for pattern in [os.fspath(x) for x in places]:
        matches = [] if Path(pattern).exists() else filter(os.path.isdir, sorted(glob(pattern)))
        folders += map(Path, [*matches] or [pattern])
    records = records_below(folders)
    return Results(
        results_in_order(results_with_evidence(records)), measured=corpus_records_of(records)
    )


def results_in_order(results: Mapping[Path, Result]) -> dict[Path, Result]:
    """Results in the order of runs: random twins last, tasks as `table_order` has them."""
    paths = sorted(
        results,
        key=lambda x: (results[x].model.random_seed is not None, table_order(results[x].task.name)),
    )
    return {path: results[path] for path in paths}


def results_below(folders: Iterable[Path]) -> dict[Path, Result]:
    """All results below the folders, with their evidence; see `records_below`.

    Nothing else is read.

    Raises:
        UserError: a folder does not exist, or there are no results in any of them.
    """
    folders = tuple(folders)
    names = [SCORES, *(x.name for x in probe_measurements())]
    results = results_with_evidence(records_below(folders, measurements=names))
    if not results:
        raise no_results(folders)
    return results


def find_recipes(results: Mapping[Path, Result], options: argparse.Namespace) -> list[RecipeResult]:
    """The results of the recipes that `--recipes` names."""
    globs = read_recipes(options.recipes) if options.recipes != Path() else None
    return recipe_results(results, globs)


def records_below(
    folders: Iterable[Path], flag: str = "", *, measurements: Collection[str] | None = None
) -> dict[Path, Record]:
    """All records below the folders; see `probes.frames.frame.load`.

    Args:
        flag: the option that names another folder, which errors suggest.
        measurements: only records of these.

    Raises:
        UserError: a folder does not exist, or there are no records in any of them.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            option = f" with {flag}" if flag else ""
            raise UserError(f"{folder}: there is no such folder; name a folder of results{option}.")
    frame = load(*folders, measurements=measurements)
    # Callers that name measurements say themselves how to make them.
    if frame.headers.empty and measurements is None:
        raise no_results(folders, flag, frame.n_outdated)
    return frame.records()


def no_results(folders: Iterable[Path], flag: str = "", n_outdated: int = 0) -> UserError:
    """The error for folders without any results.

    Args:
        flag: the option that names another folder.
        n_outdated: number of records that are left out.
    """
    folders = tuple(folders)
    where = ", ".join(map(str, folders))
    option = f", or name another folder with {flag}" if flag else ""
    others = f" that this version would compute ({counted(n_outdated, 'other')})"
    outdated = others if n_outdated else ""
    return UserError(
        f"{where}: no results{outdated}; probe a model first: {RUN} --model M{option}"
        f"{or_published(*folders)}."
    )


def only(records: Mapping[Path, R], **filters: Sequence[str]) -> dict[Path, R]:
    """The records of these models, corpora, tasks or probes; without names, of all.

    A record that is of no task passes.

    Raises:
        UserError: no result has one of the names.
    """
    matches = dict(records)
    for attribute, names in filters.items():
        parts = {path: getattr(record, attribute) for path, record in matches.items()}
        called = {x: y.family if attribute == "probe" else y.name for x, y in parts.items() if y}
        known = sorted({*called.values()})
        if wrong := [name for name in names if name not in known]:
            hint = did_you_mean(wrong[0], known)
            raise UserError(f"--{attribute} {wrong[0]}: no results. {hint}")
        for path in parts:
            if names and called.get(path, names[0]) not in names:
                del matches[path]
    return matches
