"""Data cards say what the corpora hold."""

from pathlib import Path

import pytest

from probes.data.find import find_corpus
from probes.data.sentence import SPLITS
from probes.examples.examples import collect_examples
from probes.tasks.builtin import STANDARD, tasks

CARDS = Path(__file__).parents[2] / "data" / "cards"


UDS = ["proto-roles", "factuality", "supersense", "argument-genericity", "predicate-genericity", "sense"]  # fmt: skip


def card_table(corpus, names):
    """The lines of the count table of a data card."""
    yield "| | train | dev | test |"
    yield "| --- | ---: | ---: | ---: |"
    if names != UDS:
        yield row("sentences", [len(corpus.splits[split]) for split in SPLITS])
        yield row("words", [sum(map(len, corpus.splits[split])) for split in SPLITS])
        for genre, sentences in corpus.genres.items():
            yield row(f"{genre}: sentences", sentences)
    for name in names:
        task = tasks.get(name).on(corpus.layers)
        if task.missing(corpus.layers):
            continue
        found = collect_examples(task, corpus, "masked")
        parts = [found.splits[split] for split in SPLITS]
        yield row(f"{name}: examples", [len(part.examples) for part in parts])
        for reason in sorted({reason for part in parts for reason in part.excluded}):
            counts = [part.excluded.get(reason, 0) for part in parts]
            yield row(f"{name}: left out, {reason}", counts)
        if found.label_sets or (found.classes and names != UDS):  # senses are too many
            for label, by_split in found.label_counts.items():
                yield row(f"{name}: `{label}`", by_split)


def row(name, counts):
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"


OF_SENTENCES = (*STANDARD, "entities", "coreference")


def assert_card(name, data_dir, names=OF_SENTENCES):
    card = (CARDS / f"{name}.md").read_text().splitlines()
    corpus = find_corpus("ewt" if name == "uds" else name, data_dir=data_dir).load()
    lines = list(card_table(corpus, names))
    start = card.index(lines[0])
    assert card[start : start + len(lines)] == lines


def test_sample_card():
    assert_card("sample", None)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("name", ["ewt", "gum", "conll2000", "uds"])
def test_card_of_a_downloaded_corpus(real_data, name):
    assert_card(name, real_data, UDS if name == "uds" else OF_SENTENCES)
