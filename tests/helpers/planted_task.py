"""A task whose labels and vectors a test gives, as a measurement of probes is given it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from planted_context import task_context

from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import collect_examples
from probes.extraction.vectors import Sharded
from probes.records.probe_spec import PROBES
from probes.tasks.task import Example, Task
from probes.training.dataset import ProbingData


class PlantedTask:
    """A task whose labels and vectors a test gives: sentences of one word, or of `words`.

    Args:
        vectors: of the examples of each split at all layers. Each (L, n, H).
        labels: by split.
    """

    def __init__(
        self, vectors, labels, kind="classification", metric="accuracy", words=1, project=None
    ):
        self.vectors, self.labels = vectors, labels
        label_of = {
            f"{split}{i}": label for split, each in labels.items() for i, label in enumerate(each)
        }

        def rule(sentence):
            for i, word in enumerate(sentence.words):
                yield Example(label_of[word], (i, i + 1), type=word)

        splits = {
            split: tuple(
                Sentence(f"{split}{i}", "en", tuple(f"{split}{j}" for j in range(i, i + words)))
                for i in range(0, len(each), words)
            )
            for split, each in labels.items()
        }
        corpus = Corpus("c", "1", "", splits)
        task = Task("planted", 1, (), "word", kind, metric, (), rule, "")
        self.examples = collect_examples(task, corpus, "masked")
        view = self.examples.view_of(corpus)
        rows = np.concatenate([vectors[split] for split in ("train", "dev", "test")], axis=1)
        store = SimpleNamespace(
            n_layers=len(rows),
            manifest={"model": {"hidden_size": rows.shape[2]}},
            starts=np.cumsum([0, *(len(text.words) for text in view.texts)])[:-1],
            layer=lambda k: Sharded(np.array_split(rows[k].astype(np.float32), 3)),
            derived=lambda key, make: make(),
        )
        device = torch.device("cpu")
        self.data = ProbingData(self.examples, view, store, device, project=project)
        # Without scratch files.
        self.data._streamed = lambda layers: self.data._standardise(layers).features
        self.data.computed_once = lambda features: features

    def context(self, layers, memory=2**30, spec=PROBES["linear"]):
        """What a measurement of these layers is given, without scores."""
        return task_context(self.data, dict.fromkeys(layers, 1), spec, memory)
