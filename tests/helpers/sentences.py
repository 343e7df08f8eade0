"""Sentences with some layers, for tests."""

from __future__ import annotations

from probes.data.sentence import Sentence


def sentence_of(text, upos="", heads=(), deprels="", feats=(), *, name="s", **layers):
    """Words, tags and relations are written with spaces between them."""
    words, tags, relations = (tuple(part.split()) for part in (text, upos, deprels))
    layers |= {"feats": tuple(feats), "heads": tuple(heads), "deprels": relations}
    return Sentence(name, "en", words, tags, **layers)


def parsed(text):
    """A sentence of words ``form/UPOS/head/deprel``, heads counted from 1 as in CoNLL-U.

    ``/Number`` may follow, or ``/Number/Tense`` of a finite verb.
    """
    forms, tags, heads, relations, feats = [], [], [], [], []
    for word in text.split():
        form, tag, head, relation, *values = word.split("/")
        finite = {"VerbForm": "Fin"} if len(values) == 2 else {}
        forms.append(form)
        tags.append(tag)
        heads.append(int(head) - 1)
        relations.append(relation)
        feats.append(dict(zip(("Number", "Tense"), values, strict=False)) | finite)
    return sentence_of(" ".join(forms), " ".join(tags), heads, " ".join(relations), feats)


def bracketed(text):
    """Words, and the labelled spans in brackets: ``[person Ann] saw [dog [person her] dog]``."""
    words, spans, unclosed = [], [], []
    for token in text.replace("]", " ]").split():
        if token.startswith("["):
            unclosed.append((len(spans), token[1:], len(words)))
            spans.append(None)
        elif token == "]":
            number, label, start = unclosed.pop()
            spans[number] = label, (start, len(words))
        else:
            words.append(token)
    return tuple(words), spans


def sentence_with_tree(heads, deprels=(), *, words=None, name="s", **layers):
    """A sentence of this tree; its words are w0, w1, … unless they are given."""
    words = words or [f"w{i}" for i in range(len(heads))]
    tree = {"heads": tuple(heads), "deprels": tuple(deprels)}
    return Sentence(name, "en", tuple(words), **tree, **layers)
