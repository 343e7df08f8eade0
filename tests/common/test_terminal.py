"""Progress bars and messages."""

import io
import sys

import pytest

from probes.common.errors import layer_ranges
from probes.common.terminal import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_innermost_open_bar_advances(monkeypatch):
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


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_messages_break_between_words_in_a_terminal_and_not_in_a_file(stream, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stderr", stream())
    progress, path = Progress(), "/a-folder/of-results" * 3
    progress.say("corpus  treebank · 300 / 300 / 300 sentences in train / dev / test")
    progress.say(f"tables  {path}")
    progress.say("next    python -m probes report results and more", "next")
    said = sys.stderr.getvalue()
    corpus = ["corpus  treebank · 300 / 300 / 300", "        sentences in train / dev / test"]
    if stream is io.StringIO:
        corpus = ["corpus  treebank · 300 / 300 / 300 sentences in train / dev / test"]
    assert said.splitlines()[: len(corpus)] == corpus
    assert path in said
    assert said.splitlines()[-1] == "next    python -m probes report results and more"


def test_neighbours_among_the_measured_layers_make_a_range():
    assert layer_ranges([0, 4, 12], [0, 4, 8, 12]) == "layers 0–4, 12"
    assert layer_ranges([8], [0, 4, 8, 12]) == "layer 8"
    assert layer_ranges([6, 2, 3, 4]) == "layers 2–4, 6"
