"""Sentences with some layers, for tests."""

from __future__ import annotations

from probes.data.sentence import Sentence


def sentence_of(text, upos="", heads=(), deprels="", feats=(), *, name="s", **layers):
    """Words, tags and relations are written with spaces between them."""
    words, tags, relations = (tuple(part.split()) for part in (text, upos, deprels))
    layers |= {"feats": tuple(feats), "heads": tuple(heads), "deprels": relations}
    return Sentence(name, "en", words, tags, **layers)


def sentence_with_tree(heads, deprels=(), *, words=None, name="s", **layers):
    """A sentence of this tree; its words are w0, w1, … unless they are given."""
    words = words or [f"w{i}" for i in range(len(heads))]
    tree = {"heads": tuple(heads), "deprels": tuple(deprels)}
    return Sentence(name, "en", tuple(words), **tree, **layers)
