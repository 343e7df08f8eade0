"""Does the learning rate of linear probes suit features of any width?

    python benchmarks/wide_features.py --cache-dir CACHE --data-dir DIR

Layers of `--model` are put side by side, as one layer of wider vectors, and probed with every one
of `--learning-rates`, and with the one that our probes have at that width. Prints by how many
percent the dev loss of each is above the least one. The vectors must be in the cache already (run
`run_probes.py` once).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from probe_speed import stored_vectors

from probes.common.default_folders import default_cache, default_data_dir
from probes.compute.precision import exact_products
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks
from probes.training import trainer
from probes.training.batches import Batches
from probes.training.dataset import ProbingData
from probes.training.features import Held
from probes.training.fit import Draw, fit

LAYERS = ([3], [2, 3], [1, 2, 4, 5], [0, 1, 2, 3, 4, 5, 6])
"""What is put side by side."""


@exact_products()
def main() -> None:
    """Print a row per task, number of examples and width."""
    options = parse()
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    spec = PROBES["linear"]
    print("| task | training examples | features | rate: % above the least dev loss | ours |")
    print("| --- | ---: | ---: | --- | --- |")
    for name in options.tasks:
        examples = collect_examples(tasks.get(name), corpus, "masked")
        view = examples.view_of(corpus)
        vectors = stored_vectors(options.cache_dir, options.model, view)
        cpu = torch.device("cpu")
        data = ProbingData(examples, view, vectors, cpu, project=None, fit_dtype=torch.float32)
        of_layers = data.features(range(vectors.n_layers))
        narrow = [data.batches(split, of_layers[split]) for split in ("train", "dev")]
        for layers in LAYERS:
            train, dev = (side_by_side(batches, layers) for batches in narrow)
            train = train.part(slice(0, options.examples))
            losses = {}
            ratio = train.features.shape[2] / trainer._WIDTH
            for rate in options.learning_rates:
                # What `initial_rate` makes of it is the rate itself.
                given = {"learning_rate": rate * max(ratio, ratio**0.5)}
                fixed = spec.model_copy(update=given)
                losses[rate] = fit(train, dev, data.n_outputs, fixed, [Draw()]).dev_loss.item()
            ours = fit(train, dev, data.n_outputs, spec, [Draw()]).dev_loss.item()
            least = min(*losses.values(), ours)
            said = ", ".join(f"{rate}: {above(x, least)}" for rate, x in losses.items())
            rate = spec.learning_rate / max(ratio, ratio**0.5)
            chosen = f"{rate:.4g}: {above(ours, least)}"
            _, n_examples, width = train.features.shape
            print(f"| {name} | {n_examples:,} | {width:,} | {said} | {chosen} |", flush=True)


def side_by_side(batches: Batches, layers: Sequence[int]) -> Batches:
    """The same examples with the features of some layers as one layer's."""
    parts = batches.features.block(slice(None))[list(layers)]
    return replace(batches, features=Held(torch.cat(list(parts), 1)[None]))


def above(loss: float, least: float) -> str:
    """By how many percent."""
    return f"{100 * (loss / least - 1):.1f}"


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--tasks", nargs="+", default=["pos"])
    parser.add_argument("--examples", type=int, help="of the training set; all if not given")
    parser.add_argument(
        "--learning-rates", nargs="+", type=float, default=[0.02, 0.01, 0.005, 0.0025]
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
