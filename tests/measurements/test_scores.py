"""Scores of planted predictions."""

from types import SimpleNamespace

import numpy as np
import pytest
from planted_context import corpus
from results_by_hand import make_result

from probes.examples.examples import SEEN, UNSEEN, collect_examples
from probes.examples.scoring import Scorer
from probes.measurements.frame import rows_of
from probes.measurements.scores import ScoreMeasurement
from probes.records.probe_scores import FitScores, LayerScores
from probes.records.row import Row
from probes.records.values import LabelScore
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


def test_rows_say_everything_that_is_known_of_scores():
    fits = tuple(
        FitScores(
            seed=seed, l2=1.0, stopped=1.0, dev_loss=0.5, dev={"accuracy": 0.5 + seed / 10},
            test={"accuracy": 0.25 + seed / 10}, groups={"seen": 0.75},
        )
        for seed in (0, 1)
    )  # fmt: skip
    layer = LayerScores(
        layer=3,
        fits=fits,
        intervals={"accuracy": (0.125, 0.375)},
        group_intervals={"seen": None},
        labels={"NOUN": LabelScore(n=8, precision=0.5, recall=None, f1=0.625)},
    )
    result = make_result(
        layers=(3,),
        scores=(0.25,),
        p_best=False,
        references={"subject's Number": {"accuracy": 0.9}},
    )
    payload = result.payload.model_copy(update={"layers": (layer,)})
    rows = list(rows_of(result.model_copy(update={"payload": payload})))
    assert rows == [
        Row("accuracy", 0.5, 3, split="dev"),
        Row("accuracy", 0.25, 3, 0.125, 0.375),
        Row("accuracy", 0.75, 3, axes={"group": "seen"}),
        Row("precision", 0.5, 3, n=8, axes={"label": "NOUN"}),
        Row("recall", None, 3, n=8, axes={"label": "NOUN"}),
        Row("f1", 0.625, 3, n=8, axes={"label": "NOUN"}),
        Row("accuracy", 0.6, 3, split="dev", axes={"seed": 1}),
        Row("accuracy", 0.35, 3, axes={"seed": 1}),
        Row("accuracy", 0.1, axes={"baseline": "majority"}),
        Row("accuracy", 0.1, axes={"baseline": "type majority"}),
        Row("accuracy", 0.9, axes={"reference": "subject's Number"}),
    ]
