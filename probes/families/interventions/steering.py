"""Steering: the answer of a model after a step along a direction has been added to a layer.

A step of dose 1 is as long as the distance between the means of two classes of training states
along the direction (Rimsky et al. 2024). It counts if it moves answers further than random steps of
the same length and than steps between shuffled classes, and leaves the loss on neutral text alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import View
from probes.families.interventions import SteeringOptions
from probes.families.interventions.directions import MEAN, RANDOM, SHUFFLED
from probes.families.interventions.experiment import (
    LOSS,
    ChangedPass,
    exchange_rows,
    sampled_sentences,
)
from probes.families.interventions.steering_inputs import (
    CONTROLS,
    DIRECTIONS,
    NORM,
    Cell,
    Prompts,
    SteeringInput,
    paradigm_inputs,
    task_input,
)
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import BestOnDev
from probes.records.row import Row
from probes.statistics.bootstrap import LEVEL
from probes.statistics.of_families.strata import Strata
from probes.statistics.partition import partition
from probes.statistics.replicates import pooled
from probes.statistics.significance import printed_p

if TYPE_CHECKING:
    import torch

    from probes.common.arrays import Floats
    from probes.data.sentence import Corpus
    from probes.extraction.changing.interventions import Intervention
    from probes.extraction.reading.collectors import Collector
    from probes.measurements.context import ModelContext

STEERED, AGAINST = "steered_log_odds", "moved_against"

CHOSEN = "best on dev"
"""Value of ``chosen``: the layer and dose with the largest effect on dev at the allowed damage."""

_N_NEUTRAL, _N_WORDS = 20, 5
"""Sentences of neutral text, and words of each whose loss is measured."""

_OF_ALL = {"paradigm": None, "less": None, "chosen": None}


def _nothing_stored(corpus: Corpus, layers: Sequence[int], options: SteeringOptions) -> Collector:
    """A collector of no text: prompts depend on tokens, which are known when the model is."""
    from probes.families.interventions.readouts import ContinuationLogits

    return ContinuationLogits(0, np.zeros((0, 1), dtype=np.int64))


@measurement(
    "steering",
    of="model",
    after="scores",
    items="pairs",
    options=SteeringOptions,
    head="needed",
    reads=lambda corpus, options: View("written", ()),
    collector=_nothing_stored,
    shares_arrays=True,
    shows=(
        Pivot(
            "change of log-odds by dose",
            (STEERED,),
            columns=("steered", "dose"),
            where={**_OF_ALL, "direction": (*DIRECTIONS, *CONTROLS)},
            apart="direction",
            note="Change of log p(answer of the positive class, or of the source) − log p(other), "
            "in nats. Random controls: mean, and the range of one more draw in 95 %. Log-odds of a "
            "text that a step has broken mean nothing: see the increase of loss.",
        ),
        Pivot(
            "increase of loss on neutral dev text by dose",
            (LOSS,),
            columns=("steered", "dose"),
            where={**_OF_ALL, "direction": DIRECTIONS, "split": "dev"},
            apart="direction",
        ),
        Lines(
            "steering",
            STEERED,
            title="Change of log-odds by dose",
            note="At the layer that is best on dev for the mean difference. Bands of random "
            "controls: one more draw in 95 %.",
            x="dose",
            line="direction",
            apart="steered",
            where={
                **_OF_ALL,
                "layer": BestOnDev(STEERED, {**_OF_ALL, "direction": MEAN, "chosen": CHOSEN}),
            },
        ),
    ),
    use_columns=(
        UseColumn(
            "steered",
            "Steered: change of the log-odds of answers by a step of dose 1 along the mean "
            "difference, in nats.",
            STEERED,
            {**_OF_ALL, "direction": MEAN, "dose": 1.0},
            "steered",
        ),
    ),
)
def steering(context: ModelContext) -> Measured:
    """Answers after steps of several doses along directions, by layer, with controls and damage.

    Rows by layer, ``direction`` and ``dose`` of what is ``steered``: a task, or `TASK` of minimal
    pairs, also by ``paradigm``. ``steered_log_odds`` is the mean change of the log-odds of the
    answer of the positive class, or of the source; ``less`` names the control whose mean is
    subtracted. p counts the direction as one more draw, and is corrected over layers. The row
    without ``less`` has the larger p of `RANDOM` and `SHUFFLED`, 1 unless the step moves answers
    further than both in the direction of its dose. ``moved_against`` is the share of prompts that
    move against it, ``loss_increase`` the damage to neutral text. Rows with ``chosen`` are of the
    layer and dose with the largest effect on dev at the allowed damage. ``steering_separation`` and
    ``steering_agreement`` describe training states.

    Raises:
        NotServedError: neither minimal pairs nor a task can be steered.
        UserError: answers are missing, or neutral text is not found.
    """
    from probes.data.find import find_corpus

    notes: list[str] = []
    inputs = list(
        paradigm_inputs(context) if context.corpus.items else _task_inputs(context, notes)
    )
    if not inputs:
        raise NotServedError("; ".join(notes) or "no paradigm has enough pairs of prompts that fit")
    neutral = find_corpus(context.options.neutral).load()
    results = [_Effects.of(context, x, neutral) for x in inputs]
    rows = [row for x in inputs for row in x.training]
    if context.corpus.items:
        results.append(_Effects.joined(results))
    for effects in results:
        chosen = list(effects.chosen_rows(context, neutral))
        rows += [*effects.rows(), *chosen]
        notes += _sentences(effects, chosen)
    notes += [x.note for x in inputs if x.note]
    facts = {"prompts": sum(len(x.test.texts) for x in inputs)}
    return Measured(rows, facts=facts, notes=notes)


def _task_inputs(context: ModelContext, notes: list[str]) -> Iterator[SteeringInput]:
    """Tasks that can be steered; the reasons why others cannot are added to notes."""
    for task in context.tasks:
        try:
            yield task_input(context, task)
        except NotServedError as error:
            notes.append(str(error))


class _Effects(NamedTuple):
    """Changes of log-odds of a paradigm, a task, or all paradigms.

    Attributes:
        axes: values on axes of all rows.
        groups: the paradigm or task, or all paradigms.
        dev, test: changes by cell. Each (draws, prompts); dev has no controls.
        damage: increase of loss on neutral dev text, by cell.
    """

    axes: Mapping[str, str]
    groups: Sequence[SteeringInput]
    dev: Mapping[Cell, Floats]
    test: Mapping[Cell, Floats]
    damage: Mapping[Cell, float]

    @classmethod
    def of(cls, context: ModelContext, group: SteeringInput, neutral: Corpus) -> _Effects:
        """Steer the prompts of dev and test at all layers."""
        own = {cell: x for cell, x in group.steps.items() if cell[0] in DIRECTIONS}
        dev, test = _changes(context, group.dev, own), _changes(context, group.test, group.steps)
        return cls(group.axes, [group], dev, test, _damage(context, own, neutral, "dev"))

    @classmethod
    def joined(cls, parts: Sequence[_Effects]) -> _Effects:
        """Effects on the prompts of all paradigms."""
        dev, test = (
            {cell: np.concatenate([x[cell] for x in of_parts], axis=1) for cell in of_parts[0]}
            for of_parts in ([x.dev for x in parts], [x.test for x in parts])
        )
        of_all = {cell: float(np.mean([x.damage[cell] for x in parts])) for cell in dev}
        return cls({"steered": TASK}, [x.groups[0] for x in parts], dev, test, of_all)

    def rows(self) -> Iterator[Row]:
        """Rows of all cells, those of a direction and dose tested together."""
        layers_by_step: dict[tuple[str, float], list[int]] = defaultdict(list)
        for name, layer, dose in self.test:
            layers_by_step[name, dose].append(layer)
        for (name, dose), layers in layers_by_step.items():
            if name in (RANDOM, SHUFFLED):
                for layer in layers:
                    yield from self._bands(name, layer, dose)
            else:
                yield from self.compared(name, [(layer, dose) for layer in layers])
        for (name, layer, dose), values in self.dev.items():
            axes = {**self.axes, "direction": name, "dose": dose}
            n, change = values.shape[1], float(values.mean())
            yield Row(STEERED, change, layer, split="dev", n=n, axes=axes)
            yield Row(LOSS, self.damage[name, layer, dose], layer, split="dev", axes=axes)

    def compared(
        self, name: str, places: Sequence[tuple[int, float]], **more: str
    ) -> Iterator[Row]:
        """Rows of a direction or control at some layers and doses."""
        axes = [(k, {**self.axes, "direction": name, "dose": x, **more}) for k, x in places]
        own = np.stack([self.test[name, *place].mean(0) for place in places], axis=1)
        units = [(f"{x.axes} {unit}", str(x.axes)) for x in self.groups for unit in x.test.units]
        strata, signs = Strata.of(*zip(*units, strict=True)), np.sign([x for _, x in places])
        rows = partial(
            exchange_rows, strata=strata, group=np.arange(len(own)), units=self.groups[0].units
        )
        p_values = np.zeros(len(places))
        for control in CONTROLS if name in DIRECTIONS else ():
            # Random steps are as likely as their reverse; a norm is not.
            at = [(k, x if control == NORM else abs(x)) for k, x in places]
            draws = [self.test[control, *place] for place in at]
            spreads = [pooled([x.mean(1).tolist()], 1 + 1 / len(x)) for x in draws]
            noise = [(f"{control} {x}", y) for x, y in zip(axes, spreads, strict=True) if y]
            less = [(k, {**x, "less": control}) for k, x in axes]
            differences = own - np.stack([x.mean(0) for x in draws], axis=1)
            of_control = rows(STEERED, differences, cells=less, tested=True, noise=noise)
            for i, row in enumerate(of_control):
                yield row
                if control != NORM:
                    p = np.nan if row.p is None else row.p
                    beyond = np.isnan(p) or row.value * signs[i] > 0
                    p_values[i] = np.maximum(p_values[i], p if beyond else 1.0)
        for row, p in zip(rows(STEERED, own, cells=axes, tested=False), p_values, strict=True):
            yield row._replace(p=float(p) if name in DIRECTIONS else None)
        if name in DIRECTIONS:
            against = (own * signs < 0).astype(np.float64)
            yield from rows(AGAINST, against, cells=axes, tested=False)

    def _bands(self, control: str, layer: int, size: float) -> Iterator[Row]:
        """Mean of the draws of a control, and the range of one more draw in 95 %."""
        from scipy.special import stdtrit  # slow to import

        draws = self.test[control, layer, size].mean(1)
        spread, mean = pooled([draws.tolist()], 1 + 1 / len(draws)), float(draws.mean())
        half = spread.sd * float(stdtrit(spread.df, (1 + LEVEL) / 2)) if spread else 0.0
        for dose in {dose for _, _, dose in self.dev if abs(dose) == size}:
            axes = {**self.axes, "direction": control, "dose": dose}
            yield Row(STEERED, mean, layer, mean - half, mean + half, n=len(draws), axes=axes)

    def chosen_rows(self, context: ModelContext, neutral: Corpus) -> Iterator[Row]:
        """Rows of the layer and dose of each direction with the largest effect on dev."""
        for name in DIRECTIONS:
            allowed = {
                cell: float(np.sign(cell[2]) * values.mean())
                for cell, values in self.dev.items()
                if cell[0] == name and self.damage[cell] <= context.options.damage
            }
            if not allowed:
                continue
            cell = max(allowed, key=allowed.__getitem__)
            _, layer, dose = cell
            axes = {**self.axes, "direction": name, "dose": dose, "chosen": CHOSEN}
            on_dev = float(self.dev[cell].mean())
            yield Row(STEERED, on_dev, layer, split="dev", axes=axes)
            yield from self.compared(name, [(layer, dose)], chosen=CHOSEN)
            of_groups = [
                _damage(context, {cell: x.steps[cell]}, neutral, "test") for x in self.groups
            ]
            on_test = float(np.mean([x[cell] for x in of_groups]))
            yield Row(LOSS, on_test, layer, axes=axes)


def _changes(
    context: ModelContext, prompts: Prompts, steps: Mapping[Cell, Floats]
) -> dict[Cell, Floats]:
    """Changes of log-odds by cell. Each (draws, prompts)."""

    def passes(sign: int) -> list[ChangedPass]:
        made = [ChangedPass()]
        for (name, layer, _), draws in steps.items():
            made += [
                ChangedPass((_step(name, layer, sign * draw),), layer)
                for draw in draws
                if draw.any()
            ]
        return made

    untouched, *changed = prompts.log_odds(context, passes)
    in_turn = iter(changed)
    return {
        cell: np.stack(
            [next(in_turn) - untouched if x.any() else np.zeros_like(untouched) for x in draws]
        )
        for cell, draws in steps.items()
    }


def _step(name: str, layer: int, vector: Floats) -> Intervention:
    """The change that adds a step to all pieces, or gives them the norm that they would have."""
    import torch

    from probes.extraction.changing.interventions import Add, Custom
    from probes.extraction.changing.sites import Site

    def rescaled(states: torch.Tensor) -> torch.Tensor:
        after = (states + torch.from_numpy(vector).to(states)).norm(dim=-1, keepdim=True)
        changed: torch.Tensor = states * (after / states.norm(dim=-1, keepdim=True))
        return changed

    if name == NORM:
        return Custom("norm of a step", 1, Site("layer", layer), rescaled, "pieces")
    return Add(layer, vector, "pieces")


def _damage(
    context: ModelContext, steps: Mapping[Cell, Floats], neutral: Corpus, split: str
) -> dict[Cell, float]:
    """Increase of loss on neutral text by cell, in nats per piece."""
    from probes.families.interventions.readouts import (
        LossBesideStart,
        Questions,
        loss_words,
        own_answers,
    )

    sentences = neutral.splits[split]
    numbers = sampled_sentences(len(sentences), _N_NEUTRAL)
    texts, words = loss_words([sentences[i] for i in numbers], context.model.causal)
    rng = np.random.default_rng(0)  # the head costs more than blocks
    words = {text: np.sort(rng.permutation(x)[:_N_WORDS]) for text, x in words.items()}
    with_words = [i for i, text in enumerate(texts) if len(words[text])]
    clusters = partition([x.document for x in sentences], split)
    questions = Questions(
        [texts[i] for i in with_words], words, (), numbers[with_words], numbers[:0], clusters, split
    )
    passes = [ChangedPass()]
    for number, ((name, layer, _), draws) in enumerate(steps.items()):
        change = (_step(name, layer, draws[0]),)
        passes.append(ChangedPass(change, layer, {"step": number}, ((0, {}),)))
    rows = own_answers(context, passes, questions, LossBesideStart)
    return {cell: row.value or 0.0 for cell, row in zip(steps, rows, strict=True)}


def _sentences(effects: _Effects, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence on the layer and dose of each direction that were chosen on dev."""
    name = effects.axes.get("paradigm", effects.axes["steered"])
    for direction in DIRECTIONS:
        by_metric = {
            (row.metric, row.axes.get("less")): row
            for row in rows
            if row.axes["direction"] == direction and row.split == "test"
        }
        if not by_metric:
            yield f"{name}, {direction}: no layer and dose moves answers at the allowed damage."
            continue
        of = by_metric[STEERED, None]
        against, damage = by_metric[AGAINST, None].value, by_metric[LOSS, None].value
        tests = " and ".join(
            f"{control} steps by {row.value:+.2f}" + (f" (p {printed_p(row.p)})" if row.p else "")
            for control in CONTROLS[:2]
            if (row := by_metric[STEERED, control])
        )
        yield (
            f"{name}, {direction}: at layer {of.layer} with dose {of.axes['dose']:g}, the best on "
            f"dev, log-odds change by {of.value:+.2f} nats, more than with {tests}; {against:.0%} "
            f"of prompts move against the dose, and the loss on neutral text rises by {damage:.2f}."
        )
