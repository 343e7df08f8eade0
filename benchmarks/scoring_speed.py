"""How fast a language model's scores are, beside plain extraction of the same tokens.

    python benchmarks/scoring_speed.py random:all-MiniLM-L6-v2 --texts 400

Sentences are those of the embedded corpus. Plain extraction reads each once; a masked model's
scores take a copy for each token, and more for words of several. Prints tokens per second of both,
and their ratio, which is 1 if scoring costs as much as the copies that it reads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch

from probes.data.find import find_corpus
from probes.extraction.collectors import Collector, Reader, WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import read
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.token_scores import TokenScores
from probes.extraction.views import Text, View, view_over
from probes.extraction.windows import Window


class Counted(TokenScores):
    """Scores that count the tokens that were read."""

    tokens = 0

    def copies(self, windows: Sequence[Window], reader: Reader) -> list[Window]:
        """See `TokenScores`."""
        found = super().copies(windows, reader)
        self.tokens += sum(len(window.ids) for window in found)
        return found


def seconds(view: View, collector: Collector, encoder: Encoder) -> float:
    """The time of one reading."""
    clock = time.perf_counter()
    for _ in read(view, collector, encoder):
        pass
    return time.perf_counter() - clock


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model with a language-model head, or a random one")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    encoder = load_encoder(find_model(options.model), device="cpu", lm_head=True)
    sentences = find_corpus("sample").load().splits["train"][: options.texts]
    texts = ["".join(sentence.written) for sentence in sentences]
    view = view_over((Text((text,), (0, 1), written=True) for text in texts), "written")
    layers = range(encoder.info.n_layers + 1)
    n_tokens = sum(len(x.ids) + encoder.specials for x in encoder.split(view.texts))
    for _ in range(options.repeat):
        plain, counted = seconds(view, WordVectors(layers), encoder), Counted()
        scoring = seconds(view, counted, encoder)
        rates = n_tokens / plain, counted.tokens / scoring
        print(
            f"{encoder.info.name}, {torch.get_num_threads()} threads: extraction "
            f"{rates[0]:,.0f} tokens/s; scores {rates[1]:,.0f} tokens/s, "
            f"{counted.tokens / n_tokens:.1f} copies; ratio {rates[1] / rates[0]:.2f}"
        )


if __name__ == "__main__":
    main()
