"""A task's own view of the text, and texts of two segments."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from tiny_models import FAMILIES
from tiny_readings import collected, reading_of, vectors_by_layer
from tokenizers import processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

import probes
from probes.common.errors import UserError
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import collect_examples
from probes.extraction.alignment import WordTokenizer
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import vectors_of, word_vectors
from probes.extraction.loading import load_encoder, load_model
from probes.extraction.model_files import find_model
from probes.extraction.padding import PaddedWindows
from probes.extraction.views import Text, View, neighbouring, pair_text
from probes.run.inputs import find_models
from probes.tasks.task import Example, Task

WORDS = ("The", "old", "Dog", "sees", "a", "Cat")


def corpus(*sentences):
    made = tuple(Sentence(str(i), "en", words) for i, words in enumerate(sentences))
    return Corpus("c", "1", "", dict.fromkeys(("train", "dev", "test"), made))


def collect(rule, *sentences, shape="word", hiding="masked"):
    task = Task("t", 1, (), shape, "classification", "accuracy", (), rule, "")
    return collect_examples(task, corpus(*sentences), hiding)


@pytest.fixture(scope="module")
def read(tiny_bert, tmp_path_factory):
    """The rows of each split's examples at every layer, encoded by the tiny model."""
    (model,) = find_models([str(tiny_bert)], probes.run.config.RunConfig(twins=0))
    encoder = Encoder(
        *load_model(model.source, "cpu", "float32", False)[:2], name="tiny", device="cpu"
    )
    cache = tmp_path_factory.mktemp("cache")

    def read(examples, *sentences):
        view = examples.view_of(corpus(*sentences))
        reading = word_vectors(cache, encoder.info, "float32", view, range(3))
        store = vectors_of(reading, encoder, 512)
        rows = examples.rows("test", view, store)
        found = [
            np.stack(
                [
                    np.stack([store.layer(k)[np.arange(a, b)].mean(0) for a, b in span])
                    for span in rows
                ]
            )
            for k in range(store.n_layers)
        ]
        return np.stack(found), store.manifest["rows"], len(view.texts)

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
    assert len(found.view_of(corpus()).texts) == 3


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


def test_own_words_in_only_some_examples_are_refused():
    def rule(sentence):
        yield Example("a", (0, 1), words=("x",))
        yield Example("b", (0, 1))

    with pytest.raises(UserError, match="words of its own in some examples and none in others"):
        collect(rule, WORDS)


PAIRS = [
    ("we saw the birds", "the boats light that harbour"),
    ("light", "the keeper writes"),
    ("she counts", "boats"),
]
TYPED = ("bert", "electra", "albert")
MARKED = ("bert", "distilbert", "electra", "mpnet", "albert", "xlm-roberta", "deberta-v2", "t5")
"""Families whose tokenizers mark a word's beginning without a space before it; and Llama 2."""


def in_segments(one: str, other: str) -> Text:
    words = (*one.split(), *other.split())
    return Text(words, (0, len(words)), second=len(one.split()))


TEXTS = [in_segments(*pair) for pair in PAIRS]


class Inputs(WordVectors):
    """Collects word vectors, and what the passes read."""

    def __init__(self) -> None:
        super().__init__((0, 1, 2), "mean", "float32")
        self.passes: list[PaddedWindows] = []

    def prepare(self, windows: PaddedWindows) -> None:
        self.passes.append(windows)


@pytest.fixture(scope="module", params=FAMILIES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Encoder, Any, list[Any]]:
    """A family, our encoder, transformers' model, and its tokenizer's encodings of the pairs."""
    name = request.param
    folder: Path = tmp_path_factory.mktemp(name)
    tiny_models.save(name, folder)
    model = AutoModel.from_pretrained(folder).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    space = "" if name in (*MARKED, "llama-2") else " "
    pairs = [
        tokenizer(
            *([space + word for word in segment.split()] for segment in pair),
            is_split_into_words=True,
            return_token_type_ids=name in TYPED,
        )
        for pair in PAIRS
    ]
    encoder = load_encoder(find_model(str(folder)), device="cpu")
    return name, encoder, model, pairs


def test_a_pass_reads_the_tokenizer_s_own_pairs(case: Any) -> None:
    name, encoder, _, pairs = case
    collector = Inputs()
    collected(encoder, TEXTS, collector)
    (windows,) = collector.passes
    assert ("token_type_ids" in windows.inputs) == (name in TYPED)
    assert sorted(windows.text.tolist()) == [0, 1, 2]
    for row, text in enumerate(windows.text.tolist()):
        expected, n = pairs[text], len(pairs[text]["input_ids"])
        for kind in {*windows.inputs} & {*expected}:
            assert windows.inputs[kind][row, :n].tolist() == expected[kind]
        assert windows.inputs["attention_mask"][row, n:].sum() == 0
        sequences = expected.sequence_ids(0)
        assert windows.second[row] == sequences.index(1)
        assert windows.n_pieces[row] == sequences.count(0) + sequences.count(1)
        after_first = len(sequences) - sequences[::-1].index(0)
        assert windows.n_middle == sequences.index(1) - after_first


def by_hand(model: Any, encoding: Any, kinds: tuple[str, ...]) -> list[torch.Tensor]:
    """Every layer's word vectors from a plain pass over the tokenizer's pair."""
    inputs = {kind: torch.tensor([encoding[kind]]) for kind in kinds}
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    owner = list(zip(encoding.sequence_ids(0), encoding.word_ids(0), strict=True))
    words = sorted({who for who in owner if None not in who})
    places = [[i for i, who in enumerate(owner) if who == word] for word in words]
    return [torch.stack([state[0, at].mean(0) for at in places]) for state in states]


def test_vectors_are_those_of_a_plain_pass(case: Any) -> None:
    name, encoder, model, pairs = case
    kinds = ("input_ids", "attention_mask", *(["token_type_ids"] if name in TYPED else []))
    ours = vectors_by_layer(encoder, TEXTS)
    expected = [by_hand(model, encoding, kinds) for encoding in pairs]
    for layer, found in enumerate(ours):
        wanted = torch.cat([each[layer] for each in expected])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_text_that_does_not_fit_with_the_tokens_between_is_read_without_them(
    encoder: Encoder, tmp_path: Path
) -> None:
    """The tiny BERT has room for 62 tokens, one of them between segments."""
    n = encoder.capacity
    texts = [Text(("the",) * (n + k), (0, n + k), second=3) for k in (-1, 0, 1)]
    assert [len(p.ids) - n for p in encoder.split(texts)] == [-1, 0, 1]
    reading = reading_of(tmp_path, encoder, View("segments", tuple(texts)))
    store = vectors_of(reading, encoder)
    assert store.long_texts(0) == [1, 2]
    plain = [Text(text.words, text.keep) for text in texts]
    fits = n - 1
    for ours, without in zip(
        vectors_by_layer(encoder, texts), vectors_by_layer(encoder, plain), strict=True
    ):
        torch.testing.assert_close(ours[fits:], without[fits:], rtol=1e-4, atol=1e-5)
        assert (ours[:fits] - without[:fits]).norm() > 0.1


def test_a_tokenizer_with_other_tokens_around_a_pair_reads_single_texts_only() -> None:
    tiny = FAMILIES["bert"].tokenizer()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny.backend, **tiny.named)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B",
        special_tokens=[(name, tiny.backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    words = WordTokenizer(tokenizer)
    assert len(words([Text(("the", "light"), (0, 2))])) == 1
    with pytest.raises(UserError, match="special tokens around a pair of texts"):
        words([Text(("the", "light"), (0, 2), second=1)])


def sentences(*documents: str) -> list[Sentence]:
    return [
        Sentence(str(i), "en", (f"w{i}",) * (i + 1), document=name)
        for i, name in enumerate(documents)
    ]


def test_neighbouring_sentences_of_a_document_are_pairs() -> None:
    given = sentences("a", "a", "a", "b", "b", "", "", "c", "d", "d", "d", "d")
    words = [sentence.words for sentence in given]
    assert [pair_text(*pair) for pair in neighbouring(given)] == [
        Text(words[i] + words[i + 1], (0, 2 * i + 3), second=i + 1) for i in (0, 3, 8, 10)
    ]


def test_texts_without_segments_keep_their_digest() -> None:
    """Otherwise everything that is stored would be encoded again."""
    text = Text(("a", "b"), (0, 1), mask=1)
    content = "plain" + "(('a', 'b'), (0, 1), 1)"
    assert View("plain", (text,)).digest == hashlib.sha256(content.encode()).hexdigest()
    others = [Text(text.words, text.keep, text.mask, second) for second in (None, 1)]
    assert len({View("segments", (other,)).digest for other in others}) == 2
