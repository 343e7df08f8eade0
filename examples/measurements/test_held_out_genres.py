"""The measurement held_out_genres on predictions written by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from probes import Gold, Sentence, UserError, get_measurement, load_file

load_file(Path(__file__).with_name("held_out_genres.py"))

LABELS = np.array([0, 0, 1, 1, 1])  # of test: one of mail, three of news, one of a web page
HELD_OUT = {"mail": [0, 1, 1, 1, 1], "news": [0, 1, 0, 1, 1]}


def measured(train, test):
    """All rows. Each sentence has one example."""
    corpus, examples = {}, {}
    for split, genres in (("train", train), ("test", test)):
        corpus[split] = [Sentence(str(i), "en", ("x",), genre=g) for i, g in enumerate(genres)]
        examples[split] = SimpleNamespace(sentence=np.arange(len(genres)))

    def fits(layers, draws, kept):
        (genre,) = {*train} - {train[i] for i in np.flatnonzero(kept[0])}
        assert kept[0].sum() == kept[1].sum() == len(train) - train.count(genre)
        return SimpleNamespace(predicted={"test": np.array([[HELD_OUT[genre], LABELS]])})

    context = SimpleNamespace(
        layers=(3,),
        task=SimpleNamespace(metric="accuracy"),
        corpus=SimpleNamespace(splits=corpus),
        examples=SimpleNamespace(splits=examples),
        scorers={"test": SimpleNamespace(gold=Gold(LABELS, np.arange(5), ("a", "b"), LABELS == 2))},
        predicted=lambda layers: np.array([[0, 0, 1, 1, 0]]),
        fits=fits,
    )
    rows = get_measurement("held_out_genres").compute(context)
    return {(row.metric, row.axes["genre"]): (row.value, row.n) for row in rows}


def test_scores_and_drops_of_each_genre():
    assert measured(["news", "mail", "news"], ["mail", "news", "news", "news", "web"]) == {
        ("held_out_score", "mail"): (1, 1),
        ("held_out_drop", "mail"): (0, 1),
        ("random_drop", "mail"): (0, 1),
        ("held_out_score", "news"): (pytest.approx(1 / 3), 3),
        ("held_out_drop", "news"): (pytest.approx(2 / 3), 3),
        ("random_drop", "news"): (0, 3),
    }


@pytest.mark.parametrize("train", [["", ""], ["news", "news"], ["mail", "verse"]])
def test_without_a_genre_that_can_be_held_out_there_is_an_error(train):
    with pytest.raises(UserError, match="beside others in train"):
        measured(train, ["news", "news", "news", "web", ""])
