"""Surprisals from Python, against plain transformers."""

import numpy as np
import pytest
import slow_scores
from grammar_models import grammar_models
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import probes

TEXTS = ["The nurse beside the keys is watching.", "Those boxes  shine."]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return grammar_models(tmp_path_factory)


def test_of_a_masked_model(models):
    tokenizer = AutoTokenizer.from_pretrained(models["masked"])
    model = AutoModelForMaskedLM.from_pretrained(models["masked"]).eval()
    found = probes.surprisal(str(models["masked"]), TEXTS)
    for number, text in enumerate(TEXTS):
        own = found[found["text"] == number]
        assert own["token"].tolist() == tokenizer.tokenize(text)
        plain = slow_scores.pseudo_log_likelihood(model, tokenizer, text)
        assert own["surprisal"].to_numpy() == pytest.approx(-np.array(plain), abs=1e-4)
        within = slow_scores.within_word_l2r(model, tokenizer, text)
        assert own["within_word"].to_numpy() == pytest.approx(-np.array(within), abs=1e-4)


def test_of_words_and_of_a_model_in_memory(models):
    tokenizer = AutoTokenizer.from_pretrained(models["causal"])
    model = AutoModelForCausalLM.from_pretrained(models["causal"]).eval()
    tokens = probes.surprisal(model, TEXTS, tokenizer)
    words = probes.surprisal(model, TEXTS, tokenizer, by="word")
    assert words["form"].tolist() == [*TEXTS[0].split(), *TEXTS[1].split()]
    sums = tokens.groupby(["text", "word"])["surprisal"].sum()
    assert words["surprisal"].to_numpy() == pytest.approx(sums.to_numpy())
    slow = slow_scores.left_to_right(model, tokenizer, TEXTS[1])
    assert -tokens.loc[tokens["text"] == 1, "surprisal"].sum() == pytest.approx(sum(slow), abs=1e-3)


def test_what_cannot_be_scored(models, tiny_bert):
    with pytest.raises(probes.UserError, match="texts is a list of texts that are not empty"):
        probes.surprisal(str(models["masked"]), ["fine", " "])
    with pytest.raises(probes.UserError, match="no weights of a language-model head"):
        probes.surprisal(tiny_bert, TEXTS)
