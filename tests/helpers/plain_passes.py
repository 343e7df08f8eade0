"""Word vectors from passes of plain transformers, one sentence at a time, and stored probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoTokenizer

import probes
from probes.common.arrays import Floats
from probes.data.sentence import Sentence


def stored_probe(folder: Path, task: str, layer: int) -> Any:
    """The probe behind the score of a task at a layer, of a run in a folder."""
    return probes.read_probe(folder / "results", task, layer, cache_dir=folder / "cache")


def word_of_pieces(tokenizer: Any, words: Sequence[str]) -> tuple[Any, Any]:
    """The input of a model, and the word of each token, -1 for a special one. Shape (tokens,)."""
    given = tokenizer([*words], is_split_into_words=True, return_tensors="pt")
    return given, np.array([-1 if x is None else x for x in given.word_ids(0)])


def words_of_tokens(tokenizer: Any, stretches: Sequence[str]) -> list[int]:
    """The stretch of a text that each token is in; special tokens are left out."""
    offsets = tokenizer("".join(stretches), return_offsets_mapping=True, add_special_tokens=False)
    ends = np.cumsum([len(stretch) for stretch in stretches])
    return [int(np.searchsorted(ends, end)) for _, end in offsets["offset_mapping"]]


def losses_of_masked(
    model: Any, tokenizer: Any, stretches: Sequence[str], hidden: Sequence[int]
) -> torch.Tensor:
    """Losses of the tokens of some stretches, which are masked together. Shape (tokens,)."""
    own = 1 + np.flatnonzero(np.isin(words_of_tokens(tokenizer, stretches), hidden))
    ids = tokenizer("".join(stretches), return_tensors="pt")["input_ids"]
    masked = ids.clone()
    masked[0, own] = tokenizer.mask_token_id
    return cross_entropy(model(masked).logits[0, own], ids[0, own], reduction="none")


def vectors_of_words(model: Any, tokenizer: Any, sentences: Sequence[Sentence]) -> list[Floats]:
    """By layer, the mean of the pieces of each word, all words one after the other."""
    found = [vectors_of_text(model, tokenizer, sentence.words) for sentence in sentences]
    return list(np.concatenate(found, axis=1))


def vectors_of_text(model: Any, tokenizer: Any, words: Sequence[str]) -> Floats:
    """Shape (layers, words, size)."""
    given, of = word_of_pieces(tokenizer, words)
    with torch.no_grad():
        states = torch.stack(model(**given, output_hidden_states=True).hidden_states)[:, 0]
    return np.stack([states.numpy()[:, of == i].mean(1) for i in range(len(words))], axis=1)


def hand_vectors(folder: Path, texts: Iterable[Sequence[str]]) -> list[Floats]:
    """The vectors of each word of each text at all layers; each (layers, words, size)."""
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return [vectors_of_text(model.eval(), tokenizer, words) for words in texts]
