"""Models against each other: who is best, by how much, and whether that can be told."""

from types import SimpleNamespace

import numpy as np
import pytest

from probes.boards.comparison import compare


def result(name, dev, task="pos", fingerprint="f", view="plain", layer=2):
    """What `compare` reads of a result: two classes on 400 test sentences of one word."""
    scores = {"accuracy": dev}
    return SimpleNamespace(
        model=SimpleNamespace(name=name),
        corpus=SimpleNamespace(fingerprint=fingerprint, limited=False),
        task=SimpleNamespace(name=task, version=1, metric="accuracy"),
        probe=SimpleNamespace(family="linear"),
        plug_ins=(),
        project=None,
        view=view,
        silver=False,
        examples=SimpleNamespace(labels={"b": (5, 1, 0), "a": (9, 2, 400), "c": (0, 0, 0)}),
        best_layer=SimpleNamespace(layer=layer),
        score=lambda _, split="test": scores["accuracy"],
    )


def arrays(n_wrong, n=400, layer=2):
    predicted = np.zeros((2, 1, n), dtype=np.int16)
    predicted[0] = 1
    predicted[1, 0, :n_wrong] = 1
    return {
        "predicted": predicted,
        "gold": np.zeros(n, dtype=np.int16),
        "sentence": np.arange(n),
        "layers": np.array([layer - 1, layer]),
        "punctuation": np.zeros(n, dtype=bool),
        "unseen": np.array([], dtype=str),
    }


def test_models_are_ranked_by_dev_and_tested_against_the_first():
    data = {"low": arrays(200), "high": arrays(40), "close": arrays(42)}
    (found,) = compare(
        [result("low", 0.5), result("high", 0.9), result("close", 0.895)],
        lambda r: data[r.model.name],
    )
    assert [s.model for s in found.standings] == ["high", "close", "low"]
    first, close, low = found.standings
    assert (first.difference, first.p, first.separated) == (None, None, False)
    assert low.difference == pytest.approx(-0.4)
    # 160 of 400 sentences differ, all one way.
    half = 1.96 * np.sqrt(0.4 * 0.6 / 400)
    assert low.interval == (
        pytest.approx(-0.4 - half, abs=0.006),
        pytest.approx(-0.4 + half, abs=0.006),
    )
    # No resample without a loss: 2 · 1 / 2,001, times two comparisons.
    assert low.p == pytest.approx(4 / 2001)
    assert low.separated
    # Two words: e^-2 of the resamples have neither.
    assert close.p == pytest.approx(2 * np.exp(-2), abs=0.05)
    assert not close.separated


def test_tasks_of_one_model_are_left_out():
    assert compare([result("a", 0.9), result("a", 0.9, task="srl")], lambda r: arrays(3)) == []


def test_what_cannot_be_compared_stands_apart_with_the_reason():
    (found,) = compare(
        [result("a", 0.9), result("b", 0.8, fingerprint="g"), result("c", 0.7, view="cut"),
         result("d", 0.6)],
        lambda r: arrays(3, n=399 if r.model.name == "d" else 400),
    )  # fmt: skip
    assert [s.model for s in found.standings] == ["a"]
    assert found.apart == {
        "b": "another corpus",
        "c": "another view",
        "d": "other test examples",
    }


@pytest.mark.parametrize("damaged", ["a", "b"])
def test_what_cannot_be_read_stands_apart_and_the_others_are_compared(damaged):
    three = [result("a", 0.9), result("b", 0.8), result("c", 0.7)]
    (found,) = compare(three, lambda r: None if r.model.name == damaged else arrays(3))
    assert [s.model for s in found.standings] == [name for name in "abc" if name != damaged]
    assert found.standings[1].difference == pytest.approx(-0.2 if damaged == "b" else -0.1)
    assert found.apart == {damaged: "predictions not readable"}
    assert compare(three, lambda r: None) == []


def test_a_handful_of_sentences_is_not_tested():
    (found,) = compare([result("a", 0.9), result("b", 0.8)], lambda r: arrays(3, n=9))
    assert found.standings[1].difference == pytest.approx(-0.1)
    assert (found.standings[1].p, found.standings[1].interval) == (None, None)
