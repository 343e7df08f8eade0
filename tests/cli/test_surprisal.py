"""Surprisals from Python, against plain transformers."""

import numpy as np
import pytest
import slow_scores
from grammar_models import byte_level, wordpiece
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

import probes

TEXTS = ["The nurse beside the keys is watching.", "Those boxes  shine."]
SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """A folder with a masked model that was never trained."""
    tokenizer = wordpiece()
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=32, **SMALL)
    return saved(BertForMaskedLM(config), tokenizer, tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    """A folder with a causal model that was never trained."""
    tokenizer = byte_level()
    end = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPT2Config(vocab_size=len(tokenizer), **end, **SMALL)
    return saved(GPT2LMHeadModel(config), tokenizer, tmp_path_factory.mktemp("causal"))


def saved(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_of_a_masked_model(masked):
    tokenizer = AutoTokenizer.from_pretrained(masked)
    model = BertForMaskedLM.from_pretrained(masked).eval()
    found = probes.surprisal(str(masked), TEXTS)
    for number, text in enumerate(TEXTS):
        own = found[found["text"] == number]
        assert own["token"].tolist() == tokenizer.tokenize(text)
        plain = slow_scores.pseudo_log_likelihood(model, tokenizer, text)
        assert own["surprisal"].to_numpy() == pytest.approx(-np.array(plain), abs=1e-4)
        within = slow_scores.within_word_l2r(model, tokenizer, text)
        assert own["within_word"].to_numpy() == pytest.approx(-np.array(within), abs=1e-4)


def test_of_words_and_of_a_model_in_memory(causal):
    tokenizer = AutoTokenizer.from_pretrained(causal)
    model = GPT2LMHeadModel.from_pretrained(causal).eval()
    tokens = probes.surprisal(model, TEXTS, tokenizer)
    words = probes.surprisal(model, TEXTS, tokenizer, by="word", word_ends=False)
    assert words["form"].tolist() == [*TEXTS[0].split(), *TEXTS[1].split()]
    sums = tokens.groupby(["text", "word"])["surprisal"].sum()
    assert words["surprisal"].to_numpy() == pytest.approx(sums.to_numpy())
    slow = slow_scores.left_to_right(model, tokenizer, TEXTS[1])
    assert -tokens.loc[tokens["text"] == 1, "surprisal"].sum() == pytest.approx(sum(slow), abs=1e-3)
    ends = slow_scores.ends_of_words(model, tokenizer, TEXTS[1])
    whole = probes.surprisal(model, TEXTS, tokenizer, by="word")
    owner = tokens.loc[tokens["text"] == 1, "word"]
    expected = np.bincount(owner, -np.add(slow, ends))
    own = whole.loc[whole["text"] == 1, "surprisal"]
    assert own.to_numpy() == pytest.approx(expected, abs=1e-4)


def test_what_cannot_be_scored(masked, tiny_bert):
    with pytest.raises(probes.UserError, match="give texts as a list of texts that are not empty"):
        probes.surprisal(str(masked), ["fine", " "])
    with pytest.raises(probes.UserError, match="no weights of a language-model head"):
        probes.surprisal(tiny_bert, TEXTS)


def test_words_that_share_a_token_have_one_row():
    letters = {x: i for i, x in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = {**letters, "sĊ": len(letters), "sĊa": len(letters) + 1}
    made = Tokenizer(models.BPE(vocabulary, [("s", "Ċ"), ("sĊ", "a")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="!")
    config = GPT2Config(vocab_size=len(vocabulary), bos_token_id=0, **SMALL)
    model = GPT2LMHeadModel(config).eval()
    tokens = probes.surprisal(model, ["the dogs\na see"], tokenizer)
    words = probes.surprisal(model, ["the dogs\na see"], tokenizer, by="word", word_ends=False)
    assert words["form"].tolist() == ["the", "dogs\na", "see"]
    assert words["surprisal"].sum() == pytest.approx(tokens["surprisal"].sum())
