"""Trees from all heads together: the attention-only probe of Clark et al. (2019, section 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.common.errors import counted
from probes.data.sentence import ROOT, Sentence
from probes.examples.examples import NotServedError
from probes.families.attention.annotation import Annotation, annotation_of
from probes.families.attention.attention import (
    Heads,
    best_on_dev,
    block_layers,
    head_sums,
    head_view,
)
from probes.families.attention.heads import ABOVE, NOT_PUNCTUATION
from probes.families.attention.scoring import linked_words, relations, tree_scores
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import AxisValue, Row
from probes.statistics.of_families.ratios import (
    RatioParts,
    p_values_of_ratios,
    ratio_difference,
    ratio_estimate,
)
from probes.statistics.of_families.spanning_trees import spanning_trees

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

N_TRAIN = 2000
"""Training sentences to draw. Clark et al. train on 40,000, but a mix has few weights."""

STRENGTHS = 100.0, 10.0, 1.0, 0.1
"""Precisions of a Gaussian prior on weights, where attention has a root mean square of 1. The one
with the highest UAS on dev is taken; of equal ones the first."""

_BARE = "no sentence of {} fits into the model's window and has heads of words"

WordGroup = tuple[Floats, Ints]
"""Sentences of n words: attention (heads, sentences, n, n); the head of each word, or `ROOT`."""


def head_scores(weights: Floats, maps: Floats) -> Floats:
    """Scores of each word (columns) as the head of each other: Σ_k w_k α^k_ij + u_k α^k_ji.

    Args:
        weights: w and u. Shape (2, heads).
        maps: attention of word i to word j in attention head k. Shape (heads, …, n, n).

    Returns:
        shape (…, n, n), −∞ on the diagonal. The softmax of a row has the probabilities.
    """
    forward, backward = (weights @ maps.reshape(len(maps), -1)).reshape(2, *maps.shape[1:])
    scores: Floats = forward + backward.swapaxes(-1, -2)
    scores[..., range(maps.shape[-1]), range(maps.shape[-1])] = -np.inf
    return scores


def fitted_weights(groups: Sequence[WordGroup], strengths: Sequence[float] = STRENGTHS) -> Floats:
    """The weights with the highest posterior, by L-BFGS. Shape (strengths, 2, heads)."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    n_heads, n = len(groups[0][0]), sum(int((heads != ROOT).sum()) for _, heads in groups)
    squares = sum(np.square(maps).sum((1, 2, 3), dtype=np.float64) for maps, _ in groups)
    scale = np.sqrt(squares / sum(maps[0].size for maps, _ in groups))
    scale[scale == 0] = 1  # a head that attends to special tokens alone

    def objective(point: Floats, strength: float) -> tuple[float, Floats]:
        value, gradient = strength / 2 * float(point @ point), strength * point
        weights = (point.reshape(2, n_heads) / scale).astype(np.float32)
        for maps, heads in groups:
            logs = log_softmax(head_scores(weights, maps), axis=-1)
            has_head, errors = heads != ROOT, np.exp(logs)
            value -= float(logs[has_head, heads[has_head]].sum(dtype=np.float64))
            errors[has_head, heads[has_head]] -= 1
            errors[~has_head] = 0
            error_rows = np.stack([errors, errors.swapaxes(-1, -2)]).reshape(2, -1)
            gradient += (error_rows @ maps.reshape(n_heads, -1).T / scale).ravel()
        return value / n, gradient / n

    points = [np.zeros(2 * n_heads)]
    exact = {"ftol": 1e-10, "gtol": 1e-6, "maxcor": 20}
    for strength in strengths:
        fit = minimize(objective, points[-1], (strength,), "L-BFGS-B", True, options=exact)
        points.append(fit.x)
    weights: Floats = np.stack(points[1:]).reshape(-1, 2, n_heads) / scale
    return weights


def word_maps(
    context: ModelContext, sentences: Sequence[Sentence], of: Heads
) -> Iterator[tuple[int, Floats]]:
    """Number and attention (layers · heads, n, n) of sentences of n > 1 words that fit a window."""
    from probes.extraction.reading.views import plain_text, view_over
    from probes.families.attention.head_maps import WordMaps, maps_of_texts

    view = view_over(map(plain_text, sentences), "plain")
    places: dict[int, list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        places[view.index[plain_text(sentence)]] += [number] * (len(sentence) > 1)
    for text, maps, _ in maps_of_texts(context, view, WordMaps):
        for number in places[text]:
            n = len(sentences[number])
            yield number, maps[of.blocks, :, :n, :n].flatten(0, 1).float().numpy()


def _fitted_mixes(
    context: ModelContext, sentences: Sequence[Sentence], gold: Annotation, of: Heads
) -> tuple[Floats, int]:
    """Weights (mixes, strengths, 2, layers · heads), and number of sentences that were read.

    There is a mix for each layer, then one for all.
    """
    governors = np.where(gold.of(NOT_PUNCTUATION), gold.head, ROOT)
    by_sentence = np.split(governors, np.cumsum([*map(len, sentences)])[:-1])
    by_length = defaultdict(list)
    for number, maps in word_maps(context, sentences, of):
        by_length[len(by_sentence[number])].append((maps, by_sentence[number]))
    groups = [
        (np.stack([maps for maps, _ in pairs], axis=1), np.stack([heads for _, heads in pairs]))
        for pairs in by_length.values()
    ]
    if not any((heads != ROOT).any() for _, heads in groups):
        raise NotServedError(_BARE.format("train"))
    n = len(of.layers) * of.n
    parts = [*(slice(first, first + of.n) for first in range(0, n, of.n)), slice(n)]
    weights = np.zeros((len(parts), len(STRENGTHS), 2, n))
    with context.bar(len(parts)) as bar:
        for mix, part in zip(weights, parts, strict=True):
            mix[..., part] = fitted_weights([(maps[part], heads) for maps, heads in groups])
            bar.update(1)
    return weights, sum(map(len, by_length.values()))


def _scores(
    context: ModelContext, split: str, gold: Annotation, weights: Floats, of: Heads
) -> dict[str, RatioParts]:
    """UAS and UUAS of mixes (mixes, 2, layers · heads): most likely heads, and spanning trees.

    The weight of a link is the sum of the probabilities that either word is the other's head.
    """
    from scipy.special import softmax

    sentences = context.corpus.splits[split]
    words, first = gold.of(NOT_PUNCTUATION), np.cumsum([0, *map(len, sentences)])
    likely, tree = np.full((2, len(words), len(weights)), ROOT)
    for number, maps in word_maps(context, sentences, of):
        scores = np.stack([head_scores(mix, maps) for mix in weights])
        links, span = softmax(scores, axis=-1), slice(first[number], first[number + 1])
        likely[span] = scores.argmax(-1).T
        is_word = np.ones(scores.shape[:2], dtype=bool)
        tree[span] = spanning_trees(-(links + links.swapaxes(1, 2)), is_word).T
    hits = {"uas": likely == gold.head[:, None], "uuas": linked_words(tree, gold)}
    return {metric: gold.counted(words, is_right) for metric, is_right in hits.items()}


@measurement(
    "head_mix",
    needs=("heads",),
    extent=block_layers,
    reads=head_view,
    collector=head_sums,
    shows=(
        Pivot(
            metrics=("uas", "uuas"),
            columns=("metric",),
            note="UAS: the most likely head of each word by a learnt mix of the heads of a layer, "
            "or of all. UUAS: the maximum spanning tree. Punctuation is not scored.",
        ),
        Pivot(
            "all heads together, difference from",
            (ABOVE,),
            rows="baseline",
            columns=("measure",),
            places={"uas": "UAS, %", "uuas": "UUAS, %"},
        ),
    ),
)
def head_mix(context: ModelContext) -> Measured:
    """Dependency trees from all attention heads together, beside the best single head.

    Rows with a layer are of the mix of its heads. The axis ``mix`` marks the mix of all heads,
    ``baseline`` the head that is best on dev, and chains of words. `above_baseline` is how far the
    mix of all heads is above; p is corrected for all of these differences.

    Parameters: ``mix`` (layers + 1, 2, layers · heads), w and u of each mix; the last is of all.

    Raises:
        NotServedError: a split has no sentence that fits into the window and has heads of words.
    """
    from probes.families.attention.head_maps import sample

    splits, long = context.corpus.splits, context.in_several_windows
    train = [splits["train"][i] for i in sample(context.corpus, "train", N_TRAIN)]
    gold = {split: annotation_of(splits[split], long(split)) for split in ("dev", "test")}
    gold["train"] = annotation_of(train, np.zeros(len(train), dtype=bool))
    if bare := [x for x, annotation in gold.items() if not annotation.of(NOT_PUNCTUATION).any()]:
        raise NotServedError(_BARE.format(bare[0]))
    n_heads = context.stored.arrays("most")[0].shape[2]
    of = Heads(context.layers, n_heads, context.partition("test"))
    mixes, n_read = _fitted_mixes(context, train, gold["train"], of)
    on_dev = _scores(context, "dev", gold["dev"], mixes.reshape(-1, *mixes.shape[2:]), of)
    best = on_dev["uas"].scores.reshape(mixes.shape[:2]).argmax(1)
    weights = mixes[range(len(mixes)), best]
    on_test = _scores(context, "test", gold["test"], weights, of)
    # For UAS, the best single head is the best at all relations; for UUAS, at trees.
    (choice,) = relations(context, of.blocks, gold, [NOT_PUNCTUATION])
    (chain, tree), rows = tree_scores(context, of.blocks, gold)
    facts: dict[str, AxisValue] = {"train_sentences": n_read, "strength": STRENGTHS[best[-1]]}
    pairs: dict[tuple[str, str], tuple[RatioParts, RatioParts]] = {}
    for metric, scored, baseline in (("uas", choice, chain), ("uuas", tree, tree)):
        for mix, layer in enumerate((*of.layers, None)):
            axes: dict[str, AxisValue] = {} if layer else {"mix": "all heads"}
            dev, test = on_dev[metric].scores.reshape(mixes.shape[:2]), on_test[metric].of(mix)
            rows.append(Row(metric, float(dev[mix, best[mix]]), layer, split="dev", axes=axes))
            estimate = ratio_estimate(test, of.test)
            rows.append(Row.estimated(metric, estimate, layer, n=test.n, axes=axes))
        at_layer, head = best_on_dev(scored, of)
        facts[metric] = f"{at_layer}–{head.axes['head']}, {head.axes['direction']}"
        pairs[metric, "best head"] = test, (single := head.heads["test"])
        pairs[metric, baseline.baseline_kind] = test, baseline.baseline["test"]
        estimate, axes = ratio_estimate(single, of.test), {"baseline": "best head"}
        rows.append(Row.estimated(metric, estimate, n=test.n, axes=axes))
    p_of = p_values_of_ratios([*pairs.values()], of.test)
    for (metric, kind), pair, p in zip(pairs, pairs.values(), p_of, strict=True):
        axes, above = {"measure": metric, "baseline": kind}, ratio_difference(*pair, of.test)
        rows.append(Row.estimated(ABOVE, above, n=pair[0].n, p=p, axes=axes))
    note = (
        f"Learnt on {n_read:,} sentences of train, of {len(train):,} drawn: of several words, and "
        f"no longer than a window. Best head on dev: UAS {facts['uas']}; UUAS {facts['uuas']}. "
        f"All heads: of {counted(len(of.layers), 'layer')}. Intervals over {of.test.clusters}."
    )
    return Measured(rows, {}, {"mix": weights.astype(np.float32)}, facts, [note])
