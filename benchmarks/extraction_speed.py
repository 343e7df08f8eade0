"""Speed of extraction, relative to the machine's peak and to other implementations.

    python benchmarks/extraction_speed.py --data-dir DIR
    python benchmarks/extraction_speed.py --data-dir DIR --bert-base --sentences 400
    python benchmarks/extraction_speed.py --data-dir DIR --sentences 400 --naive
    python benchmarks/extraction_speed.py --data-dir DIR --sentences 1200 --neurox

Extraction is timed from words to a complete store: tokenisation, batches, forward passes, pooling,
writing, checksums. Useful work is 2 × encoder weights (without embeddings) × unpadded tokens. The
peak is the median time of 2,048³ fp32 products: five before each way, and one after every 0.3 s of
extraction, which is not counted. "Paired" compares each stretch with the product after it, since
the speed of shared machines varies. Prints a Markdown table of medians; ratios are computed within
one run. Do not use the machine for anything else meanwhile, or set OMP_NUM_THREADS=1: then times
are processor seconds.

`--neurox` needs `pip install --no-deps neurox==1.0.9 h5py`. NeuroX writes the same means of words,
as HDF5 in float32 and, by default, as JSON; ours are stored in float16. Loading is not timed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from machine import SIDE, Products, clock
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from probes.common.files import default_data_dir
from probes.data.find import find_corpus
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import as_given, vectors_of, word_vectors
from probes.extraction.reading.padding import default_batch_tokens
from probes.extraction.reading.views import Text, View, plain_view


def main() -> None:
    """Print the table."""
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        compare(options, Path(folder))


def compare(options: argparse.Namespace, scratch: Path) -> None:
    """Time each way of extraction in turn, `--repeat` times."""
    model = bert_base(scratch) if options.bert_base else options.model
    source = find_model(str(model), offline=True)
    encoder = load_encoder(source, device="cpu")
    texts = plain_view(find_corpus(options.corpus, data_dir=options.data_dir).load()).texts
    view = View("plain", slice_of(texts, options.sentences))
    start = clock()
    pieces = encoder.split(view.texts)
    tokenising = clock() - start
    words = sum(len(text.words) for text in view.texts)
    tokens = sum(len(p.ids) + encoder.specials for p in pieces)
    weights = sum(w.numel() for w in encoder.model.encoder.parameters() if w.dim() == 2)
    batch_tokens = default_batch_tokens("cpu")
    print(
        f"{source.name}, {encoder.info.n_layers} layers × {encoder.info.hidden_size}, "
        f"{weights / 1e6:.1f} M encoder weights · {len(view.texts):,} sentences, {words:,} words, "
        f"{tokens:,} tokens · {torch.get_num_threads()} threads · {batch_tokens} tokens per batch "
        f"· tokenising alone {tokenising:.2f} s\n"
    )
    products = Products()
    ways: dict[str, Callable[[], float]] = {
        "extraction": lambda: extraction(view, encoder, scratch, batch_tokens, products)
    }
    if options.naive:
        ways["naive loop"] = lambda: naive(view.texts, source.folder)
    if options.neurox:
        for suffix in ("hdf5", "json"):
            ways[f"NeuroX, {suffix}"] = partial(neurox, view.texts, source.folder, scratch, suffix)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    paired = []
    for _ in range(options.repeat):
        for way, run in ways.items():
            for _ in range(5):
                products.take()
            seconds[way].append(run())
            if way == "extraction":
                paired.append(products.in_products(seconds[way][-1]))
    peak = products.flops
    ours = statistics.median(seconds["extraction"])
    share = 2 * weights * tokens / (2 * SIDE**3) / statistics.median(paired)
    print(f"peak {peak / 1e9:.0f} GFLOP/s, median of {len(products.seconds)}")
    print()
    print("| way | seconds | words per second | share of peak | paired | extraction is faster by |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for way, values in seconds.items():
        median = statistics.median(values)
        print(
            f"| {way} | {median:.2f} | {words / median:,.0f} | "
            f"{2 * weights * tokens / median / peak:.2f} | "
            f"{f'{share:.2f}' if way == 'extraction' else ''} | {median / ours:.1f} |"
        )
    if options.neurox:
        print(f"\nrelative distance from NeuroX's vectors ≤ {distance(view, encoder, scratch):.1e}")


def slice_of(texts: Sequence[Text], n: int | None) -> tuple[Text, ...]:
    """Sample `n` texts with the same distribution of lengths, in order."""
    if n is None or n >= len(texts):
        return tuple(texts)
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i].words))
    return tuple(
        texts[i] for i in sorted(by_length[int((k + 0.5) * len(texts) / n)] for k in range(n))
    )


def extraction(
    view: View, encoder: Encoder, scratch: Path, batch_tokens: int, products: Products
) -> float:
    """Seconds from words to a complete store, without the products between passes."""
    layers = range(encoder.info.n_layers + 1)
    reading = word_vectors(scratch / "cache", encoder.info, "float32", view, layers)
    forward = encoder._pass

    def paced(*arguments: Any) -> Any:
        output = forward(*arguments)
        products.pace()
        return output

    with patch.object(encoder, "_pass", paced):
        start = clock()
        products.begin()
        vectors_of(reading, encoder, batch_tokens)
        seconds = clock() - start
    shutil.rmtree(scratch / "cache")
    return seconds - sum(product for _, product in products.stretches)


def naive(texts: Sequence[Text], folder: Path) -> float:
    """Seconds for a loop over batches of 32 in corpus order that keeps word means of all layers."""
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModel.from_pretrained(folder).eval(),
    )
    start = clock()
    word_means = []
    for first in range(0, len(texts), 32):
        batch = [list(text.words) for text in texts[first : first + 32]]
        inputs = tokenizer(
            batch, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            states = model(**inputs, output_hidden_states=True).hidden_states
        for row in range(len(batch)):
            owner = [-1 if word is None else word for word in inputs.word_ids(row)]
            index = torch.tensor(owner)
            word_means += [
                torch.stack([layer[row][index == word].mean(0) for layer in states])
                for word in range(max(owner) + 1)
            ]
    return clock() - start


def neurox(texts: Sequence[Text], folder: Path, scratch: Path, suffix: str) -> float:
    """Seconds for NeuroX to write word means of all layers, from words to a closed file."""
    peer = importlib.import_module("neurox.data.extraction.transformers_extractor")
    sentences, output = scratch / "sentences.txt", scratch / f"neurox.{suffix}"
    sentences.write_text("".join(" ".join(text.words) + "\n" for text in texts), "utf-8")
    loaded = peer.get_model_and_tokenizer(str(folder))
    loading = patch.object(peer, "get_model_and_tokenizer", return_value=loaded)
    with open(os.devnull, "w") as printed, redirect_stdout(printed), loading:
        start = clock()
        peer.extract_representations("", sentences, str(output), "cpu", "average", suffix)
        return clock() - start


def distance(view: View, encoder: Encoder, scratch: Path) -> float:
    """Largest distance of a word's vector, in float32, from NeuroX's, relative to its length."""
    layers = range(encoder.info.n_layers + 1)
    request = word_vectors(scratch / "cache", encoder.info, "float32", view, layers)
    vectors = vectors_of(as_given(request, ""), encoder)
    distances = []
    with importlib.import_module("h5py").File(scratch / "neurox.hdf5") as file:
        for number, start in enumerate(vectors.starts):
            theirs = file[str(number)][:]
            rows = np.arange(start, start + theirs.shape[1])
            ours = np.stack([vectors.layer(n)[rows] for n in layers])
            lengths = np.linalg.norm(theirs, axis=-1)
            distances.append((np.linalg.norm(ours - theirs, axis=-1) / lengths).max())
    return float(max(distances))


def bert_base(scratch: Path) -> Path:
    """A folder with a random model of BERT-base's shape and all-MiniLM-L6-v2's tokenizer."""
    folder = scratch / "bert-base"
    torch.manual_seed(0)
    BertModel(BertConfig()).save_pretrained(folder)
    AutoTokenizer.from_pretrained(find_model("all-MiniLM-L6-v2").folder).save_pretrained(folder)
    return folder


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--bert-base", action="store_true", help="a random model of that shape")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument(
        "--sentences", type=int, help="a slice with the same lengths (default: all)"
    )
    parser.add_argument("--naive", action="store_true", help="beside a plain transformers loop")
    parser.add_argument("--neurox", action="store_true", help="beside NeuroX 1.0.9")
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
