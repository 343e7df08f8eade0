"""Progress bars."""

import io
import sys

from probes.common.errors import layer_ranges
from probes.common.terminal import Progress


def test_the_innermost_open_bar_advances(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress()
    progress.advance()  # without a bar, nothing happens
    with progress.bar("outer", total=10, unit="step") as outer:
        progress.advance(2)
        with progress.bar("inner", total=10, unit="step") as inner:
            progress.advance()
        progress.advance()
    progress.advance()
    assert (outer.n, inner.n) == (3, 1)


def test_neighbours_among_the_measured_layers_make_a_range():
    assert layer_ranges([0, 4, 12], [0, 4, 8, 12]) == "layers 0–4, 12"
    assert layer_ranges([8], [0, 4, 8, 12]) == "layer 8"
    assert layer_ranges([6, 2, 3, 4]) == "layers 2–4, 6"
