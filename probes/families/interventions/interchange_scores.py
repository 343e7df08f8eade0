"""Scores of interchange: rows of each paradigm and of all, and a sentence on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.errors import layer_ranges, listed
from probes.families.interventions.controls import N_ARBITRARY_PAIRS
from probes.families.interventions.directions import DIRECTIONS, MEAN, SHUFFLED, WHOLE_VECTOR
from probes.families.interventions.experiment import exchange_rows, resampling_units
from probes.records.row import AxisValue, Row
from probes.statistics.of_families.strata import Strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats
    from probes.families.interventions.interchange_pairs import Pair

RATIO, FLIPPED = "log_odds_ratio", "flipped"

OWN, ARBITRARY, DIFFERENCE = "own", "arbitrary", "own minus arbitrary"
"""Values of ``answers``: the continuations of the pair, two arbitrary tokens, or the difference."""

CHANGED, LAST, MASKED = "the changed token", "the last token", "the masked token"
"""Values of ``at``, the places that all paradigms have."""


class ParadigmScores(NamedTuple):
    """Test pairs of a paradigm, or of all, and values of their continuations.

    Attributes:
        paradigm, pairs: of one paradigm, or all.
        places: number of tokens before each token that was changed.
        ratio, arbitrary: log-odds ratio of the answers, and the mean over draws of two arbitrary
            tokens. Shape (layers, places, directions, n).
        follows: 1 if the source's answer is then more probable, ½ for a tie, else 0. Same shape.
        right: True if base and source were answered right. Shape (n,).
        changed: the words that the pair of each continuation exchanges, and its paradigm. Length n.
    """

    paradigm: str
    pairs: Sequence[Pair]
    places: Sequence[int]
    ratio: Floats
    arbitrary: Floats
    follows: Floats
    right: NDArray[np.bool_]
    changed: Sequence[tuple[tuple[str, str], str]]

    @classmethod
    def of(
        cls, paradigm: str, pairs: Sequence[Pair], places: Sequence[int], *logits: Floats
    ) -> ParadigmScores:
        """Values of a paradigm from logits of untouched bases, sources, and changed bases."""
        cells = [
            (i, N_ARBITRARY_PAIRS + j)
            for i, pair in enumerate(pairs)
            for j in range(len(pair.answers))
        ]
        rows, columns = np.array(cells).T
        base, source, changed = (x[..., ::2] - x[..., 1::2] for x in logits)  # log-odds of two
        before, after = base[..., rows, columns], changed[..., rows, columns]
        moved = np.abs(base - changed)[..., :N_ARBITRARY_PAIRS].mean(-1)[..., rows]
        right = (before > 0) & (source[rows, columns] < 0)
        names = [(pairs[i].changed, paradigm) for i in rows]
        follows = (1 - np.sign(after)) / 2
        return cls(paradigm, pairs, places, before - after, moved, follows, right, names)

    def rows(self, layers: Sequence[int], axes: Sequence[Mapping[str, AxisValue]]) -> Iterator[Row]:
        """Means over all continuations.

        Args:
            axes: of each place.
        """
        words, paradigms = zip(*self.changed, strict=True)
        strata, index = Strata.of(resampling_units(words), paradigms), np.arange(len(self.right))
        right = np.flatnonzero(self.right)
        scales = (
            (RATIO, OWN, self.ratio, index),
            (RATIO, ARBITRARY, self.arbitrary, index),
            (RATIO, DIFFERENCE, self.ratio - self.arbitrary, index),
            (FLIPPED, OWN, self.follows, right),
        )
        for (i, direction), scale in product(enumerate(DIRECTIONS), scales):
            metric, answers, values, group = scale
            of_scale = {"direction": direction, "answers": answers}
            cells = [(layer, {**at, **of_scale}) for layer, at in product(layers, axes)]
            values = values[:, :, i].reshape(-1, len(index)).T  # (n, layers × places)
            tested = metric == RATIO and answers != ARBITRARY
            for row in exchange_rows(metric, values, strata, group, cells, tested=tested):
                # Arbitrary tokens move in either direction, so that own ones move less by chance.
                less = answers == DIFFERENCE and row.p is not None and (row.value or 0) <= 0
                yield row._replace(p=1.0) if less else row

    @property
    def words(self) -> list[str]:
        """The commonest token at each position, as it is written."""
        of_places = zip(*(pair.words for pair in self.pairs), strict=True)
        return [Counter(words).most_common(1)[0][0] for words in of_places]

    def sentence(self, layers: Sequence[int]) -> str:
        """A sentence on where the whole vector flips most answers."""
        if not (n := int(self.right.sum())):
            return f"{self.paradigm}: no pair was answered right."
        whole, mean, shuffled = map(DIRECTIONS.index, (WHOLE_VECTOR, MEAN, SHUFFLED))
        often = self.follows[:, :, whole, self.right].mean(-1) > 0.5  # (layers, places)
        if not often.any():
            return (
                f"{self.paradigm}: the whole vector flips no more than half of the {n:,} "
                "continuations answered right."
            )
        tokens = [
            f"{self.words[position]!r} (position {position + 1}) at "
            + layer_ranges([layers[k] for k in np.flatnonzero(often[:, i]).tolist()], layers)
            for i, position in enumerate(self.places)
            if often[:, i].any()
        ]
        ratio = self.ratio.mean(-1)
        share, control = (
            ratio[:, :, x][often].sum() / ratio[:, :, whole][often].sum() for x in (mean, shuffled)
        )
        return (
            f"{self.paradigm}: of {n:,} continuations answered right, the whole vector flips most "
            f"if taken from {listed(tokens)}. There, the mean difference moves the log-odds of all "
            f"{len(self.right):,} by {share:.0%} of what the whole vector does, and that of "
            f"shuffled classes by {control:.0%}."
        )


def interchange_rows(
    measured: Sequence[ParadigmScores], layers: Sequence[int], causal: bool
) -> Iterator[Row]:
    """Rows of each paradigm at all positions, and of all at the places that they share."""
    for group in measured:
        prompt = f"{group.paradigm}: {' '.join(group.words)}"
        shared = {"paradigm": group.paradigm, "prompt": prompt}
        yield from group.rows(layers, [{**shared, "position": x + 1} for x in group.places])
    parts: list[list[Floats]] = []
    for group in measured:
        pair = group.pairs[0]
        at = [group.places.index(pair.position), group.places.index(pair.end - causal)]
        parts.append([x[:, at] for x in (group.ratio, group.arbitrary, group.follows)])
    ratio, moved, follows = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    pairs = [pair for group in measured for pair in group.pairs]
    right = np.concatenate([group.right for group in measured])
    changed = [x for group in measured for x in group.changed]
    everything = ParadigmScores("", pairs, [], ratio, moved, follows, right, changed)
    yield from everything.rows(layers, [{"at": CHANGED}, {"at": LAST if causal else MASKED}])
