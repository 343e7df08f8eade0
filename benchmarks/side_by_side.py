"""Would fits on different examples be faster side by side than one after the other?

    python benchmarks/side_by_side.py

Layers, label sets and strengths share their examples, and are fitted together. Seeds of an MLP and
the prefixes of a code read other examples each. Steps of `--fits` such fits are timed one after the
other and as one operation on all, in turn, on random numbers of the sizes of all-MiniLM-L6-v2 and
UPOS: 7 layers, 384 features, 17 classes, 512 examples. Prints medians of `--rounds` rounds, and
of their ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from probes.adam import Adam
from probes.allocator import kept_memory
from probes.config import PROBES
from probes.heads import Parameters
from probes.loading import pick_device
from probes.precision import fast_products, rounding
from probes.training import family

LAYERS, FEATURES, CLASSES, EXAMPLES = 7, 384, 17, 512


def main() -> None:
    """Print a row per probe family and number of cells."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    device = pick_device(options.device)
    print(f"{options.fits} fits, {device}, {torch.get_num_threads()} threads")
    print("| probe | cells | one after the other, ms | together, ms | faster by |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in PROBES:
        for cells in (1, 3):
            alone = [step_of(name, cells, 1, seed, device) for seed in range(options.fits)]
            together = step_of(name, cells, options.fits, 0, device)
            apart, joined = timed(alone, [together], options.rounds, device)
            ratio = statistics.median(a / b for a, b in zip(apart, joined, strict=True))
            print(
                f"| {name} | {cells} | {1000 * statistics.median(apart):.2f} | "
                f"{1000 * statistics.median(joined):.2f} | {ratio:.2f} |",
                flush=True,
            )


@kept_memory()
def timed(
    apart: list[Callable[[], None]],
    joined: list[Callable[[], None]],
    rounds: int,
    device: torch.device,
) -> tuple[list[float], list[float]]:
    """Seconds of all steps of both, in turn; what the first rounds prepare is left out."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for index in range(-5, rounds):
        for steps, taken in zip((apart, joined), seconds, strict=True):
            clock = time.perf_counter()
            for step in steps:
                step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if index >= 0:
                taken.append(time.perf_counter() - clock)
    return seconds


def step_of(
    name: str, cells: int, fits: int, seed: int, device: torch.device
) -> Callable[[], None]:
    """A step of that many fits side by side, each on examples of its own."""
    head, loss = family(PROBES[name], CLASSES, None)
    generator = torch.Generator().manual_seed(seed)
    rows = fits * LAYERS
    features = torch.randn(rows, EXAMPLES, FEATURES, generator=generator)
    features = features.to(device, rounding(device).multiplied)
    labels = torch.randint(CLASSES, (cells, EXAMPLES), generator=generator).to(device)
    weights = torch.ones(cells, EXAMPLES, device=device) / EXAMPLES
    start = head.initial(rows, list(range(cells)), FEATURES, CLASSES)
    parameters: Parameters = [p.to(device).contiguous() for p in start]
    adam = Adam(parameters, [PROBES[name].step] * rows)
    errors: Callable[[Tensor], Tensor] = partial(loss.errors, labels=labels, weights=weights)

    def step() -> None:
        with fast_products():
            gradients = head.gradient(parameters, features, errors)
        adam.step(gradients, 1.0)

    return step


if __name__ == "__main__":
    main()
