"""How do time and memory of training grow with the corpus?

    python benchmarks/memory_growth.py --corpus ewt --cache-dir CACHE --data-dir DIR

At 1/16, 1/4 and all of the training sentences, each in a process of its own: probes every layer
for UPOS from stored vectors, and prints the time and the peak of RssAnon (anonymous resident
memory: what a run takes for itself, without the files it maps) above what the process held
with torch loaded and the corpus read. The vectors must be in the cache already. Linux only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from probe_speed import stored_vectors

from common.places import default_cache, default_data_dir
from data.find import find_corpus
from probes.config import PROBES
from probes.examples import Examples, collect_examples
from probes.probing import probe
from tasks.builtin import tasks

SHARES = (16, 4, 1)


def main() -> None:
    """Print the table."""
    options = parse()
    print(f"{options.model}, {options.corpus}, UPOS, {torch.get_num_threads()} threads")
    print("| probe | part | training words | seconds | peak RssAnon, MB | bytes per word |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for family in options.probes:
        least = None
        for share in SHARES:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                words, seconds, peak = pool.apply(measure, (options, family, share))
            least = least or (words, peak)
            growth = (peak - least[1]) / (words - least[0]) if words > least[0] else 0
            print(
                f"| {family} | 1/{share} | {words:,} | {seconds:.1f} | {peak / 1e6:.0f} "
                f"| {growth:.0f} |",
                flush=True,
            )


def measure(options: argparse.Namespace, family: str, share: int) -> tuple[int, float, int]:
    """Training words, seconds, and bytes of anonymous memory at the peak."""
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    examples = collect_examples(tasks.get("pos"), corpus, "masked")
    view = examples.view_of(corpus)
    vectors = stored_vectors(options.cache_dir, options.model, view.digest)
    for layer in range(vectors.n_layers):
        vectors.layer(layer)
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
    layers = range(vectors.n_layers)
    probe(part, view, vectors, PROBES[family], layers, 1, torch.device("cpu"), quick=True)
    seconds = time.perf_counter() - clock
    done.set()
    watcher.join()
    return len(part.splits["train"].examples), seconds, peak - idle


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
    parser.add_argument("--probes", type=lambda text: text.split(","), default=["linear", "mlp"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
