"""Position in a word's vectors: what a word's place tells of the variation between occurrences.

Words of one form differ from sentence to sentence. The share of this variation that goes with the
place in the sentence is near 0 if vectors do not depend on places (after Mickus et al. 2020, who
compare the first and the second segment of an input; see *A Primer in BERTology*, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.common.errors import counted
from probes.families.geometry.labelled_words import words_of_test
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.sums import VectorRows, group_sums

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

LAST_PLACE = 199
"""Later words share this place. Work grows with the cube of the number of places, and places that
few sentences reach say nothing."""

N_SHUFFLES = 49
"""Shuffled places, so that the smallest p is 1/50."""

_ROUNDING = 1e-10
"""Differences smaller than this, relative to their terms, count as 0."""

METRICS = "position_share", "position_share_shuffled"


class PlacesOfTypes:
    """Places and word types of words: all of the regression that does not depend on vectors.

    Vectors and indicators of places are centred within types. The share is the adjusted R² of the
    regression of vectors on indicators, summed over dimensions. With one type this is one-way
    analysis of variance with effect size ε² (Kelley 1935).

    Args:
        position, type: of each word, numbered from 0. Shape (n,).
    """

    def __init__(self, position: Ints, type: Ints) -> None:
        self.position, self.type = np.minimum(position, LAST_PLACE), type
        counts = np.zeros((int(type.max(initial=-1)) + 1, int(self.position.max(initial=-1)) + 1))
        np.add.at(counts, (type, self.position), 1)
        self.counts, self.sizes = counts, counts.sum(1, keepdims=True)
        # Products of centred indicators. Shuffling places within types does not change them.
        gram = np.diag(counts.sum(0)) - counts.T @ (counts / np.maximum(self.sizes, 1))
        values, directions = np.linalg.eigh(gram)
        varies = values > _ROUNDING * values.max(initial=0)
        self.directions = directions[:, varies] / np.sqrt(values[varies])
        self.free = len(type) - np.count_nonzero(self.sizes)

    def shares(self, rows: VectorRows, shuffled: list[Ints]) -> Floats | None:
        """Adjusted share of the variation within types that places explain, and shuffled places.

        Args:
            rows: vectors of the words. Shape (n, H).
            shuffled: the places of words after each shuffling. Shape (n,) each.

        Returns:
            shape (1 + shufflings,); near 0, or below, if places make no difference. None if words
            or places do not vary within types, or there are too few words.
        """
        sums = group_sums(rows, self.type, len(self.sizes))
        means = sums / np.maximum(self.sizes, 1)
        squares = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
        total = squares - float((means * sums).sum())
        rank = self.directions.shape[1]
        if self.free <= rank or not rank or total <= _ROUNDING * squares:
            return None
        expected = self.counts.T @ means
        explained = np.array(
            [
                ((self.directions.T @ (group_sums(rows, x, len(expected)) - expected)) ** 2).sum()
                for x in (self.position, *shuffled)
            ]
        )
        shares: Floats = 1 - ((total - explained) / (self.free - rank)) / (total / self.free)
        return shares

    def shuffled(self, rng: np.random.Generator) -> Ints:
        """The places of words after occurrences of each type have exchanged theirs. Shape (n,)."""
        by_type = np.argsort(self.type, kind="stable")
        at_random = np.lexsort((rng.random(len(self.type)), self.type))
        places = np.empty_like(self.position)
        places[by_type] = self.position[at_random]
        return places


@measurement(
    "position_share",
    version=1,
    shows=(
        Pivot(
            metrics=METRICS,
            columns=("metric",),
            note="Share of the variation between occurrences of a word form that goes with the "
            "place in the sentence, adjusted for the number of places. Shuffled: the mean after "
            "occurrences of a form have exchanged their places, and the range of 95 %.",
        ),
        Lines(
            "position_share",
            METRICS,
            "Position",
            "Share of the variation within word forms that goes with the place in the sentence.",
        ),
    ),
)
def position_share(context: ModelContext) -> Measured:
    """How much of the variation of a word's vectors its place in the sentence tells."""
    sentences = context.corpus.splits["test"]
    position = np.concatenate([np.arange(len(sentence)) for sentence in sentences])
    words = PlacesOfTypes(position, words_of_test(context, 1).type)
    rng = np.random.default_rng(0)
    shuffled = [words.shuffled(rng) for _ in range(N_SHUFFLES)]
    rows: list[Row] = []
    with context.bar(len(context.layers)) as bar:
        for layer in context.layers:
            rows += _share_rows(
                layer, words.shares(context.words("test", layer), shuffled), len(position)
            )
            bar.update(1)
    n_far = int((position > LAST_PLACE).sum())
    far = f"{counted(n_far, 'word')} beyond place {LAST_PLACE + 1} of a sentence count as there."
    facts = {"words": len(position), "types": len(words.sizes), "far_words": n_far}
    return Measured(rows, facts=facts, notes=[far] if n_far else [])


def _share_rows(layer: int, shares: Floats | None, n: int) -> Iterator[Row]:
    if shares is None:
        reason = "neither places nor vectors vary within word forms"
        yield from (Row(metric, None, layer, why=reason) for metric in METRICS)
        return
    share, control = shares[0], shares[1:]
    # Phipson & Smyth 2010: the observed order is one of the possible ones.
    p = (1 + np.count_nonzero(control >= share)) / (1 + len(control))
    yield Row(METRICS[0], share, layer, n=n, p=p)
    low, high = np.quantile(control, (0.025, 0.975))
    yield Row(METRICS[1], control.mean(), layer, low, high, n=n)
