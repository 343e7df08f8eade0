"""Prompts to steer, and the steps that are added to them, fitted to the states of other prompts.

Prompts are bases of minimal pairs, as in `interchange`, or texts and chats of a task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.families.interventions.changes import projection
from probes.families.interventions.controls import half_signs, random_directions, shuffled_halves
from probes.families.interventions.directions import (
    LEACE,
    MEAN,
    PROBE,
    RANDOM,
    SHUFFLED,
    class_directions,
)
from probes.families.interventions.experiment import ChangedPass
from probes.families.interventions.interchange_pairs import (
    FEWEST_PAIRS,
    Pair,
    aligned_pairs,
    contrasts_by_paradigm,
    pieces_of,
)
from probes.families.interventions.text_prompts import Prompts, about_answers, text_prompts
from probes.records.row import Row

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.extraction.changing.interventions import Intervention
    from probes.measurements.context import ModelContext, TaskContext

DIRECTIONS, CONTROLS = (MEAN, PROBE, LEACE), (RANDOM, SHUFFLED, NORM := "norm alone")

N_TRAINING = 100
"""Most pairs of a paradigm to fit to."""

_LARGEST_RATIO = 4.0
"""Of neighbouring sizes of random steps; if effects grow as the root of the length, a line between
two such sizes is at most 6 % too low."""

Cell = tuple[str, int, float]
"""Direction or control, layer and dose; of random controls the size of the dose."""


class SteeringInput(NamedTuple):
    """A paradigm or a task, with prompts and steps.

    Attributes:
        axes: values on axes of all rows.
        dev, test: prompts.
        steps: draws of each cell, one of a direction. Each (draws, H).
        training: rows that describe training states.
        units: name of the units of resampling, at the end of a reason for no interval.
        note: classes and answers; empty for minimal pairs.
    """

    axes: Mapping[str, str]
    dev: Prompts
    test: Prompts
    steps: Mapping[Cell, Floats]
    training: Sequence[Row]
    units: str = "pairs of words are exchanged"
    note: str = ""


def paradigm_inputs(context: ModelContext) -> Iterator[SteeringInput]:
    """The paradigms with enough pairs; a step goes from the base's class to the source's."""
    from probes.families.interventions.readouts import ContinuationLogits

    causal, n = context.model.causal, context.options.examples
    sizes = N_TRAINING + n, n
    for paradigm, parts in contrasts_by_paradigm(context.corpus.items, causal, *sizes).items():
        texts = (text for part in parts for x in part for three in x.texts() for text in three)
        train, test = aligned_pairs(parts, pieces_of(context, texts), causal, sizes)
        n_dev = min(n, max(FEWEST_PAIRS, len(train) // 3))
        n_fitted = min(N_TRAINING, len(train) - n_dev)
        fitted, dev = train[: max(n_fitted, 0)], train[n_fitted:][:n]
        if min(len(fitted), len(dev), len(test)) < FEWEST_PAIRS:
            continue
        prompts = [text for x in fitted for text in (x.base, x.source)]
        end, columns = fitted[0].end, np.zeros((len(prompts), 1), dtype=np.int64)
        collector = ContinuationLogits(end, columns, context.layers, [end - causal])
        vectors = collector.read(context, prompts)[1].double().numpy()[:, :, 0].swapaxes(0, 1)
        classes = np.array([z for x in fitted for z in (x.side, 1 - x.side)])
        states = {k: (x, classes) for k, x in zip(context.layers, vectors, strict=True)}
        axes = {"steered": TASK, "paradigm": paradigm}
        steps = _steps(context, axes, states, paired=True)
        yield SteeringInput(axes, _bases(dev), _bases(test), *steps)


def _bases(pairs: Sequence[Pair]) -> Prompts:
    """Bases of pairs, to be steered to the answers of their sources."""
    answers = [[(source, base) for base, source in pair.answers] for pair in pairs]
    signs = np.array([1 - 2 * pair.side for pair in pairs])
    units = [pair.changed for pair in pairs]
    ends = np.array([pair.end for pair in pairs])
    return Prompts([pair.base for pair in pairs], ends, answers, signs, units)


def task_input(context: ModelContext, task: TaskContext) -> SteeringInput:
    """Texts or chats, to be steered to the answer of the positive class, the second one.

    Raises:
        NotServedError: the task has other than two classes, or reads no single token of a layer.
        UserError: the answers begin with the same token.
    """
    from probes.records.parameters import folded
    from probes.training.standardisation import SpanRows

    name, classes, at = task.task.name, task.examples.classes, task.task.position
    if len(classes) != 2 or task.task.kind != "classification" or at is None:
        raise NotServedError(f"{name}: only texts of two classes are steered")
    if task.task.site or at.is_bag or at.kind in ("mean", "max"):
        remedy = "leave out --sites" if task.task.site else "use --positions last"
        raise NotServedError(f"{name}: not read at one token of a layer; {remedy}")
    vectors = task.vectors.of(at, None)
    (rows,) = task.examples.rows("train", task.view, vectors)
    spans, targets = SpanRows.of(rows), task.examples.targets("train")
    states, probes = {}, {}
    for layer in context.layers:
        states[layer] = spans.means(vectors.layer(layer)).double().numpy(), targets
        if task.spec.family == "linear":
            probes[layer] = folded(task.parameters([layer]), layer, task.task.kind)[0][0][0]
    n, flag = context.options.examples, "--steering-answers"
    dev, test = (text_prompts(context, task, x, n, flag)[0] for x in ("dev", "test"))
    note = about_answers(context, task, test)
    axes = {"steered": name}
    steps = _steps(context, axes, states, paired=False, probes=probes)
    units = task.examples.splits["test"].partition.clusters
    return SteeringInput(axes, dev, test, *steps, units, note)


def stepped(cell: Cell, vector: Floats) -> ChangedPass:
    """The pass that adds a step to all pieces, or gives them the norm that they would have."""
    import torch

    from probes.extraction.changing.interventions import Add, Custom
    from probes.extraction.changing.sites import Site

    def rescaled(states: torch.Tensor) -> torch.Tensor:
        after = (states + torch.from_numpy(vector).to(states)).norm(dim=-1, keepdim=True)
        changed: torch.Tensor = states * (
            after / states.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        )
        return changed

    name, layer, _ = cell
    change: Intervention = Add(layer, vector, "pieces")
    if name == NORM:
        change = Custom("norm of a step", 1, Site("layer", layer), rescaled, "pieces")
    return ChangedPass((change,), layer)


def _steps(
    context: ModelContext,
    axes: Mapping[str, str],
    states: Mapping[int, tuple[Floats, Ints]],
    *,
    paired: bool,
    probes: Mapping[int, Floats] | None = None,
) -> tuple[dict[Cell, Floats], list[Row]]:
    """Steps of all cells, and rows of separation and agreement.

    A step of dose 1 is as long as the distance of the class means along the direction. Random
    steps are as long as those along the mean difference, and shorter (`_control_doses`).

    Args:
        states: training vectors of each layer (n, H), and their classes (n,).
        paired: whether vectors are in turn of base and source, whose classes are then shuffled
            within pairs; otherwise any two may be exchanged.
        probes: weights of the stored probes; None for probes that are fitted here.
    """
    steps: dict[Cell, Floats] = {}
    rows, options = [], context.options
    for layer, (x, z) in states.items():
        rng = np.random.default_rng(layer)
        means, by_name = class_directions(x, z)
        mean = means[1] - means[0]
        if paired:
            differences = (x[1::2] - x[::2]) * (z[1::2] - z[::2])[:, None]
            shuffled = half_signs(len(differences), options.draws, rng) @ differences
        else:
            differences = (x - means[1 - z]) * (2 * z - 1)[:, None]
            shuffled = shuffled_halves(x, z, options.draws, rng)
        agreement = float((projection(differences)[0] @ projection(mean)[0].T).mean())
        rows.append(Row("steering_agreement", agreement, layer, split="train", axes=axes))
        vectors = {name: read.sum(0) for name, (read, _) in by_name.items()}
        vectors |= {} if probes is None else {PROBE: probes.get(layer, np.zeros(len(mean)))}
        for name, vector in vectors.items():
            (unit,), _ = projection(vector)
            distance, within = float(mean @ unit), (x - means[z]) @ unit
            sd = float(np.sqrt(np.square(within).sum() / (len(x) - 2)))
            separation, of = abs(distance) / sd if sd else None, {**axes, "direction": name}
            rows.append(Row("steering_separation", separation, layer, split="train", axes=of))
            steps |= {(name, layer, dose): dose * distance * unit[None] for dose in options.doses}
        length = float(np.linalg.norm(mean))
        random = random_directions(mean, options.draws, rng)[1]
        lengths = (float(np.linalg.norm(x)) for (_, k, _), x in steps.items() if k == layer)
        shortest = min(filter(None, lengths), default=0.0)
        for size in _control_doses(options.doses, shortest / length if length else 0.0):
            steps[RANDOM, layer, size] = size * length * random
            steps[SHUFFLED, layer, size] = size * length * projection(shuffled)[0]
        steps |= {(NORM, layer, dose): dose * mean[None] for dose in options.doses}
    return steps, rows


def _control_doses(doses: Sequence[float], shortest: float) -> list[float]:
    """Sizes of doses at which random controls are measured, down to that of the shortest step.

    Steps along other directions than the mean difference are shorter, by a factor of ten in some
    layers. Effects of random steps grow less than their length, so that a straight line between
    distant sizes would be too low, and p too small.

    Args:
        shortest: as a multiple of the distance of the class means.
    """
    sizes = sorted({abs(dose) for dose in doses})
    if not 0 < shortest < sizes[0]:
        return sizes
    n_smaller = math.ceil(math.log(sizes[0] / shortest, _LARGEST_RATIO))
    return [*np.geomspace(shortest, sizes[0], n_smaller + 1)[:-1].tolist(), *sizes]
