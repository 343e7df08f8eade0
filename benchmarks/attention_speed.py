"""What does measuring attention cost, beside plain extraction and a loop over whole maps?

    python benchmarks/attention_speed.py --data-dir DIR                        # all-MiniLM-L6-v2
    python benchmarks/attention_speed.py --data-dir DIR --shape bert-base      # random weights
    python benchmarks/attention_speed.py --data-dir DIR --device cuda
    python benchmarks/attention_speed.py --data-dir DIR --limit 400            # memory by size

Reads dev and test of EWT: word vectors of all layers (plain extraction); what is kept of attention,
with and without trees; and `--maps` sentences one by one, whole maps taken to numpy and reduced
there, as notebooks do it. Then the averages, choices and tests. The greatest memory so far stands
beside each time.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from transformers import AutoModel, BertConfig

from probes.common.default_folders import default_data_dir
from probes.data.find import find_corpus
from probes.data.sentence import Corpus
from probes.extraction.collectors import Collector, WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import Reading, collected, read
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.views import Text, View
from probes.measurements.attention import collector as of_attention
from probes.measurements.attention.attention import Attention
from probes.measurements.attention.measure import measure
from probes.measurements.context import Context

OPTIONS = Attention.options()


def main() -> None:
    """Print times, ratios and memory."""
    options = parse()
    places = {"data_dir": options.data_dir, "offline": True}
    corpus = find_corpus("ewt", limit=options.limit, **places).load()
    encoder = encoder_of(options.shape, options.device)
    view = Attention().view(corpus, OPTIONS)
    heads = Attention().collector(corpus, (), OPTIONS)
    every = range(encoder.info.n_layers + 1)
    print(f"{len(view.texts):,} texts, {encoder.info.n_layers} layers, {encoder.device}")
    seconds = {}
    for turn in range(options.turns):
        seconds["plain extraction"] = timed(lambda: through(view, WordVectors(every), encoder))
        with patch.object(of_attention, "trees", no_trees):
            seconds["without trees"] = timed(lambda: through(view, heads, encoder))
        seconds["with trees"] = timed(lambda: through(view, heads, encoder))
        for name, each in seconds.items():
            ratio = each / seconds["plain extraction"]
            print(f"turn {turn + 1}: {name}: {each:.1f} s, × {ratio:.2f}; {memory()}")
    with tempfile.TemporaryDirectory() as scratch:
        context = context_of(corpus, view, heads, encoder, Path(scratch))
        print(f"averages, choices, mixes, distances: {timed(lambda: measure(context)):.1f} s")
    if options.maps:
        texts = view.texts[:: max(1, len(view.texts) // options.maps)][: options.maps]
        some = View("plain", texts)
        ours = timed(lambda: through(some, heads, encoder))
        loop = timed(lambda: [whole_maps(text.words, encoder) for text in texts])
        print(
            f"{len(texts)} texts: {ours:.1f} s; a loop over maps: {loop:.1f} s, {loop / ours:.1f} ×"
        )


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--limit", type=int, help="sentences of each split")
    parser.add_argument("--shape", choices=("minilm", "bert-base"), default="minilm")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--maps", type=int, default=200, help="sentences of the loop over maps")
    return parser.parse_args()


def encoder_of(shape: str, device: str) -> Encoder:
    """All-MiniLM-L6-v2, or BERT-base with random weights and its tokenizer."""
    encoder = load_encoder(find_model("all-MiniLM-L6-v2", offline=True), device=device)
    if shape == "minilm":
        return encoder
    from transformers import AutoTokenizer

    folder = find_model("all-MiniLM-L6-v2", offline=True).folder
    torch.manual_seed(0)
    model = AutoModel.from_config(BertConfig())
    return Encoder(model, AutoTokenizer.from_pretrained(folder), name=shape, device=device)


def timed(run: Callable[[], object]) -> float:
    """Seconds that something takes."""
    clock = time.perf_counter()
    run()
    return time.perf_counter() - clock


def through(view: View, collector: Collector, encoder: Encoder) -> None:
    """Read a view, and forget what was found."""
    for _ in read(view, collector, encoder):
        pass
    if encoder.device.type == "cuda":
        torch.cuda.synchronize()


def no_trees(between: torch.Tensor, n_words: torch.Tensor) -> torch.Tensor:
    """In the place of `trees`."""
    n, heads, width, _ = between.shape
    return torch.full((n, width, heads, 3), -1, device=between.device)


def context_of(
    corpus: Corpus, view: View, collector: Collector, encoder: Encoder, cache: Path
) -> Context:
    """What the measurement is given."""
    reading = Reading(cache, encoder.info, "float32", view, collector)
    return Context(
        corpus=corpus,
        model=encoder.info,
        extent=dict.fromkeys(range(1, encoder.info.n_layers + 1), 1),
        view=view,
        stored=collected(reading, encoder),
        read=lambda texts, other: read(texts, other, encoder),
        device=encoder.device,
        options=OPTIONS,
        title="attention",
    )


def whole_maps(words: tuple[str, ...], encoder: Encoder) -> list[float]:
    """One sentence: entropy, offsets, special tokens, words' choices, head by head in numpy."""
    (pieces,) = encoder.split([Text(words, (0, len(words)))])
    ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
    encoder.model.set_attn_implementation("eager")
    with torch.inference_mode():
        output = encoder.model(
            input_ids=ids.to(encoder.device),
            attention_mask=torch.ones_like(ids).to(encoder.device),
            output_attentions=True,
        )
    first, found = len(encoder.words.prefix), []
    for block in output.attentions:
        for maps in block[0].cpu().numpy():
            found.append(float(-(maps * np.log(maps + 1e-12)).sum(-1).mean()))
            found += [float(np.trace(maps, offset=x)) for x in range(-5, 6)]
            found += [float(maps[:, 0].mean()), float(maps[:, -1].mean())]
            starts = pieces.bounds[:-1] + first
            columns = np.add.reduceat(maps[:, : pieces.bounds[-1] + first], starts, axis=1)
            rows = np.add.reduceat(columns[: pieces.bounds[-1] + first], starts, axis=0)
            between = rows / np.diff(pieces.bounds)[:, None]
            np.fill_diagonal(between, -1)
            found += [float(x) for x in (between.argmax(0).sum(), between.argmax(1).sum())]
    encoder.model.set_attn_implementation("sdpa")
    return found


def memory() -> str:
    """The most memory that was used so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


if __name__ == "__main__":
    main()
