"""Data cards say what the corpora hold."""

from pathlib import Path

import pytest

from probes.data.find import find_corpus
from probes.data.sentence import SPLITS
from probes.examples.examples import collect_examples
from probes.tasks.builtin import STANDARD, tasks

CARDS = Path(__file__).parents[2] / "data" / "cards"


def card_tables(corpus):
    """The lines of the count tables of a data card."""
    yield "| | train | dev | test |"
    yield "| --- | ---: | ---: | ---: |"
    yield row("sentences", [len(corpus.splits[split]) for split in SPLITS])
    yield row("words", [sum(map(len, corpus.splits[split])) for split in SPLITS])
    for genre, sentences in corpus.genres.items():
        yield row(f"{genre}: sentences", sentences)
    for name in (*STANDARD, "entities", "coreference"):
        task = tasks.get(name).on(corpus.layers)
        if task.missing(corpus.layers):
            continue
        found = collect_examples(task, corpus, "masked")
        yield row(f"{name}: examples", [len(found.splits[split].examples) for split in SPLITS])
        reasons = sorted({reason for part in found.splits.values() for reason in part.excluded})
        for reason in reasons:
            counts = [found.splits[split].excluded.get(reason, 0) for split in SPLITS]
            yield row(f"{name}: left out, {reason}", counts)
        if found.classes:
            for label, by_split in found.label_counts.items():
                yield row(f"{name}: `{label}`", by_split)


def row(name, counts):
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"


def assert_card(name, data_dir):
    card = (CARDS / f"{name}.md").read_text().splitlines()
    start = card.index("| | train | dev | test |")
    lines = list(card_tables(find_corpus(name, data_dir=data_dir).load()))
    assert card[start : start + len(lines)] == lines


def test_sample_card():
    assert_card("sample", None)


@pytest.mark.slow
@pytest.mark.real_data
def test_ewt_card(real_data):
    assert_card("ewt", real_data)


@pytest.mark.slow
@pytest.mark.real_data
def test_gum_card(real_data):
    assert_card("gum", real_data)


@pytest.mark.slow
@pytest.mark.real_data
def test_conll2000_card(real_data):
    assert_card("conll2000", real_data)
