"""Words to subwords: conventions, odd words, pairs of segments; errors where nothing aligns."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, fast_tokenizer, save
from tiny_readings import vectors_by_layer
from tiny_tokenizers import TEXT
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, XLNetConfig, XLNetModel

from probes.common.errors import UserError
from probes.extraction.reading.alignment import WordTokenizer, word_of_pieces
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text


def tokens(tokenizer: PreTrainedTokenizerFast, *words: str) -> list[list[str]]:
    """The pieces of each word, by name."""
    (pieces,) = WordTokenizer(tokenizer)([Text(words, (0, len(words)))])
    names = tokenizer.convert_ids_to_tokens(pieces.ids.tolist())
    bounds = pieces.bounds.tolist()
    return [names[start:end] for start, end in pairwise(bounds)]


@pytest.mark.parametrize(
    ("name", "mark"),
    [("bert", ""), ("roberta", "Ġ"), ("gpt2", "Ġ"), ("qwen2", "Ġ"), ("gemma", "▁")],
)
def test_every_word_is_split_as_after_a_space_even_the_first(name, mark):
    assert tokens(fast_tokenizer(name), "the", "light") == [[f"{mark}the"], [f"{mark}light"]]


def sentencepiece(pre_tokenizer: Any, normalizer: Any = None) -> PreTrainedTokenizerFast:
    """A SentencePiece vocabulary under another convention for the first space."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator(
        TEXT, trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>"], unk_token="<unk>")
    )
    if pre_tokenizer is not None:
        trained.pre_tokenizer = pre_tokenizer
    else:
        spec = json.loads(trained.to_str()) | {"pre_tokenizer": None}
        trained = Tokenizer.from_str(json.dumps(spec))
    if normalizer is not None:
        trained.normalizer = normalizer
    return PreTrainedTokenizerFast(tokenizer_object=trained, unk_token="<unk>")


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_metaspace_marks_every_word_under_every_prepend_scheme(scheme, split):
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    found = tokens(sentencepiece(metaspace), "the", "light", "zzz")
    assert ["".join(word) for word in found] == ["▁the", "▁light", "▁<unk>"]


def test_a_normalizer_that_replaces_spaces_marks_every_word():
    """As in Llama 2's older files: no pre-tokenizer, a prefix and a replacement."""
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    found = tokens(sentencepiece(None, normalizer), "the", "light")
    assert ["".join(word) for word in found] == ["▁the", "▁light"]


def test_a_tokenizer_that_splits_single_words_differently_is_refused():
    """Digraphs across spaces: no way of giving words one by one yields running text."""
    tokenizer = fast_tokenizer("gpt2")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split("w t", "isolated")
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("w the", "")
    with pytest.raises(UserError, match="differently from running text"):
        WordTokenizer(tokenizer)


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("t5", "</s>", ["▁", "<unk>", "s", "<unk>"]),
        ("xlm-roberta", "<pad>", ["▁", "<unk>", "p", "ad", "<unk>"]),
        ("deberta-v2", "[SEP]", ["▁", "[UNK]", "S", "[UNK]"]),
        ("bert", "[SEP]", ["[UNK]", "s", "##e", "##p", "[UNK]"]),
        ("roberta", "<mask>", ["Ġ", "<", "m", "as", "k", ">"]),
        ("gpt2", "<|endoftext|>", None),
        ("qwen2", "<|im_start|>", None),
    ],
)
def test_a_word_that_looks_like_a_special_token_is_text(name, word, expected):
    tokenizer = fast_tokenizer(name)
    (found,) = tokens(tokenizer, word)
    assert word not in found
    assert "".join(found).lower().count("<unk>") < len(found)
    if expected is not None:
        assert found[:1] == expected[:1]
        assert [t for t in found if t in "<>[]"] == [t for t in expected if t in "<>[]"]
    special = set(tokenizer.all_special_tokens) - {tokenizer.unk_token}
    assert not special & set(found)


@pytest.mark.parametrize(
    ("tokenizer", "words", "holding"),
    [
        (fast_tokenizer("bert"), ("a", "\U0001f602", "ӄэй", "light", "\u200b"), (1, 2, 4)),
        # Only part of the last word is unknown.
        (fast_tokenizer("xlm-roberta"), ("the", "\U0001f602", "light\U0001f602"), (1, 2)),
        (fast_tokenizer("gpt2"), ("a", "\U0001f602", "ӄэй"), ()),
    ],
)
def test_words_that_hold_the_unknown_token_are_counted(tokenizer, words, holding):
    found = tokens(tokenizer, *words)
    assert tuple(i for i, its in enumerate(found) if tokenizer.unk_token in its) == holding
    count = WordTokenizer(tokenizer)
    n = len(words)
    assert count([Text(words, (0, n))])[0].unknown == len(holding)
    # Counted are the words whose vectors are kept; of a hidden word, the mask is.
    for i in range(n):
        assert count([Text(words, (i, i + 1))])[0].unknown == (i in holding)
        if count.mask_id is not None:
            assert count([Text(words, (i, i + 1), mask=i)])[0].unknown == 0


def test_without_an_unknown_token_the_word_is_named():
    pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer = sentencepiece(pre_tokenizer, normalizers.Replace("\u200b", ""))
    tokenizer.unk_token = None
    with pytest.raises(UserError, match=r"'\\u200b' yields no subword"):
        tokens(tokenizer, "a", "\u200b")


def test_a_slow_tokenizer_is_refused():
    from transformers import ByT5Tokenizer

    with pytest.raises(UserError, match="ByT5Tokenizer is not a fast tokenizer"):
        WordTokenizer(ByT5Tokenizer())


@pytest.mark.parametrize(
    ("word_ids", "complaint"),
    [([0, None, 1], "piece 1 belongs to no word"), ([0, 2, 1], "pieces of word 1 lie after")],
)
def test_pieces_that_do_not_align_raise(word_ids, complaint):
    with pytest.raises(UserError, match=complaint):
        word_of_pieces(word_ids, ["three", "odd", "words"])


def test_merges_are_not_left_out_at_random():
    tokenizer, random = fast_tokenizer("gpt2"), fast_tokenizer("gpt2")
    random.backend_tokenizer.model.dropout = 0.5
    words = ("birds", "watched", "kayaks", "witnesses")
    drawn = {str(random.backend_tokenizer.encode(" ".join(words)).ids) for _ in range(9)}
    assert len(drawn) > 1
    assert [tokens(random, *words) for _ in range(5)] == 5 * [tokens(tokenizer, *words)]
    assert WordTokenizer(random).dropout == 0.5
    assert random.backend_tokenizer.model.dropout == 0.5
    assert WordTokenizer(tokenizer).dropout == 0


# -- two segments, and types of tokens -----------------------------------------------------

PAIRS = [("we saw the birds", "the boats light that harbour"), ("light", "the keeper writes")]
TYPED = ("bert", "electra", "albert")
MARKED = ("bert", "distilbert", "electra", "mpnet", "albert", "xlm-roberta", "deberta-v2", "t5")
"""Families whose tokenizers mark a word's beginning without a space before it; and Llama 2."""
WITHOUT = ("gpt2", "gpt-neox", "qwen2", "qwen3", "opt")
"""Families whose tokenizers put nothing between two texts."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_filled_template_is_the_tokenizer_s_own_pair(name, tmp_path):
    save(name, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    words = WordTokenizer(tokenizer)
    assert (words.pair is None) == (name in WITHOUT)
    space = "" if name in (*MARKED, "llama-2") else " "
    for pair in PAIRS if words.pair else ():
        own = tokenizer(
            *([space + word for word in segment.split()] for segment in pair),
            is_split_into_words=True,
            return_token_type_ids=name in TYPED,
        )
        split = tuple(" ".join(pair).split())
        (pieces,) = words([Text(split, (0, len(split)))])
        second = int(pieces.bounds[len(pair[0].split())])
        ids, types, place = words.pair.filled(pieces.ids, second)
        assert ids.tolist() == own["input_ids"]
        segments = [x is not None for x in own.sequence_ids(0)]
        assert place.tolist() == np.flatnonzero(segments).tolist()
        assert second == own.sequence_ids(0).count(0)
        if name in TYPED:
            assert types.tolist() == own["token_type_ids"]
            assert 0 < sum(types) < len(types)


TEXTS = ("we saw the birds", "light", "she counts boats")


def by_hand(model, encoding, kinds):
    """Word vectors of every layer from a plain pass."""
    with torch.no_grad():
        inputs = {kind: torch.tensor([encoding[kind]]) for kind in kinds}
        states = model(**inputs, output_hidden_states=True).hidden_states
    words = encoding.word_ids(0)
    places = [[i for i, x in enumerate(words) if x == word] for word in range(max(words[:-2]) + 1)]
    return [torch.stack([state[0, at].mean(0) for at in places]) for state in states]


def test_xlnet_reads_the_token_types_of_its_tokenizer():
    """Type 2 for the last token; without types XLNet has no segment encoding."""
    backend = FAMILIES["xlm-roberta"].tokenizer().backend
    sep, cls = ((token, backend.token_to_id(token)) for token in ("</s>", "<s>"))
    backend = Tokenizer.from_str(backend.to_str())
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {sep[0]}:0 {cls[0]}:2", special_tokens=[sep, cls]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    rows = backend.get_vocab_size()
    torch.manual_seed(7)
    settings = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "initializer_range": 0.5}
    model = XLNetModel(XLNetConfig(vocab_size=rows, **settings)).eval()
    given = [
        tokenizer(x.split(), is_split_into_words=True, return_token_type_ids=True) for x in TEXTS
    ]
    kinds = ("input_ids", "attention_mask", "token_type_ids")
    expected = [by_hand(model, each, kinds) for each in given]
    without = [by_hand(model, each, kinds[:2]) for each in given]
    texts = [Text(tuple(x.split()), (0, len(x.split()))) for x in TEXTS]
    ours = vectors_by_layer(Encoder(model, tokenizer, name="xlnet", device="cpu"), texts)
    for layer, found in enumerate(ours):
        wanted = torch.cat([each[layer] for each in expected])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    wrong = torch.cat([each[-1] for each in without])
    assert (wrong - ours[-1]).norm() > 0.05 * ours[-1].norm()
