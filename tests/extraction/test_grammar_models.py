"""Small language models know the grammar that they were trained on, by slow and obvious scores."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grammar_models import END, grammar_models, training_text
from slow_scores import left_to_right, pseudo_log_likelihood, within_word_l2r
from toy_grammar import PHENOMENA, minimal_pairs
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

KINDS = {"masked": AutoModelForMaskedLM, "causal": AutoModelForCausalLM}
SCORES = {
    "pll": ("masked", pseudo_log_likelihood),
    "within-word": ("masked", within_word_l2r),
    "left-to-right": ("causal", left_to_right),
}

Score = Callable[[str], list[float]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return grammar_models(tmp_path_factory)


@pytest.fixture(scope="module")
def loaded(folders: dict[str, Path]) -> dict[str, tuple[Any, Any]]:
    return {
        kind: (
            KINDS[kind].from_pretrained(folder).eval(),
            AutoTokenizer.from_pretrained(folder),
        )
        for kind, folder in folders.items()
    }


@pytest.fixture(scope="module", params=SCORES)
def score(request: pytest.FixtureRequest, loaded: dict[str, tuple[Any, Any]]) -> Score:
    kind, function = SCORES[request.param]
    return partial(function, *loaded[kind])


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, str]]:
    return minimal_pairs(40, seed=41, seen=set(training_text()))


def shuffled(sentence: str, seed: int) -> str:
    """Its words in another order; the capital and the full stop stay where they are."""
    words = sentence.lower().removesuffix(".").split()
    random.Random(seed).shuffle(words)
    return " ".join(words).capitalize() + "."


def test_the_better_sentence_of_a_pair_is_likelier(
    score: Score, pairs: list[dict[str, str]]
) -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    for pair in pairs:
        good, bad = score(pair["sentence_good"]), score(pair["sentence_bad"])
        right[pair["UID"]].append(sum(good) > sum(bad))
    assert {uid: len(of) for uid, of in right.items()} == dict.fromkeys(PHENOMENA, 40)
    wrong = {uid: of.count(False) for uid, of in right.items()}
    assert max(wrong.values()) <= 2, wrong


def test_agreement_is_chance_where_words_are_shuffled(
    score: Score, pairs: list[dict[str, str]]
) -> None:
    right = []
    for seed, pair in enumerate(pairs):
        if pair["UID"] != "word_order":
            good, bad = (shuffled(pair[key], seed) for key in ("sentence_good", "sentence_bad"))
            right.append(sum(score(good)) > sum(score(bad)))
    assert len(right) == 160
    assert 0.38 < sum(right) / 160 < 0.62  # three standard errors


def test_slow_scores_are_what_transformers_says(loaded: dict[str, tuple[Any, Any]]) -> None:
    model, tokenizer = loaded["causal"]
    text = "The cooks near the witness watched kayaks."
    ids = tokenizer(END + text, return_tensors="pt")["input_ids"]
    by_token = left_to_right(model, tokenizer, text)
    assert len(by_token) == ids.shape[1] - 1
    loss = model(input_ids=ids, labels=ids).loss.item()
    assert sum(by_token) / len(by_token) == pytest.approx(-loss, abs=1e-5)

    model, tokenizer = loaded["masked"]
    words = tokenizer(text).word_ids()[1:-1]
    alone = pseudo_log_likelihood(model, tokenizer, text)
    later = within_word_l2r(model, tokenizer, text)
    assert len(alone) == len(later) == len(words)
    # The last piece of a word has no later ones; of others, more is masked.
    last = [i + 1 == len(words) or words[i + 1] != word for i, word in enumerate(words)]
    assert [a == b for a, b in zip(alone, later, strict=True)] == last
    assert last.count(False) > 0


def test_they_are_written_as_users_have_them(folders: dict[str, Path]) -> None:
    named = {"masked": "BertForMaskedLM", "causal": "GPT2LMHeadModel"}
    for kind, folder in folders.items():
        assert json.loads((folder / "config.json").read_text())["architectures"] == [named[kind]]
        assert (folder / "model.safetensors").is_file()
        assert (folder / "tokenizer.json").is_file()
