"""Texts of two segments: against the tokenizer's own pairs and plain passes over them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from tiny_models import FAMILIES
from tiny_readings import collected, reading_of, vectors_by_layer
from tokenizers import Tokenizer, processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    XLNetConfig,
    XLNetModel,
)

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.extraction.alignment import WordTokenizer
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import vectors_of
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.padding import PaddedWindows
from probes.extraction.views import Text, View, neighbouring, pair_text

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


@pytest.mark.parametrize("paired", [False, True])
def test_xlnet_reads_the_token_types_of_its_tokenizer(paired: bool) -> None:
    """Type 2 for the last token of single texts too; without types it has no segment encoding."""
    backend = FAMILIES["xlm-roberta"].tokenizer().backend
    sep, cls = ((token, backend.token_to_id(token)) for token in ("</s>", "<s>"))
    backend = Tokenizer.from_str(backend.to_str())
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {sep[0]}:0 {cls[0]}:2",
        pair=f"$A:0 {sep[0]}:0 $B:1 {sep[0]}:1 {cls[0]}:2",
        special_tokens=[sep, cls],
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    rows = backend.get_vocab_size()
    torch.manual_seed(7)
    settings = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "initializer_range": 0.5}
    model = XLNetModel(XLNetConfig(vocab_size=rows, **settings)).eval()
    texts = TEXTS if paired else [Text(text.words, text.keep) for text in TEXTS]
    pairs = [pair if paired else (" ".join(pair),) for pair in PAIRS]
    given = [
        tokenizer(*(x.split() for x in pair), is_split_into_words=True, return_token_type_ids=True)
        for pair in pairs
    ]
    kinds = ("input_ids", "attention_mask", "token_type_ids")
    expected = [by_hand(model, each, kinds) for each in given]
    without = [by_hand(model, each, kinds[:2]) for each in given]
    ours = vectors_by_layer(Encoder(model, tokenizer, name="xlnet", device="cpu"), texts)
    for layer, found in enumerate(ours):
        wanted = torch.cat([each[layer] for each in expected])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    wrong = torch.cat([each[-1] for each in without])
    assert (wrong - ours[-1]).norm() > 0.05 * ours[-1].norm()


def test_a_text_with_segments_is_read_as_alone_beside_texts_without(encoder: Encoder) -> None:
    mixed = [*TEXTS, *(Text(text.words, text.keep) for text in TEXTS)]
    together = vectors_by_layer(encoder, mixed)
    apart = [vectors_by_layer(encoder, [text]) for text in mixed]
    for layer, found in enumerate(together):
        wanted = torch.cat([each[layer] for each in apart])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    n = len(together[1]) // 2
    assert (together[1][:n] - together[1][n:]).norm() > 1


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
