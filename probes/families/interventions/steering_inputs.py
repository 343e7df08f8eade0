"""Prompts to steer, states of training prompts, and the steps that are added to a layer.

Prompts are made of minimal pairs (the bases of `interchange`), or of the texts or chats of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.errors import UserError
from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import Text, view_over
from probes.families.interventions.controls import random_directions, shuffled_classes
from probes.families.interventions.directions import PROBE, class_directions
from probes.families.interventions.experiment import ChangedPass, read_passes, resampling_units
from probes.families.interventions.interchange_pairs import (
    Pair,
    aligned_pairs,
    contrasts_by_paradigm,
    pieces_of,
)

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.families.interventions import SteeringOptions
    from probes.measurements.context import ModelContext, TaskContext

N_TRAINING = 100
"""Most pairs of prompts of a paradigm that directions are fitted to."""

FEWEST_PROMPTS = 5
"""Number of pairs for training, dev and test that a paradigm must have."""


class Prompts(NamedTuple):
    """Prompts of a split, with pairs of answers: the one to steer to, and the other.

    Attributes:
        texts: texts that begin with the prompts.
        ends: number of tokens of each prompt. Shape (prompts,).
        answers: first tokens of the answers.
        signs: 1 to step along the direction, −1 against it. Shape (prompts,).
        units: unit of resampling of each prompt.
    """

    texts: Sequence[Text]
    ends: Ints
    answers: Sequence[Sequence[tuple[int, int]]]
    signs: Ints
    units: Sequence[str]

    def log_odds(
        self, context: ModelContext, passes: Callable[[int], Sequence[ChangedPass]]
    ) -> Floats:
        """Log-odds of the first answer against the other, mean over pairs. (passes, prompts).

        Args:
            passes: makes the passes for prompts of a sign.
        """
        from probes.families.interventions.readouts import ContinuationLogits

        width = max(map(len, self.answers))
        # Missing pairs of answers are twice the same token, and count nothing.
        columns = np.array([sum(x, ()) + (0, 0) * (width - len(x)) for x in self.answers])
        counts, parts = np.array(list(map(len, self.answers))), {}
        for sign in np.unique(self.signs).tolist():
            rows = np.flatnonzero(self.signs == sign)
            view = view_over((self.texts[i] for i in rows), "written")
            collector = ContinuationLogits(self.ends[rows], columns[rows])
            logits = np.stack(
                [
                    arrays["logits"].double().numpy()
                    for _, arrays in read_passes(context, passes(sign), view, collector)
                ]
            )
            odds = (logits[..., ::2] - logits[..., 1::2]).sum(-1) / counts[rows]
            parts |= dict(zip(rows.tolist(), odds.T, strict=True))
        return np.stack([parts[i] for i in range(len(self.texts))], axis=1)


class SteeringInput(NamedTuple):
    """A paradigm, or a task of two classes of texts.

    Attributes:
        axes: its values on axes.
        dev, test: prompts of these splits.
        states: training vectors of a layer in float64 (n, H), and class of each, 0 or 1; those of
            minimal pairs are in turn of the one and the other prompt.
        paired: whether they are of minimal pairs.
        probe: weights of the stored linear probe of a layer (H,); None for those fitted here.
        note: a sentence on classes and answers.
    """

    axes: Mapping[str, str]
    dev: Prompts
    test: Prompts
    states: Callable[[int], tuple[Floats, Ints]]
    paired: bool
    probe: Callable[[int], Floats] | None
    note: str


class Steps(NamedTuple):
    """Steps of dose 1 at a layer: as long as the distance of the class means along the direction.

    Attributes:
        directions: by name. Each (H,).
        random, shuffled: controls, as long as the mean difference. Each (draws, H).
        separation: distance of the means along each direction, in standard deviations in classes.
        agreement: mean cosine of training differences with their mean.
    """

    directions: Mapping[str, Floats]
    random: Floats
    shuffled: Floats
    separation: Mapping[str, float]
    agreement: float


def steps_at(group: SteeringInput, layer: int, draws: int) -> Steps:
    """Fit directions to the training states of a layer, and draw controls."""
    x, z = group.states(layer)
    rng = np.random.default_rng([layer, len(x)])
    means = np.stack([x[z == 0].mean(0), x[z == 1].mean(0)])
    mean = means[1] - means[0]
    differences = (x[1::2] - x[::2]) * (z[1::2] - z[::2])[:, None]
    if group.paired:
        shuffled = shuffled_classes(differences, draws, rng)[1]
    else:  # of each text and the other class's mean
        differences = (x - means[1 - z]) * (2 * z - 1)[:, None]
        classes = rng.permuted(np.tile(z, (draws, 1)), axis=1)
        shuffled = _units(classes @ x / z.sum() - (1 - classes) @ x / (1 - z).sum())
    vectors = class_directions(x, z)
    if group.probe:
        vectors[PROBE] = group.probe(layer)
    units = {name: _units(vector) for name, vector in vectors.items()}
    within = x - means[z]
    deviation = {name: np.sqrt(np.square(within @ v).sum() / (len(x) - 2)) for name, v in units.items()}
    length = float(np.linalg.norm(mean))
    return Steps(
        {name: (mean @ v) * v for name, v in units.items()},
        length * random_directions(mean, draws, rng)[1],
        length * shuffled,
        {name: abs(mean @ v) / deviation[name] for name, v in units.items() if deviation[name]},
        float((_units(differences) @ _units(mean)).mean()),
    )


def _units(vectors: Floats) -> Floats:
    """Vectors of length 1, on the last axis; a vector of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def paradigm_inputs(context: ModelContext) -> Iterator[SteeringInput]:
    """The paradigms of minimal pairs that have enough pairs of prompts; see `interchange`.

    A step of positive dose goes from the class of the prompt to that of the other one.
    """
    from probes.families.interventions.readouts import ContinuationLogits

    causal, n = context.model.causal, context.options.examples
    sizes = N_TRAINING + n, n
    for paradigm, parts in contrasts_by_paradigm(context.corpus.items, causal, *sizes).items():
        texts = (y for part in parts for x in part for two in x.texts() for y in two)
        train, test = aligned_pairs(parts, pieces_of(context, texts), causal, sizes)
        n_dev = min(n, len(train) // 3)
        fitted, dev = train[: len(train) - n_dev][:N_TRAINING], train[len(train) - n_dev :]
        if min(len(fitted), len(dev), len(test)) < FEWEST_PROMPTS:
            continue
        view = view_over((text for x in fitted for text in (x.base, x.source)), "written")
        end, place = fitted[0].end, fitted[0].end - causal
        no_columns = np.zeros((len(view.texts), 1), dtype=np.int64)
        collector = ContinuationLogits(end, no_columns, context.layers, [place])
        ((_, arrays),) = read_passes(context, [ChangedPass()], view, collector)
        vectors = arrays["states"][:, :, 0].double().numpy()
        classes = np.array([z for x in fitted for z in (x.side, 1 - x.side)])

        def states(
            layer: int, vectors: Floats = vectors, classes: Ints = classes
        ) -> tuple[Floats, Ints]:
            return vectors[:, context.layers.index(layer)], classes

        axes = {"steered": TASK, "paradigm": paradigm}
        yield SteeringInput(axes, _of_pairs(dev), _of_pairs(test), states, True, None, "")


def _of_pairs(pairs: Sequence[Pair]) -> Prompts:
    """Bases, to be steered to the answers of their sources."""
    return Prompts(
        [pair.base for pair in pairs],
        np.array([pair.end for pair in pairs]),
        [[(source, base) for base, source in pair.answers] for pair in pairs],
        np.array([1 - 2 * pair.side for pair in pairs]),
        resampling_units([pair.changed for pair in pairs]),
    )


def task_input(context: ModelContext, task: TaskContext) -> SteeringInput:
    """Texts or chats of a task, to be steered to the answer of the second class.

    Raises:
        NotServedError: the task has other than two classes, or reads no single token of a layer.
        UserError: there are no two answers, or they begin with the same token.
    """
    from probes.training.standardisation import SpanRows

    options, examples, position = context.options, task.examples, task.task.position
    if len(examples.classes) != 2 or task.task.kind != "classification" or task.task.shape != "text":
        raise NotServedError(f"{task.task.name}: texts of two classes are steered, and no others")
    if task.task.site or position is None or position.is_bag or position.kind in ("mean", "max"):
        raise NotServedError(
            f"{task.task.name}: steered along vectors of one token of a layer; add last to "
            "--positions"
        )
    if len(options.answers) != 2:
        raise UserError(
            f"--steering-answers: give two words to answer with, that of {examples.classes[1]!r} "
            f"first, e.g. --steering-answers ' yes, no'."
        )
    (rows,) = examples.rows("train", task.view, task.vectors)
    spans, classes = SpanRows.of(rows), examples.targets("train")

    def states(layer: int) -> tuple[Floats, Ints]:
        return spans.means(task.vectors.layer(layer)).double().numpy(), classes

    def probe(layer: int) -> Floats:
        from probes.records.parameters import folded

        ((weight, _),) = folded(task.parameters([layer]), layer, task.task.kind)
        return weight[0]

    dev, test = (_of_texts(context, task, split) for split in ("dev", "test"))
    note = (
        f"{task.task.name}: {examples.classes[1]!r} is the positive class, whose answer is "
        f"{options.answers[0]!r}, the other's {options.answers[1]!r}. A prompt with both: "
        f"{test.texts[0].words[0][-80:]!r}."
    )
    stored = probe if task.spec.family == "linear" else None
    return SteeringInput({"steered": task.task.name}, dev, test, states, False, stored, note)


def _of_texts(context: ModelContext, task: TaskContext, split: str) -> Prompts:
    """Random texts of a split with the prompt behind them, those that fit the model's window."""
    options, part = context.options, task.examples.splits[split]
    assert context.tokenizer is not None, "given vectors have no language-model head"
    order = np.random.default_rng(0).permutation(len(part.texts)).tolist()
    number_by_text = {part.texts[i]: i for i in order}
    prompts, chosen = [], []
    for text, number in number_by_text.items():
        if len(prompts) == options.examples:
            break
        written = text.words[0]
        if text.chat:
            written = context.tokenizer.chats.render(written).text
        special = text.special or text.chat
        versions = [
            Text((written + options.prompt + x,), (0, 1), written=True, special=special)
            for x in ("", *options.answers)
        ]
        pieces = pieces_of(context, versions)
        if len(pieces) < len(versions):
            continue
        prompt, first, second = (pieces[x].ids.tolist() for x in versions)
        pairs = enumerate(zip(first, second, strict=False))
        end = next((i for i, (x, y) in pairs if x != y), None)
        if end is None or end > len(prompt):
            raise UserError(
                f"--steering-answers {','.join(options.answers)}: both begin with the same token "
                f"after {versions[0].words[0][-40:]!r}; give others."
            )
        if not context.model.causal and not len(first) == len(second) == end + 1:
            raise UserError(
                f"--steering-answers {','.join(options.answers)}: a masked model answers with one "
                "token; give words that are whole tokens."
            )
        prompts.append((versions[1], end, (first[end], second[end])))
        chosen.append(number)
    if not prompts:
        raise NotServedError(f"{task.task.name}: no prompt of {split} fits into the model's window")
    texts, ends, answers = zip(*prompts, strict=True)
    units = part.partition.of_sentence[part.sentence[chosen]]
    return Prompts(
        texts, np.array(ends), [[x] for x in answers], np.ones(len(texts), int), list(map(str, units))
    )
