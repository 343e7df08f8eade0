"""How much attention links of predicates and arguments get, beside other places of their sentence.

Either may attend to the other: Kovaleva et al. (2019) take the pairs of words that a link consists
of, and their example is a predicate that attends to its argument. See
`probes.measurements.attention.links`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from probes.common.arrays import Ints
from probes.extraction.views import Text, plain_text
from probes.measurements.attention.annotation import FEWEST_WORDS
from probes.measurements.attention.links import ROLES, Link, TextLinks, links_of, text_links
from probes.measurements.attention.scored import ScoredHeads, summed_up
from probes.measurements.attention.texts import Texts
from probes.measurements.context import Context
from probes.measurements.head_rows import ROLE_DIRECTIONS
from probes.statistics.ratios import RatioParts

SHORT = 12
"""Words of the sentences that Kovaleva et al. (2019) confine themselves to."""

Kind = Callable[[Link, int], bool]
"""Whether a link, of a sentence of so many words, belongs to a feature."""


def _of_role(role: str) -> Kind:
    return lambda link, n_words: link.role == role


KINDS: dict[str, Kind] = {
    "core": lambda link, n_words: True,
    f"core, at most {SHORT} words": lambda link, n_words: n_words <= SHORT,
    **{role: _of_role(role) for role in ROLES},
}
"""Features: all links, those that Kovaleva et al. look at, and those of each role."""


def roles(
    context: Context, blocks: Sequence[int], splits: Mapping[str, Texts]
) -> tuple[list[ScoredHeads], dict[str, int], int]:
    """Frequent roles; those that are too rare, with their links in test; and links without control.

    The last do not count.

    A score is the greatest weight from a word of the argument to one of the predicate, or back,
    averaged over links (Kovaleva et al. 2019, section 4.2); the baseline is the mean of its
    controls, and chance what uniform attention gives the link.
    """
    of_text = text_links(s for texts in splits.values() for s in texts.sentences)
    n_links = [len(of_text[text].links) if text in of_text else 0 for text in context.view.texts]
    first = context.first_rows(np.array(n_links, dtype=np.int64))
    values = np.concatenate(context.stored.arrays("links"))[:, blocks]
    found: dict[str, dict[str, tuple[RatioParts, ...]]] = {name: {} for name in KINDS}
    without = 0
    for split, texts in splits.items():
        sentence, row, links = _links(texts, of_text, context.view.index, first)
        usable = ~np.isnan(values[row]).any((1, 2, 3, 4))
        weights, controls = np.moveaxis(values[row, :, :-1], -1, 0)
        alike = np.broadcast_to(values[row, :, -1:, :, 0], weights.shape)
        n_cells = math.prod(weights.shape[1:])
        each = [x.reshape(len(row), n_cells) for x in (weights, controls, alike)]
        without += int((~usable & ~texts.left_out[sentence]).sum())
        for name, has in KINDS.items():
            chosen = usable & np.array([has(*link) for link in links], dtype=bool)
            found[name][split] = tuple(
                summed_up(sentence, len(texts.sentences), chosen, np.nan_to_num(x)) for x in each
            )
    frequent = [_scored(name, each) for name, each in found.items() if _is_frequent(each)]
    rare = {
        name: each["test"][0].n
        for name, each in found.items()
        if not _is_frequent(each) and max(links.n for links, *_ in each.values())
    }
    return frequent, rare, without


def _links(
    texts: Texts, of_text: Mapping[Text, TextLinks], index: Mapping[Text, int], first: Ints
) -> tuple[Ints, Ints, list[tuple[Link, int]]]:
    """The links of a split: sentence, row in the store, and the link with its sentence's length."""
    sentence: list[int] = []
    row: list[int] = []
    links: list[tuple[Link, int]] = []
    for number, each in enumerate(texts.sentences):
        text = plain_text(each)
        for link in links_of(each):
            sentence.append(number)
            row.append(int(first[index[text]]) + of_text[text].links.index(link))
            links.append((link, len(each)))
    return np.array(sentence, dtype=np.int64), np.array(row, dtype=np.int64), links


def _is_frequent(found: Mapping[str, tuple[RatioParts, ...]]) -> bool:
    return min(links.n for links, *_ in found.values()) >= FEWEST_WORDS


def _scored(name: str, found: Mapping[str, tuple[RatioParts, ...]]) -> ScoredHeads:
    return ScoredHeads(
        "role",
        name,
        ROLE_DIRECTIONS,
        found["dev"][0],
        found["test"][0],
        {split: controls for split, (_, controls, _) in found.items()},
        "controls",
        found["test"][2].scores,
        by_difference=True,
    )
