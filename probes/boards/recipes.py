"""Recipes: models that differ by seed alone, tabulated and compared as one thing.

A recipe is read from a file, or found by names: ``multiberts/seed-3`` and ``multiberts/seed-4``
belong to ``multiberts``, and random twins to ``random:M``. Everything is computed from stored
predictions or sums; see `probes.statistics.seeds`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from probes.boards.comparable import SAME_FLOOR, SAME_PAIR, why_apart
from probes.boards.paired import Difference
from probes.common.arrays import Floats
from probes.common.errors import UserError, counted, listed
from probes.common.files import read_toml
from probes.common.grouping import grouped
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.extraction.models.model_names import RANDOM, RANDOM_NAME
from probes.measurements.table_cells import (
    counted_head,
    metric_name,
    n_of,
    resampled_units,
    score_cell,
)
from probes.probing.resampled_scores import resampled_scores
from probes.records.best_layer import best_layer_of
from probes.records.record import corpus_title
from probes.records.record_files import if_readable
from probes.records.result import Result
from probes.statistics.metrics import printed_sd
from probes.statistics.replicates import Replicates
from probes.statistics.seeds import (
    FEW_SEEDS,
    difference_over_seeds,
    interval_over_seeds,
    mean_over_seeds,
    p_values_over_seeds,
    spread_of_deviations,
    variance_parts,
)
from probes.tables.table import NOTHING, Cell, Table, TableRow
from probes.tasks.builtin import table_order

SAME_RECIPE = (*SAME_FLOOR, "text", "limit", "layers", "hidden_size")
"""Results of the models of a recipe on one task."""

_SEED = re.compile(r"(?:^|[-_/.@])seed[-_]?(\d+)(?![a-z\d])", re.IGNORECASE)

Globs = Mapping[str, Sequence[str]]
"""Globs of model names, by recipe."""


def read_recipes(path: Path) -> Globs:
    """The globs of each recipe, from the table ``[recipes]`` of a TOML file.

    Raises:
        UserError: the file cannot be read, or has no such table of lists of text.
    """
    recipes = read_toml(path).get("recipes")
    if not isinstance(recipes, dict) or not recipes:
        raise UserError(f'{path}: no recipes; give a table [recipes] with name = ["glob", …].')
    for name, globs in recipes.items():
        if not name.strip():
            raise UserError(f"{path}: a recipe has an empty name; give it one.")
        if not (isinstance(globs, list) and globs and all(x and isinstance(x, str) for x in globs)):
            raise UserError(f"{path}: {name}: give a list of globs of model names.")
    return recipes


def recipe_and_seed(name: str) -> tuple[str, str] | None:
    """The recipe and the seed in a model's name; None if it has none.

    Local models are called after their folder; those in folders ``seed-3`` belong to ``seed``.
    """
    if twin := RANDOM_NAME.fullmatch(name):
        return RANDOM + twin["model"], twin["seed"] or "0"
    match = _SEED.search(name)
    if match is None:
        return None
    recipe = name[: match.start()] + name[match.end() :]
    return recipe.strip("-_/.@") or "seed", str(int(match[1]))


@dataclass(frozen=True, eq=False)
class RecipeResult:
    """The results of the models of a recipe on one task with one probe family.

    Attributes:
        name: name of the recipe.
        seeds: results by seed. They agree in everything but the model.
    """

    name: str
    seeds: Mapping[str, Result]

    @cached_property
    def first(self) -> Result:
        """The result of the first seed."""
        return next(iter(self.seeds.values()))

    @cached_property
    def key(self) -> str:
        """Keys of the results, which seed random noise."""
        return " ".join(result.key for result in self.seeds.values())

    def mean(self, layer: int, split: str = "test") -> float | None:
        """Mean headline score of a layer over seeds; None if it is undefined for a seed."""
        scores = [result.score(layer, split) for result in self.seeds.values()]
        defined_scores = [score for score in scores if score is not None]
        return float(np.mean(defined_scores)) if defined_scores == scores else None

    @cached_property
    def best_layer(self) -> int:
        """The best layer by the mean score on dev; the lowest if none is defined."""
        return best_layer_of({layer: self.mean(layer, "dev") for layer in self.first.layers})

    @cached_property
    def replicates(self) -> dict[int, list[Replicates]]:
        """Replicates of each seed's score by layer, where scores are defined.

        Empty if predictions of a seed are missing, or test has too few documents or sentences.
        """
        layers, results = self.first.layers, self.seeds.values()
        replicates = if_readable(lambda: [resampled_scores(x, layers) for x in results])
        per_seed = [x for x in replicates or () if x]
        if len(per_seed) < len(results):
            return {}
        indices = {layer: i for i, layer in enumerate(layers) if self.mean(layer) is not None}
        return {layer: [x.row(i) for x in per_seed] for layer, i in indices.items()}

    def score_cell(self, layer: int) -> Cell:
        """The mean score of a layer, with an interval over seeds and documents."""
        per_seed = self.replicates.get(layer)
        interval = interval_over_seeds(mean_over_seeds(per_seed, self.key)) if per_seed else None
        best = layer == self.best_layer
        return score_cell(self.mean(layer), interval, self.first.task.metric, best=best)

    def trainings(self, layer: int) -> Floats | None:
        """Scores of the probes of a layer that were fitted to the same bootstrap samples.

        Shape (seeds, samples). None if training variance was not measured for all seeds.
        """
        table = []
        for result in self.seeds.values():
            rows = result.evidence_rows("training_variance") or ()
            metric_rows = [x for x in rows if (x.metric, x.layer) == (result.task.metric, layer)]
            table.append([x.value for x in metric_rows if "sample" in x.axes])
        is_complete = {len(row) for row in table} == {max(len(table[0]), 2)}
        return np.array(table, float) if is_complete and not any(None in x for x in table) else None


def recipe_results(results: Mapping[Path, Result], recipes: Globs | None) -> list[RecipeResult]:
    """The results of recipes, by corpus, probe family and task.

    Args:
        recipes: None for recipes by names; see `recipe_and_seed`.

    Raises:
        UserError: there is no recipe with two seeds, one has two models of a seed or the same
            model twice, a model belongs to two of them, or results of one may not stand together.
    """
    members = _members({result.model.name for result in results.values()}, recipes)
    groups: dict[tuple[str, ...], dict[str, Result]] = defaultdict(dict)
    for result in results.values():
        if result.model.name not in members:
            continue
        recipe, seed = members[result.model.name]
        seeds = groups[recipe, result.corpus.name, result.probe.family, result.task.name]
        first = next(iter(seeds.values()), result)
        layers = "other layers" if result.layers != first.layers else ""
        if reason := _why_apart(result, first, SAME_RECIPE) or layers:
            raise UserError(
                f"recipe {recipe}: {result.model.name} cannot be compared with {first.model.name} "
                f"on {result.task.name} ({reason}); name folders of results that agree."
            )
        if seeds.setdefault(seed, result) is not result:
            raise UserError(
                f"recipe {recipe}: {seeds[seed].path} and {result.path} are both of seed {seed}; "
                "a recipe has one model of each seed."
            )
        # The same weights under two names would make seeds look more alike than they are.
        if copies := [x for x in seeds.values() if x.inputs == result.inputs and x is not result]:
            raise UserError(
                f"recipe {recipe}: {copies[0].model.name} and {result.model.name} are the same "
                "model; a recipe has other weights for each seed."
            )
    multi_seed, one_seed = [], defaultdict(list)
    for (recipe, _, _, task), seeds in groups.items():
        # Seeds are numbers, or names of models where a file has the globs: 2 comes before 10.
        order = sorted(seeds, key=lambda x: (x.isdecimal() and int(x), x))
        if len(seeds) > 1:
            multi_seed.append(RecipeResult(recipe, {seed: seeds[seed] for seed in order}))
        else:
            one_seed[recipe].append(task)
    reasons = [f"recipe {x}: one seed on {', '.join(tasks)}" for x, tasks in one_seed.items()]
    if not multi_seed:
        raise UserError(f"{'; '.join(reasons)}. It says nothing about others; probe two or more.")
    for reason in reasons:
        progress.say(f"left out {reason}")
    order = [*(recipes or sorted({x.name for x in multi_seed}))]
    return sorted(multi_seed, key=lambda x: (order.index(x.name), table_order(x.first.task.name)))


def _why_apart(result: Result, other: Result, columns: Sequence[str]) -> str:
    """The reason that two results cannot stand together; empty if they can."""
    same_test = result.examples.test_digest == other.examples.test_digest
    return why_apart(result, other, columns) or ("" if same_test else "other test examples")


def _members(models: Iterable[str], recipes: Globs | None) -> dict[str, tuple[str, str]]:
    """Recipe and seed of each model that belongs to a recipe; others are left out."""
    by_name = {model: recipe_and_seed(model) for model in sorted(models)}
    members: dict[str, tuple[str, str]] = {}
    if recipes is None:
        names = [x[0] for x in by_name.values() if x]
        members = {model: x for model, x in by_name.items() if x and names.count(x[0]) > 1}
        if not members:
            raise UserError(
                f"No recipe among {', '.join(by_name)}: no two names differ only in seed-N. Name "
                "its models in a file (--recipes recipes.toml)."
            )
    for recipe, globs in (recipes or {}).items():
        inside = [model for model in by_name if any(fnmatchcase(model, glob) for glob in globs)]
        if not inside:
            hint = did_you_mean(globs[0], by_name)
            raise UserError(f"recipe {recipe}: no model is called {' or '.join(globs)}. {hint}")
        for glob in globs:
            if not any(fnmatchcase(model, glob) for model in by_name):
                progress.say(f"recipe {recipe}: no model is called {glob}")
        for model in inside:
            _, seed = by_name[model] or ("", model)
            if (first_recipe := members.setdefault(model, (recipe, seed))[0]) != recipe:
                raise UserError(f"{model} belongs to the recipes {first_recipe} and {recipe}.")
    if left_out := [model for model in by_name if model not in members]:
        more = f" and {counted(len(left_out) - 1, 'other')}" if len(left_out) > 1 else ""
        progress.say(f"left out {left_out[0]}{more}: in no recipe")
    return members


# Tables.


def recipe_tables(results: Sequence[RecipeResult]) -> Iterator[Table]:
    """For each recipe, corpus and probe family: scores by layer, and the sources of variance."""
    settings = grouped(results, lambda x: (x.name, x.first.corpus.name, x.first.probe.family))
    for group in settings.values():
        first = group[0].first
        title = f"recipe {group[0].name} · {corpus_title(first)} · {first.probe.family} probe"
        layers = sorted({layer for x in group for layer in x.first.layers})
        rows = [
            TableRow.of(
                str(layer),
                *(x.score_cell(layer) if layer in x.first.layers else NOTHING for x in group),
                ends_section=layer == layers[-1],
            )
            for layer in layers
        ]
        rows.append(TableRow.of("seeds", *(str(len(x.seeds)) for x in group), faint=True))
        rows.append(TableRow.of("n", *(n_of(x.seeds.values()) for x in group), faint=True))
        resampled = listed(dict.fromkeys(resampled_units(x.first) for x in group))
        yield Table(
            f"{title} · test",
            ("layer", *(f"{x.first.task.name}\n{metric_name(x.first)}" for x in group)),
            tuple(rows),
            notes=(
                "Means over seeds, ± half the width of a 95 % interval over seeds and test "
                f"{resampled}. ★ best layer on dev, by the mean over seeds. {_NORMAL}",
                *_recipe_notes(group),
            ),
        )
        if varying := [row for x in group for row in _varying(x)]:
            heads = "task", "layer", "seeds", "documents", "seeds × documents", "probe training"
            yield Table(f"{title} · what varies", heads, tuple(varying), notes=(_VARYING,))


_NORMAL = (
    "Scores of seeds are taken as normal: where one training in ten fails, fewer than 95 % of "
    "intervals hold the mean."
)

_VARYING = (
    "Standard deviations of one model's score at the best layer, by source: over seeds; over test "
    "documents (or sentences) for all seeds alike; over documents that suit one seed and not "
    "another; over training samples of the probe. 0 if the estimated variance is negative."
)


def _varying(result: RecipeResult) -> Iterator[TableRow]:
    layer, metric = result.best_layer, result.first.task.metric
    if layer in result.replicates:
        parts = variance_parts(result.replicates[layer], result.trainings(layer))
        cells = (
            Cell(NOTHING) if x is None else Cell(printed_sd(x, metric), value=x) for x in parts
        )
        yield TableRow.of(counted_head(result.first), str(layer), *cells)


def comparison_tables(results: Sequence[RecipeResult]) -> Iterator[Table]:
    """The recipes' best layers, and how each recipe differs from the first one.

    Raises:
        UserError: no two recipes have a corpus, task and probe family in common.
    """
    nothing = True
    settings = grouped(results, lambda x: (x.first.corpus.name, x.first.probe.family))
    for group in settings.values():
        rows, notes, first = list[TableRow](), [_TESTED, *_recipe_notes(group)], group[0].first
        for peers in grouped(group, lambda x: x.first.task.name).values():
            apart = {x: _why_apart(x.first, peers[0].first, SAME_PAIR) for x in peers}
            fitting = [x for x in peers if not apart[x]]
            rows += _comparison_rows(fitting) if len(fitting) > 1 else ()
            task = peers[0].first.task.name
            notes += [f"Not compared: {x.name} on {task} ({apart[x]})." for x in peers if apart[x]]
        if rows:
            nothing = False
            title = f"{corpus_title(first)} · {first.probe.family} probe"
            yield Table(
                f"{title} · recipes at their best layers",
                ("task", "recipe", "seeds", "best", "score", "difference from the first", "p"),
                tuple(rows),
                left=2,
                notes=tuple(notes),
                repeated=2,
            )
    if nothing:
        names = listed(dict.fromkeys(x.name for x in results), "and")
        raise UserError(f"{names}: no two recipes have a corpus, task and probe in common.")


_TESTED = (
    "Best layers are chosen on dev; scores are means over seeds on test. Intervals and p are over "
    "seeds and test data; the training text of probes is fixed. Seeds are paired where two recipes "
    "have exactly the same ones. p is corrected by max-T over all pairs of a task's recipes. "
    + _NORMAL
)


def _comparison_rows(recipes: Sequence[RecipeResult]) -> Iterator[TableRow]:
    first = recipes[0]
    # All pairs are tested, as in comparisons of models, though only those with the first are shown.
    differences = {
        (one, other): difference_over_seeds(
            one.replicates[one.best_layer],
            other.replicates[other.best_layer],
            f"{one.key} {one.best_layer} {other.key} {other.best_layer}",
            paired=[*one.seeds] == [*other.seeds],
        )
        for one, other in combinations(recipes, 2)
        if one.best_layer in one.replicates and other.best_layer in other.replicates
    }
    p = dict(zip(differences, p_values_over_seeds([*differences.values()]), strict=True))
    for recipe in recipes:
        cells: tuple[str | Cell, ...] = "", ""
        if recipe is not first:
            before, after = first.mean(first.best_layer), recipe.mean(recipe.best_layer)
            value = None if before is None or after is None else after - before
            difference = differences.get((first, recipe))
            interval = interval_over_seeds(difference) if difference else None
            cells = Difference(
                recipe.first.task.metric, value, interval, p.get((first, recipe))
            ).cells
        yield TableRow.of(
            counted_head(recipe.first) if recipe is first else "",
            recipe.name,
            str(len(recipe.seeds)),
            f"{recipe.best_layer}/{recipe.first.model.n_layers}",
            replace(recipe.score_cell(recipe.best_layer), best=False),
            *cells,
            ends_section=recipe is recipes[-1],
        )


def _recipe_notes(results: Sequence[RecipeResult]) -> Iterator[str]:
    """Notes on what few seeds do not show, and on recipes without intervals."""
    n = min(len(x.seeds) for x in results)
    if n < FEW_SEEDS:
        low, high = spread_of_deviations(n)
        yield (
            f"Only {n} seeds: how much scores vary over seeds cannot be concluded (the true "
            f"deviation may be {low:.1f} to {high:.1f} times the estimate), nor that recipes are "
            "equal where no difference is significant."
        )
    if names := dict.fromkeys(x.name for x in results if not x.replicates):
        yield (
            f"No intervals for {listed(names, 'and')}: predictions are missing, or there are too "
            "few test documents or sentences."
        )
