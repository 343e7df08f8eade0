"""Word vectors from passes of plain transformers, one sentence at a time, and stored probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import probes
from probes.common.arrays import Floats
from probes.data.sentence import Sentence


def stored_probe(folder: Path, task: str, layer: int) -> Any:
    """The probe behind the score of a task at a layer, of a run in a folder."""
    return probes.read_probe(folder / "results", task, layer, cache_dir=folder / "cache")


def word_of_pieces(tokenizer: Any, words: Sequence[str]) -> tuple[Any, Any]:
    """What a model is given, and the word of each token, -1 of a special one. Shape (tokens,)."""
    given = tokenizer([*words], is_split_into_words=True, return_tensors="pt")
    return given, np.array([-1 if x is None else x for x in given.word_ids(0)])


def vectors_of_words(model: Any, tokenizer: Any, sentences: Sequence[Sentence]) -> list[Floats]:
    """By layer, the mean of the pieces of each word, all words one after the other."""

    def of_each() -> Iterator[list[Floats]]:
        for sentence in sentences:
            given, of = word_of_pieces(tokenizer, sentence.words)
            with torch.no_grad():
                states = model(**given, output_hidden_states=True).hidden_states
            yield [
                np.stack([x[0].numpy()[of == i].mean(0) for i in range(len(sentence))])
                for x in states
            ]

    return [np.concatenate(each) for each in zip(*of_each(), strict=True)]
