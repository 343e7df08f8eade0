"""The texts that heads are measured on: sentences, or pairs of neighbouring ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.views import View, neighbouring, pair_text, plain_text, view_over
from probes.measurements.context import Context
from probes.statistics.partition import Partition, partition


@dataclass(frozen=True)
class Texts:
    """The texts of a split.

    Attributes:
        sentences: those of the split.
        index: the place of each text in the view. Shape (texts,).
        left_out: texts that do not fit into the model's window. Shape (texts,).
        partition: what intervals resample.
    """

    sentences: Sequence[Sentence]
    index: Ints
    left_out: NDArray[np.bool_]
    partition: Partition
    n_words: int


def view_of(corpus: Corpus, segments: str) -> View:
    """What is read: sentences of dev and test, or pairs of neighbouring sentences of test.

    Raises:
        NotServedError: no two sentences of test are neighbours.
    """
    if segments == "two":
        pairs = neighbouring(corpus.splits["test"])
        if not pairs:
            raise NotServedError(
                "no document of test has two sentences; use --attention-segments one"
            )
        return view_over([pair_text(*pair) for pair in pairs], "segments")
    sentences = (*corpus.splits["dev"], *corpus.splits["test"])
    return view_over([plain_text(sentence) for sentence in sentences], "plain")


def texts_of(context: Context, split: str, segments: str) -> Texts:
    """The texts of a split, in corpus order."""
    sentences = context.corpus.splits[split]
    if segments == "two":
        pairs = neighbouring(sentences)
        texts = [pair_text(*pair) for pair in pairs]
        documents = [first.document for first, _ in pairs]
    else:
        texts = [plain_text(sentence) for sentence in sentences]
        documents = [sentence.document for sentence in sentences]
    index = np.array([context.view.index[text] for text in texts], dtype=np.int64)
    return Texts(
        sentences,
        index,
        context.long_texts[index],
        partition(documents),
        sum(len(text.words) for text in texts),
    )
