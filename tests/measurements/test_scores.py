"""Scores of planted predictions."""

from types import SimpleNamespace

import numpy as np
import pytest
from planted_context import corpus

from probes.examples.examples import SEEN, UNSEEN, collect_examples
from probes.examples.scoring import Scorer
from probes.measurements.scores import ScoreMeasurement
from probes.tasks.builtin import tasks


def layer_of(n_seen, n_unseen, right):
    """The scores of a layer on one-word test sentences, all nouns, of which some words are new.

    Args:
        right: which predictions are right, those for new words last.
    """
    train = [["w1"], ["w4"]]
    words = [["w1"]] * n_seen + [[f"w{4 * i + 2}"] for i in range(1, 1 + n_unseen)]
    examples = collect_examples(
        tasks.get("pos"), corpus({"train": train, "dev": train, "test": words}), "plain"
    )
    one = np.ones((1, 1))
    fits = SimpleNamespace(
        n_parameters=1,
        parameters={},
        strength=one,
        stopped=one,
        dev_loss=one,
        predicted={
            "dev": np.zeros((1, 1, 2), dtype=np.int64),
            "test": np.where(right, 0, 1)[None, None],  # classes N and V
        },
    )
    context = SimpleNamespace(
        examples=examples,
        task=examples.task,
        data=SimpleNamespace(n_outputs=2),
        scorers={split: Scorer(examples, split) for split in ("dev", "test")},
        extent={0: 1},
        layers=(0,),
        fits=lambda layers, draws: fits,
    )
    (layer,) = ScoreMeasurement().compute(context).payload.layers
    return layer


def test_intervals_of_groups_are_those_of_proportions():
    right = np.concatenate([np.arange(400) % 10 != 0, np.arange(100) % 2 != 0])
    layer = layer_of(400, 100, right)
    assert layer.fits[0].groups == {SEEN: 0.9, UNSEEN: 0.5}
    for name, p, n in ((SEEN, 0.9, 400), (UNSEEN, 0.5, 100)):
        half = 1.96 * np.sqrt(p * (1 - p) / n)
        assert layer.group_intervals[name] == pytest.approx((p - half, p + half), abs=0.012)


def test_groups_with_very_few_sentences_have_no_interval():
    right = np.ones(39, dtype=bool)
    assert layer_of(20, 19, right).group_intervals == {SEEN: (1.0, 1.0), UNSEEN: None}
