"""How do time and memory of training grow with the corpus?

    python benchmarks/memory_growth.py --corpus ewt --cache-dir CACHE --data-dir DIR

At 1/16, 1/4 and all of the training sentences, and at 1/16 with the layers of a model of 12 and
one of 24 (the stored ones over and over), each in a process of its own: probes every layer for
UPOS from stored vectors, and prints the time and the peak of RssAnon (anonymous resident
memory: what a run takes for itself, without the files it maps) above what the process held
with torch loaded and the corpus read; of both the median of `--repeat` runs. The vectors must be
in the cache already. Linux only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from probe_speed import scores_of, stored_vectors

from probes.common.default_folders import default_cache, default_data_dir
from probes.data.find import find_corpus
from probes.examples.examples import Examples, collect_examples
from probes.extraction.vectors import Sharded, Vectors
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks

SIZES = ((16, None), (4, None), (1, None), (16, 13), (16, 25))
"""One training sentence in so many, and how many layers; None for the model's."""


class Deeper:
    """Stored vectors with as many layers as wanted."""

    def __init__(self, vectors: Vectors, n_layers: int) -> None:
        self._vectors, self.n_layers = vectors, n_layers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vectors, name)

    def layer(self, index: int) -> Sharded:
        """Layer after layer of the model's, then the first again."""
        return self._vectors.layer(index % self._vectors.n_layers)


def main() -> None:
    """Print the table."""
    options = parse()
    print(f"{options.model}, {options.corpus}, UPOS, {torch.get_num_threads()} threads")
    print(
        "| probe | part | layers | training words | seconds | peak RssAnon, MB | bytes per word |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for family in options.probes:
        least = None
        for share, n_layers in SIZES:
            runs = []
            for _ in range(options.repeat):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    runs.append(pool.apply(measure, (options, family, share, n_layers)))
            layers, words, seconds, peak = map(statistics.median, zip(*runs, strict=True))
            least = least or (words, peak)
            more = words - least[0]
            growth = f"{(peak - least[1]) / more:.0f}" if more else ""
            print(
                f"| {family} | 1/{share} | {layers:.0f} | {words:,.0f} | {seconds:.1f} "
                f"| {peak / 1e6:.0f} | {growth} |",
                flush=True,
            )


def measure(
    options: argparse.Namespace, family: str, share: int, n_layers: int | None
) -> tuple[int, int, float, int]:
    """Layers, training words, seconds, and bytes of anonymous memory at the peak."""
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    examples = collect_examples(tasks.get("pos"), corpus, "masked")
    view = examples.view_of(corpus)
    vectors = stored_vectors(options.cache_dir, options.model, view)
    for layer in range(vectors.n_layers):
        vectors.layer(layer)
    n_layers = n_layers or vectors.n_layers
    deeper: Any = Deeper(vectors, n_layers)
    part = every(examples, share)
    idle = peak = anonymous()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    clock = time.perf_counter()
    layers = range(n_layers)
    scores_of(corpus, part, view, deeper, PROBES[family], layers)
    seconds = time.perf_counter() - clock
    done.set()
    watcher.join()
    return n_layers, len(part.splits["train"].examples), seconds, peak - idle


def every(examples: Examples, share: int) -> Examples:
    """The same task with one training sentence in `share`."""
    train = examples.splits["train"]
    kept = np.flatnonzero(train.sentence % share == 0)
    less = replace(
        train,
        examples=tuple(train.examples[i] for i in kept),
        texts=tuple(train.texts[i] for i in kept),
        sentence=train.sentence[kept],
    )
    return replace(examples, splits={**examples.splits, "train": less})


def anonymous() -> int:
    """RssAnon of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    raise OSError("this kernel does not tell RssAnon")


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--probes", type=lambda text: text.split(","), default=["linear", "mlp"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
