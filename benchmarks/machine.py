"""The machine's speed, a yardstick for other timings.

    python benchmarks/machine.py

Prints the speed of memory (bytes read and written by copies of 512 MB) and of `torch.mm` (2,048³
products in float32 and bfloat16); medians of nine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import torch

_COPIED = 512 << 20
"""Bytes of a copy, far more than caches hold."""

SIDE = 2048
"""Rows and columns of the matrices."""


def clock() -> float:
    """Seconds: of the processor with one thread, since other work does not lengthen these."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def main() -> None:
    """Print the rates."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    print(f"{torch.get_num_threads()} threads · memory {copies() / 1e9:.1f} GB/s")
    for dtype in (torch.float32, torch.bfloat16):
        products = Products(dtype)
        for _ in range(9):
            products.take()
        print(f"{dtype} products {products.flops / 1e9:,.0f} GFLOP/s")


def copies() -> float:
    """Bytes read and written per second."""
    source = torch.ones(_COPIED, dtype=torch.uint8)
    target = torch.empty_like(source)
    target.copy_(source)
    seconds = []
    for _ in range(9):
        start = clock()
        target.copy_(source)
        seconds.append(clock() - start)
    return 2 * _COPIED / statistics.median(seconds)


class Products:
    """Products of 2,048³ between stretches of work.

    Args:
        dtype: dtype of the matrices.

    Attributes:
        seconds: duration of every product.
        stretches: durations of each stretch of the last extraction, and of the product after it.
    """

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        left, right = torch.rand(2, SIDE, SIDE).to(dtype)
        self._multiply = partial(left.mm, right)
        self.seconds: list[float] = []
        self.stretches: list[tuple[float, float]] = []
        self.take()
        self.seconds.clear()  # caches are cold for the first one
        self.begin()

    def take(self) -> float:
        """Seconds of one product."""
        start = clock()
        with torch.inference_mode():
            self._multiply()
        self.seconds.append(clock() - start)
        return self.seconds[-1]

    @property
    def flops(self) -> float:
        """Operations per second, at the median."""
        return 2 * SIDE**3 / statistics.median(self.seconds)

    def begin(self) -> None:
        """Begin a new extraction."""
        self.stretches.clear()
        self._clock = clock()

    def pace(self) -> None:
        """Run a product if the last one was 0.3 s ago."""
        stretch = clock() - self._clock
        if stretch > 0.3:
            self.stretches.append((stretch, self.take()))
            self._clock = clock()

    def in_products(self, seconds: float) -> float:
        """Time of the last extraction, as a number of products at the current speed."""
        tail = seconds - sum(stretch for stretch, _ in self.stretches)
        usual = statistics.median(self.seconds)
        return sum(stretch / product for stretch, product in self.stretches) + tail / usual


if __name__ == "__main__":
    main()
