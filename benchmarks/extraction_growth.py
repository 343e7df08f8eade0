"""Does extraction stay linear, and its memory flat, as corpus and depth grow?

    python benchmarks/extraction_growth.py --data-dir DIR

Random models of all-MiniLM-L6-v2's width; each case runs in a process of its own, `--repeat`
times, in turn. Memory is RssAnon, the highest seen every 20 ms above what it was before the
corpus was read. Prints a Markdown table of medians.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from probes.common.default_folders import default_data_dir

CASES = ((1 / 16, 7), (1 / 4, 7), (1.0, 7), (1 / 16, 13), (1 / 16, 25))
"""Share of the corpus, and layers."""


def main() -> None:
    """Print the table."""
    options = parse()
    if options.case:
        share, layers = options.case
        measure(options, share, int(layers))
        return
    found: dict[tuple[float, int], list[list[float]]] = {case: [] for case in CASES}
    for _ in range(options.repeat):
        for share, layers in CASES:
            command = [sys.executable, *sys.argv, "--case", str(share), str(layers)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[share, layers].append([float(part) for part in printed.split()])
    print("| share of corpus | layers | words | seconds | µs per word | peak RssAnon, MB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for (share, layers), runs in found.items():
        words, seconds, memory = (statistics.median(column) for column in zip(*runs, strict=True))
        print(
            f"| 1/{1 / share:.0f} | {layers} | {words:,.0f} | {seconds:.1f} | "
            f"{1e6 * seconds / words:.0f} | {memory / 1e6:.0f} |"
        )


def measure(options: argparse.Namespace, share: float, layers: int) -> None:
    """One case in this process: prints words, seconds and bytes."""
    from extraction_speed import extraction, slice_of
    from transformers import AutoTokenizer, BertConfig, BertModel

    from probes.data.find import find_corpus
    from probes.extraction.loading import load_encoder
    from probes.extraction.model_files import find_model
    from probes.extraction.views import View, plain_view

    folder = find_model("all-MiniLM-L6-v2").folder
    config = BertConfig.from_pretrained(folder, num_hidden_layers=layers - 1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory(dir=options.scratch) as model:
        BertModel(config).save_pretrained(model)
        tokenizer.save_pretrained(model)
        encoder = load_encoder(find_model(model), device="cpu")
    before, peak, stop = rss_anon(), [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            peak[0] = max(peak[0], rss_anon())

    watcher = threading.Thread(target=watch)
    watcher.start()
    texts = plain_view(find_corpus("ewt", data_dir=options.data_dir).load()).texts
    view = View("plain", slice_of(texts, round(share * len(texts))))
    del texts
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        seconds = extraction(view, encoder, Path(scratch), options.batch_tokens)
    stop.set()
    watcher.join()
    print(sum(len(text.words) for text in view.texts), seconds, peak[0] - before)


def rss_anon() -> int:
    """Anonymous resident memory of this process, in bytes."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 0 if found is None else 1024 * int(found[1])


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--scratch", type=Path, help="for stores (default: the system's)")
    parser.add_argument("--case", nargs=2, type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
