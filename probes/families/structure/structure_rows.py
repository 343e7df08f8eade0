"""Rows of `structure`: scores of probes with intervals, tests between layers, and notes.

Every score is a function of sums over sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.common.errors import counted
from probes.families.structure.fitting import SAMPLES, LayerFit, StructuralProbe
from probes.families.structure.sentence_scores import Contributions, Edges
from probes.families.structure.trees import BINS, Trees
from probes.measurements.table_cells import no_intervals
from probes.records.row import Row
from probes.statistics.bootstrap import (
    RESAMPLES,
    bounds,
    interval,
    resample,
    resampled_sums,
    summed,
)
from probes.statistics.metrics import label_of, mean_value, metrics, printed_sd, quantity
from probes.statistics.partition import FEWEST
from probes.statistics.rank_correlation import parts_by_length
from probes.statistics.replicates import Replicates, Spread, p_best_of, pooled, training_noise
from probes.statistics.sums import ratio, sparse_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCORES = {
    "uuas": metrics.get("accuracy"),
    "dspr": metrics.get("nspr"),
    "root_accuracy": metrics.get("root_accuracy"),
    "nspr": metrics.get("nspr"),
}
"""Scores of structural probes, with the metrics of tasks that are computed from the same sums."""


@dataclass(frozen=True)
class ScoredSplit:
    """The measured sentences of dev or test, and what probes find in them.

    Attributes:
        name: name of the split.
        clusters: document of each sentence, or the sentence itself. Shape (s,).
        n_clusters: number of clusters in the whole split.
        edges: edges without punctuation of gold trees, and of each draw of control trees. Shape
            (1 + draws, s, bins).
        chain: edges among them that the chain of neighbours finds.
        contributions: by layer, of the probes of each rank, of the identity, and of the probes of
            each bootstrap sample. Shape (L, probes, s, …).
        control: edges of control trees found at each layer. Shape (L, draws, s, bins).
    """

    name: str
    trees: Trees
    clusters: Ints
    n_clusters: int
    edges: Edges
    chain: Edges
    contributions: Contributions
    control: Edges

    @property
    def n_used(self) -> int:
        """Number of clusters with a measured sentence."""
        return len(np.unique(self.clusters))

    def parts(self, metric: str, *cell: int) -> Floats:
        """Parts of a score at a layer and probe, both counted from 0. Shape (s, k)."""
        of_probe = self.contributions.at(cell)
        if metric == "uuas":
            return shares(of_probe.hits.sum(-1), self.edges[0].sum(-1))
        if metric == "root_accuracy":
            return shares(of_probe.roots, np.ones(len(self.clusters)))
        values: Floats = getattr(of_probe, metric).astype(np.float64)
        (indices,) = np.nonzero(~np.isnan(values))
        parts: Floats = parts_by_length(indices, values[indices], self.trees.lengths).toarray()
        return parts

    def score(self, metric: str, *cell: int) -> float:
        """A score at a layer and probe, both counted from 0; NaN where undefined."""
        return float(SCORES[metric].value(self.parts(metric, *cell).sum(0)))

    def refits(self, metric: str) -> Floats:
        """Scores of the probes fitted to bootstrap samples. Shape (L, samples)."""
        n_layers, n_probes = self.contributions.roots.shape[:2]
        samples = range(n_probes - SAMPLES, n_probes)
        return np.array([[self.score(metric, x, i) for i in samples] for x in range(n_layers)])

    def control_uuas(self, hits: Edges) -> Floats:
        """Share of the edges of each draw of control trees that are among `hits`. (draws,)."""
        sums = self.control_parts(hits).sum(0)
        return ratio(sums[::2], sums[1::2])

    def control_parts(self, hits: Edges) -> Floats:
        """Parts of `control_uuas`. (draws, s, bins) to (s, 2 · draws)."""
        pairs = zip(hits.sum(-1), self.edges[1:].sum(-1), strict=True)
        return np.concatenate([shares(right, edges) for right, edges in pairs], axis=1)

    def sums(self, parts: Floats) -> csr_array:
        """Sum parts (s, k) over each cluster. Shape (clusters, k)."""
        return summed(sparse_matrix(parts), self.clusters, self.n_clusters)

    def row(
        self,
        metric: str,
        layer: int | None,
        parts: Floats,
        value: Callable[[Floats], Floats] = mean_value,
        noise: Floats | float = 0.0,
        **axes: int | str,
    ) -> Row:
        """A score with its 95 % interval, if there are enough clusters.

        Args:
            parts: parts of the score for each sentence. Shape (s, k).
            value: computes the score from sums (…, k).
            noise: further random variation to add to each resample. Shape (resamples,).
        """
        score, ends = float(value(parts.sum(0))), None
        if self.n_used >= FEWEST and not np.isnan(score):
            resampled = value(resampled_sums(self.sums(parts), resample(self.n_clusters)))
            differences = quantity("uuas").differences
            limits = differences if value is share_difference else quantity(metric).bounds
            ends = bounds(interval(resampled + noise, limits))
        low, high = ends or (None, None)
        score_or_none = None if np.isnan(score) else score
        return Row(metric, score_or_none, layer, low, high, self.name, axes=axes)


def structure_rows(
    name: str,
    ranks: Sequence[int],
    reported: int,
    fitted: Mapping[int, LayerFit],
    splits: Mapping[str, ScoredSplit],
) -> Iterator[Row]:
    """Rows of scores, controls and tests between layers. Rank 0 means the vectors themselves.

    ``uuas_p_best`` and so on are p-values behind the confidence set of layers: the least corrected
    p of a difference from a layer that scores higher, 1 if no layer does, None if nothing can be
    tested. Tests include the variance of training.

    Args:
        name: seeds the noise of training.
        fitted: probes by layer.
    """
    column, test, axes = list(ranks).index(reported), splits["test"], {"rank": reported}
    # Scores of the probes of each rank, and of the identity.
    for number, (layer, probes) in enumerate(fitted.items()):
        for i, rank in enumerate([*ranks, 0]):
            for split in splits.values():
                for metric, like in SCORES.items():
                    parts = split.parts(metric, number, i)
                    yield split.row(metric, layer, parts, like.value, rank=rank)
            for probe, loss in probes.dev_losses.items():
                if probe == StructuralProbe(probe.kind, rank):
                    yield Row(f"{probe.kind}_loss", loss, layer, split="dev", axes={"rank": rank})
    # Controls. Deviations over draws are not pooled over layers, as they differ several-fold.
    for number, layer in enumerate(fitted):
        uuas, selectivity, sds = [], [], []
        for split in splits.values():
            control, gold = split.control[number], split.parts("uuas", number, column)
            spread = _pooled_spread([split.control_uuas(control)])
            parts = split.control_parts(control)
            noise = _noise(f"{name} control trees {layer}", spread)
            all_parts = np.concatenate([gold, parts], axis=1)
            uuas.append(split.row("control_uuas", layer, parts, mean_share, noise, **axes))
            selectivity.append(
                split.row("selectivity", layer, all_parts, share_difference, noise, **axes)
            )
            sd = spread.sd if spread else None
            sds.append(Row("control_uuas_draw_sd", sd, layer, split=split.name, axes=axes))
        yield from (*uuas, *selectivity, *sds)
    # The chain of neighbours, and recall by the distance of words.
    for split in splits.values():
        gold = shares(split.chain[0].sum(-1), split.edges[0].sum(-1))
        yield split.row("chain_uuas", None, gold)
        spread = _pooled_spread([split.control_uuas(split.chain[1:])])
        noise = _noise(f"{name} control trees, chain", spread)
        parts = split.control_parts(split.chain[1:])
        yield split.row("chain_control_uuas", None, parts, mean_share, noise)
    layer_hits = test.contributions.hits[:, column]
    recalls = [("recall", layer, x) for layer, x in zip(fitted, layer_hits, strict=True)]
    for metric, of_layer, hits in (*recalls, ("chain_recall", None, test.chain[0])):
        for i, words in enumerate(BINS):
            parts = shares(hits[:, i], test.edges[0][:, i])
            yield test.row(metric, of_layer, parts, words=words)
    # Tests between layers.
    layers, places = list(fitted), [(i, column) for i in range(len(fitted))]
    for metric, like in SCORES.items():
        training, tests = _pooled_spread(test.refits(metric)), dict.fromkeys(layers)
        yield Row(f"{metric}_training_sd", training.sd if training else None, axes=axes)
        if training and test.n_used >= FEWEST and len(layers) > 1:
            scores = np.array([test.score(metric, *cell) for cell in places])
            sums = [test.sums(test.parts(metric, *cell)) for cell in places]
            tests = p_best_of(Replicates(scores, like, sums, layers, f"{name} {metric}", *training))
        for layer, p in tests.items():
            yield Row(f"{metric}_p_best", p, layer, axes=axes)


def shares(hits: NDArray[np.generic], of: NDArray[np.generic]) -> Floats:
    """Parts of a ratio of sums. (s,) and (s,) to (s, 2)."""
    return np.stack([hits, of], axis=1).astype(np.float64)


def mean_share(sums: Floats) -> Floats:
    """Mean of n ratios of two sums each. Shape (…, 2 · n) to (…,)."""
    mean: Floats = ratio(sums[..., ::2], sums[..., 1::2]).mean(-1)
    return mean


def share_difference(sums: Floats) -> Floats:
    """Ratio of the first two sums minus the mean of the others. Shape (…, 2 + 2 · n) to (…,)."""
    return mean_share(sums[..., :2]) - mean_share(sums[..., 2:])


def _pooled_spread(groups: Sequence[Floats] | Floats) -> Spread | None:
    """Standard deviation of the known values within groups; see `pooled`."""
    return pooled([[None if np.isnan(x) else x for x in group.tolist()] for group in groups])


def _noise(name: str, draws: Spread | None) -> Floats | float:
    """Variation of the mean over other draws of control trees, for each resample."""
    if draws is None:
        return 0.0
    sd = draws.sd / (draws.df + 1) ** 0.5
    noise: Floats = training_noise(name, [0], sd, draws.df, RESAMPLES)[0]
    return noise


def counts(trees: Trees) -> dict[str, int]:
    """Counts of a split, by name.

    Measured sentences, their words, and their edges without punctuation; excluded sentences;
    measured sentences with fewer than two words beside punctuation, which UUAS ignores; and those
    whose root is punctuation, which count as errors of the root.
    """
    return {
        "sentences": len(trees.sentences),
        "words": int(trees.lengths.sum()),
        "edges": int(trees.edges.sum()),
        "left_out": sum(trees.left_out.values()),
        "without_edges": sum(int((~x).sum()) < 2 for x in trees.punctuation),
        "punctuation_roots": trees.punctuation_roots,
    }


def notes(
    trees: Mapping[str, Trees], test: ScoredSplit, resampled: str, rows: Sequence[Row]
) -> Iterator[str]:
    """Notes on intervals, tests and excluded sentences.

    Args:
        resampled: name of the clusters that intervals resample on test.
    """
    if test.n_used < FEWEST:
        yield no_intervals(resampled)
    else:
        values = [(x.metric, x.value) for x in rows if x.split == "test" and x.value is not None]
        over_samples = ", ".join(
            f"{label_of(metric)} {printed_sd(sd, metric)}"
            for metric in SCORES
            for name, sd in values
            if name == f"{metric}_training_sd"
        )
        # Layers differ several-fold in this, so a range is given and no mean.
        sds = [sd for name, sd in values if name == "control_uuas_draw_sd"]
        low, high = (printed_sd(of(sds, default=0.0), "uuas") for of in (min, max))
        over_draws = f" (standard deviation: {low} to {high})" if sds else ""
        yield (
            f"± half the width of a 95 % interval over test {resampled}. Tests between layers "
            "also include "
            f"the variance of training (standard deviation: {over_samples}), and intervals of "
            f"control trees and selectivity that of draws{over_draws}."
        )
    for split, gold in trees.items():
        n = counts(gold)
        parts = [f"{n['sentences']:,} sentences, {n['words']:,} words"]
        parts += [f"{number:,} left out, {reason}" for reason, number in gold.left_out.items()]
        if few := n["without_edges"]:
            parts.append(f"{few:,} with fewer than two words beside punctuation, not in UUAS")
        if roots := n["punctuation_roots"]:
            are = "is" if roots == 1 else "are"
            parts.append(f"{counted(roots, 'root')} that {are} punctuation, an error")
        yield f"{split}: {'; '.join(parts)}."
    edges = zip(BINS, test.edges[0].sum(0).tolist(), strict=True)
    of_bins = ", ".join(f"{n:,} of {name} word{'' if name == '1' else 's'}" for name, n in edges)
    yield f"Gold edges of test by the distance of their words: {of_bins}."
