"""How long do structural probes take, beside encoding, and one run per layer and rank?

    python benchmarks/structure_speed.py --data-dir DIR                 # EWT, all-MiniLM-L6-v2
    python benchmarks/structure_speed.py --data-dir DIR --epochs 0      # without the plain loop

Times encoding the plain view, the whole measurement, fits of both probes of eight ranks at all
layers without controls and bootstrap samples, and `--epochs` epochs of a distance probe of one
layer and rank in a plain loop: batches of 20 sentences, padded, autograd (as the published code
does it). Beside each time is the least dev loss of that layer and rank.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch import Tensor

from probes.common.default_folders import default_data_dir
from probes.data.find import find_corpus
from probes.extraction.encoding import read, vectors_of, word_vectors
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.views import plain_view
from probes.measurements.context import Context
from probes.measurements.structure.fit_and_score import fit_and_score
from probes.measurements.structure.fitting import Fitted, fit
from probes.measurements.structure.probe import Probe
from probes.measurements.structure.sentence_batches import exact_batches, training_batches
from probes.measurements.structure.trees import trees_of

RANKS = (1, 2, 4, 8, 16, 32, 64, 128)

LAYER, RANK = 3, 64
"""Of the plain loop."""


def main() -> None:
    """Print the times."""
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        clock = time.perf_counter()
        context = encoded(options, Path(scratch))
        encoding = time.perf_counter() - clock
        print(f"encoding: {encoding:.1f} s")
        clock = time.perf_counter()
        fitted = fits(context)
        ours = time.perf_counter() - clock
        loss = fitted[LAYER].dev_losses[Probe("distance", RANK)]
        n = len(context.layers) * len(RANKS) * 2
        print(f"{n} fits at once: {ours:.1f} s, {ours / encoding:.1f} × encoding; loss {loss:.4f}")
        clock = time.perf_counter()
        fit_and_score(context, RANKS, RANK)
        whole = time.perf_counter() - clock
        print(f"the whole measurement: {whole:.1f} s, {whole / encoding:.1f} × encoding")
        for epoch, (seconds, loss) in enumerate(plain_loop(context, options.epochs), start=1):
            print(
                f"plain loop, one of {n}, epoch {epoch}: {seconds:.1f} s; loss {loss:.4f}; "
                f"× {n} / ours = {seconds * n / ours:.0f}"
            )


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--limit", type=int, help="sentences of each split")
    parser.add_argument("--epochs", type=int, default=10, help="of the plain loop")
    return parser.parse_args()


def encoded(options: argparse.Namespace, scratch: Path) -> Context:
    """The corpus, with its vectors in a new store."""
    places = {"data_dir": options.data_dir, "cache_dir": scratch, "offline": True}
    corpus = find_corpus("ewt", limit=options.limit, **places).load()
    encoder = load_encoder(find_model("all-MiniLM-L6-v2", offline=True), device="cpu")
    view, layers = plain_view(corpus), tuple(range(encoder.info.n_layers + 1))
    reading = word_vectors(scratch, encoder.info, "float32", view, layers)
    vectors = vectors_of(reading, encoder, None)
    return Context(
        corpus=corpus,
        model=encoder.info,
        extent=dict.fromkeys(layers, 1),
        view=view,
        stored=vectors,
        read=lambda texts, collector: read(texts, collector, encoder),
        device=torch.device("cpu"),
        options=None,
        title="structure",
    )


def fits(context: Context) -> dict[int, Fitted]:
    """Both probes of every rank at every layer."""
    trees = {
        split: trees_of(context.corpus.splits[split], context.in_several_windows(split))
        for split in ("train", "dev")
    }
    train = training_batches(trees["train"], context.rows("train"), 0, context.device)
    dev = exact_batches(trees["dev"], context.rows("dev"), context.device)
    probes = [*(Probe("distance", k) for k in RANKS), *(Probe("depth", k) for k in RANKS)]
    weights = {0: torch.ones(len(trees["train"].sentences))}
    return {
        layer: fit(context.vectors.layer(layer), train, dev, probes, weights)
        for layer in context.layers
    }


def plain_loop(context: Context, epochs: int) -> Iterator[tuple[float, float]]:
    """After each epoch of one probe: seconds so far, and the least dev loss."""
    data = {}
    for split in ("train", "dev"):
        trees = trees_of(context.corpus.splits[split], context.in_several_windows(split))
        words = torch.from_numpy(context.words(split, LAYER))
        data[split] = [
            (words[first : first + n], torch.from_numpy(tree.distances).float())
            for first, n, tree in zip(trees.first, trees.lengths, trees.paths, strict=True)
        ]
    torch.manual_seed(0)
    matrix = torch.nn.Parameter(torch.rand(RANK, context.model.hidden_size) * 0.1 - 0.05)
    adam, best, clock = torch.optim.Adam([matrix], lr=1e-3), float("inf"), time.perf_counter()
    for _ in range(epochs):
        for part in torch.randperm(len(data["train"])).split(20):
            adam.zero_grad()
            loss_of(matrix, [data["train"][i] for i in part.tolist()]).mean().backward()
            adam.step()
        with torch.no_grad():
            parts = range(0, len(data["dev"]), 20)
            dev = torch.cat([loss_of(matrix, data["dev"][i : i + 20]) for i in parts])
        best = min(best, float(dev.mean()))
        yield time.perf_counter() - clock, best


def loss_of(matrix: Tensor, sentences: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The loss of each of some sentences, which are padded to the longest."""
    lengths = torch.tensor([len(words) for words, _ in sentences])
    words = torch.nn.utils.rnn.pad_sequence([words for words, _ in sentences], batch_first=True)
    n = words.shape[1]
    gold = torch.zeros(len(sentences), n, n)
    for i, (_, tree) in enumerate(sentences):
        gold[i, : len(tree), : len(tree)] = tree
    projected = words @ matrix.T
    found = (projected[:, :, None] - projected[:, None]).square().sum(-1)
    real = torch.arange(n) < lengths[:, None]
    pairs = real[:, :, None] & real[:, None]
    return ((found - gold).abs() * pairs).sum((1, 2)) / lengths.square()


if __name__ == "__main__":
    main()
