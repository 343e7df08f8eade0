"""Erasure: the cost of making a task's labels undecodable at a layer.

At one layer, an eraser removes what a linear probe could read (LEACE, Belrose et al. 2023) from
every piece of every word, and the pass goes on (amnesic probing, Elazar et al. 2021). Two controls
show what any such change costs: erasing labels of the control task, and erasing random directions.
Each control has several draws.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.errors import NoHeadError
from probes.examples.examples import NotServedError
from probes.examples.scoring import control_labels, has_types
from probes.families.interventions import ErasureOptions
from probes.families.interventions.erasers import Eraser, Moments, leace, random_subspace
from probes.families.interventions.own_answers import (
    CLOZE,
    LOG_ODDS,
    LOSS,
    NO_HEAD,
    SMALLEST,
    Variant,
    own_answers,
    questions,
)
from probes.families.interventions.probed_sample import (
    ProbedSample,
    SampledExamples,
    csv_lines_by_task,
    drawn,
    probed_samples,
    read_samples,
    vectors_compared,
)
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import PlacesOf
from probes.measurements.stored_probes import predictions, span_means
from probes.records.row import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats
    from probes.examples.examples import Examples
    from probes.extraction.views import Text
    from probes.measurements.context import ModelContext, TaskContext
    from probes.training.layer_probe import LayerProbe

DROP, SCORE = "erasure_drop", "probe_score"

LABELS, CONTROL, RANDOM, NOTHING = "labels", "control task", "random", "nothing"
"""Values of ``eraser``, and of ``less``, the drop subtracted (``nothing``: none)."""

DRAWS = 5
"""Number of draws of control labels, and of random directions."""

_ROWS = 1 << 13
"""Number of examples whose moments are summed at a time."""

_FROM_LAST = {"at": PlacesOf("cka"), "probes": "own"}

_LESS = {("less", NOTHING): "", ("less", CONTROL): "less control task"}


@measurement(
    "erasure",
    of="model",
    after="scores",
    version=3,
    options=ErasureOptions,
    head="used",
    csv_lines=csv_lines_by_task,
    views=(
        Pivot(
            "the task's probe at the last layer",
            (DROP,),
            columns=("fit", "eraser", "less"),
            where={**_FROM_LAST, "less": (NOTHING, CONTROL)},
            apart="erased",
            places=_LESS,
            note="Drop of the score, in points. Rows: the layer where labels are erased.",
        ),
        Pivot(
            "the model's own answers",
            (LOSS, CLOZE, SMALLEST, LOG_ODDS),
            columns=("metric", "eraser", "less"),
            where={"less": (NOTHING, CONTROL)},
            apart="erased",
            places=_LESS,
        ),
        Pivot(
            "other tasks' probes at the last layer",
            (DROP,),
            columns=("predicts",),
            where={**_FROM_LAST, "probes": "other", "eraser": LABELS, "less": CONTROL},
            apart="erased",
            note="Drop minus the drop from erasing the labels of the control task.",
        ),
        Lines(
            "erasure",
            (SCORE, DROP, CLOZE),
            title="Score, and drop if erased",
            note="Score of the layer's probe. Drop: loss of the last layer's frozen probe, and of "
            "the model's own agreement, if labels are erased at this layer, minus the loss from "
            "erasing labels of the control task.",
            where={
                "eraser": (LABELS, None),
                "less": (CONTROL, None),
                "fit": ("frozen", None),
                "probes": ("own", None),
                "at": PlacesOf("cka", or_none=True),
            },
            apart="erased",
        ),
        Cells(
            "recovered",
            DROP,
            across="at",
            apart="erased",
            where={"eraser": LABELS, "less": NOTHING, "fit": "again", "probes": "own"},
            title="lost to a probe that is fitted again",
            note="Rows: the layer where labels are erased; columns: the probed layer.",
        ),
    ),
)
def erasure(context: ModelContext) -> Found:
    """Cost of erasing a task's labels at each layer for probes and the model's answers.

    The task ``erased`` is erased at the ``layer`` of the row. ``erasure_drop`` is the loss of the
    probe of layer ``at`` on a task (``predicts``; ``probes`` is ``own`` if that is the erased
    task). ``fit`` is ``frozen`` for the reported probe, or ``again`` for one fitted to the changed
    vectors of a training sample, compared with one fitted to the untouched vectors. ``eraser``
    names what is erased: ``labels``, labels of the ``control task``, or ``random`` directions that
    change vectors as much. ``less`` names the control whose drop was subtracted. The last layer has
    p, corrected over the layers of erasure.

    The model's own answers are those of `ablation`. ``probe_score`` is the reported score of the
    layer; ``erased_rank`` and ``erased_variance`` give the size of the change. Values of controls
    are means over `DRAWS` draws, whose variance is part of intervals and tests.

    Raises:
        NotServedError: no scored task has probes that can be applied again.
    """
    options = context.options
    sample = drawn(len(context.corpus.splits["test"]), options.sentences)
    tasks, notes = probed_samples(context, sample, 1)
    asked = questions(context, "test", sample)
    rows: list[Row] = []
    for task in tasks:
        targets = _targets(task.context.examples)
        steps = {layer: _steps(task, layer, targets) for layer in task.layers}
        variants = _variants(task.name, steps)
        every, _ = probed_samples(context, sample, len(variants))
        rows += _sizes(task, steps)
        rows += _mean_of_draws(_read(context, task.name, every, variants, options.training))
        try:
            rows += own_answers(context, variants, asked)
        except NoHeadError:
            notes.append(NO_HEAD)
        if len(targets) == 1:
            notes.append(f"{task.name} has no control task: its examples have no types.")
    return Found(rows, facts={"sentences": len(sample)}, notes=list(dict.fromkeys(notes)))


def _variants(task: str, steps: Mapping[int, Mapping[str, Sequence[Step]]]) -> list[Variant]:
    """The untouched pass; then at each layer the erasure of labels and the controls."""
    from probes.extraction.interventions import Erase

    found = [Variant()]
    for layer, of_layer in steps.items():
        every = [(name, step) for name, draws in of_layer.items() for step in draws]
        first = {name: len(found) + place for place, (name, _) in reversed([*enumerate(every)])}
        for name, step in every:
            others = [each for each in of_layer if each != LABELS] if name == LABELS else []
            against = [(0, {"less": NOTHING}), *((first[x], {"less": x}) for x in others)]
            change = Erase(layer, *step.eraser, positions="pieces")
            axes = {"erased": task, "eraser": name}
            found.append(Variant((change,), layer, axes, tuple(against), first[name]))
    return found


class Step(NamedTuple):
    """An eraser at a layer, and the change of vectors that it makes (`Eraser.change`)."""

    eraser: Eraser
    change: float


def _targets(examples: Examples) -> list[NDArray[Any]]:
    """The labels of train, then draws of the control task's labels if there is one."""
    control = control_labels(examples, "train", range(DRAWS)) if has_types(examples) else ()
    return [examples.targets("train"), *control]


def _steps(
    task: ProbedSample, layer: int, targets: Sequence[NDArray[Any]]
) -> dict[str, list[Step]]:
    """Erasers of the labels and of all draws of the controls.

    Args:
        targets: see `_targets`.
    """
    both = _moments(task.context, layer, targets)
    width = both.xz.shape[-1] // len(targets)
    found = defaultdict(list)
    for number in range(len(targets)):
        eraser = leace(both.with_labels(slice(number * width, (number + 1) * width)))
        found[CONTROL if number else LABELS].append(Step(eraser, eraser.change(both)))
    for seed in range(DRAWS):
        eraser = random_subspace(both, found[LABELS][0].change, seed)
        found[RANDOM].append(Step(eraser, eraser.change(both)))
    return dict(found)


def _moments(context: TaskContext, layer: int, targets: Sequence[NDArray[Any]]) -> Moments:
    """Moments of all training examples at one layer.

    Args:
        targets: several sets of labels in the form of `Examples.targets`; their columns are put
            side by side.
    """
    import torch

    from probes.training.standardisation import SpanRows, gather

    vectors = context.vectors.layer(layer)
    examples, n = context.examples, len(targets[0])
    spans = examples.rows("train", context.view, context.vectors)

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for first in range(0, n, _ROWS):
            part = slice(first, min(first + _ROWS, n))
            out = torch.empty(part.stop - first, len(spans) * vectors.shape[1])
            gather(vectors, [SpanRows.of(span[part]) for span in spans], out)
            labels = [as_columns(examples, each[part]) for each in targets]
            yield out.numpy().reshape(len(out), len(spans), -1), np.concatenate(labels, axis=1)

    return Moments.of(blocks())


def as_columns(examples: Examples, targets: NDArray[Any]) -> Floats:
    """Labels as numbers: a column for each class or label, or the number itself. Shape (n, K).

    Args:
        targets: in the form of `Examples.targets`.
    """
    if examples.members is not None:
        return examples.members[targets, : len(examples.classes)].astype(np.float64)
    if not examples.classes:
        return targets[:, None].astype(np.float64)
    found: Floats = np.eye(len(examples.classes))[targets]
    return found


def _sizes(task: ProbedSample, steps: Mapping[int, Mapping[str, Sequence[Step]]]) -> Iterator[Row]:
    """The score of each layer's probe, and the size of the erasure."""
    context = task.context
    for layer, of_layer in steps.items():
        if score := context.result.at(context.task.metric, layer):
            between, axes = (score.low, score.high), {"erased": task.name}
            yield Row(SCORE, score.value, layer, *between, n=score.n, axes=axes)
        for name, draws in of_layer.items():
            axes = {"erased": task.name, "eraser": name}
            rank, change = np.mean([(x.eraser.rank, x.change) for x in draws], axis=0).tolist()
            yield Row("erased_rank", rank, layer, split="train", axes=axes)
            yield Row("erased_variance", change, layer, split="train", axes=axes)


def _mean_of_draws(rows: Iterable[Row]) -> Iterator[Row]:
    """Replace rows that differ only in value by one row with their mean."""
    every = defaultdict(list)
    for row in rows:
        every[row.metric, row.layer, *row.axes.items()].append(row)
    for some in every.values():
        yield some[0]._replace(value=float(np.mean([row.value for row in some])))


def _read(
    context: ModelContext,
    erased: str,
    tasks: Sequence[ProbedSample],
    variants: Sequence[Variant],
    n_training: int,
) -> Iterator[Row]:
    """Let frozen probes of all tasks, and new ones of the erased task, predict in every pass.

    Args:
        erased: name of the erased task.
        n_training: number of training sentences for new probes.
    """
    again: list[Row] = []
    for name in dict.fromkeys(each.view for each in tasks):
        some = [each for each in tasks if each.view == name]
        own = next((each for each in some if each.name == erased), None)
        new = Refitted(own, n_training) if own else None
        samples = [*some, *([new.train] if new else [])]
        for number, _, first, vectors in read_samples(context, samples, variants, name):
            for each in some:
                each.take(number, vectors, first)
            if new:
                new.take(number, vectors, first)
            if not number:
                base = vectors
            elif new:
                yield from vectors_compared(variants[number], vectors, base)
        if own and new:
            again += own.rows(variants, DROP, new.predicted, fit="again", probes="own")
    for each in tasks:
        whose = "own" if each.name == erased else "other"
        yield from each.rows(variants, DROP, each.predicted, fit="frozen", probes=whose)
    yield from again


class Refitted:
    """Probes of a task, fitted again to the vectors of every pass.

    Args:
        test: examples to predict.
        n_sentences: number of random training sentences with examples.

    Attributes:
        train: the training examples.
        predicted: see `ProbedSample`.
    """

    def __init__(self, test: ProbedSample, n_sentences: int) -> None:
        with_examples = np.unique(test.context.examples.splits["train"].sentence)
        sentences = with_examples[drawn(len(with_examples), n_sentences)]
        self._test, self.train = test, SampledExamples(test.context, "train", sentences)
        self.predicted = np.empty_like(test.predicted)

    @cached_property
    def _dtype(self) -> Any:
        """The stored type; its rounding hides tiny differences that probes would scale up."""
        import torch

        return getattr(torch, self._test.context.vectors.layer(self._test.layers[0]).dtype.name)

    def take(self, number: int, vectors: Mapping[int, Any], first: Mapping[Text, int]) -> None:
        """Fit and predict; see `ProbedSample.take`."""
        spans = self.train.spans(first), self._test.spans(first)
        for place, layer in enumerate(self._test.layers):
            if layer in vectors:
                train, test = (span_means(vectors[layer], x).to(self._dtype) for x in spans)
                self.predicted[number, place] = predictions(self._fitted(train), test)

    def _fitted(self, features: Any) -> LayerProbe:
        from probes.training.layer_probe import LayerProbe

        context, kept = self._test.context, self.train.kept
        labels = context.examples.targets("train")[kept]
        if context.examples.classes and len(np.unique(labels)) < 2:
            raise NotServedError(
                f"{self._test.name}: the training sentences drawn have only one label; raise "
                "--erasure-training"
            )
        if context.task.kind == "multi-label":
            labels = as_columns(context.examples, labels)
        weight = "balanced" if context.task.metric == "balanced_accuracy" else None
        about = context.spec.family, context.task.kind
        probe = LayerProbe(*about, device=str(context.device), class_weight=weight)
        return probe.fit(features, labels, groups=self.train.split.sentence[kept])
