"""What attention finds of every head, from the maps that a model itself returns, in loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from scipy.stats import entropy

from probes.data.sentence import ROOT
from probes.extraction.views import plain_text


def eager_maps(encoder, text):
    """The maps that a model itself returns of one text. Shape (blocks, heads, length, length)."""
    (pieces,) = encoder.split([text])
    ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
    used = encoder.model.config._attn_implementation
    encoder.model.set_attn_implementation("eager")
    with torch.no_grad():
        output = encoder.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True
        )
    encoder.model.set_attn_implementation(used)
    return torch.stack(output.attentions)[:, 0].numpy()


def between_words(a, bounds, n_prefix):
    """A map between words (Clark et al. 2019, 4.1): columns summed over tokens, rows averaged."""
    words = [range(n_prefix + i, n_prefix + j) for i, j in pairwise(bounds)]
    return np.array([[a[np.ix_(i, j)].sum(1).mean() for j in words] for i in words])


def of_sentence(encoder, sentence):
    """Sums and counts of one sentence, by measure, each (blocks, heads); None if it is too long."""
    text = plain_text(sentence)
    (pieces,) = encoder.split([text])
    prefix, suffix = len(encoder.words.prefix), len(encoder.words.suffix)
    n = len(pieces.ids) + prefix + suffix
    if n > encoder.info.window:
        return None
    found = []
    for block in eager_maps(encoder, text).astype(np.float64):
        for a in block:
            words = between_words(a, list(pieces.bounds), prefix)
            found.append(_of_map(a, words, sentence, suffix))
    shape = encoder.info.n_layers, len(block)
    return {
        name: tuple(np.array([each[name][i] for each in found]).reshape(shape) for i in (0, 1))
        for name in found[0]
    }


def _of_map(a, words, sentence, suffix):
    n, choices = len(a), most(words)
    found = {
        "entropy": (entropy(a, axis=1).mean() / np.log(n), 1),
        "first": (a[:, 0].mean(), 1),
        "next": (np.diagonal(a, 1).sum() / n, 1),
        "self": (np.trace(a) / n, 1),
        "vertical": (vertical(a), 1),
    }
    if suffix:
        found["separators"] = a[:, -1].mean(), 1
    heads = np.array(sentence.heads)
    linked = heads != ROOT
    for place, name in enumerate(("dependent to head", "head to dependent")):
        found[name] = (choices[linked, place] == heads[linked]).sum(), linked.sum()
    return found


def most(a):
    """The word that each attends to most, and the one that attends most to it; -1 for none."""
    others = a - np.diag(np.diag(a))
    found = [np.where(x.max(1) > 0, x.argmax(1), -1) for x in (others, others.T)]
    return np.stack(found, axis=1)


def vertical(a):
    """Attention to two columns in each half of the rows, those that the other half attends to most."""
    halves, sums = (a[::2], a[1::2]), 0.0
    for its, other in (halves, halves[::-1]):
        first, second = sorted(range(len(a)), key=lambda j: -sum(row[j] for row in other))[:2]
        sums += sum(row[first] + row[second] for row in its)
    return sums / len(a)


def of_heads(encoder, sentences):
    """Means by measure, each (blocks, heads), and the number of sentences that are too long."""
    every = [of_sentence(encoder, s) for s in sentences]
    known = [each for each in every if each]
    means = {
        name: sum(each[name][0] for each in known) / sum(each[name][1] for each in known)
        for name in known[0]
    }
    return means, len(every) - len(known)


def assert_equal(found, expected):
    """That `HeadNumbers` have the numbers of `of_heads`."""
    names = {
        "next": ("offset", 1),
        "self": ("offset", 0),
        "vertical": ("pattern", "vertical"),
    }
    names |= {x: ("relation", "all", x) for x in ("dependent to head", "head to dependent")}
    for name, values in expected.items():
        its = found.of(*names.get(name, (name,)))
        np.testing.assert_allclose(its.values, values, atol=2e-5, err_msg=name)
