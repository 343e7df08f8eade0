"""What can this machine do? A yardstick for what is timed beside it.

    python benchmarks/machine.py

Prints the rates of memory (copies of 512 MB, bytes read and written) and of matrix products of
2,048³ in float32 and bfloat16, medians of nine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

_COPIED = 512 << 20
"""Bytes of a copy; far more than caches hold."""

_SIDE = 2048
"""Rows and columns of a product."""


def main() -> None:
    """Print the rates."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    for dtype in (torch.float32, torch.bfloat16):
        machine = Machine(dtype)
        for _ in range(3):
            machine.measure()
        print(
            f"{torch.get_num_threads()} threads · memory {machine.bytes_per_second / 1e9:.1f} GB/s "
            f"· {dtype} products {machine.flops / 1e9:,.0f} GFLOP/s"
        )


class Machine:
    """Rates of memory and matrix products, medians of what was measured in between.

    Args:
        dtype: what is multiplied.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._source = torch.ones(_COPIED, dtype=torch.uint8)
        self._target = torch.empty_like(self._source)
        self._factor = torch.ones(_SIDE, _SIDE, dtype=dtype)
        self._copies: list[float] = []
        self._products: list[float] = []

    def measure(self) -> None:
        """Three copies and three products, after one of each to warm up."""
        self._copies += _seconds(lambda: self._target.copy_(self._source))
        self._products += _seconds(lambda: self._factor @ self._factor)

    @property
    def bytes_per_second(self) -> float:
        """Read and written."""
        return 2 * _COPIED / statistics.median(self._copies)

    @property
    def flops(self) -> float:
        """Of matrix products, per second."""
        return 2 * _SIDE**3 / statistics.median(self._products)


def _seconds(run: Callable[[], object]) -> list[float]:
    run()
    found = []
    for _ in range(3):
        clock = time.perf_counter()
        run()
        found.append(time.perf_counter() - clock)
    return found


if __name__ == "__main__":
    main()
