"""Words to subwords: conventions, odd words, errors where nothing aligns."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tiny_models import fast_tokenizer
from tiny_tokenizers import TEXT
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from probes.common.errors import UserError
from probes.extraction.reading.alignment import WordTokenizer, word_of_pieces
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
