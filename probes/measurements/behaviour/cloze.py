"""Cloze agreement (Goldberg 2019): does the model itself prefer the right form of a hidden verb?

The examples are those of the task `agreement`, so that the same verbs are asked of the probe of
every layer, which reads their number from a vector, and of the model, which fills them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.examples.examples import NotServedError
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Found, Level, Measurement
from probes.measurements.pivots import Pivot
from probes.measurements.verb_forms import TASK, Answers, Forms, Question, answered
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.partition import Partition
from probes.statistics.ratios import RatioParts, difference, estimate, p_values
from probes.tasks.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats
    from probes.measurements.context import Context

_CELLS = {
    "both": (True, True),
    "decodable_only": (True, False),
    "used_only": (False, True),
    "neither": (False, False),
}
"""Whether the probe is right, and whether the model is."""


class Cloze(Measurement):
    """What the model fills in for a hidden verb, beside what probes read from its place.

    Rows of test: ``cloze_accuracy`` overall, by the ``group`` of attractors and by the verb's
    number, each also of the ``baseline`` of the commoner number; for the examples
    whose two forms have one token each, with ``tokens`` 1. By layer: ``decodable``, the accuracy of
    the probe on the same examples; the shares ``both``, ``decodable_only``, ``used_only`` and
    ``neither``; and ``decodable_less_used`` with p, corrected over layers.

    Arrays: ``used`` (examples,), 1 where the model prefers the right form, ½ for a tie, NaN for
    examples that are left out.
    """

    name = "cloze"
    asks = ("scores",)
    summary = "agreement: the model's own answers, beside what its layers' probes can tell"
    needs = ("lemmas",)
    reads_head = True
    of_items = "completion"
    shares_arrays = True
    of_twins = True
    views = (
        Pivot(
            "the model's own answers, %",
            ("cloze_accuracy",),
            rows="group",
            columns=("baseline", "tokens"),
            places={1: "forms of one token"},
            note="Share of verbs whose right form the model finds likelier than its other number.",
        ),
        Pivot(
            "decodable and used, %",
            ("decodable", "both", "decodable_only", "used_only", "neither", "decodable_less_used"),
            columns=("metric",),
            note="Decodable: the probe is right; used: the model is. On the same verbs.",
        ),
        Lines(
            "decodable_and_used",
            "decodable",
            title="agreement: decodable in layers, and used",
            note="The level is the model's own answer on the same verbs.",
            levels={"used": "cloze_accuracy"},
        ),
    )

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only `agreement` hides a word that has two forms."""
        return "" if task.name == TASK else f"only {TASK} hides a word that has another form"

    def compute(self, context: Context) -> Found:
        """Ask the model, and compare its answers with those of the probes.

        Raises:
            NotServedError: no test example has another form in the training split.
        """
        split = context.examples.splits["test"]
        sentences = [context.corpus.splits["test"][i] for i in split.sentence]
        forms = Forms.of(context.corpus.splits["train"])
        asked = [
            forms.question(s, example) for s, example in zip(sentences, split.examples, strict=True)
        ]
        reasons = Counter(x for x in asked if isinstance(x, str))
        if not (questions := [x for x in asked if not isinstance(x, str)]):
            raise NotServedError("no verb of test has a form of the other number in train")
        own = np.array([not isinstance(x, str) for x in asked])
        found = answers(context, questions)
        alike = found.comparable
        if not alike.all():
            reasons["with forms of different numbers of tokens"] = int((~alike).sum())
        if not alike.any():
            raise NotServedError("no verb of test has two forms of as many tokens")
        own[own] = alike
        preferred, one_token = found.right[alike], (found.n_tokens == 1).all(axis=1)[alike]
        part, sentence = split.partition, split.sentence[own]

        def parts(values: Floats, some: NDArray[np.bool_] | slice = slice(None)) -> RatioParts:
            return RatioParts.of_examples(values[some], sentence[some], len(part.of_sentence))

        def row(name: str, its: RatioParts, layer: int | None = None, **axes: Any) -> Row:
            found = estimate(its, part)
            return Row(name, found.value, layer, *ends(found.interval), n=its.n, axes=axes)

        gold, train = (context.examples.targets(name) for name in ("test", "train"))
        commonest = gold == np.bincount(train[train >= 0]).argmax()
        majority = commonest[own].astype(float)
        rows = [
            row("cloze_accuracy", parts(preferred)),
            row("cloze_accuracy", parts(majority), baseline="majority"),
        ]
        asked_of = [x for x, kept in zip(split.examples, own, strict=True) if kept]
        groups = [(*x.groups, f"verb {x.label}") for x in asked_of]
        for name in sorted({name for each in groups for name in each}):
            some = np.array([name in each for each in groups])
            rows += [
                row("cloze_accuracy", parts(preferred, some), group=name),
                row("cloze_accuracy", parts(majority, some), group=name, baseline="majority"),
            ]
        if one_token.any():
            rows.append(row("cloze_accuracy", parts(preferred, one_token), tokens=1))
        right = (context.predicted(context.layers) == gold)[:, own]
        probes = {}
        for layer, its in zip(context.layers, right.astype(float), strict=True):
            probes[layer] = parts(its)
            rows.append(row("decodable", probes[layer], layer))
            for name, (decodable, used) in _CELLS.items():
                cell = (its if decodable else 1 - its) * (preferred if used else 1 - preferred)
                rows.append(row(name, parts(cell), layer))
        rows += beside(parts(preferred), probes, part)
        answered = np.full(len(asked), np.nan)
        answered[own] = preferred
        facts = {"examples": len(preferred)} | {f"left out, {x}": n for x, n in reasons.items()}
        notes = [f"{n} of {len(asked)} verbs are left out: {x}." for x, n in reasons.items()]
        if not sentences[0].written:
            notes.append(
                "The corpus does not say how its words are spaced: each has a space before it."
            )
        return Found(rows, {"used": answered}, facts=facts, notes=notes)


def answers(context: Context, questions: Sequence[Question]) -> Answers:
    """What the model says to questions."""
    from probes.extraction.token_scores import TokenScores, scored
    from probes.extraction.views import view_over

    view = view_over((text for each in questions for text in each), "written")
    found = list(context.read(view, TokenScores()))
    parts = [{name: x.numpy() for name, x in arrays.items()} for _, arrays in found]
    return answered(scored(view, [shard for shard, _ in found], parts), questions)


def beside(
    used: RatioParts, probes: Mapping[int, RatioParts], partition: Partition
) -> Iterator[Row]:
    """By layer, how much more often the probe is right; p is corrected over layers."""
    tests = p_values([(its, used) for its in probes.values()], partition)
    for (layer, its), p in zip(probes.items(), tests, strict=True):
        found = difference(its, used, partition)
        low, high = ends(found.interval)
        yield Row("decodable_less_used", found.value, layer, low, high, n=used.n, p=p)
