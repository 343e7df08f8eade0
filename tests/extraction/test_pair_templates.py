"""Templates of two segments, against transformers' own tokenizers."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models
from tiny_models import FAMILIES
from transformers import AutoTokenizer

from probes.extraction.reading.alignment import WordTokenizer
from probes.extraction.reading.views import Text

PAIRS = [("we saw the birds", "the boats light that harbour"), ("light", "the keeper writes")]
TYPED = ("bert", "electra", "albert")
MARKED = ("bert", "distilbert", "electra", "mpnet", "albert", "xlm-roberta", "deberta-v2", "t5")
"""Families whose tokenizers mark a word's beginning without a space before it; and Llama 2."""
WITHOUT = ("gpt2", "gpt-neox", "qwen2", "qwen3", "opt")
"""Families whose tokenizers put nothing between two texts."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_filled_template_is_the_tokenizer_s_own_pair(name, tmp_path):
    tiny_models.save(name, tmp_path)
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
