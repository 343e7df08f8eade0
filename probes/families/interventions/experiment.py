"""Experiments: a state is changed, an effect is read out and compared with that of controls.

A change is a pass of the model (`changes.py`; controls: `controls.py`). Effects are differences of
a read-out (`readouts.py`, `probe_readout.py`) between passes. What is independent is resampled: the
documents of a corpus, or the words that pairs of prompts exchange.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.records.row import AxisValue, Row
from probes.records.values import ends
from probes.statistics.bootstrap import RESAMPLES, bounds, informative, interval, summed
from probes.statistics.metrics import quantity
from probes.statistics.of_families.ratios import RatioParts, ratio_intervals
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.replicates import Spread, pooled, training_noise
from probes.statistics.sums import sparse_matrix

if TYPE_CHECKING:
    import torch

    from probes.common.arrays import Floats, Ints
    from probes.extraction.changing.interventions import Intervention
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import View
    from probes.measurements.context import ModelContext
    from probes.statistics.of_families.strata import Strata

DROP = "ablation_drop"
"""Loss of a stored probe's score (`probe_readout.py`)."""

LOSS, CLOZE, LOG_ODDS = "loss_increase", "cloze_drop", "log_odds_drop"
SMALLEST = "smallest_drop"
ANSWERS = LOSS, CLOZE, SMALLEST, LOG_ODDS
"""Effects on the model's own answers (`readouts.py`)."""

NO_HEAD = "The model's own answers are left out: it has no language-model head."


class ChangedPass(NamedTuple):
    """One of several passes of a model, which are numbered from 0.

    Attributes:
        interventions: changes of the pass; empty if it is untouched.
        layer: lowest changed layer; 0 if untouched.
        axes: description of the change in rows.
        against: passes to compare with, as number and axes of the comparison; empty if untouched.
            The number of a first draw stands for all draws.
        first_draw: number of the first draw of the same change; None if there is only one.
    """

    interventions: tuple[Intervention, ...] = ()
    layer: int = 0
    axes: Mapping[str, AxisValue] = {}
    against: tuple[tuple[int, Mapping[str, AxisValue]], ...] = ()
    first_draw: int | None = None

    @property
    def is_base(self) -> bool:
        """Whether the pass only serves as a reference."""
        return not self.against


# The `repr` of a comparison seeds noise: another name of a field would change numbers.
class Comparison(NamedTuple):
    """Two sets of passes to compare: draws of a change, and of another change or untouched.

    Attributes:
        changed, other: numbers of the passes.
        share: share of the variance between draws that enters the difference of the two means.
    """

    changed: tuple[int, ...]
    other: tuple[int, ...]
    layer: int
    axes: Mapping[str, AxisValue]
    share: float

    @property
    def family(self) -> tuple[tuple[str, AxisValue], ...]:
        """Axes shared by comparisons that are tested together: all heads, layers, or shares."""
        within = "head", "percent_disabled"
        return tuple(sorted((k, x) for k, x in self.axes.items() if k not in within))

    def spread(self, scores: Sequence[float] | Mapping[int, float]) -> Spread | None:
        """Variation of the difference over other draws; None if nothing was drawn.

        A change compared with draws counts as one more draw. The question is if it has more effect
        than one random change, not than the mean of five.

        Args:
            scores: scores by number of the pass.
        """
        return pooled([[scores[i] for i in x] for x in (self.changed, self.other)], self.share)


def comparisons(passes: Sequence[ChangedPass]) -> list[Comparison]:
    """All comparisons of the passes, with all draws of a change in one."""
    draws: dict[int, tuple[int, ...]] = {}
    for number, one in enumerate(passes):
        first = number if one.first_draw is None else one.first_draw
        draws[first] = (*draws.get(first, ()), number)
    compared = []
    for first, changed in draws.items():
        for reference, axes in passes[first].against:
            sides = [changed] + ([] if passes[reference].is_base else [draws[reference]])
            share = sum(1 / len(x) for x in sides)
            all_axes = {**passes[first].axes, **axes}
            layer = passes[first].layer
            compared.append(Comparison(changed, draws[reference], layer, all_axes, share))
    return compared


def read_passes(
    context: ModelContext, passes: Sequence[ChangedPass], view: View, collector: Collector
) -> Iterator[tuple[int, Mapping[str, torch.Tensor]]]:
    """Number of each pass, and the collector's arrays; see `ModelContext.read_changed`.

    All passes read the same batches. Blocks below a change are computed once.
    """
    return context.read_changed(view, collector, [x.interventions for x in passes])


def sampled_sentences(n: int, size: int) -> Ints:
    """Numbers of up to `size` of n sentences, drawn with a fixed seed; ascending."""
    numbers: Ints = np.sort(np.random.default_rng(0).permutation(n)[:size])
    return numbers


# Effects on the examples of a corpus, whose documents are resampled.


def mean_effects(compared: Sequence[Comparison], values: Sequence[Floats]) -> Floats:
    """Values before minus after each change, the mean over all pairs of draws. (comparisons, n).

    Args:
        values: of each pass, a value for each of n examples.
    """
    pairs = [[values[j] - values[i] for i in x.changed for j in x.other] for x in compared]
    return np.stack([np.mean(differences, axis=0) for differences in pairs])


def mean_effect_rows(
    metric: str,
    compared: Sequence[Comparison],
    values: Sequence[Floats],
    sentence: Ints,
    counts: Ints | Floats,
    partition: Partition,
    split: str,
) -> Iterator[Row]:
    """Σ effects / Σ counts of each comparison, with an interval.

    Sentences are resampled by document. The variance between draws is part of the interval, as
    normal noise whose deviation is estimated (`training_noise`).

    Args:
        metric: a registered quantity.
        values: see `mean_effects`.
        sentence: number of each example's sentence in the split. Shape (n,).
        counts: what each example counts, such as its number of pieces. Shape (n,).
    """
    n = len(partition.of_sentence)
    sums = summed(sparse_matrix(mean_effects(compared, values).T), sentence, n).toarray()
    parts = RatioParts(sums, np.bincount(sentence, counts, n).astype(np.float64))
    scores, noise = [float(x.sum() / counts.sum()) for x in values], None
    if spreads := {i: x for i, change in enumerate(compared) if (x := change.spread(scores))}:
        noise = np.zeros((len(compared), RESAMPLES))
        for i, spread in spreads.items():
            (noise[i],) = training_noise(f"{metric} {compared[i]}", [0], *spread, RESAMPLES)
    pairs = ratio_intervals(parts, partition, noise, quantity(metric).bounds)
    estimates = zip(parts.scores.tolist(), pairs, strict=True)
    for change, (value, pair) in zip(compared, estimates, strict=True):
        between = ends(informative(bounds(pair)))
        yield Row(metric, value, change.layer, *between, split, parts.n, axes=change.axes)


def mean_rows_of_draws(rows: Iterable[Row], *, with_range: bool = False) -> Iterator[Row]:
    """Replace rows that differ only in value, or in ``draw``, by one row with their mean.

    Args:
        with_range: whether the range of the draws is the interval; without p-values.
    """
    groups = defaultdict(list)
    for row in rows:
        axes = {name: value for name, value in row.axes.items() if name != "draw"}
        groups[row.metric, row.layer, *axes.items()].append(row._replace(axes=axes))
    for draws in groups.values():
        row, values = draws[0], [x.value for x in draws if x.value is not None]
        if len(values) > 1:
            row = row._replace(value=float(np.mean(values)))
            if with_range:
                row = row._replace(low=min(values), high=max(values), p=None)
        yield row


# Effects on pairs of prompts, whose exchanged words are resampled.


def resampling_units(changed: Sequence[tuple[str, str]]) -> list[str]:
    """The unit of resampling of each pair of words: all that are linked by words in common."""
    from scipy.sparse.csgraph import connected_components  # slow to import

    words = {word: i for i, word in enumerate(sorted({x for two in changed for x in two}))}
    ends_of = np.array([[words[x] for x in two] for two in changed]).T
    links = sparse_matrix((np.ones(len(changed)), tuple(ends_of)), (len(words), len(words)))
    return [str(x) for x in connected_components(links, directed=False)[1][ends_of[0]]]


def exchange_rows(
    metric: str,
    values: Floats,
    strata: Strata,
    group: Ints,
    cells: Sequence[tuple[int, Mapping[str, AxisValue]]],
    *,
    tested: bool,
    noise: Sequence[tuple[str, Spread]] = (),
    words: tuple[str, str] = ("pairs of words are exchanged", "pairs"),
) -> Iterator[Row]:
    """Mean of each cell over pairs of prompts, with an interval over the words they exchange.

    Args:
        values: shape (pairs, cells).
        strata: pairs by `resampling_units`, within paradigms.
        group: numbers of the pairs to average.
        cells: layer and axes of each.
        tested: whether to test means against 0, over all pairs, corrected over cells.
        noise: name and spread of the noise of draws in each cell; empty for none.
        words: for the reason for no interval: the units of resampling, and what is averaged.
    """
    if not len(group):
        for layer, axes in cells:
            yield Row(metric, None, layer, n=0, why="no pair was answered right", axes=axes)
        return
    p_values: list[float | None] = [None] * len(cells)
    if tested:
        p = strata.p_values(values, [np.arange(len(values))], noise)[0].tolist()
        p_values = [None if np.isnan(x) else x for x in p]
    ((means, resamples),) = strata.means(values, [group])
    if noise:
        resamples += np.stack([training_noise(x, [0], *y, RESAMPLES)[0] for x, y in noise], axis=1)
    numbers = zip(cells, means.tolist(), interval(resamples.T), p_values, strict=True)
    for (layer, axes), value, pair, p in numbers:
        between = bounds(pair)
        reason = "" if between else f"fewer than {FEWEST} {words[0]}"
        if between and not (between := informative(between)):
            reason = f"nearly all {words[1]} have the same value"
        yield Row(metric, value, layer, *ends(between), n=len(group), p=p, why=reason, axes=axes)
