"""What each standard task makes of a corpus: examples, labels and exclusions, as Markdown.

python benchmarks/count_examples.py --corpus ewt --data-dir DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from probes.common.default_folders import default_data_dir
from probes.data.find import find_corpus
from probes.data.sentence import SPLITS, Corpus
from probes.examples.examples import collect_examples
from probes.tasks.builtin import STANDARD, tasks


def card_tables(corpus: Corpus) -> Iterator[str]:
    """The lines of the count tables of a data card."""
    yield "| | train | dev | test |"
    yield "| --- | ---: | ---: | ---: |"
    yield _row("sentences", [len(corpus.splits[split]) for split in SPLITS])
    yield _row("words", [sum(map(len, corpus.splits[split])) for split in SPLITS])
    for genre, sentences in corpus.genres.items():
        yield _row(f"{genre}: sentences", sentences)
    for name in STANDARD:
        task = tasks.get(name).on(corpus.layers)
        if task.missing(corpus.layers):
            continue
        found = collect_examples(task, corpus, "masked")
        yield _row(f"{name}: examples", [len(found.splits[split].examples) for split in SPLITS])
        reasons = sorted({reason for part in found.splits.values() for reason in part.excluded})
        for reason in reasons:
            counts = [found.splits[split].excluded.get(reason, 0) for split in SPLITS]
            yield _row(f"{name}: left out, {reason}", counts)
        if found.classes:
            for label, by_split in found.label_counts.items():
                yield _row(f"{name}: `{label}`", by_split)


def _row(name: str, counts: Sequence[int]) -> str:
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    options = parser.parse_args()
    for line in card_tables(find_corpus(options.corpus, data_dir=options.data_dir).load()):
        print(line)


if __name__ == "__main__":
    main()
