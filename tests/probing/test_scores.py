"""Scores of planted predictions, their intervals, and their stored parameters."""

from types import SimpleNamespace

import numpy as np
import pytest
from gold_by_hand import gold_of
from planted_context import tagged_corpus
from tiny_runs import run

from probes.examples.examples import SEEN, UNSEEN, collect_examples
from probes.examples.scoring import Scorer
from probes.measurements.measurement import get_measurement
from probes.probing.scores import intervals_by_metric
from probes.records.row import Rows
from probes.tasks.builtin import tasks

pytestmark = pytest.mark.usefixtures("short_schedule")


def layer_of(n_seen, n_unseen, right):
    """The scores of a layer on one-word test sentences, all nouns, of which some words are new.

    Args:
        right: which predictions are right, those for new words last.
    """
    train = [["w1"], ["w4"]]
    words = [["w1"]] * n_seen + [[f"w{4 * i + 2}"] for i in range(1, 1 + n_unseen)]
    examples = collect_examples(
        tasks.get("pos"), tagged_corpus({"train": train, "dev": train, "test": words}), "plain"
    )
    one = np.ones((1, 1))
    fits = SimpleNamespace(
        margins={},
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
    return Rows.of(get_measurement("scores")(context).rows)


def test_intervals_of_groups_are_those_of_proportions():
    right = np.concatenate([np.arange(400) % 10 != 0, np.arange(100) % 2 != 0])
    layer = layer_of(400, 100, right)
    assert {x.axes["group"]: x.value for x in layer.along("group")} == {SEEN: 0.9, UNSEEN: 0.5}
    for name, p, n in ((SEEN, 0.9, 400), (UNSEEN, 0.5, 100)):
        half = 1.96 * np.sqrt(p * (1 - p) / n)
        assert layer.at("accuracy", 0, group=name).interval == pytest.approx(
            (p - half, p + half), abs=0.012
        )


def test_groups_with_very_few_sentences_have_no_interval():
    right = np.ones(39, dtype=bool)
    found = layer_of(20, 19, right).along("group")
    assert {x.axes["group"]: x.interval for x in found} == {SEEN: (1.0, 1.0), UNSEEN: None}


def test_rows_say_everything_that_is_known_of_scores():
    found = layer_of(30, 10, np.arange(40) < 30)
    assert {(x.metric, x.split, *x.axes) for x in found if x.layer == 0} >= {
        ("accuracy", "dev"),
        ("accuracy", "test"),
        ("strength", "train"),
        ("stopped", "dev"),
        ("dev_loss", "dev"),
        ("accuracy", "test", "group"),
        ("precision", "test", "label"),
        ("recall", "test", "label"),
        ("f1", "test", "label"),
    }
    assert found.at("accuracy", 0).value == 0.75
    recall = found.at("recall", 0, label="N")
    assert (recall.value, recall.n) == (0.75, 40)
    rules = {x.axes["baseline"] for x in found.along("baseline")}
    assert {"majority", "type majority"} <= rules | {
        x.axes["reference"] for x in found.along("reference")
    }
    assert all(x.layer is None for x in found.along("baseline"))


def test_every_metric_has_its_interval():
    right = np.ones((1, 30), dtype=np.int64)
    found = intervals_by_metric(gold_of(np.ones(30, dtype=int)), ("accuracy", "macro_f1"), right)
    assert found == {"accuracy": [(1.0, 1.0)], "macro_f1": [(1.0, 1.0)]}


def test_an_undefined_metric_has_none():
    # NSpr covers sentences of 5 to 50 words; these have one.
    rows = np.stack([np.zeros(40), np.ones(40)])
    assert intervals_by_metric(gold_of(np.ones(40), classes=()), ("nspr",), rows) == {
        "nspr": [None, None]
    }


def test_a_cache_that_cannot_be_written_costs_nothing_but_a_line(tiny_bert, tmp_path, capsys):
    settings = {"tasks": ("pos",), "probes": "linear"}
    run(tiny_bert, tmp_path, **settings)
    folder = tmp_path / "cache" / "parameters"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    (result,) = run(tiny_bert, tmp_path, overwrite="always", **settings).results
    assert len(result.layers) == 3
    said = capsys.readouterr().err
    assert "parameters of pos · linear are not kept: " in said
    assert "cannot be written" in said
