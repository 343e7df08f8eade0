"""Change of attention between two models, against scipy on slow maps."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted_maps import PlantedModel, context_of, eager_maps
from scipy.spatial.distance import cosine, jensenshannon
from tiny_models import build

from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.encoder import Encoder
from probes.extraction.views import plain_text
from probes.measurements.measurement import get_measurement
from probes.statistics.partition import by_sentence, partition

WORDS = ("light", "she", "counts", "the", "boats")


def sentences(n, longest=9):
    draws = np.random.default_rng(3)
    return tuple(
        Sentence(str(i), "en", tuple(map(str, draws.choice(WORDS, size))), document=f"d{i // 2}")
        for i, size in enumerate(draws.integers(2, longest, n))
    )


TEST = sentences(60)
CORPUS = Corpus("c", "1", "", {"train": (), "dev": (), "test": TEST})


def encoder_of(model, tokenizer):
    return Encoder(model, tokenizer, name="bert", device="cpu")


@pytest.fixture(scope="module")
def models():
    """One, the same again, and one whose second block attends in another way."""
    model, tokenizer = build("bert", "BertModel")
    changed = copy.deepcopy(model)
    with torch.no_grad():
        changed.encoder.layer[1].attention.self.query.weight.mul_(-1.0)
    return [encoder_of(x, tokenizer) for x in (model, copy.deepcopy(model), changed)]


def change(model, base, corpus=CORPUS, n=500, n_blocks=2):
    def context(which, **more):
        return context_of(
            corpus,
            which,
            n_blocks,
            partition=lambda split: partition([s.document for s in corpus.splits[split]]),
            options=SimpleNamespace(sentences=n),
            **more,
        )

    return get_measurement("attention_change")(context(model, base=context(base)))


def by_place(found):
    """Rows by metric, layer and head; None for the mean over heads."""
    return {(row.metric, row.layer, row.axes.get("head")): row for row in found.rows}


def test_equal_models_have_not_changed_at_all(models):
    rows = by_place(change(models[1], models[0]))
    assert {place[1:] for place in rows} == {(layer, x) for layer in (1, 2) for x in (None, 1, 2)}
    for (metric, *_), row in rows.items():
        same = {"cosine": 1.0, "divergence": 0.0}[metric]
        assert (row.value, row.interval) == (same, (same, same))


def test_a_changed_block_is_seen_from_there_on(models):
    """Values against scipy, sentence by sentence; nothing below."""
    rows = by_place(change(models[2], models[0]))

    def of_layer(layer):
        metrics = "cosine", "divergence"
        return [[rows[metric, layer, head].value for metric in metrics] for head in (1, 2)]

    assert of_layer(1) == [[1.0, 0.0]] * 2
    cosines, divergences = [], []
    for sentence in TEST:
        ours, bases = (eager_maps(x, plain_text(sentence))[1] for x in (models[2], models[0]))
        cosines.append([1 - cosine(a.ravel(), b.ravel()) for a, b in zip(ours, bases, strict=True)])
        divergences.append((jensenshannon(ours, bases, axis=-1) ** 2).mean(-1))
    found = np.array(of_layer(2))
    np.testing.assert_allclose(found[:, 0], np.mean(cosines, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], np.mean(divergences, axis=0), rtol=1e-4)
    assert found[:, 1].min() > 1e-4
    mean = rows["divergence", 2, None]
    assert mean.value == pytest.approx(found[:, 1].mean())
    assert mean.low < mean.value < mean.high


def test_intervals_are_over_documents_if_there_are_enough(models):
    found = change(models[2], models[0])
    assert found.facts == {"resampled": "documents", "sentences": 60, "left_out": 0}
    few = tuple(Sentence(s.id, "en", s.words) for s in TEST[:19])
    none = change(models[2], models[0], Corpus("c", "1", "", {"test": few}))
    assert none.facts["resampled"] == by_sentence(19).clusters == "sentences"
    assert by_place(none)["divergence", 2, None].interval is None


def test_a_sample_bounds_what_is_held(models):
    assert change(models[2], models[0], n=25).facts["sentences"] == 25


def maps(n_blocks, n_heads):
    def of(text):
        n = len(text.words) + 2
        return np.full((n_blocks, n_heads, n, n), 1 / n, dtype=np.float32)

    return of


def test_sentences_that_one_model_reads_in_windows_are_left_out():
    short = PlantedModel(maps(2, 3), window=6)
    long = PlantedModel(maps(2, 3))
    fit = sum(len(s) <= 4 for s in TEST)
    for pair in ((short, long), (long, short)):
        found = change(*pair)
        assert (found.facts["sentences"], found.facts["left_out"]) == (fit, 60 - fit)
        (note,) = found.notes[1:]
        assert note == f"{60 - fit} sentences longer than a window are left out."
    assert 0 < fit < 60
    with pytest.raises(NotServedError, match="no test sentence fits"):
        change(PlantedModel(maps(2, 3), window=3), long)


def test_models_whose_heads_or_tokens_do_not_correspond_are_refused(models):
    with pytest.raises(NotServedError, match="have 2 and 3 heads"):
        change(PlantedModel(maps(2, 2)), PlantedModel(maps(2, 3)))
    three = context_of(CORPUS, PlantedModel(maps(3, 2)), 3, options=SimpleNamespace(sentences=9))
    three.base = context_of(CORPUS, PlantedModel(maps(2, 2)))
    with pytest.raises(NotServedError, match="planted has 3 layers, planted 2"):
        get_measurement("attention_change")(three)
    with pytest.raises(NotServedError, match="other tokens for the same words"):
        change(models[0], PlantedModel(maps(2, 2)))


def test_nothing_is_stored_but_what_attention_stores():
    its, of_attention = get_measurement("attention_change"), get_measurement("attention")
    corpus = Corpus("c", "1", "", {"train": (), "dev": TEST[:3], "test": TEST})
    defaults = get_measurement("attention").options()
    assert its.view(corpus, None).digest == of_attention.view(corpus, defaults).digest
    one, other = (
        x.collector(corpus, (1, 2), y) for x, y in ((its, None), (of_attention, defaults))
    )
    assert (one.name, one.settings, one.annotation) == (
        other.name,
        other.settings,
        other.annotation,
    )
