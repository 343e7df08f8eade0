"""Prompts to steer, and the steps that are added to them, fitted to the states of other prompts.

Prompts are bases of minimal pairs, as in `interchange`, or texts and chats of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.errors import UserError
from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import Text, view_over
from probes.families.interventions.controls import random_directions
from probes.families.interventions.directions import (
    LEACE,
    MEAN,
    PROBE,
    RANDOM,
    SHUFFLED,
    class_directions,
)
from probes.families.interventions.experiment import ChangedPass, read_passes, sampled_sentences
from probes.families.interventions.interchange_pairs import (
    Pair,
    aligned_pairs,
    contrasts_by_paradigm,
    pieces_of,
)
from probes.records.row import Row
from probes.statistics.partition import partition

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.data.sentence import Corpus
    from probes.extraction.changing.interventions import Intervention
    from probes.measurements.context import ModelContext, TaskContext

DIRECTIONS, CONTROLS = (MEAN, PROBE, LEACE), (RANDOM, SHUFFLED, NORM := "norm alone")

N_TRAINING, FEWEST_PAIRS = 100, 5
"""Most pairs of a paradigm to fit to, and fewest to fit to, for dev and for test."""

N_NEUTRAL, N_WORDS = 20, 5
"""Sentences of neutral text, and words of each whose loss is measured."""

Cell = tuple[str, int, float]
"""Direction or control, layer and dose; of random controls the size of the dose."""


class Prompts(NamedTuple):
    """Prompts of a split, each with pairs of answers: the one to steer to, and the other.

    Attributes:
        texts: texts that begin with the prompts.
        ends: number of tokens of each prompt. Shape (prompts,).
        answers: first tokens of the answers.
        signs: 1 to step along directions, −1 against them. Shape (prompts,).
        units: words that are exchanged; or twice the document, which is resampled.
    """

    texts: Sequence[Text]
    ends: Ints
    answers: Sequence[Sequence[tuple[int, int]]]
    signs: Ints
    units: Sequence[tuple[str, str]]

    def log_odds(
        self, context: ModelContext, passes: Callable[[int], Sequence[ChangedPass]]
    ) -> Floats:
        """Mean log-odds of the answers to steer to against the others. Shape (passes, prompts).

        Args:
            passes: makes the passes for prompts of one sign.
        """
        from probes.families.interventions.readouts import ContinuationLogits

        # Where a prompt has fewer pairs of answers, the same token stands twice and adds nothing.
        columns = np.zeros((len(self.texts), 2 * max(map(len, self.answers))), dtype=np.int64)
        for row, pairs in zip(columns, self.answers, strict=True):
            row[: 2 * len(pairs)] = np.concatenate(pairs)
        counts = np.array([len(pairs) for pairs in self.answers])
        by_prompt: dict[int, Floats] = {}
        for sign in np.unique(self.signs).tolist():
            rows = np.flatnonzero(self.signs == sign)
            view = view_over((self.texts[i] for i in rows.tolist()), "written")
            collector = ContinuationLogits(self.ends[rows], columns[rows])
            arrays = read_passes(context, passes(sign), view, collector)
            logits = np.stack([x["logits"].double().numpy() for _, x in arrays])
            odds = (logits[..., ::2] - logits[..., 1::2]).sum(-1) / counts[rows]
            by_prompt |= dict(zip(rows.tolist(), odds.T, strict=True))
        return np.stack([by_prompt[i] for i in range(len(self.texts))], axis=1)


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
        view = view_over((text for x in fitted for text in (x.base, x.source)), "written")
        end, columns = fitted[0].end, np.zeros((len(view.texts), 1), dtype=np.int64)
        collector = ContinuationLogits(end, columns, context.layers, [end - causal])
        ((_, arrays),) = read_passes(context, [ChangedPass()], view, collector)
        vectors = arrays["states"].double().numpy()[:, :, 0].swapaxes(0, 1)
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
        UserError: there are no two answers, or they begin with the same token.
    """
    from probes.records.parameters import folded
    from probes.training.standardisation import SpanRows

    name, classes, at = task.task.name, task.examples.classes, task.task.position
    if len(classes) != 2 or task.task.kind != "classification" or at is None:
        raise NotServedError(f"{name}: only texts of two classes are steered")
    if task.task.site or at.is_bag or at.kind in ("mean", "max"):
        remedy = "leave out --sites" if task.task.site else "use --positions last"
        raise NotServedError(f"{name}: not read at one token of a layer; {remedy}")
    answers = context.options.answers
    if len(answers) != 2 or len({"", *answers}) != 3:
        raise UserError(
            f"--steering-answers: give two answers, that of {name} {classes[1]!r} first, such as "
            "--steering-answers ' yes, no'."
        )
    vectors = task.vectors.of(at, None)
    (rows,) = task.examples.rows("train", task.view, vectors)
    spans, targets = SpanRows.of(rows), task.examples.targets("train")
    states, probes = {}, {}
    for layer in context.layers:
        states[layer] = spans.means(vectors.layer(layer)).double().numpy(), targets
        if task.spec.family == "linear":
            probes[layer] = folded(task.parameters([layer]), layer, task.task.kind)[0][0][0]
    dev, test = (_prompts(context, task, split) for split in ("dev", "test"))
    note = (
        f"{name}: {classes[1]!r} is the positive class, with the answer {answers[0]!r}; the other "
        f"is {answers[1]!r}. A prompt with its answer: {test.texts[0].words[0][-80:]!r}."
    )
    axes = {"steered": name}
    steps = _steps(context, axes, states, paired=False, probes=probes)
    units = task.examples.splits["test"].partition.clusters
    return SteeringInput(axes, dev, test, *steps, units, note)


def _prompts(context: ModelContext, task: TaskContext, split: str) -> Prompts:
    """Random texts of a split with the prompt behind them, if they fit into the model's window."""
    options, part = context.options, task.examples.splits[split]
    assert context.tokenizer is not None, "given vectors have no language-model head"
    texts, ends, tokens, numbers = [], [], [], []
    flag = f"--steering-answers {','.join(options.answers)}"
    for number in np.random.default_rng(0).permutation(len(part.texts)).tolist():
        text = part.texts[number]
        # A chat ends with the header of an answer.
        before = context.tokenizer.chats.render(text.words[0]).text if text.chat else text.words[0]
        versions = [
            Text((before + options.prompt + x,), (0, 1), written=True, special=text.rendered)
            for x in ("", *options.answers)
        ]
        pieces = pieces_of(context, versions)
        if len(pieces) < len(versions) or versions[1] in texts:
            continue
        prompt, *both = (pieces[version].ids.tolist() for version in versions)
        differ = (i for i, two in enumerate(zip(*both, strict=False)) if two[0] != two[1])
        if (end := next(differ, len(prompt) + 1)) > len(prompt):
            raise UserError(f"{flag}: they begin with the same token after a prompt; give others.")
        if not context.model.causal and any(len(ids) > end + 1 for ids in both):
            raise UserError(f"{flag}: a masked model answers with one token; give whole tokens.")
        texts.append(versions[1])
        ends.append(end)
        tokens.append([(both[0][end], both[1][end])])
        numbers.append(number)
        if len(texts) == options.examples:
            break
    if not texts:
        raise NotServedError(f"{task.task.name}: no prompt of {split} fits into the model's window")
    documents = part.partition.of_sentence[part.sentence[numbers]].tolist()
    units = [(str(x), str(x)) for x in documents]
    return Prompts(texts, np.array(ends), tokens, np.ones(len(texts), int), units)


def changes_of(
    context: ModelContext, prompts: Prompts, steps: Mapping[Cell, Floats]
) -> dict[Cell, Floats]:
    """Changes of log-odds by cell. Each (draws, prompts)."""
    flat = [(cell, draw) for cell, draws in steps.items() for draw in draws]
    moving = [i for i, (_, draw) in enumerate(flat) if draw.any()]

    def passes(sign: int) -> list[ChangedPass]:
        changed = (flat[i] for i in moving)
        return [ChangedPass(), *(_step(cell, sign * draw) for cell, draw in changed)]

    untouched, *changed = prompts.log_odds(context, passes)
    changes = np.zeros((len(flat), len(untouched)))
    changes[moving] = np.array(changed).reshape(-1, len(untouched)) - untouched
    ends = np.cumsum([len(draws) for draws in steps.values()])
    return dict(zip(steps, np.split(changes, ends[:-1]), strict=True))


def _step(cell: Cell, vector: Floats, **axes: int) -> ChangedPass:
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
    return ChangedPass((change,), layer, axes, ((0, {}),))


def damage_of(
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
    numbers = sampled_sentences(len(sentences), N_NEUTRAL)
    texts, words = loss_words([sentences[i] for i in numbers], context.model.causal)
    rng = np.random.default_rng(0)  # the head costs more than blocks
    words = {text: np.sort(rng.permutation(x)[:N_WORDS]) for text, x in words.items()}
    with_words = [i for i, text in enumerate(texts) if len(words[text])]
    clusters = partition([x.document for x in sentences], split)
    questions = Questions(
        [texts[i] for i in with_words], words, (), numbers[with_words], numbers[:0], clusters, split
    )
    changed = (_step(cell, draws[0], step=i) for i, (cell, draws) in enumerate(steps.items()))
    rows = own_answers(context, [ChangedPass(), *changed], questions, LossBesideStart)
    return {cell: row.value or 0.0 for cell, row in zip(steps, rows, strict=True)}


def _steps(
    context: ModelContext,
    axes: Mapping[str, str],
    states: Mapping[int, tuple[Floats, Ints]],
    *,
    paired: bool,
    probes: Mapping[int, Floats] | None = None,
) -> tuple[dict[Cell, Floats], list[Row]]:
    """Steps of all cells, and rows of separation and agreement.

    A step of dose 1 is as long as the distance of the class means along the direction; random
    steps are as long as that of the mean difference.

    Args:
        states: training vectors of each layer (n, H), and their classes (n,).
        paired: whether vectors are in turn of base and source, whose classes are then shuffled
            within pairs; otherwise any two may be exchanged.
        probes: weights of the stored probes; None for probes that are fitted here.
    """
    steps: dict[Cell, Floats] = {}
    rows, options = [], context.options
    for layer, (x, z) in states.items():
        rng, means = np.random.default_rng(layer), np.stack([x[z == k].mean(0) for k in (0, 1)])
        mean = means[1] - means[0]
        if paired:
            differences = (x[1::2] - x[::2]) * (z[1::2] - z[::2])[:, None]
            shuffled = _half_signs(len(differences), options.draws, rng) @ differences
        else:
            differences = (x - means[1 - z]) * (2 * z - 1)[:, None]
            classes = x[z == 0], x[z == 1]
            shuffled = sum(_half_signs(len(one), options.draws, rng) @ one for one in classes)
        agreement = float((_units(differences) @ _units(mean)).mean())
        rows.append(Row("steering_agreement", agreement, layer, split="train", axes=axes))
        vectors = {name: read.sum(0) for name, (read, _) in class_directions(x, z).items()}
        vectors |= {} if probes is None else {PROBE: probes.get(layer, np.zeros(len(mean)))}
        for name, unit in ((name, _units(vector)) for name, vector in vectors.items()):
            distance, within = float(mean @ unit), (x - means[z]) @ unit
            sd = float(np.sqrt(np.square(within).sum() / (len(x) - 2)))
            separation, of = abs(distance) / sd if sd else None, {**axes, "direction": name}
            rows.append(Row("steering_separation", separation, layer, split="train", axes=of))
            steps |= {(name, layer, dose): dose * distance * unit[None] for dose in options.doses}
        length = float(np.linalg.norm(mean))
        random = random_directions(mean, options.draws, rng)[1]
        for size in dict.fromkeys(map(abs, options.doses)):
            steps[RANDOM, layer, size] = size * length * random
            steps[SHUFFLED, layer, size] = size * length * _units(shuffled)
        steps |= {(NORM, layer, dose): dose * mean[None] for dose in options.doses}
    return steps, rows


def _half_signs(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """Signs that exchange the classes of a random half of examples; they add up to 0. (draws, n).

    Otherwise, shuffled classes would keep a part of the class difference, and where nothing else
    differs, all of it.
    """
    signs = rng.permuted(np.tile(np.arange(n) % 2 * 2.0 - 1, (draws, 1)), axis=1)
    centred: Floats = signs - signs.mean(1, keepdims=True)
    return centred


def _units(vectors: Floats) -> Floats:
    """Vectors of length 1, on the last axis; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units
