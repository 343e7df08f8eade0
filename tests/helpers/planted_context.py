"""Contexts of measurements in which a test says what probes predict, and toy corpora for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import torch
from results_by_hand import make_result, with_rows
from rules import corpus_of, task_of

from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.examples.examples import Examples, collect_examples
from probes.examples.scoring import Scorer
from probes.extraction.reading.vectors import Sharded
from probes.measurements.context import TaskContext
from probes.records.probe_spec import PROBES, ProbeSpec
from probes.records.row import Row
from probes.tasks.task import Example
from probes.training.dataset import ProbingData

WORDS = [f"w{i}" for i in range(60)]


def tagged_corpus(splits, tag=lambda word: "N" if int(word[1:]) % 4 else "V"):
    """Sentences of words, whose tags are decided by the word."""
    return Corpus(
        name="toy",
        version="1",
        licence="",
        splits={
            name: tuple(
                Sentence(f"{name}{i}", "en", tuple(words), tuple(map(tag, words)))
                for i, words in enumerate(sentences)
            )
            for name, sentences in splits.items()
        },
    )


def draw(seed, n_sentences, words=WORDS, length=10):
    """Sentences of words drawn at random."""
    rng = np.random.default_rng(seed)
    return [list(rng.choice(words, length)) for _ in range(n_sentences)]


def planted_data(vectors, labels, kind="classification", metric="accuracy", words=1):
    """Data of a task whose labels and vectors a test gives, in sentences of so many words.

    Args:
        vectors: of the examples of each split at all layers. Each (L, n, H).
        labels: by split.
    """
    label_of = {f"{split}{i}": x for split, part in labels.items() for i, x in enumerate(part)}

    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(label_of[word], (i, i + 1), type=word)

    splits = {
        split: [
            Sentence(f"{split}{i}", "en", tuple(f"{split}{j}" for j in range(i, i + words)))
            for i in range(0, len(part), words)
        ]
        for split, part in labels.items()
    }
    corpus = corpus_of(**splits)
    examples = collect_examples(task_of(rule, kind, metric), corpus, "masked")
    view = examples.view_of(corpus)
    rows = np.concatenate([vectors[split] for split in SPLITS], axis=1)
    store = SimpleNamespace(
        n_layers=len(rows),
        manifest={"model": {"hidden_size": rows.shape[2], "window": 32}},
        starts=np.cumsum([0, *(len(text.words) for text in view.texts)])[:-1],
        layer=lambda k: Sharded(np.array_split(rows[k].astype(np.float32), 3)),
        derived=lambda key, make: make(),
    )
    data = ProbingData(examples, view, store, torch.device("cpu"), project=None)
    # Neither in memory nor in files.
    data.features = lambda layers, room: data._standardise(layers).features
    data.computed_once = lambda features, room: features
    return data


def task_context(data, extent, spec=PROBES["linear"], memory=2**30, **more):
    """The context of a measurement of a task, without a corpus."""
    unread = ("corpus", "model", "view", "stored", "read", "read_changed", "sites", "device")
    about = {"options": None, "extent": extent, "title": "planted"}
    return TaskContext(
        **dict.fromkeys(unread), **about, data=data, spec=spec, memory=memory, **more
    )


@dataclass
class PlantedContext:
    """Stands for the `TaskContext` of a task.

    Args:
        scores: test predictions of the scores that the evidence supports, by layer.
        dev: their dev scores, which choose the best layer.
        predict: gives the test predictions of a fit, from layer, draw and its labels (None for the
            task's own).
    """

    examples: Examples
    scores: dict
    dev: dict
    extent: dict
    predict: Callable
    spec: ProbeSpec = PROBES["linear"]
    tagged_corpus: Corpus | None = None
    asked: list = field(default_factory=list)

    def __post_init__(self):
        self.task, self.layers = self.examples.task, tuple(self.extent)
        self.scorers = {split: Scorer(self.examples, split) for split in ("dev", "test")}
        metric = self.task.metric
        given = make_result(
            self.task.name,
            list(self.dev.values()),
            p_best=False,
            layers=tuple(self.dev),
            metric=metric,
            probe=self.spec,
        )
        self.result = with_rows(
            given,
            [
                Row(name, value, layer)
                for layer in given.layers
                for name, value in self.scorers["test"].scores(self.scores[layer][None])[0].items()
            ],
        )

    def predicted(self, layers):
        """As `TaskContext.predicted`."""
        return np.stack([self.scores[layer] for layer in layers])

    def fits(self, layers, draws, labels=None, from_scored=False):
        """As `TaskContext.fits`, with test predictions alone."""
        self.asked.append((tuple(layers), list(draws), labels))

        def one(layer, k):
            own = None if labels is None else {split: each[k] for split, each in labels.items()}
            return self.predict(layer, draws[k], own)

        found = [[one(layer, k) for k in range(len(draws))] for layer in layers]
        return SimpleNamespace(predicted={"test": np.array(found)})
