"""A task's own view of the text: what is read, what is kept, and whose vectors are used."""

import hashlib

import numpy as np
import pytest

from probes.common.errors import UserError
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import collect_examples
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoding import vectors_of, word_vectors
from probes.extraction.reading.views import Text, View
from probes.tasks.task import Example, Task

WORDS = ("The", "old", "Dog", "sees", "a", "Cat")


def corpus_of(*sentences):
    made = tuple(Sentence(str(i), "en", words) for i, words in enumerate(sentences))
    return Corpus("c", "1", "", dict.fromkeys(("train", "dev", "test"), made))


def collect(rule, *sentences, shape="word", hiding="masked"):
    task = Task("t", 1, (), shape, "classification", "accuracy", (), rule, "")
    return collect_examples(task, corpus_of(*sentences), hiding)


@pytest.fixture(scope="module")
def read(tiny_bert, tmp_path_factory):
    """The rows of each split's examples at every layer, encoded by the tiny model."""
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    cache = tmp_path_factory.mktemp("cache")

    def read(examples, *sentences):
        view = examples.view_of(corpus_of(*sentences))
        reading = word_vectors(cache, encoder.info, "float32", view, range(3))
        store = vectors_of(reading, encoder, 512)
        rows = examples.rows("test", view, store)
        found = [
            [[store.layer(k)[np.arange(a, b)].mean(0) for a, b in span] for span in rows]
            for k in range(store.n_layers)
        ]
        return np.array(found), store.manifest["rows"], len(view.texts)

    return read


def lowered(sentence):
    words = tuple(word.lower() for word in sentence.words)
    for i in (1, 3, 4):
        yield Example(f"{i}", (i, i + 1), words=words)


def as_it_stands(sentence):
    for i in (1, 3, 4):
        yield Example(f"{i}", (i, i + 1))


def test_vectors_are_those_of_a_corpus_with_the_same_words(read):
    found = collect(lowered, WORDS)
    assert found.view == "own"
    ours, kept, texts = read(found, WORDS)
    plain = tuple(word.lower() for word in WORDS)
    theirs, _, _ = read(collect(as_it_stands, plain), plain)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    # One text for all examples and splits, of which words 1 to 4 are kept.
    assert (texts, kept) == (1, 4)


def test_pairs_and_spans_refer_to_the_task_s_own_words(read):
    def without_the_first(sentence):
        words = sentence.words[1:]
        yield Example("x", (0, 2), (4, 5), words=words)
        yield Example("y", (1, 2), (2, 4), words=words)

    def plain(sentence):
        yield Example("x", (0, 2), (4, 5))
        yield Example("y", (1, 2), (2, 4))

    ours, *_ = read(collect(without_the_first, WORDS, shape="span pair"), WORDS)
    theirs, *_ = read(collect(plain, WORDS[1:], shape="span pair"), WORDS[1:])
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_examples_of_different_texts_keep_what_each_needs():
    def alone(sentence):
        for word in sentence.words:
            yield Example(word, (0, 1), words=(word,))

    found = collect(alone, ("a", "b"), ("b", "c"))
    assert found.splits["train"].texts == tuple(Text((word,), (0, 1)) for word in "abbc")
    assert len(found.view_of(corpus_of()).texts) == 3


@pytest.mark.parametrize(
    ("hiding", "text"),
    [("masked", Text(("x", "y", "z"), (2, 3), mask=2)), ("cut", Text(("x", "y"), (1, 2)))],
)
def test_a_word_may_be_hidden_among_the_task_s_own_words(hiding, text):
    def rule(sentence):
        yield Example("a", (2, 3), words=("x", "y", "z"), hide=2)
        yield Example("b", (1, 2), words=("x", "y"), hide=1)

    found = collect(rule, ("u",), hiding=hiding)
    assert found.view == hiding
    assert found.splits["test"].texts[0] == text


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([Example("a", (3, 4), words=("x", "y"))], r"sentence '0': the rule yielded the span \(3, 4\) for 2 words"),
        ([Example("a", (0, 1), words=("x",)), Example("b", (0, 1))], "words of its own in some examples and none in others"),
    ],
)  # fmt: skip
def test_words_that_spans_do_not_fit_are_refused(examples, message):
    with pytest.raises(UserError, match=message):
        collect(lambda sentence: examples, WORDS)


def test_the_digest_of_a_view_stays():
    """Otherwise everything that is stored would be encoded again."""
    content = "plain" + "(('a', 'b'), (0, 1), 1)"
    view = View("plain", (Text(("a", "b"), (0, 1), mask=1),))
    assert view.digest == hashlib.sha256(content.encode()).hexdigest()
