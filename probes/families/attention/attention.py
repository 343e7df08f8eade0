"""The measurement `attention`: its rows, arrays and notes, tables and charts.

docs/attention.md explains each number and its limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.families.attention.annotation import Annotation, annotation_of, frequent_relations
from probes.families.attention.head_charts import CHARTS
from probes.families.attention.heads import (
    ABOVE,
    BLOCK,
    CHANCE,
    CLASS,
    MASSES,
    STATISTICS,
    classes,
    masses,
    numbers,
)
from probes.families.attention.scoring import ScoredHeads, relations, tree_scores, word_parts
from probes.families.attention.tables import RELATIONS, TREES, choice_tables, pattern_table
from probes.measurements.measurement import Measured, NoOptions, Request, measurement
from probes.measurements.pivots import Pivot, note_of
from probes.records.record import FitsPerLayer, Record, subject_title
from probes.records.row import AxisValue, Row
from probes.records.values import Estimate
from probes.statistics.metrics import printed_score
from probes.statistics.of_families.ratios import (
    RatioParts,
    p_values_of_ratios,
    ratio_difference,
    ratio_estimate,
    ratio_intervals,
)
from probes.statistics.partition import Partition
from probes.tables.table import Table

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import View
    from probes.measurements.context import ModelContext


Axes = Mapping[str, AxisValue]


@dataclass(frozen=True)
class Heads:
    """The heads that are described: all heads of some layers.

    Attributes:
        layers: layers, ascending.
        n: number of heads per layer.
        test: clusters that intervals resample.
    """

    layers: tuple[int, ...]
    n: int
    test: Partition

    @property
    def blocks(self) -> list[int]:
        """Places of the layers in the collector's parts."""
        return [layer - 1 for layer in self.layers]

    def layer_and_head(self, cell: int) -> tuple[int, int]:
        """Layer and head, both counted from 1."""
        layer, head = divmod(cell, self.n)
        return self.layers[layer], head + 1

    def rows(
        self, metric: str, parts: RatioParts, axes: Axes, split: str = "test"
    ) -> Iterator[Row]:
        """The scores of all heads; those on test have intervals."""
        ends = np.full((len(parts.scores), 2), np.nan)
        if split == "test":
            ends = ratio_intervals(parts, self.test)
        scores = zip(parts.scores.tolist(), ends.tolist(), strict=True)
        for cell, (score, pair) in enumerate(scores):
            layer, head = self.layer_and_head(cell)
            low, high = (round(end, 6) for end in pair)
            of = {"head": head, **axes}
            yield Row(metric, round(score, 6), layer, low, high, split, parts.n, axes=of)


def block_layers(request: Request) -> FitsPerLayer:
    """All requested layers except 0, which has no heads."""
    return dict.fromkeys((layer for layer in request.layers if layer), 1)


def head_view(corpus: Corpus, options: NoOptions) -> View:
    """Sentences of dev and test."""
    from probes.extraction.reading.views import plain_text, view_over

    return view_over(map(plain_text, (*corpus.splits["dev"], *corpus.splits["test"])), "plain")


def sample_view(corpus: Corpus, options: NoOptions) -> View:
    """A few sentences of test, the same in every run."""
    from probes.extraction.reading.views import plain_text, view_over
    from probes.families.attention.head_maps import sample

    return view_over((plain_text(corpus.splits["test"][i]) for i in sample(corpus)), "plain")


def head_sums(corpus: Corpus, layers: Sequence[int], options: NoOptions) -> Collector:
    """The collector of sums over maps, which keeps all layers."""
    from probes.families.attention.collector import HeadSums

    return HeadSums()


MEANS = Pivot(
    "mean over heads, %",
    ("entropy", "first", "separators", "feature", "offset", "pattern", "other_segment"),
    columns=("metric", "feature"),
    where={"feature": [None, "punctuation", -1, 0, 1, BLOCK], "baseline": [None, "uniform"]},
    mean="head",
    places={
        **{"first": "first\ntoken", "feature": "to", "offset": "to"},
        **{"punctuation": "punct.", -1: "previous", 0: "self", 1: "next"},
        **{"pattern": "own\nsegment", BLOCK: "", "other_segment": "other\nsegment"},
    },
)


def _attention_tables(record: Record) -> Sequence[Table]:
    """Tables of patterns and of chosen heads."""
    title = f"{subject_title(record)} · attention"
    patterns = pattern_table(f"{title} · patterns", record.rows.with_metric("pattern"))
    return [patterns, *choice_tables(title, record)]


@measurement(
    "attention",
    version=2,
    csv_name="heads",
    shares_arrays=True,
    extent=block_layers,
    reads=head_view,
    collector=head_sums,
    more_tables=_attention_tables,
    csv_lines=lambda record: numbers(record.rows),
    shows=(
        MEANS,
        Pivot(
            "to words, mean over heads, %",
            ("feature",),
            columns=("feature",),
            where={
                "feature": ["nouns", "verbs", "pronouns", "subjects", "objects", "negation"],
                "baseline": [None, "uniform"],
            },
            mean="head",
            note="Attention from a sentence's tokens to the word of this kind that receives most, "
            "averaged over sentences with such a word.",
        ),
        *CHARTS,
    ),
)
def attention(context: ModelContext) -> Measured:
    """Attention of heads: positions, patterns, relations, trees.

    `probes.families.attention.heads` describes the rows. Rows of ``class`` name the class in
    ``feature``. Facts count the texts of each split (``test_texts``, ``test_words``,
    ``test_too_long``).

    Arrays: ``test_sums``, ``test_counts``, ``test_baseline_sums`` (choices, sentences) are the
    parts of the chosen heads' scores and baselines, in the order of the choices; a score is
    Σ sums / Σ counts. ``test_clusters`` (sentences,) is the document of each sentence, or the
    sentence itself. ``mean_maps`` (layers, heads, tokens, tokens) are means over texts of one
    length, if any; rows attend to columns.

    Raises:
        NotServedError: no text of a split fits into the model's window.
    """
    mean_maps = context.stored.arrays("mean_maps")
    heads = Heads(context.layers, mean_maps[0].shape[1], context.partition("test"))
    splits, gold = context.corpus.splits, {}
    facts: dict[str, AxisValue] = {}
    notes = []
    for split in ("dev", "test"):
        sentences, too_long = splits[split], context.in_several_windows(split)
        if too_long.all():
            raise NotServedError(f"no text of {split} fits into the model's window")
        gold[split] = annotation_of(sentences, too_long)
        n_words, n_long = sum(map(len, sentences)), int(too_long.sum())
        counts = {"texts": len(sentences), "words": n_words, "too_long": n_long}
        facts |= {f"{split}_{name}": count for name, count in counts.items()}
        long = f"; {n_long:,} left out, longer than the model's window" if n_long else ""
        notes.append(f"{split}: {len(sentences):,} sentences, {n_words:,} words{long}.")
    facts["resampled"] = heads.test.clusters
    notes.append(
        "Entropy: share of the greatest possible. Means over test texts. heads.csv has the numbers "
        f"of single heads, with intervals over {heads.test.clusters}."
    )
    # Train is not read: offsets and chains are counted in all of its sentences, however long.
    gold["train"] = annotation_of(splits["train"], np.zeros(len(splits["train"]), dtype=bool))
    rows = [*statistic_rows(context, heads)]
    of_class: dict[Any, str] = classes(masses(rows)).to_dict()
    rows += feature_rows(context, heads, gold["test"])
    scored, arrays, more = relations_and_trees(context, heads, gold)
    rows += scored
    for (layer, head), name in of_class.items():
        rows.append(Row(CLASS, None, layer, axes={"head": head, "feature": name}))
    n_maps = int(np.concatenate(context.stored.arrays("n_mean_maps")).sum())
    facts["mean_map_texts"] = n_maps
    if n_maps:
        sums: Floats = np.stack(mean_maps).sum(0, dtype=np.float64)
        arrays["mean_maps"] = (sums[heads.blocks] / n_maps).round(3).astype(np.float32)
    return Measured(rows, arrays, {}, facts, [*notes, *more])


def statistic_rows(context: ModelContext, heads: Heads) -> Iterator[Row]:
    """Statistics of maps, averaged over the texts of test."""
    values = context.of_sentences("test", "statistics")[:, heads.blocks].astype(np.float64)
    for column, name in enumerate(STATISTICS):
        metric, _, offset = name.partition(" ")
        axes: Axes = {"feature": int(offset)} if offset else {}
        if name in MASSES:
            metric, axes = "pattern", {"feature": name}
        yield from rows_of_means(metric, axes, values[..., column], heads)


def feature_rows(context: ModelContext, heads: Heads, gold: Annotation) -> Iterator[Row]:
    """Attention to words with a feature, and to special tokens and punctuation together.

    Sentences without such a word are left out; if there are several, the one that receives most
    counts (Kovaleva et al. 2019, section 4.4). Special tokens and punctuation receive what other
    words do not (after Clark et al. 2019, section 3.2).
    """
    received = word_parts(context, "received", "test", heads.blocks)
    if "punctuation" in gold.features:
        to_words = received * ~gold.features["punctuation"][:, None, None]
        starts = np.flatnonzero(gold.position == 0)
        values = 1 - np.add.reduceat(to_words, starts, axis=0, dtype=np.float64)
        yield from rows_of_means("special", {}, values, heads)
    for feature, words in gold.features.items():
        if words.any():
            sentence = gold.sentence[words]
            first = np.flatnonzero(np.diff(sentence, prepend=-1))
            values = np.full((gold.n_sentences, *received.shape[1:]), np.nan)
            values[sentence[first]] = np.maximum.reduceat(received[words], first, axis=0)
            yield from rows_of_means("feature", {"feature": feature}, values, heads)


def rows_of_means(metric: str, axes: Axes, values: Floats, heads: Heads) -> Iterator[Row]:
    """Means over the texts in which a statistic is defined, beside those of uniform attention.

    There are no rows if no text has a value.

    Args:
        values: shape (texts, layers, heads + 1); the last head is uniform.
    """
    valid: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(values), axis=(1, 2))
    if valid.any():
        counts, filled = valid.astype(np.float64), np.where(valid[:, None, None], values, 0)
        of_heads = filled[..., :-1].reshape(len(values), -1)
        yield from heads.rows(metric, RatioParts(of_heads, counts), axes)
        uniform = RatioParts(filled[..., -1], counts).scores.tolist()
        for layer, value in zip(heads.layers, uniform, strict=True):
            yield Row(metric, round(value, 6), layer, axes={**axes, "baseline": "uniform"})


def relations_and_trees(
    context: ModelContext, heads: Heads, gold: Mapping[str, Annotation]
) -> tuple[list[Row], dict[str, NDArray[Any]], list[str]]:
    """Rows, arrays and notes of heads that are scored on relations and trees."""
    names, rare = frequent_relations(gold)
    of_trees, chains = tree_scores(context, heads.blocks, gold)
    rows: list[Row] = []
    notes, empty_titles = [], []
    all_best_heads: list[tuple[int, ScoredHeads]] = []
    of_relations = relations(context, heads.blocks, gold, names)
    for title, scored in ((RELATIONS, of_relations), (TREES, of_trees)):
        of_title, best_heads = scored_rows(scored, heads)
        rows += of_title
        empty_titles += [title] * (not best_heads)
        all_best_heads += best_heads
    if chains:
        shares = ", ".join(f"{x.axes['baseline']} {printed_score(x.value, 'uas')}" for x in chains)
        notes.append(note_of(TREES, f"Chains on test: {shares}."))
    if rare:
        counts = ", ".join(f"{name} {n}" for name, n in rare.items())
        notes.append(note_of(RELATIONS, f"Not scored (too rare); words in test: {counts}."))
    if empty_titles:
        notes.append(f"Left out for lack of annotation: {', '.join(empty_titles)}.")
    arrays: dict[str, NDArray[Any]] = {"test_clusters": heads.test.of_sentence}
    if all_best_heads:
        of_all = {
            "test_sums": [x.heads["test"].sums[:, 0] for _, x in all_best_heads],
            "test_counts": [x.heads["test"].counts for _, x in all_best_heads],
            "test_baseline_sums": [x.baseline["test"].sums[:, 0] for _, x in all_best_heads],
        }
        arrays |= {name: np.array(x, dtype=np.float32) for name, x in of_all.items()}
    return [*rows, *chains], arrays, notes


def scored_rows(
    scored: Iterable[ScoredHeads], heads: Heads
) -> tuple[list[Row], list[tuple[int, ScoredHeads]]]:
    """Rows of all heads, then of those that are best on dev, and these heads with their layers."""
    rows: list[Row] = []
    best_heads = []
    for candidates in scored:
        rows += score_rows(candidates, heads)
        best_heads.append(best_on_dev(candidates, heads))
    return [*rows, *best_head_rows(best_heads, heads)], best_heads


def score_rows(scored: ScoredHeads, heads: Heads) -> Iterator[Row]:
    """The scores of all heads on dev and test, and those of the baseline."""
    n = len(scored.directions)
    for index, direction in enumerate(scored.directions):
        axes = {"direction": direction, **scored.axes}
        for split, parts in scored.heads.items():
            of_direction = RatioParts(parts.sums[:, index::n], parts.counts)
            yield from heads.rows(scored.measure, of_direction, axes, split)
            of, baseline = {**axes, "baseline": scored.baseline_kind}, scored.baseline[split]
            if scored.has_baselines:
                of_baseline = RatioParts(baseline.sums[:, index::n], baseline.counts)
                yield from heads.rows(scored.measure, of_baseline, of, split)
            else:
                value = round(float(baseline.scores[0]), 6)
                yield Row(scored.measure, value, split=split, axes=of)


def best_on_dev(scored: ScoredHeads, heads: Heads) -> tuple[int, ScoredHeads]:
    """The layer of the best head and direction, and this head alone; the first of equals."""
    dev, baseline = scored.heads["dev"].scores, scored.baseline["test"]
    if scored.has_baselines:
        dev = dev - scored.baseline["dev"].scores
    best = int(np.nanargmax(dev))
    cell, direction = divmod(best, len(scored.directions))
    layer, head = heads.layer_and_head(cell)
    axes = {"head": head, "direction": scored.directions[direction], **scored.axes}
    return layer, replace(
        scored,
        axes={**axes, "chosen": "best on dev"},
        heads={"test": scored.heads["test"].of(best)},
        baseline={"test": baseline.of(best) if scored.has_baselines else baseline},
    )


def best_head_rows(best_heads: Sequence[tuple[int, ScoredHeads]], heads: Heads) -> Iterator[Row]:
    """Rows of the heads that were chosen by one measure, which are tested together."""
    pairs = [(best.heads["test"], best.baseline["test"]) for _, best in best_heads]
    p_of = p_values_of_ratios(pairs, heads.test)
    for (layer, best), (test, baseline), p in zip(best_heads, pairs, p_of, strict=True):
        chance = Estimate(value=best.chance, interval=None)
        above = ratio_difference(test, baseline, heads.test)
        for metric, estimate, more in (
            (best.measure, ratio_estimate(test, heads.test), {}),
            (best.measure, ratio_estimate(baseline, heads.test), {"baseline": best.baseline_kind}),
            (best.measure, chance, {"baseline": CHANCE}),
            (ABOVE, above, {"measure": best.measure}),
        ):
            low, high = estimate.interval or (None, None)
            own_p = p if metric == ABOVE else None
            axes = {**best.axes, **more}
            yield Row(metric, estimate.value, layer, low, high, n=test.n, p=own_p, axes=axes)
