"""The join of UD English-EWT with PropBank's annotation of the same text.

Universal Dependencies (Silveira et al. 2014) has the words; PropBank's release has the trees and
the predicates, with the words blanked out. Both keep the order of sentences, so the UD sentence
``<genre>-<document>-<nnnn>`` corresponds to skeleton number ``nnnn`` of the document, counted
from 1. UD has corrected some tokenisation since, and the release lacks some documents; such
sentences are counted, not matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from probes.data.chunks import chunk
from probes.data.propbank import Skeleton
from probes.data.sentence import Sentence

JoinCounts = Counter[str]
"""Number of sentences by outcome: `JOINED` or one of the reasons in `NOT_JOINED`."""

JOINED = "joined with PropBank"
NO_DOCUMENT = "not joined: document not in the PropBank release"
NO_SENTENCE = "not joined: no such sentence in the PropBank release"
OTHER_LENGTH = "not joined: another number of words in the PropBank release"
OTHER_TAGS = "not joined: fewer than half of the tags agree with the PropBank release"
NOT_JOINED = (NO_DOCUMENT, NO_SENTENCE, OTHER_LENGTH, OTHER_TAGS)


def join(
    sentences: Iterable[Sentence], skeletons: Mapping[str, Sequence[Skeleton]]
) -> tuple[list[Sentence], JoinCounts]:
    """Add the constituents, base chunks and frames of its skeleton to each sentence.

    Args:
        sentences: of UD English-EWT, with `xpos`.
        skeletons: by document, as returned by `probes.data.propbank.read_skeletons`.

    Returns:
        all sentences, in order, and their number by outcome. A sentence that does not join keeps
        its UD layers and has none of these.
    """
    counts: JoinCounts = Counter(dict.fromkeys((JOINED, *NOT_JOINED), 0))
    result = []
    for sentence in sentences:
        found = skeleton_of(sentence, skeletons)
        if isinstance(found, str):
            counts[found] += 1
        else:
            counts[JOINED] += 1
            sentence = replace(
                sentence,
                chunks=chunk(found.tree, found.tags),
                frames=found.frames,
                constituents=found.tree.constituents(),
            )
        result.append(sentence)
    return result, counts


def skeleton_of(sentence: Sentence, skeletons: Mapping[str, Sequence[Skeleton]]) -> Skeleton | str:
    """The skeleton of a sentence, or the reason why it has none."""
    document, _, number = sentence.id.rpartition("-")
    if document not in skeletons:
        return NO_DOCUMENT
    if not number.isdecimal() or not 1 <= int(number) <= len(skeletons[document]):
        return NO_SENTENCE
    skeleton = skeletons[document][int(number) - 1]
    if len(skeleton) != len(sentence):
        return OTHER_LENGTH
    agreeing = sum(map(str.__eq__, skeleton.tags, sentence.xpos))
    return skeleton if 2 * agreeing >= len(sentence) else OTHER_TAGS
