"""Are fits on different examples faster side by side than one after another?

    python benchmarks/side_by_side.py --cache-dir CACHE --data-dir DIR

Prefixes of a code and seeds of an MLP read examples of their own. The code of `pos` and the fits of
seeds 1 to `--seeds` are timed one after another and side by side, in turn, on a first part of the
training words. Prints medians of `--rounds` rounds and of their ratios. The vectors of `--model`
must be in the cache already (run `run_probes.py` once).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from probe_speed import stored_vectors

from probes.common.default_folders import default_cache, default_data_dir
from probes.compute.devices import pick_device
from probes.compute.precision import exact_products
from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks
from probes.training import trainer
from probes.training.dataset import ProbingData
from probes.training.families import is_convex
from probes.training.fit import Draw, fit
from probes.training.online_code import online_code


@exact_products()
def main() -> None:
    """Print a row per probe, what is fitted, and number of words."""
    options = parse()
    device = pick_device(options.device)
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    examples = collect_examples(tasks.get("pos"), corpus, "masked")
    view = examples.view_of(corpus)
    vectors = stored_vectors(options.cache_dir, options.model, view)
    draws = [Draw(seed) for seed in range(options.seeds + 1)]
    data = ProbingData(examples, view, vectors, device, project=None, fit_dtype=torch.float32)
    features = data.features(range(vectors.n_layers), hold=device.type != "cpu")
    train, dev = (data.batches(split, features[split]) for split in ("train", "dev"))
    print(f"{device}, {torch.get_num_threads()} threads, {vectors.n_layers} layers")
    print("| probe | fits | words | one after another, s | side by side, s | faster by |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for words in options.words:
        some = train.part(slice(0, words))
        n_words = some.features.shape[1]
        work: dict[str, Callable[[], object]] = {
            f"{name} | code": partial(online_code, some, data.n_outputs, spec)
            for name, spec in PROBES.items()
            if is_convex(spec)
        }
        work[f"mlp | {len(draws)} seeds"] = partial(
            fit, some, dev, data.n_outputs, PROBES["mlp"], draws
        )
        for name, function in work.items():
            alone, together = timed(function, options.rounds)
            ratio = statistics.median(a / b for a, b in zip(alone, together, strict=True))
            print(
                f"| {name} | {n_words:,} | {statistics.median(alone):.2f} | "
                f"{statistics.median(together):.2f} | {ratio:.2f} |",
                flush=True,
            )


def timed(function: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds one after another and side by side, in turn, but for the first round."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for index in range(rounds + 1):
        for at_once, taken in zip((1, trainer._FITS_AT_ONCE), seconds, strict=True):
            trainer.fits_at_once = partial(given, at_once)
            clock = time.perf_counter()
            function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if index:
                taken.append(time.perf_counter() - clock)
    return seconds


def given(at_once: int, device: torch.device) -> int:
    """Whatever the device."""
    return at_once


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--device", default="auto")
    parser.add_argument("--words", nargs="+", type=int, default=[2_000, 20_000, 200_000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
