"""Ablation: what a model loses if one of its heads, or of its blocks, is disabled.

Each head in turn is disabled as by Kovaleva et al. (2019, section 4.6): its attention becomes
uniform. So do all heads of a layer; and each block is skipped. The probes whose scores are reported
stay as they are, and are applied to the vectors of all layers from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from pydantic import Field, PositiveInt

from probes.common.errors import NoHeadError
from probes.examples.examples import NotServedError
from probes.measurements.chart_views import Cells
from probes.measurements.choosing import PlacesOf
from probes.measurements.measurement import Found, Measurement, Request
from probes.measurements.pivots import Pivot
from probes.measurements.stored_probes import StoredProbes, why_not
from probes.measurements.verb_forms import TASK, Forms, Question, answered, spaced
from probes.records.base import Frozen
from probes.records.record import Extent, Record
from probes.records.row import Place, Row
from probes.records.table import NOTHING, Table, TableRow
from probes.records.titles import subject_title
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, cluster_sums, draws_of, informative, interval
from probes.statistics.cka import linear_cka
from probes.statistics.estimates import means
from probes.statistics.formatting import shown, shown_p
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.replicates import Replicates, p_values_of

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.extraction.interventions import Intervention
    from probes.extraction.views import Text
    from probes.extraction.windows import Pooling
    from probes.measurements.context import Context

DROP, LOSS, CLOZE = "ablation_drop", "loss_increase", "cloze_drop"

HEAD, ATTENTION, BLOCK = "head", "attention", "block"
"""What is disabled: one head, all heads of a layer, or the whole block, which is skipped."""


class AblationOptions(Frozen):
    """What can be set."""

    sentences: PositiveInt = Field(
        default=300, description="test sentences, drawn at random, that are read for every head"
    )
    how: Literal["uniform", "zero"] = Field(
        default="uniform", description="attention of a disabled head; or zero: its output is 0"
    )


class Variant(NamedTuple):
    """A pass with something disabled, and the pass that it is compared with.

    Attributes:
        layer, head: where; a head of None stands for all of the layer.
        base: the place of the untouched pass among the variants; None for such a pass itself.
    """

    kind: str
    layer: int
    head: int | None
    interventions: tuple[Intervention, ...]
    base: int | None


def variants_of(n_layers: int, n_heads: int, how: Literal["uniform", "zero"]) -> list[Variant]:
    """Two untouched passes, the second with our own attention; then every head, layer and block."""
    from probes.extraction.interventions import (
        DisableAttention,
        DisableHead,
        OwnAttention,
        SkipBlock,
    )

    base = int(how == "uniform")  # which lets our own function compute attention
    found = [Variant("", 0, None, (), None), Variant("", 0, None, (OwnAttention(),), None)]
    for layer in range(1, n_layers + 1):
        for head in range(1, n_heads + 1):
            found.append(Variant(HEAD, layer, head, (DisableHead(layer, head, how),), base))
        found.append(Variant(ATTENTION, layer, None, (DisableAttention(layer, how),), base))
        found.append(Variant(BLOCK, layer, None, (SkipBlock(layer),), 0))
    return found


class Ablation(Measurement):
    """What disabling heads and blocks costs the probes above them, and the model's own answers.

    Rows have the layer (and ``head``) that is disabled, and ``disabled`` says what: a ``head``, all
    ``attention`` of the layer, or the ``block``. ``ablation_drop`` is what the probe of layer
    ``at`` loses of the headline score of a task (``predicts``), on the same examples, with its
    interval; at the last layer with p, corrected over all heads (or layers) of the task. ``cosine``
    is the mean similarity of words' vectors with the untouched ones, ``cka`` that of the last
    layer. With a language-model head: ``loss_increase``, of the surprisal of one word of each
    sentence, in nats, and ``cloze_drop``, of the accuracy of cloze agreement.
    """

    name = "ablation"
    asks = ("results",)
    summary = "what disabling each head and block costs probes, vectors and the model's answers"
    options = AblationOptions
    uses_head = True
    views = (
        Pivot(
            "a layer without its attention: drop at the last layer",
            (DROP,),
            columns=("predicts",),
            where={"disabled": ATTENTION, "at": PlacesOf("cka")},
            note="In units of the task's metric, from 0 to 1. Probes stay as they were trained.",
        ),
        Pivot(
            "a block skipped: drop at the last layer",
            (DROP,),
            columns=("predicts",),
            where={"disabled": BLOCK, "at": PlacesOf("cka")},
        ),
        Pivot(
            "the model's own answers, a layer without its attention",
            (LOSS, CLOZE),
            columns=("metric",),
            where={"disabled": ATTENTION},
        ),
        Cells(
            "ablation",
            DROP,
            across="head",
            apart="predicts",
            where={"disabled": HEAD, "at": PlacesOf("cka")},
            digits=3,
        ),
    )

    def extent(self, request: Request) -> Extent:
        """All blocks."""
        return dict.fromkeys(range(1, request.n_layers + 1), 1)

    def compute(self, context: Context) -> Found:
        """Read a sample of test with everything disabled in turn.

        Raises:
            NotServedError: no task was scored whose probes can be applied again.
        """
        sites, options = context.sites(), context.options
        variants = variants_of(context.model.n_layers, sites.n_heads, options.how)
        test = context.corpus.splits["test"]
        draw = np.random.default_rng(0).permutation(len(test))
        sample = np.sort(draw[: options.sentences])
        asked = [Asked(each, sample, len(variants)) for each in context.of_results]
        left_out = [f"{x.name} is left out: {x.why_not}." for x in asked if x.why_not]
        asked = [each for each in asked if not each.why_not]
        if not asked:
            raise NotServedError("no task was scored whose probes can be applied to other vectors")
        rows: list[Row] = []
        for name in dict.fromkeys(each.view for each in asked):
            some = [each for each in asked if each.view == name]
            rows += _read(context, some, variants, name)
        for each in asked:
            rows += each.rows(variants)
        try:
            rows += _own_answers(context, variants, sample)
        except NoHeadError:
            left_out.append("The model has no language-model head: its own answers are left out.")
        facts = {"sentences": len(sample), "heads": sites.n_heads}
        return Found(rows, facts=facts, notes=left_out)

    def tables(self, records: Sequence[Record]) -> Sequence[Table]:
        """Those of views, after the heads that matter most and least."""
        (record,) = records
        return [extreme_heads(record), *super().tables(records)]

    def csv_lines(self, record: Record) -> Iterator[Mapping[str, Place]]:
        """All numbers, with the task in a column of that name."""
        for line in super().csv_lines(record):
            yield {"task" if name == "predicts" else name: x for name, x in line.items()}


class Asked:
    """A task: its examples in a sample of test, and what its probes predict of them.

    Args:
        context: of the task and its scores.
        sample: numbers of test sentences, ascending.
        n_variants: how many passes there will be.

    Attributes:
        kept: the numbers of the examples. Shape (n,).
        texts: the text that each is in.
        view: the name of the view that they are read in.
        why_not: why the task is left out; empty if it is not.
    """

    def __init__(self, context: Context, sample: Ints, n_variants: int) -> None:
        self.context, self.name = context, context.task.name
        self.view = context.examples.view
        split = context.examples.splits["test"]
        self.kept = np.flatnonzero(np.isin(split.sentence, sample))
        self.texts: list[Text] = [split.texts[i] for i in self.kept]
        self.why_not = why_not(context.spec)
        if not context.model.window:
            self.why_not = "given vectors cannot be read again"
        elif context.task.pooling or self.view not in ("plain", "masked", "cut"):
            self.why_not = "it reads texts of its own"
        elif context.task.site:
            self.why_not = "it reads inside blocks"
        elif not len(self.kept):
            self.why_not = "the sample has none of its examples"
        else:
            base = context.predicted(context.layers)[:, self.kept]
            self.predicted = np.repeat(base[None], n_variants, axis=0)

    @cached_property
    def probes(self) -> StoredProbes:
        """The probes whose scores are reported."""
        return StoredProbes(self.context, self.context.layers)

    @cached_property
    def gold(self) -> Any:
        """The labels of the examples that are kept."""
        gold = self.context.scorers["test"].gold
        return gold.part(np.isin(np.arange(len(gold.labels)), self.kept))

    def take(self, number: int, found: Mapping[int, Any], first: Mapping[Text, int]) -> None:
        """Predict from the vectors of a pass.

        Args:
            number: of the variant.
            found: vectors of words by layer.
            first: the first row of each text.
        """
        split = self.context.examples.splits["test"]
        given = [split.spans, *([split.second_spans] if split.examples[0].span2 else [])]
        rows = np.array([first[text] - text.keep[0] for text in self.texts])
        spans = np.stack([each[self.kept] for each in given], axis=1) + rows[:, None, None]
        if self.view != "plain":  # the one word that is kept
            spans = np.stack([rows, rows + 1], axis=1)[:, None]
            spans += np.array([text.keep[0] for text in self.texts])[:, None, None]
        for place, layer in enumerate(self.context.layers):
            if layer in found:
                said = self.probes.predict(layer, found[layer], spans)
                self.predicted[number, place] = said

    def rows(self, variants: Sequence[Variant]) -> Iterator[Row]:
        """How much each variant costs the probes of layers at and above it."""
        last = self.context.model.n_layers
        metric, draws = metrics.get(self.context.task.metric), draws_of(self.gold)
        for place, at in enumerate(self.context.layers):
            chosen = [i for i, x in enumerate(variants) if x.base is None or x.layer <= at]
            said = self.predicted[chosen, place]
            sums = [cluster_sums(metric.parts(self.gold, row), self.gold) for row in said]
            cells = Replicates(metric(self.gold, said), metric, sums, chosen, self.name)
            own = [i for i, number in enumerate(chosen) if variants[number].base is not None]
            pairs = [(i, _base(variants[chosen[i]])) for i in own]
            p = dict.fromkeys(own, None) | (_tests(cells, pairs, variants) if at == last else {})
            for i, base in pairs:
                its = variants[chosen[i]]
                drop = cells.scores[base] - cells.scores[i]
                pair = None
                if draws is not None:
                    pair = informative(bounds(interval(cells.values[base] - cells.values[i])))
                axes = {"disabled": its.kind, "head": its.head, "at": at, "predicts": self.name}
                low, high = ends(pair)
                n = len(self.kept)
                yield Row(DROP, drop, its.layer, low, high, n=n, p=p[i], axes=_given(axes))


def _base(variant: Variant) -> int:
    assert variant.base is not None
    return variant.base


def _given(axes: Mapping[str, Place]) -> dict[str, Place]:
    return {name: place for name, place in axes.items() if place is not None}


def _tests(
    cells: Replicates, pairs: Sequence[tuple[int, int]], variants: Sequence[Variant]
) -> dict[int, float | None]:
    """P-values of all variants of a kind together; none that changes fewer than 20 clusters."""
    found: dict[int, float | None] = {}
    for kind in (HEAD, ATTENTION, BLOCK):
        own = [pair for pair in pairs if variants[cells.layers[pair[0]]].kind == kind]
        changed = [
            pair
            for pair in own
            if (abs(cells.sums[pair[0]] - cells.sums[pair[1]]).sum(1) > 0).sum() >= FEWEST
        ]
        if changed:
            tests = p_values_of([cells], changed)
            found |= {i: p for (i, _), p in zip(changed, tests, strict=True) if not np.isnan(p)}
    return found


def _read(
    context: Context, asked: Sequence[Asked], variants: Sequence[Variant], name: Any
) -> Iterator[Row]:
    """Read the examples of some tasks under every variant; of plain texts the vectors compared."""
    from probes.extraction.collectors import WordVectors
    from probes.extraction.shards import kept_words
    from probes.extraction.vectors import layer_part
    from probes.extraction.views import view_over

    view = view_over((text for each in asked for text in each.texts), name)
    kept = kept_words(view.texts)
    first = dict(zip(view.texts, (np.cumsum(kept) - kept).tolist(), strict=True))
    layers, last = asked[0].context.layers, context.model.n_layers
    pooling = cast("Pooling", asked[0].context.result.pooling)
    collector = WordVectors(layers, pooling, "float32")
    bases: dict[int, Mapping[int, Any]] = {}
    changes = [variant.interventions for variant in variants]
    for number, arrays in context.read_changed(view, collector, changes):
        its = variants[number]
        found = {layer: arrays[layer_part(layer)] for layer in layers if layer >= its.layer}
        for each in asked:
            each.take(number, found, first)
        if its.base is None:
            bases[number] = found
        elif name == "plain":
            for layer, vectors in found.items():
                axes = {"disabled": its.kind, "head": its.head, "at": layer}
                before = bases[its.base][layer]
                cosine = float(_cosines(vectors, before).mean())
                yield Row("cosine", cosine, its.layer, n=len(vectors), axes=_given(axes))
                if layer == last:
                    same = linear_cka(vectors.cpu().numpy(), before.cpu().numpy())
                    yield Row("cka", same, its.layer, n=len(vectors), axes=_given(axes))


def _cosines(one: Any, other: Any) -> Any:
    import torch

    return torch.nn.functional.cosine_similarity(one, other)


@dataclass(frozen=True)
class _Questions:
    """What the model itself is asked.

    Attributes:
        words: one word of each sentence, whose surprisal is the loss.
        verbs: the right and the wrong form of verbs.
        of_word, of_verb: the cluster of each.
    """

    words: list[Text]
    verbs: list[Question]
    of_word: Ints
    of_verb: Ints
    partition: Partition


def _questions(context: Context, sample: Ints) -> _Questions:
    from probes.extraction.views import Text

    test, split = context.corpus.splits["test"], context.partition("test")
    rng, words = np.random.default_rng(0), []
    for sentence in (test[i] for i in sample):
        stretches = sentence.written or spaced(sentence.words)
        full = [i for i, stretch in enumerate(stretches) if stretch.strip()]
        word = int(rng.choice(full))
        words.append(Text(tuple(stretches), (word, word + 1), written=True))
    verbs, of_verb = [], []
    for each in context.of_results:
        if each.task.name == TASK:
            forms, own = Forms.of(context.corpus.splits["train"]), each.examples.splits["test"]
            for number, example in zip(own.sentence, own.examples, strict=True):
                question = forms.question(test[number], example)
                if not isinstance(question, str) and number in sample:
                    verbs.append(question)
                    of_verb.append(split.of_sentence[number])
    return _Questions(words, verbs, split.of_sentence[sample], np.array(of_verb, dtype=int), split)


def _own_answers(context: Context, variants: Sequence[Variant], sample: Ints) -> Iterator[Row]:
    """The model's loss and its agreement under every variant, less those of the untouched pass.

    Raises:
        NoHeadError: it has no language-model head.
    """
    from probes.extraction.shards import Shard
    from probes.extraction.token_scores import TokenScores, scored
    from probes.extraction.views import view_over

    asked = _questions(context, sample)
    texts = [*asked.words, *(text for each in asked.verbs for text in each)]
    view = view_over(texts, "written")
    shard = Shard(0, np.arange(len(view.texts)), view.texts)
    changes = [variant.interventions for variant in variants]
    losses: dict[int, Floats] = {}
    rights: dict[int, Floats] = {}
    for number, arrays in context.read_changed(view, TokenScores(), changes):
        its = variants[number]
        parts = {name: array.numpy() for name, array in arrays.items()}
        found = scored(view, [shard], [parts])
        surprisal = found.surprisal("within_word")
        losses[number] = surprisal[[found.place(text) for text in asked.words]]
        answers = answered(found, asked.verbs)
        alike, rights[number] = answers.comparable, answers.right[answers.comparable]
        if its.base is None:
            continue
        axes = _given({"disabled": its.kind, "head": its.head})
        differences = (
            (LOSS, losses[number] - losses[its.base], asked.of_word),
            (CLOZE, rights[its.base] - rights[number], asked.of_verb[alike]),
        )
        for name, values, cluster in differences:
            if len(values):
                (each,) = means(values[:, None], cluster, asked.partition.n, "documents")
                low, high = ends(informative(each.interval))
                yield Row(name, each.value, its.layer, low, high, n=len(values), axes=axes)


def extreme_heads(record: Record) -> Table:
    """Of each task, the heads whose disabling costs most and least at the last layer."""
    last = record.model.n_layers
    of_task: dict[Place, list[Row]] = {}
    for row in record.rows:
        at_last = row.metric == DROP and row.axes.get("at") == last
        if at_last and row.axes["disabled"] == HEAD and row.value is not None:
            of_task.setdefault(row.axes["predicts"], []).append(row)
    lines = []
    for task, rows in of_task.items():
        ordered = sorted(rows, key=lambda row: -(row.value or 0.0))
        for what, row in (("costs most", ordered[0]), ("costs least", ordered[-1])):
            pair = f"[{shown(row.low, DROP)}, {shown(row.high, DROP)}]"
            lines.append(
                TableRow.of(
                    str(task),
                    what,
                    f"{row.layer}-{row.axes['head']}",
                    shown(row.value, DROP),
                    pair if row.low is not None else NOTHING,
                    shown_p(row.p) if row.p is not None else NOTHING,
                )
            )
    note = (
        "Layer-head whose disabling changes the score at the last layer most; below 0, the score "
        f"rises. p: corrected over all heads; none where fewer than {FEWEST} documents, or "
        "sentences, change."
    )
    return Table(
        f"{subject_title(record)} · ablation · heads",
        ("task", "disabled", "head", "drop", "interval", "p"),
        tuple(lines),
        left=3,
        notes=(note,),
    )
