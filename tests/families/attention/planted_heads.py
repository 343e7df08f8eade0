"""A context of attention in which a test says what every head attends to, and maps for it.

Every word is one token, and there are no special tokens. What a collector would have kept is made
here in loops over words, but for trees, whose algorithm is the collector's.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import torch
from head_numbers import HeadNumbers
from random_trees import random_heads

from probes.data.sentence import ROOT, Corpus, Sentence
from probes.extraction.shards import shards_of
from probes.families.attention.collector import trees
from probes.families.attention.heads import OFFSETS, STATISTICS, TOKENS
from probes.measurements.context import ModelContext
from probes.measurements.measurement import get_measurement
from probes.records.row import Rows

TO_HEAD, TO_DEPENDENT = "dependent to head", "head to dependent"


def sentence(split, number, rng, n, document=""):
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


def corpus(n=120, lengths=range(5, 10), seed=0, documents=0):
    """Sentences with random trees, in so many documents of test, if any."""
    rng = np.random.default_rng(seed)
    splits = {
        split: tuple(
            sentence(
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


def statistics(a):
    """Those of one map, in loops."""
    n = len(a)
    columns = [sum(a[:, j]) / n for j in range(n)]
    found = {f"offset {x:+d}": 0.0 for x in OFFSETS}
    entropy = 0.0
    for i in range(n):
        for j in range(n):
            if j - i in OFFSETS:
                found[f"offset {j - i:+d}"] += a[i, j] / n
            if a[i, j]:
                entropy -= a[i, j] * np.log(a[i, j]) / np.log(n) / n
    found |= {"entropy": entropy, "first": columns[0], "separators": np.nan}
    found["vertical"] = 0.0
    for half in (0, 1):
        given = [sum(row[j] for row in a[1 - half :: 2]) for j in range(n)]
        for j in sorted(range(n), key=lambda j: -given[j])[:2]:
            found["vertical"] += sum(a[half::2, j]) / n
    found["diagonal"] = sum(found[f"offset {x:+d}"] for x in (-1, 0, 1))
    return [found[name] for name in STATISTICS]


def most(a):
    """The word that each attends to most, and that which attends most to it; -1 for none."""
    n, found = len(a), []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        pair = []
        for weight in (lambda j, i=i: a[i, j], lambda j, i=i: a[j, i]):
            best = max(others, key=weight, default=-1)
            pair.append(best if others and weight(best) > 0 else -1)
        found.append(pair)
    return found


def _kept(a):
    """What is kept of a text's maps (blocks, heads, n, n)."""
    n_blocks, n_heads, n, _ = a.shape
    with_uniform = np.concatenate([a, np.full((n_blocks, 1, n, n), 1 / n)], axis=1)
    each = [[with_uniform[b, h] for h in range(n_heads + 1)] for b in range(n_blocks)]
    of_words = [torch.from_numpy(a[b][None].copy()) for b in range(n_blocks)]
    return {
        "statistics": np.array([[[statistics(x) for x in row] for row in each]]),
        "received": np.array([[x.mean(0) for x in row] for row in each]).transpose(2, 0, 1),
        "most": np.array([[most(x) for x in row[:-1]] for row in each]).transpose(2, 0, 1, 3),
        "trees": np.stack([trees(x, torch.tensor([n]))[0] for x in of_words], axis=1),
        "mean_maps": a if n == TOKENS else np.zeros((n_blocks, n_heads, TOKENS, TOKENS)),
        "n_mean_maps": np.array([n == TOKENS], dtype=int),
    }


def _left_out(found):
    """What is kept of a text of several windows."""
    nothing = {"statistics": np.nan, "received": np.nan, "most": -1, "trees": -1}
    return {
        name: np.full_like(values, nothing[name]) if name in nothing else 0 * values
        for name, values in found.items()
    }


def context(of, maps_of, *, layers=(1, 2), long=(), texts_per_shard=40):
    """What attention is given.

    Args:
        maps_of: gives the maps of a sentence. Shape (blocks, heads, words, words).
        long: sentences, by their names, that do not fit into the model's window.
    """
    view = get_measurement("attention").view(of, None)
    sentences = {s.words: s for s in of}
    parts, long_texts = {}, []
    shards = shards_of(view, [i // texts_per_shard for i in range(len(view.texts))])
    assert len(shards) > 1
    for shard in shards:
        kept, its_long = [], []
        for place, text in enumerate(shard.texts):
            its = sentences[text.words]
            found = _kept(maps_of(its))
            if its.id in long:
                its_long.append(place)
                found = _left_out(found)
            kept.append(found)
        long_texts.append(its_long)
        for name in kept[0]:
            values = [each[name] for each in kept]
            whole = sum(values) if "mean_maps" in name else np.concatenate(values)
            parts.setdefault(name, []).append(whole)
    stored = SimpleNamespace(
        shards=lambda view: shards,
        arrays=parts.__getitem__,
        long_texts=long_texts.__getitem__,
    )
    model = SimpleNamespace(name="m", n_layers=len(parts["mean_maps"][0]))
    cpu = torch.device("cpu")
    return ModelContext(
        corpus=of,
        model=model,
        extent=dict.fromkeys(layers, 1),
        view=view,
        stored=stored,
        read=None,
        read_changed=None,
        sites=None,
        device=cpu,
        options=None,
    )


def share(sentences, right, counts=lambda of, i: True):
    """Of words with a head that count, the share of those that are right."""
    found = Counter(
        bool(right(of, i))
        for of in sentences
        for i, head in enumerate(of.heads)
        if head != ROOT and counts(of, i)
    )
    return found[True] / found.total()


def compute(of, maps=maps_of, layers=(1, 2, 3), **more):
    """What attention finds, and its rows as `heads`."""
    found = get_measurement("attention")(context(of, maps, layers=layers, **more))
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
