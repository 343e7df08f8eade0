"""A context of attention in which a test says what every head attends to.

Every word is one token, and there are no special tokens.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import torch
from head_numbers import HeadNumbers
from random_trees import random_heads

from probes.data.sentence import ROOT, Corpus, Sentence
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.padding import pad_windows
from probes.extraction.reading.shards import shards_of
from probes.extraction.reading.windows import windows_of_text
from probes.measurements.context import ModelContext
from probes.measurements.measurement import get_measurement
from probes.records.row import Rows

TO_HEAD, TO_DEPENDENT = "dependent to head", "head to dependent"


def random_sentence(split, number, rng, n, document=""):
    """Its words occur nowhere else."""
    heads = random_heads(n, rng)
    tags = ["PUNCT" if i % 5 == 4 else "NOUN" for i in range(n)]
    names = ["nsubj" if head > i else "obj" for i, head in enumerate(heads)]
    deprels = [
        "root" if head == ROOT else "punct" if tag == "PUNCT" else name
        for head, tag, name in zip(heads, tags, names, strict=True)
    ]
    return Sentence(
        f"{split}{number}",
        "en",
        tuple(f"{split}-{number}-{i}" for i in range(n)),
        tuple(tags),
        heads=heads,
        deprels=tuple(deprels),
        document=document,
    )


def random_corpus(n=120, lengths=range(5, 10), seed=0, documents=0):
    """Sentences with random trees, in so many documents of test, if any."""
    rng = np.random.default_rng(seed)
    splits = {
        split: tuple(
            random_sentence(
                split, i, rng, int(rng.choice(lengths)), f"d{i % documents}" if documents else ""
            )
            for i in range(n)
        )
        for split in ("train", "dev", "test")
    }
    return Corpus("toy", "1", "MIT", splits)


def onto(columns):
    """Each word attends to one word."""
    return np.eye(len(columns))[np.array(columns)]


def to_head(of):
    """To the head, and of roots to themselves."""
    return onto([i if head == ROOT else head for i, head in enumerate(of.heads)])


def to_dependents(of):
    """To all dependents alike, and of words without any to themselves."""
    found = np.zeros((len(of), len(of)))
    for i, head in enumerate(of.heads):
        found[i, i] = i not in of.heads
        if head != ROOT:
            found[head, i] = 1 / of.heads.count(head)
    return found


def to_next(of):
    """To the next word, and of the last to itself."""
    return onto([min(i + 1, len(of) - 1) for i in range(len(of))])


def to_first(of):
    """To the first word."""
    return onto([0] * len(of))


def at_random(of, seed=0):
    """Anywhere."""
    rng = np.random.default_rng([seed, sum(map(ord, of.id)), len(of)])
    return rng.dirichlet(np.ones(len(of)), len(of))


def half(of):
    """Half to the first word, half to itself."""
    return (to_first(of) + np.eye(len(of))) / 2


HEADS = (
    (at_random, to_head, to_first),
    (to_dependents, to_next, half),
    (at_random, at_random, at_random),
)
"""By layer, what each head attends to."""


def maps_of(of, heads=HEADS):
    """The maps of all heads. Shape (blocks, heads, words, words)."""
    return np.array([[head(of) for head in row] for row in heads])


def context(
    of,
    maps_of,
    *,
    layers=(1, 2),
    long=(),
    texts_per_shard=40,
    measurement="attention",
    read=None,
    causal=False,
):
    """The context of a model that reads one text at a time.

    Args:
        maps_of: gives the maps of a sentence. Shape (blocks, heads, words, words).
        long: sentences, by their names, that do not fit into the model's window.
        read: what the measurement reads, if not the sentences of the corpus.
        causal: whether the model is a decoder.
    """
    view = get_measurement(measurement).reads(of, None)
    collector = get_measurement(measurement).collector(of, layers, None)
    sentences = {s.words: s for s in read or of}
    parts, long_texts = {}, []
    shards = shards_of(view, [i // texts_per_shard for i in range(len(view.texts))])
    assert len(shards) > 1
    for shard in shards:
        own = [sentences[text.words] for text in shard.texts]
        long_texts.append([i for i, each in enumerate(own) if each.id in long])
        found = collected(collector, own, shard, maps_of, long_texts[-1], causal)
        for name, part in found.items():
            parts.setdefault(name, []).append(part.numpy())
    stored = SimpleNamespace(
        shards=lambda view: shards, arrays=parts.__getitem__, long_texts=long_texts.__getitem__
    )
    nothing = dict.fromkeys(("read", "read_changed", "sites", "device", "options"))
    extent = dict.fromkeys(layers, 1)
    model = SimpleNamespace(causal=causal)
    return ModelContext(corpus=of, model=model, extent=extent, view=view, stored=stored, **nothing)


def collected(collector, sentences, shard, maps_of, long, causal=False):
    """The parts of a shard. Long texts come in windows of half of their words."""
    pieces = [Pieces(np.arange(len(s)), np.arange(len(s) + 1), 0) for s in sentences]
    collector.start(shard, pieces)
    for i, sentence in enumerate(sentences):
        n = len(sentence) // (1 + (i in long))
        keep = 0, len(sentence)
        windows = windows_of_text(pieces[i], keep, "mean", capacity=n, prefix=[], suffix=[], text=i)
        collector.prepare(pad_windows(windows, 0))
        for block, maps in enumerate(maps_of(sentence), start=1):
            given = torch.from_numpy(maps[:, :n, :n]).float().expand(len(windows), -1, -1, -1)
            visible = torch.ones(len(windows), n, n, dtype=torch.bool)
            collector.take(block, given, visible.tril() if causal else visible)
    return collector.finish()


def share(sentences, right, counts=lambda of, i: True):
    """Share of right words among those that count and have a head."""
    found = Counter(
        bool(right(of, i))
        for of in sentences
        for i, head in enumerate(of.heads)
        if head != ROOT and counts(of, i)
    )
    return found[True] / found.total()


def compute(of, maps=maps_of, layers=(1, 2, 3), measurement="attention", **more):
    """The findings of a measurement of heads, with the rows as `heads`."""
    found = get_measurement(measurement)(
        context(of, maps, layers=layers, measurement=measurement, **more)
    )
    return SimpleNamespace(**vars(found), heads=HeadNumbers(Rows.of(found.rows)))


def chosen(found, measure, feature=""):
    """The choice of a feature."""
    (choice,) = (x for x in found.heads.choices_of(measure) if x.feature == feature)
    return choice


def where(choice):
    """Layer, head and direction."""
    return choice.test.layer, choice.test.axes["head"], choice.test.axes["direction"]


def on_dev(found, choice):
    """The score by which the head was chosen."""
    test = choice.test
    axes = (test.axes.get("feature"), test.axes["direction"])
    dev = found.heads.of(test.metric, *axes, "dev")
    place = found.heads.layers.index(test.layer), test.axes["head"] - 1
    return dev.values[place]
