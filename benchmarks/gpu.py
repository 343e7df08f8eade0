"""One CUDA card in eight minutes: does it agree with the CPU, and how busy is it?

    python benchmarks/gpu.py FOLDER --output gpu
    python benchmarks/gpu.py FOLDER --output gpu --tiny --device cpu

FOLDER holds `bert-base` and `llama-8b`, each a config.json with a tokenizer, and `data` with EWT.
Weights are random; those of the decoder are made on the card. `--tiny` rehearses the script with
small shapes and the embedded sample. Writes gpu.json and gpu.md. Exits with 1 if the card
disagrees: vectors by more than 1e-3 of their length, scores by more than 0.02.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

import probes
from probes.data.find import find_corpus
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import vectors_of, word_vectors
from probes.extraction.reading.padding import default_batch_tokens
from probes.extraction.reading.views import View, plain_view

VECTORS, SCORES = 1e-3, 0.02
"""Greatest differences from the CPU: of vectors as a share of their length; of scores."""

TASKS = ("pos", "chunking", "depth", "agreement", "srl")

SMALL = {
    "bert-base": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                  "num_attention_heads": 2},
    "llama-8b": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 8,
                 "num_attention_heads": 4, "num_key_value_heads": 2},
}  # fmt: skip


def main() -> int:
    """Measure, write, and say whether the card agrees."""
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        results: dict[str, Any] = {"device": name_of(options.device), "torch": torch.__version__}
        for name, value in card_numbers(options, Path(scratch)):
            results[name] = value
            print(f"{name}: {value}", flush=True)
            write(results, options.output)  # what is there stays if the time runs out
    return 0 if results["vectors agree"] and results["scores agree"] else 1


def card_numbers(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Any]]:
    """Names and numbers of the card, the cheapest ones first."""
    device, tiny = options.device, options.tiny
    folders = {name: shape(options.folder / name, scratch / name, tiny) for name in SMALL}
    settings: dict[str, Any] = {
        "data_dir": None if tiny else options.folder / "data",
        "twins": 0,
        "quick": True,
        "offline": True,
        "quiet": True,
    }
    corpus = "sample" if tiny else "ewt"
    limit = {"limit": 60} if tiny else {}
    rates = {dtype: product_rate(dtype, device, tiny) for dtype in (torch.float32, torch.bfloat16)}
    for dtype, rate in rates.items():
        yield f"TFLOP/s, products in {str(dtype).removeprefix('torch.')}", rate / 1e12

    model = f"random:{folders['bert-base']}"
    source = find_model(model, offline=True)
    bert = load_encoder(source, device=device)
    apart = greatest_difference(load_encoder(source, device="cpu"), bert)
    yield "greatest difference of vectors, of their length", apart
    yield "vectors agree", apart <= VECTORS

    few: dict[str, Any] = {"corpus": "sample", "limit": 60 if tiny else 300, "tasks": "pos,depth"}
    few |= {"probes": "linear", "dtype": "float32"}
    tables = []
    # Once from vectors of its own, and once from those of the CPU, which shows the fits alone.
    for where, cache in (("cpu", "cpu"), (device, "own"), (device, "cpu")):
        output = scratch / f"{where}-{cache}-results"
        run_settings = {**settings, **few, "device": where}
        run = probes.run_probes(model, output=output, cache_dir=scratch / cache, **run_settings)
        tables.append(run.table().select_dtypes("number"))
    for name, table in zip(("scores", "fits"), tables[1:], strict=True):
        yield f"greatest difference of {name}", float((table - tables[0]).abs().max().max())
    worst = max(float((table - tables[0]).abs().max().max()) for table in tables[1:])
    yield "scores compared", tables[0].size
    yield "scores agree", tables[0].size > 0 and worst <= SCORES

    texts = plain_view(find_corpus(corpus, data_dir=settings["data_dir"], **limit).load()).texts
    shapes: dict[str, tuple[Callable[[], Encoder], torch.dtype, int, int]] = {
        "BERT-base": (lambda: bert, torch.float32, 1, len(texts)),
        "8 B decoder": (lambda: decoder(folders["llama-8b"], device), torch.bfloat16, 4, 4000),
    }
    for name, (load, dtype, step, n) in shapes.items():
        encoder, view = load(), View("plain", texts[:n])
        seconds, tokens, weights = extraction(encoder, view, step, scratch / "speed")
        yield f"{name}, tokens per second", tokens / seconds
        yield (
            f"{name}, share of the rate of products",
            2 * weights * tokens / seconds / rates[dtype],
        )
        if name == "BERT-base":
            part = View("plain", texts[:2000])
            idle, rows = profile(device, extraction, encoder, part, 1, scratch / "profile")
            yield "extraction, share of time the card is idle", idle
            yield "profile of extraction", rows
        del encoder

    timed_runs: dict[str, dict[str, Any]] = {
        "five tasks, linear": {"tasks": ",".join(TASKS), "probes": "linear"},
        "structural probes, 4,000 sentences": {"measurements": "structure", "limit": 4000},
    }
    for name, more in timed_runs.items():
        clock = time.perf_counter()
        run_settings = {**settings, **more, **limit, "corpus": corpus, "device": device}
        probes.run_probes(model, output=scratch / "r", cache_dir=scratch / "c", **run_settings)
        yield f"{name} on {corpus}, seconds", time.perf_counter() - clock

    few |= {"device": device, "output": scratch / "idle", "cache_dir": scratch / "own"}
    idle, _ = profile(device, probes.run_probes, model, **{**settings, **few})
    yield "probes, share of time the card is idle", idle


def shape(folder: Path, copy: Path, tiny: bool) -> Path:
    """Folder of a shape, or a copy with the small one."""
    if not tiny:
        return folder
    shutil.copytree(folder, copy)
    path = copy / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **SMALL[folder.name]}))
    return copy


def name_of(device: str) -> str:
    """Name of a card, or of another device."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def time_when_done(device: torch.device | str) -> float:
    """Time at which a device has done everything that was queued."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def product_rate(dtype: torch.dtype, device: str, tiny: bool) -> float:
    """Operations per second in products of square matrices: the median of nine."""
    side = 256 if tiny else 8192
    left, right = torch.rand(2, side, side, device=device).to(dtype)
    left.mm(right)
    seconds = []
    for _ in range(9):
        clock = time_when_done(device)
        left.mm(right)
        seconds.append(time_when_done(device) - clock)
    return 2 * side**3 / statistics.median(seconds)


def greatest_difference(first: Encoder, second: Encoder) -> float:
    """The greatest distance of two encoders' vectors, as a share of their length, of all layers."""
    ids = torch.arange(1000, 1064).view(2, 32)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    worst = 0.0
    for ours, theirs in zip(first.states(inputs), second.states(inputs), strict=True):
        ours, theirs = ours.cpu().float(), theirs.cpu().float()
        worst = max(worst, float(((ours - theirs).norm(dim=-1) / ours.norm(dim=-1)).max()))
    return worst


def decoder(folder: Path, device: str) -> Encoder:
    """A decoder with random weights in bfloat16, made on the device."""
    with torch.device(device):
        model = AutoModel.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return Encoder(model, tokenizer, name=folder.name, device=device, digest="random")


def extraction(encoder: Encoder, view: View, step: int, cache: Path) -> tuple[float, int, int]:
    """Seconds from words to a whole store, the tokens read, and the weights in products."""
    layers = range(0, encoder.info.n_layers + 1, step)
    tokens = sum(len(p.ids) + encoder.specials for p in encoder.split(view.texts))
    embeddings = encoder.model.get_input_embeddings().weight
    weights = sum(w.numel() for w in encoder.model.parameters() if w.dim() == 2)
    clock = time_when_done(encoder.device)
    reading = word_vectors(cache, encoder.info, "bfloat16", view, layers)
    vectors_of(reading, encoder, default_batch_tokens(encoder.device.type))
    seconds = time_when_done(encoder.device) - clock
    shutil.rmtree(cache)
    return seconds, tokens, weights - embeddings.numel()


def profile(
    device: str, work: Callable[..., object], *arguments: Any, **more: Any
) -> tuple[float | None, list[dict[str, Any]]]:
    """Share of time in which a card neither computes nor copies, and the ten longest operations.

    On a CPU there is no such share, and operations are those of the host.
    """
    on_card = device.startswith("cuda")
    clock = time_when_done(device)
    with torch.profiler.profile() as seen:
        work(*arguments, **more)
        seconds = time_when_done(device) - clock
    busy, end = 0.0, -math.inf  # in microseconds
    for start, stop in sorted(
        (event.time_range.start, event.time_range.end)
        for event in seen.events()
        if event.device_type.name == "CUDA"
    ):
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    rows = [
        {
            "operation": event.key,
            "calls": event.count,
            "device ms": round(event.self_device_time_total / 1000, 1),
            "host ms": round(event.self_cpu_time_total / 1000, 1),
        }
        for event in seen.key_averages()
    ]
    rows.sort(key=lambda row: -row["device ms" if on_card else "host ms"])
    return (1 - busy / 1e6 / seconds if on_card else None), rows[:10]


def write(results: dict[str, Any], output: Path) -> None:
    """Write one JSON file and one Markdown table."""
    output.with_suffix(".json").write_text(json.dumps(results, indent=1))
    lines = ["| | |", "| --- | ---: |"]
    for name, value in results.items():
        if isinstance(value, list):
            continue
        lines.append(f"| {name} | {f'{value:,.4g}' if isinstance(value, float) else value} |")
    if rows := results.get("profile of extraction"):
        lines += ["", f"| {' | '.join(rows[0])} |", "| --- | ---: | ---: | ---: |"]
        lines += [f"| {' | '.join(map(str, row.values()))} |" for row in rows]
    output.with_suffix(".md").write_text("\n".join(lines) + "\n")


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="shapes, tokenizers and EWT")
    parser.add_argument("--output", type=Path, default=Path("gpu"), help="of .json and .md")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small shapes on the sample")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
