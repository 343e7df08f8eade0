"""Contexts of measurements, and at which layers and for which tasks evidence is gathered."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from results_by_hand import make_result
from tiny_readings import reading_of, small_shards

from probes.common.origin import Origin
from probes.data.sentence import Corpus, Sentence
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoding import vectors_of
from probes.extraction.reading.views import plain_view, view_over
from probes.measurements.context import ModelContext
from probes.measurements.measurement import EvidenceRequest, get_measurement, measurements
from probes.records.probe_spec import PROBES
from probes.records.result import UNMEASURED
from probes.statistics.bootstrap import resample
from probes.statistics.partition import FEWEST
from probes.tasks.builtin import tasks

LONG = ("the", "boats") * 60
"""More pieces than the window of the model, 64, has."""


def sentence_of_words(*words, document=""):
    return Sentence("s", "en", words, document=document)


TEST = (
    sentence_of_words("she", "counts", "the", "boats", document="a"),
    sentence_of_words(*LONG, document="a"),
    sentence_of_words("light", document="b"),
    sentence_of_words("she", "counts", "the", "boats", document="b"),
)


def no_more(*_):
    raise AssertionError("nothing is read again")


@pytest.fixture
def context(tiny_bert, tmp_path, monkeypatch):
    small_shards(monkeypatch, 16)
    splits = {"train": (sentence_of_words("the", "light"),), "dev": TEST[1:2], "test": TEST}
    corpus = Corpus("c", "1", "", splits)
    encoder, view = load_encoder(find_model(str(tiny_bert)), device="cpu"), plain_view(corpus)
    vectors = vectors_of(reading_of(tmp_path, encoder, view), encoder)
    assert vectors.n_shards > 1
    unread = dict.fromkeys(("read", "read_changed", "sites"), no_more)
    about = {"corpus": corpus, "model": encoder.info, "view": view, "stored": vectors}
    return ModelContext(
        **about, **unread, extent={0: 1, 2: 1}, device=torch.device("cpu"), options=None
    )


def test_rows_and_words_are_in_corpus_order_and_equal_texts_share_theirs(context):
    rows, words = context.rows("test"), context.words("test", 2)
    assert len(rows) == len(words) == sum(map(len, TEST))
    np.testing.assert_array_equal(context.vectors.layer(2)[rows].astype(np.float32), words)
    np.testing.assert_array_equal(rows[:4], rows[-4:])
    assert len(set(rows.tolist())) == len(rows) - 4
    assert context.sentence_numbers("test").tolist() == [0] * 4 + [1] * 120 + [2] + [3] * 4


def test_sentences_longer_than_the_window_are_known(context):
    assert context.in_several_windows("test").tolist() == [False, True, False, False]
    assert context.in_several_windows("dev").tolist() == [True]
    assert context.in_several_windows("train").tolist() == [False]
    assert context.vectors.encoding.texts_in_several_windows == 1


def test_documents_are_resampled_if_there_are_enough_of_them(context):
    assert (context.partition("test").clusters, context.partition("test").n) == ("documents", 2)
    many = tuple(sentence_of_words("light", document=f"{n // 2}") for n in range(2 * FEWEST))
    context.corpus.splits["test"] = many
    found = context.partition("test")
    assert found.clusters == "documents"
    assert found.of_sentence.tolist() == [n // 2 for n in range(2 * FEWEST)]


def test_the_mean_of_some_words_has_an_interval_over_documents(context):
    words = "the", "light"
    many = tuple(sentence_of_words(*words, document=f"{n // 2}") for n in range(2 * FEWEST))
    context.corpus.splits["test"] = many
    values = np.random.default_rng(0).normal(size=4 * FEWEST)
    light = np.arange(len(values)) % 2 == 1
    found = context.mean("test", values, light)
    of_document = values[light].reshape(FEWEST, 2).mean(1)
    means = resample(FEWEST).astype(float) @ of_document / FEWEST
    assert found.value == pytest.approx(values[light].mean())
    assert found.interval == pytest.approx(np.quantile(means, [0.025, 0.975]))
    assert context.mean("test", values).value == pytest.approx(values.mean())
    context.corpus.splits["test"] = TEST
    few = context.mean("test", np.arange(129.0))
    assert (few.value, few.interval, few.missing) == (64.0, None, "fewer than 20 documents")


def test_words_of_another_view_are_refused(context):
    texts = [replace(text, mask=0) for text in context.view.texts]
    masked = replace(context, view=view_over(texts, "masked"))
    with pytest.raises(TypeError, match="read in the 'masked' view, not in 'plain'"):
        masked.words("test", 0)


EVERY = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("name", "family", "level", "layers", "best", "expected"),
    [
        ("selectivity", "linear", "standard", EVERY, 2, dict.fromkeys(EVERY, 3)),
        ("selectivity", "linear", "full", EVERY, 2, dict.fromkeys(EVERY, 10)),
        ("selectivity", "mlp", "standard", EVERY, 2, {0: 3, 2: 3, 3: 3}),
        ("selectivity", "mlp", "full", EVERY, 2, dict.fromkeys(EVERY, 3)),
        ("training_variance", "linear", "standard", EVERY, 2, dict.fromkeys(EVERY, 5)),
        ("training_variance", "linear", "full", EVERY, 2, dict.fromkeys(EVERY, 5)),
        ("training_variance", "mlp", "standard", EVERY, 2, {0: 4, 2: 4, 3: 4}),
        ("training_variance", "mlp", "full", EVERY, 2, dict.fromkeys(EVERY, 4)),
        ("description_length", "linear", "standard", (0, 1), 1, {0: 1, 1: 1}),
        ("localisation", "linear", "standard", EVERY, 1, dict.fromkeys(EVERY, 1)),
        ("localisation", "linear", "standard", (0, 1, 2), 1, {}),
        ("conditional_probing", "linear", "standard", EVERY, 2, {2: 1}),
        ("conditional_probing", "linear", "standard", EVERY, 0, {3: 1}),
        ("conditional_probing", "linear", "standard", (0, 2), 0, {2: 1}),
        ("conditional_probing", "linear", "full", EVERY, 2, {1: 1, 2: 1, 3: 1}),
        ("conditional_probing", "linear", "standard", (1, 2, 3), 2, {}),
        ("conditional_probing", "linear", "full", (1, 2, 3), 2, {}),
        ("conditional_probing", "linear", "full", (0,), 0, {}),
    ],
)
def test_the_layers_and_how_often(name, family, level, layers, best, expected):
    probe = PROBES[family]
    request = EvidenceRequest(layers, 3, level=level, probe=probe, best=best, typed=True)
    assert get_measurement(name).extent(request) == expected


def test_without_types_there_are_no_control_tasks():
    untyped = EvidenceRequest((0, 1), 1, probe=PROBES["linear"], best=1, typed=False)
    assert get_measurement("selectivity").extent(untyped) == {}


PLUG_IN = PROBES["linear"].model_copy(update={"family": "mine"})


@pytest.mark.parametrize(
    ("name", "task", "probe", "why"),
    [
        ("localisation", "pos", PROBES["linear"], ""),
        ("localisation", "pos", PROBES["mlp"], "only convex probes are fitted on mixes"),
        ("conditional_probing", "pos", PROBES["linear"], ""),
        ("conditional_probing", "pos", PROBES["mlp"], "only convex probes are fitted on concatenated layers"),
        ("conditional_probing", "pos", PROBES["multi-layer"], "only probes of one vector are fitted on concatenated layers"),
        ("localisation", "pos", PROBES["token-mean"], "only probes of one vector are fitted on mixes"),
        ("description_length", "pos", PROBES["linear"], ""),
        ("description_length", "pos", PROBES["attention"], "only convex probes have an online code"),
        ("malformed", "pos", PROBES["multi-layer"], "only linear, mlp, mean-difference, sparse, token-mean probes are applied to other text"),
        ("description_length", "pos", PROBES["mlp"], "only convex probes have an online code"),
        ("description_length", "depth", PROBES["linear"], "it is not defined for regression"),
        ("malformed", "pos", PROBES["mlp"], ""),
        ("malformed", "pos", PLUG_IN, "only linear, mlp, mean-difference, sparse, token-mean probes are applied to other text"),
        ("malformed", "tree-depth", PROBES["mlp"], "a malformed sentence need not have the label of the whole one"),
    ],
)  # fmt: skip
def test_why_it_is_not_made(name, task, probe, why):
    assert get_measurement(name).missing(tasks.get(task), probe, "full") == why


def test_a_plug_in_is_not_asked_about_the_task_of_a_stored_result(monkeypatch):
    """That task has no group, which a plug-in may ask for."""
    definition = replace(
        get_measurement("description_length"), missing=lambda task, probe, level: task.group
    )
    result = make_result("pos", (0.5, 0.6))
    with pytest.raises(AttributeError, match="group"):
        definition.reason_missing(result)
    monkeypatch.setattr(measurements, "origin", lambda name: Origin("mine.py", (), ""))
    assert definition.reason_missing(result) == UNMEASURED
