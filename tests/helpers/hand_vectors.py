"""Word vectors made by transformers alone, one sentence at a time."""

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def hand_vectors(folder, texts):
    """The vectors of each word of each text at all layers; each (layers, words, size)."""
    model, tokenizer = (
        AutoModel.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    found = []
    for words in texts:
        pieces = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            states = torch.stack(model(**pieces, output_hidden_states=True).hidden_states)[:, 0]
        of = np.array([-1 if x is None else x for x in pieces.word_ids(0)])
        found.append(np.stack([states.numpy()[:, of == i].mean(1) for i in range(len(words))], 1))
    return found
