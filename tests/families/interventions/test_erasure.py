"""Cost of erased labels, in a model whose grammar is known and against plain transformers."""

from hashlib import sha256

import numpy as np
import pytest
import torch
from concept_erasure import LeaceFitter
from grammar_models import grammar_models
from measuring import measure
from plain_passes import stored_probe, vectors_of_words, word_of_pieces
from scipy.stats import t
from statistics_simulation import false_effects
from toy_grammar import attractors
from transformers import AutoModel, AutoTokenizer

from probes.families.interventions.changes import NOTHING
from probes.families.interventions.erasure import CONTROL, DROP, LABELS, RANDOM
from probes.families.interventions.experiment import CLOZE, ChangedPass, comparisons
from probes.frames.record_status import why_outdated

LAST = 2


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return grammar_models(tmp_path_factory)


@pytest.fixture(scope="module")
def masked(models, tmp_path_factory):
    folder, settings = tmp_path_factory.mktemp("erasure"), {"tasks": "pos", "probes": "linear"}
    return measure("erasure", models["masked"], attractors(), folder, **settings)


@pytest.fixture(scope="module")
def causal(models, tmp_path_factory):
    """Its language-model head is linear, so that nothing can be read that was erased there."""
    folder, settings = (
        tmp_path_factory.mktemp("erasure"),
        {"tasks": "agreement", "probes": "linear"},
    )
    return measure("cloze,erasure", models["causal"], attractors(), folder, **settings)


def drop(record, task, layer, at, eraser=LABELS, less=NOTHING):
    axes = {"predicts": task, "at": at, "eraser": eraser, "less": less, "fit": "frozen"}
    return record.rows.at(DROP, layer, erased=task, probes="own", **axes)


@pytest.mark.slow
def test_erased_where_it_is_read_number_costs_more_than_the_controls(causal):
    (result,), record = causal.results.results, causal.record
    intact = result.evidence["cloze"].rows.at("cloze_accuracy")

    def cost(eraser, less=NOTHING):
        return record.rows.at(CLOZE, LAST, erased="agreement", eraser=eraser, less=less)

    labels, control = cost(LABELS), cost(CONTROL)
    assert labels.n == intact.n > 100
    assert labels.value > max(control.value, cost(RANDOM).value)
    assert cost(LABELS, CONTROL).value == pytest.approx(labels.value - control.value)


@pytest.mark.slow
def test_the_probe_of_the_layer_loses_more_than_by_the_control(causal):
    record = causal.record
    for layer in (1, LAST):
        erased, control = (drop(record, "agreement", layer, layer, x) for x in (LABELS, CONTROL))
        assert erased.value > control.value
    assert drop(record, "agreement", LAST, LAST, less=CONTROL).p < 0.05


@pytest.mark.slow
def test_drops_are_those_of_plain_passes_with_a_hook(masked, models):
    record = masked.record
    tokenizer = AutoTokenizer.from_pretrained(models["masked"])
    model = AutoModel.from_pretrained(models["masked"]).eval()
    corpus = attractors()
    train, test = corpus.splits["train"], corpus.splits["test"]
    tags = np.concatenate([sentence.upos for sentence in train])
    gold = np.concatenate([sentence.upos for sentence in test])
    classes = np.unique(tags)
    before = vectors_of_words(model, tokenizer, train)

    def fitted_eraser(labels):
        fitter = LeaceFitter(before[1].shape[1], len(classes), dtype=torch.float64, svd_tol=1e-10)
        one_hot = (labels[:, None] == classes).astype(float)
        fitter.update(torch.from_numpy(before[1]).double(), torch.from_numpy(one_hot))
        return fitter.eraser

    chosen, of_words = [fitted_eraser(tags)], []

    def erase(_module, _args, output):
        changed = chosen[-1](output[0].double()).float()
        words = torch.from_numpy(of_words[-1] >= 0)[:, None]
        return torch.where(words, changed, output[0])[None]

    untouched = vectors_of_words(model, tokenizer, test)[LAST]
    handle = model.encoder.layer[0].register_forward_hook(erase)
    model.register_forward_pre_hook(
        lambda _, args, given: of_words.append(words_of[tuple(given["input_ids"][0].tolist())]),
        with_kwargs=True,
    )
    words_of = {}
    for sentence in test:
        given, of = word_of_pieces(tokenizer, sentence.words)
        words_of[tuple(given["input_ids"][0].tolist())] = of
    erased = vectors_of_words(model, tokenizer, test)[LAST]
    probe = stored_probe(masked.folder, "pos", LAST)

    def accuracy(vectors):
        return (probe.predict(vectors) == gold).mean()

    drops, forms = [], [form for sentence in train for form in sentence.words]
    for seed in range(5):
        chosen.append(fitted_eraser(np.sort(tags)[[random_place(seed, x, tags) for x in forms]]))
        drops.append(accuracy(untouched) - accuracy(vectors_of_words(model, tokenizer, test)[LAST]))
    handle.remove()
    control = drop(record, "pos", 1, LAST, CONTROL)
    assert control.value == pytest.approx(np.mean(drops), abs=0.01)
    labels, both = drop(record, "pos", 1, LAST), drop(record, "pos", 1, LAST, less=CONTROL)
    assert both.value == pytest.approx(labels.value - control.value)
    for row, share in ((control, 1 / 5), (both, 1 + 1 / 5)):
        # Student's t of the draws alone; documents only add to that.
        of_draws = t.ppf(0.975, 4) * np.std(drops, ddof=1) * share**0.5
        assert row.high - row.low > 2 * 0.9 * of_draws
    row = drop(record, "pos", 1, LAST)
    assert row.value == pytest.approx(accuracy(untouched) - accuracy(erased), abs=0.01)
    assert row.n == len(gold)


def random_place(seed, form, labels):
    """Place, among the sorted labels, of the label that the control task gives a word form."""
    number = int.from_bytes(sha256(f"{seed} {form}".encode()).digest()[:6])
    return int(number / 2**48 * len(labels))


def test_a_draw_in_place_of_the_labels_is_rarely_an_effect():
    """With one draw to compare with, nearly always: draws differ four times as much as samples."""
    assert false_effects(1, 2, 50) > 0.5
    assert false_effects(5, 2, 200) < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def test_draws_are_averaged_and_their_variance_depends_on_what_they_are_compared_with():
    passes = [
        ChangedPass(),
        ChangedPass((), 1, {"eraser": LABELS}, ((0, {"less": NOTHING}), (2, {"less": CONTROL}))),
        *[ChangedPass((), 1, {"eraser": CONTROL}, ((0, {"less": NOTHING}),), 2) for _ in range(3)],
    ]
    scores = [0.9, 0.5, 0.8, 0.7, 0.9]
    found = {(x.changed, x.other): x.spread(scores) for x in comparisons(passes)}
    assert found == {
        ((1,), (0,)): None,
        ((1,), (2, 3, 4)): (pytest.approx(0.1 * (1 + 1 / 3) ** 0.5), 2),
        ((2, 3, 4), (0,)): (pytest.approx(0.1 / 3**0.5), 2),
    }


@pytest.mark.slow
def test_the_record_is_current_and_has_all_layers(masked):
    record = masked.record
    assert not why_outdated(record)
    for row in record.rows:
        if row.metric == DROP:
            assert row.axes["at"] >= row.layer
    ranks = {
        (row.layer, row.axes["eraser"]): row.value
        for row in record.rows
        if row.metric == "erased_rank"
    }
    assert {ranks[layer, eraser] for layer in (1, 2) for eraser in (LABELS, CONTROL)} == {6}
    changes = {
        row.axes["eraser"]: row.value
        for row in record.rows
        if row.metric == "erased_variance" and row.layer == 1
    }
    assert changes[RANDOM] == pytest.approx(changes[LABELS])
