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
        """Arrays of layers × heads, and n and the kind of baseline; None if not measured."""
        where = {"feature": feature, "direction": direction, "split": split}
        columns = ("value", "low", "high", "baseline", "n", "baseline_kind")
        grids = {name: grid(self._frame, metric, name, **where) for name in columns}
        if grids["value"].empty:
            return None
        n, kind = (grids.pop(name).iloc[0, 0] for name in columns[4:])
        values, *others = (x.to_numpy(dtype=float) for x in grids.values())
        of = dict(zip(columns[1:4], others, strict=True))
        return SimpleNamespace(values=values, **of, n=n, kind=kind)

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


def word_maps(model, path):
    """Sentences of a treebank that fit, and attention between their words, by transformers alone.

    Shape (blocks, heads, words, words).
    """
    tokenizer = AutoTokenizer.from_pretrained(model)
    model = AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    for sentence in read_conllu(path, "en"):
        if (maps := maps_of_words(model, tokenizer, sentence.words)) is not None:
            yield sentence, maps


def maps_of_words(model, tokenizer, words):
    """Attention between words; None if they do not fit."""
    given = tokenizer([*words], is_split_into_words=True, return_tensors="pt")
    if given["input_ids"].shape[1] > model.config.max_position_embeddings:
        return None
    with torch.no_grad():
        maps = torch.stack(model(**given, output_attentions=True).attentions)[:, 0].double()
    owner = np.array([-1 if word is None else word for word in given.word_ids()])
    member = torch.from_numpy(owner == np.arange(len(words))[:, None]).double()
    return ((member / member.sum(1, keepdim=True)) @ maps @ member.T).numpy()


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
