"""Contexts of measurements: rows of words, long sentences, documents."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_readings import reading_of, small_shards

from probes.data.sentence import Corpus, Sentence
from probes.extraction.encoding import vectors_of
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.views import plain_view, view_over
from probes.measurements.context import ModelContext
from probes.statistics.partition import FEWEST

LONG = ("the", "boats") * 60
"""More pieces than the window of the model, 64, has."""


def sentence(*words, document=""):
    return Sentence("s", "en", words, document=document)


TEST = (
    sentence("she", "counts", "the", "boats", document="a"),
    sentence(*LONG, document="a"),
    sentence("light", document="b"),
    sentence("she", "counts", "the", "boats", document="b"),
)


def no_more(*_):
    raise AssertionError("nothing is read again")


@pytest.fixture
def context(tiny_bert, tmp_path, monkeypatch):
    small_shards(monkeypatch, 16)
    splits = {"train": (sentence("the", "light"),), "dev": TEST[1:2], "test": TEST}
    corpus = Corpus("c", "1", "", splits)
    encoder, view = load_encoder(find_model(str(tiny_bert)), device="cpu"), plain_view(corpus)
    vectors = vectors_of(reading_of(tmp_path, encoder, view), encoder)
    assert vectors.n_shards > 1
    device = torch.device("cpu")
    return ModelContext(
        corpus=corpus,
        model=encoder.info,
        extent={0: 1, 2: 1},
        view=view,
        stored=vectors,
        read=no_more,
        read_changed=no_more,
        sites=no_more,
        device=device,
        options=None,
    )


def test_rows_and_words_are_in_corpus_order_and_equal_texts_share_theirs(context):
    rows, words = context.rows("test"), context.words("test", 2)
    assert len(rows) == len(words) == sum(map(len, TEST))
    np.testing.assert_array_equal(context.vectors.layer(2)[rows].astype(np.float32), words)
    np.testing.assert_array_equal(rows[:4], rows[-4:])
    assert len(set(rows.tolist())) == len(rows) - 4
    assert context.sentence_numbers("test").tolist() == [0] * 4 + [1] * 120 + [2] + [3] * 4


def test_sentences_longer_than_the_window_are_known(context):
    assert context.in_several_windows("test").tolist() == [False, True, False, False]
    assert context.in_several_windows("dev").tolist() == [True]
    assert context.in_several_windows("train").tolist() == [False]
    assert context.vectors.encoding.texts_in_several_windows == 1


def test_documents_are_resampled_if_there_are_enough_of_them(context):
    assert context.partition("test").clusters == "sentences"
    many = tuple(sentence("light", document=f"{n // 2}") for n in range(2 * FEWEST))
    context.corpus.splits["test"] = many
    found = context.partition("test")
    assert found.clusters == "documents"
    assert found.of_sentence.tolist() == [n // 2 for n in range(2 * FEWEST)]


def test_words_of_another_view_are_refused(context):
    texts = [replace(text, mask=0) for text in context.view.texts]
    masked = replace(context, view=view_over(texts, "masked"))
    with pytest.raises(TypeError, match="read in the 'masked' view, not in 'plain'"):
        masked.words("test", 0)
