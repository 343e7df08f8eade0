"""Numbers of heads from rows, and from the maps that a model returns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from measuring import measure
from scipy.stats import entropy
from transformers import AutoModel, AutoTokenizer

from probes.data.conllu_files import read_conllu
from probes.data.sentence import ROOT
from probes.extraction.reading.views import plain_text
from probes.families.attention.heads import choices, grid, head_frame


class HeadNumbers:
    """The rows of a record: its layers, the class of each head, those chosen, and grids."""

    def __init__(self, rows):
        self._frame = head_frame(rows)
        self.layers = sorted(self._frame["layer"].unique())
        self.choices = choices(rows)
        classes = self._frame[self._frame["metric"] == "class"]
        places = zip(classes["layer"], classes["head"], strict=True)
        self.classes = dict(zip(places, classes["feature"], strict=True))

    def of(self, metric, feature=None, direction=None, split="test"):
        """Arrays of layers × heads, and n; None if not measured."""
        where = {"feature": feature, "direction": direction, "split": split}
        columns = {"values": "value", "low": "low", "high": "high", "baseline": "baseline"}
        grids = {x: grid(self._frame, metric, name, **where) for x, name in columns.items()}
        if grids["values"].empty:
            return None
        n = grid(self._frame, metric, "n", **where).iloc[0, 0]
        return SimpleNamespace(n=n, **{x: its.to_numpy(dtype=float) for x, its in grids.items()})

    def choices_of(self, metric):
        """The choices of a measure."""
        return [choice for choice in self.choices if choice.test.metric == metric]


def with_heads(run):
    """A run with the numbers of its record as `heads`."""
    return SimpleNamespace(**vars(run), heads=HeadNumbers(run.record.rows))


def attention_run(model, corpus, folder, **settings):
    return with_heads(measure("attention", model, corpus, folder, **settings))


def eager_maps(encoder, text):
    """The maps that a model returns of one text. Shape (blocks, heads, length, length)."""
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


class PlainMaps:
    """Attention as transformers returns it, of one text at a time."""

    def __init__(self, folder):
        self._model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def of_tokens(self, *texts):
        """Maps (blocks, heads, tokens, tokens) of one text or of a pair, and its tokens.

        None if it does not fit.
        """
        tokens = self._tokenizer(*map(list, texts), is_split_into_words=True, return_tensors="pt")
        if tokens["input_ids"].shape[1] > self._model.config.max_position_embeddings:
            return None
        with torch.no_grad():
            maps = torch.stack(self._model(**tokens, output_attentions=True).attentions)
        return maps[:, 0].double().numpy(), tokens

    def of_words(self, words):
        """Attention between words (blocks, heads, words, words); None if they do not fit."""
        if (found := self.of_tokens(words)) is None:
            return None
        maps, tokens = found
        owner = np.array([-1 if word is None else word for word in tokens.word_ids()])
        member = (owner == np.arange(len(words))[:, None]).astype(float)
        return (member / member.sum(1, keepdims=True)) @ maps @ member.T

    def of_treebank(self, path):
        """The sentences that fit, each with the attention between its words."""
        for sentence in read_conllu(path, "en"):
            if (maps := self.of_words(sentence.words)) is not None:
                yield sentence, maps


def require_own_maps(run, encoder, sentences):
    """Check entropy, the first token, and the relation "all", by the maps that a model returns."""
    entropies, first, hits, n_linked = [], [], 0, 0
    for sentence in sentences:
        (pieces,) = encoder.split([plain_text(sentence)])
        prefix = len(encoder.words.prefix)
        if len(pieces.ids) + prefix + len(encoder.words.suffix) > encoder.info.window:
            continue
        maps = eager_maps(encoder, plain_text(sentence)).astype(float)
        entropies.append(entropy(maps, axis=-1).mean(-1) / np.log(maps.shape[-1]))
        first.append(maps[..., 0].mean(-1))
        starts = prefix + pieces.bounds[:-1]
        columns = np.add.reduceat(maps[..., : prefix + len(pieces.ids)], starts, axis=-1)
        words = np.add.reduceat(columns[..., : prefix + len(pieces.ids), :], starts, axis=-2)
        words /= np.diff(pieces.bounds)[:, None]
        words[..., range(len(starts)), range(len(starts))] = 0
        linked = np.flatnonzero(np.array(sentence.heads) != ROOT)
        best = words[..., linked, :].argmax(-1)
        hits += (best == np.array(sentence.heads)[linked]).sum(-1)
        n_linked += len(linked)
    assert run.record.facts["test_too_long"] == len(sentences) - len(entropies)
    relation = run.heads.of("relation", "all", "dependent to head")
    expected = np.mean(entropies, 0), np.mean(first, 0), hits / n_linked
    for found, values in zip(
        (*map(run.heads.of, ("entropy", "first")), relation), expected, strict=True
    ):
        np.testing.assert_allclose(found.values, values, atol=2e-5)
