"""Interchange interventions: a part of one prompt's state in place of another's.

The prompts of a pair differ in one token, and so does the continuation that is right. If the answer
follows the exchanged part, the model uses it (Geiger et al. 2021; CausalGym, Arora et al. 2024).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.errors import listed
from probes.examples.examples import NotServedError
from probes.families.interventions import InterchangeOptions
from probes.families.interventions.interchange_pairs import (
    Candidate,
    Pair,
    choices,
    commonest_shape,
    contrasts,
    drawn,
    with_sides,
)
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Place, Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, informative, interval
from probes.statistics.partition import FEWEST
from probes.statistics.strata import Strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats, Ints
    from probes.data.items import Item
    from probes.data.sentence import Corpus
    from probes.extraction.alignment import Pieces
    from probes.extraction.collectors import Collector
    from probes.extraction.views import Text, View
    from probes.families.interventions.interchange_passes import Interchanged
    from probes.measurements.context import ModelContext

RATIO, FLIPPED, ACCURACY = "log_odds_ratio", "flipped", "interchange_accuracy"

OWN, ARBITRARY = "own", "arbitrary"
"""Values of ``answers``: the continuations of the pair, or two arbitrary tokens."""

CHANGED, LAST, MASKED = "the changed token", "the last token", "the masked token"
"""Values of ``at``, the places that all paradigms have."""

_FEWEST = 5
"""Number of training and of test pairs that a paradigm must have."""

_POOLED = {"paradigm": None, "answers": OWN}


class Measured(NamedTuple):
    """The test pairs of a paradigm, and their answers."""

    paradigm: str
    pairs: Sequence[Pair]
    places: Sequence[int]
    found: Interchanged


def _nothing(corpus: Corpus, options: InterchangeOptions) -> View:
    """No texts: nothing is stored, since prompts depend on tokens."""
    from probes.extraction.views import View

    return View("written", ())


def _no_collector(corpus: Corpus, layers: Sequence[int], options: InterchangeOptions) -> Collector:
    from probes.families.interventions.interchange_passes import Tokens

    return Tokens()


@measurement(
    "interchange",
    needs=("pairs",),
    options=InterchangeOptions,
    head="needed",
    view=_nothing,
    collector=_no_collector,
    shares_arrays=True,
    views=(
        Pivot(
            "flipped by the whole vector, %",
            (FLIPPED,),
            columns=("at",),
            where={**_POOLED, "direction": "whole"},
            note="Share of pairs whose answer becomes the source's, if the state at this layer and "
            "token is the source's. Only of pairs whose base and source were answered right.",
        ),
        Pivot(
            "log-odds ratio in nats",
            (RATIO,),
            columns=("direction",),
            where=_POOLED,
            apart="at",
            note="How far the odds move from the base's answer to the source's, if the part of the "
            "state along a direction is the source's; whole: all of it. Mean over pairs of all "
            "paradigms.",
        ),
        Pivot(
            "flipped, %",
            (FLIPPED,),
            columns=("direction",),
            where=_POOLED,
            apart="at",
        ),
        Pivot(
            "log-odds ratio of two arbitrary tokens in nats",
            (RATIO,),
            columns=("direction",),
            where={**_POOLED, "answers": ARBITRARY},
            apart="at",
            note="How far the odds of two tokens that have nothing to do with the pair move, in "
            "either direction.",
        ),
        Cells(
            "interchange",
            FLIPPED,
            across="position",
            apart="prompt",
            where={"direction": "whole", "paradigm": ..., "answers": OWN},
            low=0.0,
            high=1.0,
            title="flipped by the whole vector",
            note="Share of pairs whose answer becomes the source's if the state at this layer and "
            "position is the source's. The title of a panel has the tokens from position 1 on.",
        ),
        Lines(
            "interchanged",
            RATIO,
            line="direction",
            apart="at",
            where=_POOLED,
            title="log-odds ratio",
            note="Mean over pairs of all paradigms.",
        ),
    ),
)
def interchange(context: ModelContext) -> Found:
    """Answers that follow a source's state, exchanged by layer, position and direction.

    Rows: ``log_odds_ratio``, the mean over pairs of log p(answer of the base) − log p(answer of the
    source) in the untouched pass minus that in the changed one; ``flipped``, the share of pairs
    that then prefer the source's answer, among those whose base and source were answered right;
    ``interchange_accuracy``, the same among all pairs. Axes: ``paradigm``, ``position`` (of the
    token, from 1) and ``prompt`` (paradigm and tokens); or, over all paradigms, ``at``. Further
    ``direction`` and ``answers``. p-values of log-odds ratios are corrected over layers and
    positions.

    Raises:
        NotServedError: no pairs fit.
    """
    from probes.families.interventions.interchange_passes import interchanged, tokens_of

    options, causal = context.options, context.model.causal
    candidates = _candidates(context.corpus.items, causal, options)
    texts = (text for parts in candidates.values() for part in parts for x in part
             for text in x.texts())  # fmt: skip
    pieces = tokens_of(context, texts)
    measured: list[Measured] = []
    unfit: list[str] = []
    for paradigm, parts in candidates.items():
        train, test = _aligned(parts, pieces, causal, options)
        if min(len(train), len(test)) < _FEWEST:
            unfit.append(paradigm)
            continue
        end, place, n = test[0].shape
        places = range(place, end) if causal else range(n)
        found = interchanged(context, train, test, places, _columns(test))
        measured.append(Measured(paradigm, test, places, found))
    every = dict.fromkeys(item.paradigm for item in context.corpus.items)
    if not measured:
        raise NotServedError(
            f"none of its {len(every)} paradigms has {2 * _FEWEST} pairs of prompts that differ in "
            "one token and want different continuations, with equally many tokens before"
        )
    notes = [
        f"{len(measured)} of {len(every)} paradigms have pairs that fit, "
        f"{sum(len(x.pairs) for x in measured):,} of them in test, with "
        f"{sum(len(p.answers) for x in measured for p in x.pairs):,} continuations. Fewer than "
        f"{_FEWEST} for training or test: "
        + (", ".join(x for x in every if x not in {m.paradigm for m in measured}) or "none")
        + ".",
        *(_sentence(each, context.layers) for each in measured),
    ]
    facts = {"paradigms": len(measured), "pairs": sum(len(x.pairs) for x in measured)}
    return Found(_rows(measured, context.layers, causal), facts=facts, notes=notes)


def _candidates(
    items: Sequence[Item], causal: bool, options: InterchangeOptions
) -> dict[str, tuple[list[Candidate], ...]]:
    """Candidates for train and test, by paradigm; twice as many as are wanted."""
    given = defaultdict(list)
    for item in items:
        given[item.paradigm] += choices(item, causal)
    sizes = 2 * options.training, 2 * options.pairs
    return {
        paradigm: tuple(
            part[:size] for part, size in zip(drawn(with_sides(contrasts(own))), sizes, strict=True)
        )
        for paradigm, own in given.items()
    }


def _aligned(
    parts: Sequence[Sequence[Candidate]],
    pieces: dict[Text, Pieces],
    causal: bool,
    options: InterchangeOptions,
) -> list[list[Pair]]:
    """Pairs for train and test, all of the commonest shape."""
    found = [[x for x in (c.aligned(pieces, causal) for c in part) if x] for part in parts]
    shape = commonest_shape(pair for part in found for pair in part)
    sizes = options.training, options.pairs
    return [
        [pair for pair in part if pair.shape == shape][:size]
        for part, size in zip(found, sizes, strict=True)
    ]


def _columns(pairs: Sequence[Pair]) -> Ints:
    """Tokens whose logits are wanted: two arbitrary ones, then the answers. Shape (pairs, k).

    Arbitrary tokens are drawn from the prompts of the paradigm. The first belongs to bases of class
    0 and sources of class 1, the second to the others. Columns that a pair lacks are 0.
    """
    answers = {token for pair in pairs for two in pair.answers for token in two}
    prompts = {token for pair in pairs for tokens in pair.tokens for token in tokens} - {-1}
    others = sorted(prompts - answers)
    one, other = np.random.default_rng(0).choice(others, 2, replace=False).tolist()
    width = max(len(pair.answers) for pair in pairs)
    columns = np.zeros((len(pairs), 2 + 2 * width), dtype=np.int64)
    for row, pair in zip(columns, pairs, strict=True):
        row[:2] = (other, one) if pair.side else (one, other)
        flat = [token for two in pair.answers for token in two]
        row[2 : 2 + len(flat)] = flat
    return columns


class _Values(NamedTuple):
    """Values of the continuations of test pairs.

    Attributes:
        ratio, arbitrary: log-odds ratio of the answers, and of two arbitrary tokens. Shape (layers,
            places, directions, n).
        follows: 1 if the source's answer is then likelier, ½ for a tie, else 0. Same shape.
        right: True if base and source were answered right. Shape (n,).
        pair, paradigm: names. Length n.
    """

    ratio: Floats
    arbitrary: Floats
    follows: Floats
    right: NDArray[np.bool_]
    pair: Sequence[str]
    paradigm: Sequence[str]

    @classmethod
    def of(cls, measured: Measured) -> _Values:
        """The values of a paradigm."""
        of_pair = [i for i, pair in enumerate(measured.pairs) for _ in pair.answers]
        first = [2 + 2 * i for pair in measured.pairs for i in range(len(pair.answers))]
        rows, columns = np.array(of_pair), np.array(first)

        def odds(logits: Floats, first: Ints | int) -> Floats:
            """Log-odds of the base's answer to the source's."""
            found: Floats = logits[..., rows, first] - logits[..., rows, first + 1]
            return found

        base, source, changed = measured.found
        after = odds(changed, columns)
        return cls(
            odds(base, columns) - after,
            np.abs(odds(base, 0) - odds(changed, 0)),
            (1 - np.sign(after)) / 2,
            (odds(base, columns) > 0) & (odds(source, columns) < 0),
            [f"{measured.paradigm} {i}" for i in of_pair],
            [measured.paradigm] * len(of_pair),
        )

    def at(self, places: Sequence[int]) -> _Values:
        """The values at some places."""
        of_places = (x[:, places] for x in self[:3])
        return _Values(*of_places, *self[3:])

    def rows(self, layers: Sequence[int], axes: Sequence[Mapping[str, Place]]) -> Iterator[Row]:
        """Means over all continuations.

        Args:
            axes: of each place.
        """
        from probes.families.interventions.interchange_passes import DIRECTIONS

        strata, every = Strata.of(self.pair, self.paradigm), np.arange(len(self.right))
        right = np.flatnonzero(self.right)
        for i, direction in enumerate(DIRECTIONS):
            scales = [
                (RATIO, OWN, self.ratio, every),
                (RATIO, ARBITRARY, self.arbitrary, every),
                (FLIPPED, OWN, self.follows, right),
                (ACCURACY, OWN, self.follows, every),
            ]
            for metric, answers, values, group in scales:
                cells = values[:, :, i].reshape(-1, len(every)).T  # (n, layers × places)
                p = [None] * cells.shape[1]
                if (metric, answers) == (RATIO, OWN) and strata.n_clusters(every) >= FEWEST:
                    p = strata.p_values(cells, [every])[0].tolist()
                ((means, drawn),) = (
                    strata.means(cells, [group])
                    if len(group)
                    else [(np.full(len(p), np.nan), np.full((1, len(p)), np.nan))]
                )
                between = interval(drawn.T)
                for cell, value in enumerate(means.tolist()):
                    k, place = divmod(cell, len(axes))
                    pair = bounds(between[cell])
                    why = "" if pair else f"fewer than {FEWEST} pairs of prompts"
                    if not len(group):
                        why = "no pair was answered right"
                    elif pair and informative(pair) is None:
                        why = "nearly all pairs have the same value"
                    yield Row(
                        metric,
                        value,
                        layers[k],
                        *ends(informative(pair)),
                        n=len(group),
                        p=p[cell],
                        why=why,
                        axes={**axes[place], "direction": direction, "answers": answers},
                    )


def _rows(measured: Sequence[Measured], layers: Sequence[int], causal: bool) -> Iterator[Row]:
    """Rows of each paradigm at all positions, and of all at the places that they share."""
    values = [_Values.of(each) for each in measured]
    for each, own in zip(measured, values, strict=True):
        prompt = f"{each.paradigm}: {' '.join(_words(each))}"
        shared = {"paradigm": each.paradigm, "prompt": prompt}
        yield from own.rows(layers, [{**shared, "position": x + 1} for x in each.places])
    at = [
        own.at([x.places.index(x.pairs[0].place), x.places.index(x.pairs[0].end - causal)])
        for x, own in zip(measured, values, strict=True)
    ]
    whole = _Values(
        *(np.concatenate(x, axis=-1) for x in list(zip(*at, strict=True))[:4]),
        [name for own in at for name in own.pair],
        [name for own in at for name in own.paradigm],
    )
    yield from whole.rows(layers, [{"at": CHANGED}, {"at": LAST if causal else MASKED}])


def _words(measured: Measured) -> list[str]:
    """The commonest token at each position, as it is written."""
    of_places = zip(*(pair.words for pair in measured.pairs), strict=True)
    return [Counter(words).most_common(1)[0][0] for words in of_places]


def _sentence(measured: Measured, layers: Sequence[int]) -> str:
    """Where the whole vector flips most answers, and how much of that the mean difference does."""
    from probes.families.interventions.interchange_passes import DIRECTIONS, MEAN, WHOLE

    values, words = _Values.of(measured), _words(measured)
    if not values.right.any():
        return f"{measured.paradigm}: no pair was answered right."
    whole, mean = (DIRECTIONS.index(x) for x in (WHOLE, MEAN))
    often = values.follows[:, :, whole, values.right].mean(-1) > 0.5  # (layers, places)
    if not often.any():
        return f"{measured.paradigm}: the whole vector flips no more than half of the answers."
    found = [
        f"{words[place]!r} (position {place + 1}) at "
        + ranges([layers[k] for k in np.flatnonzero(often[:, i])], layers)
        for i, place in enumerate(measured.places)
        if often[:, i].any()
    ]
    ratio = values.ratio.mean(-1)
    share = ratio[:, :, mean][often].sum() / ratio[:, :, whole][often].sum()
    return (
        f"{measured.paradigm}: the whole vector flips most answers if taken from {listed(found)}. "
        f"Along the mean difference, {share:.0%} of the log-odds ratio of the whole vector."
    )


def ranges(found: Sequence[int], layers: Sequence[int]) -> str:
    """Layers as runs of neighbours among those measured, such as ``layers 0–3, 5``."""
    runs: list[list[int]] = []
    for layer in found:
        if runs and layers.index(layer) == layers.index(runs[-1][-1]) + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    return f"layer{'s' * (len(found) > 1)} {', '.join(texts)}"
