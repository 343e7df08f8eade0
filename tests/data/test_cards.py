"""Data cards say what the corpora hold."""

from pathlib import Path

import pytest
from count_examples import card_tables

from probes.data.find import find_corpus

CARDS = Path(__file__).parents[2] / "data" / "cards"


def assert_card(name, data_dir):
    card = (CARDS / f"{name}.md").read_text().splitlines()
    start = card.index("| | train | dev | test |")
    lines = list(card_tables(find_corpus(name, data_dir=data_dir).load()))
    assert card[start : start + len(lines)] == lines


def test_sample_card():
    assert_card("sample", None)


@pytest.mark.real_data
def test_ewt_card(real_data):
    assert_card("ewt", real_data)


@pytest.mark.real_data
def test_conll2000_card(real_data):
    assert_card("conll2000", real_data)
