"""Counts what makes the host wait for a simulated second device, in training and in extraction.

    python tests/helpers/waiting_steps.py MODEL

A program, since the simulation cannot be taken back in a process. Prints JSON: for each piece of
work, the lines at which the host waited when the work was short, and when it was longer.
"""

import json
import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import second_device
import torch
from planted_examples import planted, with_cells
from transformers import AutoModel, AutoTokenizer

from probes.compute.memory import to_device
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.shards import single_shard
from probes.extraction.reading.text_vectors import TextVectors
from probes.extraction.reading.views import Text, View
from probes.records.probe_spec import PROBES
from probes.tasks.positions import Position
from probes.training import convex, full_batch
from probes.training.batches import batch_bounds
from probes.training.families import family_of
from probes.training.features import Features, InMemory
from probes.training.losses import CrossEntropy
from probes.training.preconditioning import diagonal
from probes.training.standardisation import Streamed, standard_scale
from probes.training.trainer import MinibatchFit, Trainer, run_fits

POSITIONS = ("mean", "first", "last", "max", "last:2")

BATCH_TOKENS = 32


def main(model: Path) -> None:
    """Print the waits of all work."""
    parts = AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    second_device.simulate()
    vectors = np.random.default_rng(0).normal(3, 2, (300, 6)).astype(np.float16)
    here = standardised_spans(vectors, torch.device("cpu")).block(slice(None))
    works = {
        "all kinds": (all_kinds, 0),
        "linear, steps": (linear_steps, 6, 12),
        "linear, batches": (lambda n: linear_steps(12, n), 2, 4),
        "mlp, steps": (mlp_steps, 6, 12),
        "mlp, batches": (lambda n: mlp_steps(12, n), 2, 4),
        "l-bfgs, iterations": (lbfgs_steps, 3, 6),
    }
    with second_device.Simulation():
        encoder = Encoder(*parts, name="tiny", device=second_device.NAME)
        layers = range(encoder.info.n_layers + 1)
        triples = list(product(layers, [None], map(Position.parse, POSITIONS)))
        for name, collector in (("words", WordVectors(layers)), ("texts", TextVectors(triples))):
            works[f"{name}, passes"] = (partial(passes, encoder, collector), 2, 4)
        features = standardised_spans(vectors, torch.device(second_device.NAME))
        works["features, readings"] = (partial(read_features, features), 1, 3)
        found = {name: waits_of(*of) for name, of in works.items()}
        found["features differ"] = float((features.block(slice(None)).cpu() - here).abs().max())
        print(json.dumps(found))


def waits_of(work, *sizes) -> list[list[str]]:
    """The waits of a piece of work, by its size."""
    found = []
    for size in sizes:
        second_device.waits.clear()
        work(size)
        found.append(list(second_device.waits))
    return found


def all_kinds(_: int) -> None:
    """Nine operations that wait; what surrounds them does not."""
    host, mask = torch.arange(4.0), torch.tensor([True, False, True, False])
    there, index = host.to(second_device.NAME), torch.tensor([1, 2])  # 1
    there_mask, there_index = there > 1, (there[:2] * 0).long()
    float(there[0])  # 2
    bool((there > 2).any())  # 3
    there_mask.nonzero()  # 4
    there[there_mask]  # 5
    there[index]  # 6
    there[mask] = 0  # 7
    there.copy_(host)  # 8
    host.copy_(there)  # 9
    there[there_index] += to_device(host, there.device)[there_index]


def standardised_spans(vectors, device) -> Features:
    """Features of 100 examples, each of a span of one to five words and a single word."""
    first = np.arange(100) * 2
    spans = [np.stack([first, first + 1 + first % 5], 1), np.stack([first + 7, first + 8], 1)]
    mean, scale = standard_scale(torch.from_numpy(vectors), spans, 2**-11, device)
    return Streamed([torch.from_numpy(vectors)], spans, mean[None], scale[None], device)


def read_features(features, n_readings: int) -> None:
    """Readings of all features."""
    for _ in range(n_readings):
        features.block(slice(None))


def examples(n_batches: int = 4, n_cells: int = 2):
    """Planted examples on the device, in batches of different sizes."""
    data = with_cells(planted(64 * n_batches + 5, 0), n_cells)
    return replace(
        data,
        features=InMemory(data.features.values.to(second_device.NAME)),
        labels=data.labels.to(second_device.NAME),
        weights=data.weights.to(second_device.NAME),
        sentences=data.sentences.to(second_device.NAME),
        bounds=batch_bounds(data.sentences, 64),
    )


def trainer_of(family: str, n_steps: int, n_batches: int) -> Trainer:
    """A trainer with a schedule of so many steps."""
    spec = PROBES[family].model_copy(
        update={"epochs": 1, "min_steps": n_steps, "hidden": 8 if family == "mlp" else 0}
    )
    data = examples(n_batches)
    return Trainer(data, data, family_of(spec), CrossEntropy(), spec)


def linear_steps(n_steps: int, n_batches: int = 4) -> None:
    """The steps of Adam before L-BFGS."""
    trainer = trainer_of("linear", n_steps, n_batches)
    strengths = torch.full((2, 2), 0.1, device=second_device.NAME)
    convex._after_adam(trainer, 4, convex._frequency_bias(trainer, 4, 2), strengths)


def mlp_steps(n_steps: int, n_batches: int = 4) -> None:
    """Fits of MLPs that take their steps together, on all examples and on a bootstrap sample."""
    trainer = trainer_of("mlp", n_steps, n_batches)
    strengths = torch.full((2, 2), 0.1, device=second_device.NAME)
    weights = trainer.train.weights.clone()
    weights[:, 3:9] = 0
    sampled = trainer.with_train(replace(trainer.train, weights=weights).without_unused())
    list(
        run_fits(
            MinibatchFit(of_draw, trainer.initial([seed], 4), strengths, seed)
            for seed, of_draw in enumerate([trainer, sampled])
        )
    )


def lbfgs_steps(n_steps: int) -> None:
    """Steps of L-BFGS, none of which has to be shortened."""
    trainer = trainer_of("linear", 1, 4)
    strengths = torch.full((2, 2), 0.1, device=second_device.NAME)
    bias = convex._frequency_bias(trainer, 4, 2)
    start = [p.to(second_device.NAME) for p in trainer.initial([0, 0], 4)]
    precondition = diagonal(trainer.train, trainer.loss, bias.expand(2, -1, -1), strengths)
    full_batch.fit_full_batch(
        trainer.train, trainer.family, trainer.loss, start, strengths, precondition, n_steps
    )


def passes(encoder, collector, n_passes: int) -> None:
    """Forward passes over texts of two lengths, and one of several windows."""
    whole = isinstance(collector, TextVectors)
    words = ("light", "she", "counts", "the", "boats", "keeper")
    lists = [words[i % 3 : i % 3 + 2 + i % 4] for i in range(4 * n_passes)]
    lists.append(words * 12)
    texts = [
        Text((" ".join(x),), (0, 1), written=True) if whole else Text(x, (0, len(x))) for x in lists
    ]
    shard = single_shard(View("plain", tuple(texts)))
    encoder.encode(shard, encoder.split(texts), BATCH_TOKENS, collector)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
