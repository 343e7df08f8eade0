"""What disabled heads and blocks cost, against plain transformers with changed weights."""

import copy

import numpy as np
import pytest
import torch
from grammar_models import grammar_models
from grammar_sentences import attractors
from plain_passes import stored_probe, vectors_of_words
from slow_scores import within_word_l2r
from tiny_runs import run
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probes.measurements.current import is_current
from probes.measurements.intervening.ablation import ATTENTION, BLOCK, CLOZE, DROP, HEAD, LOSS
from probes.measurements.verb_forms import Forms
from probes.statistics.cka import linear_cka
from probes.tasks.builtin import tasks


@pytest.fixture(scope="module")
def folder_of_model(tmp_path_factory):
    return grammar_models(tmp_path_factory)["masked"]


@pytest.fixture(scope="module")
def found(folder_of_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablation")
    settings = {"tasks": ("pos", "agreement"), "probes": "linear", "measurements": "ablation"}
    results = run(folder_of_model, folder, corpus=attractors(), limit=None, **settings)
    (record,) = results.measured.values()
    return folder, results, record


def without_attention(model, layer, heads, size):
    """A copy whose heads have no query, so that their attention is uniform."""
    changed = copy.deepcopy(model)
    query = changed.bert.encoder.layer[layer - 1].attention.self.query
    with torch.no_grad():
        for head in heads:
            own = slice((head - 1) * size, head * size)
            query.weight[own], query.bias[own] = 0, 0
    return changed


def test_drops_are_those_of_a_model_with_other_weights(found, folder_of_model):
    folder, results, record = found
    tokenizer = AutoTokenizer.from_pretrained(folder_of_model)
    model = AutoModelForMaskedLM.from_pretrained(folder_of_model).eval()
    config, bert = model.config, model.bert
    size, n_heads = config.hidden_size // config.num_attention_heads, config.num_attention_heads
    sentences = attractors().splits["test"]
    gold = np.concatenate([sentence.upos for sentence in sentences])
    (result,) = [each for each in results if each.task.name == "pos"]
    last = config.num_hidden_layers

    def accuracy(changed):
        vectors = vectors_of_words(changed, tokenizer, sentences)
        probe = stored_probe(folder, "pos", last)
        return (probe.predict(vectors[last]) == gold).mean(), vectors

    intact, before = accuracy(bert)
    assert intact == pytest.approx(result.score(last), abs=2 / len(gold))
    skipped = copy.deepcopy(model)
    del skipped.bert.encoder.layer[0]
    cases = [
        (HEAD, 1, 2, without_attention(model, 1, [2], size)),
        (HEAD, last, 1, without_attention(model, last, [1], size)),
        (ATTENTION, 1, None, without_attention(model, 1, range(1, n_heads + 1), size)),
    ]
    for kind, layer, head, changed in cases:
        score, after = accuracy(changed.bert)
        axes = {"disabled": kind} | ({"head": head} if head else {})
        drop = record.rows.at(DROP, layer, at=last, predicts="pos", **axes)
        assert drop.value == pytest.approx(intact - score, abs=2 / len(gold))
        assert drop.n == len(gold)
        cosine = record.rows.at("cosine", layer, at=last, **axes)
        one, other = before[last], after[last]
        norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        assert cosine.value == pytest.approx(((one * other).sum(1) / norms).mean(), abs=1e-3)
        assert cosine.value < 0.9999


def test_a_skipped_block_is_one_that_is_not_there(found, folder_of_model):
    folder, results, record = found
    tokenizer = AutoTokenizer.from_pretrained(folder_of_model)
    model = AutoModelForMaskedLM.from_pretrained(folder_of_model).eval().bert
    sentences = attractors().splits["test"]
    gold = np.concatenate([sentence.upos for sentence in sentences])
    (result,) = [each for each in results if each.task.name == "pos"]
    del model.encoder.layer[0]
    (*_, last) = vectors_of_words(model, tokenizer, sentences)
    score = (stored_probe(folder, "pos", 2).predict(last) == gold).mean()
    drop = record.rows.at(DROP, 1, disabled=BLOCK, at=2, predicts="pos")
    assert drop.value == pytest.approx(result.score(2) - score, abs=3 / len(gold))
    assert drop.low > 0


def test_the_record_is_current(found):
    *_, record = found
    assert is_current(record)


def test_layers_below_are_not_touched_and_nothing_is_said_of_them(found):
    *_, record = found
    for row in record.rows:
        if row.metric in (DROP, "cosine"):
            assert row.axes["at"] >= row.layer


def test_the_models_own_answers_are_those_of_plain_passes(found, folder_of_model):
    *_, record = found
    tokenizer = AutoTokenizer.from_pretrained(folder_of_model)
    model = AutoModelForMaskedLM.from_pretrained(folder_of_model).eval()
    corpus = attractors()
    forms = Forms.of(corpus.splits["train"])
    size = model.config.hidden_size // model.config.num_attention_heads
    heads = range(1, model.config.num_attention_heads + 1)
    changed = without_attention(model, 2, heads, size)

    def score(its, text):
        """Of the verb, and how many tokens it has."""
        written, (verb, _) = "".join(text.words), text.keep
        start = len("".join(text.words[:verb]))
        end = start + len(text.words[verb])
        offsets = tokenizer(written, return_offsets_mapping=True, add_special_tokens=False)
        own = [i for i, (x, _) in enumerate(offsets["offset_mapping"]) if start <= x < end]
        return sum(within_word_l2r(its, tokenizer, written)[i] for i in own), len(own)

    right = []
    for sentence in corpus.splits["test"]:
        for example in tasks.get("agreement").examples(sentence):
            question = forms.question(sentence, example)
            if isinstance(question, str):
                continue
            both = [[score(x, text) for text in question] for x in (model, changed)]
            if both[0][0][1] == both[0][1][1]:
                right.append([one > other for (one, _), (other, _) in both])
    intact, without = np.mean(right, axis=0)
    drop = record.rows.at(CLOZE, 2, disabled=ATTENTION)
    assert drop.n == len(right) > 100
    assert drop.value == pytest.approx(intact - without, abs=1e-6)
    assert abs(drop.value) > 0.05
    assert record.rows.at(LOSS, 1, disabled=BLOCK).low > 0.1


def test_p_values_are_of_heads_that_change_enough(found):
    *_, record = found
    heads = [x for x in record.rows if x.metric == DROP and x.axes["disabled"] == HEAD]
    at_last = [row for row in heads if row.axes["at"] == 2]
    assert all(row.p is None for row in heads if row.axes["at"] < 2)
    for row in at_last:
        if row.p is not None and row.p < 0.05:
            assert not row.low <= 0 <= row.high


def test_cka_of_rotated_and_of_other_vectors():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((200, 8)))
    turn = torch.from_numpy(np.linalg.qr(rng.standard_normal((8, 8)))[0])
    assert linear_cka(x.numpy(), (3 * x @ turn + 1).numpy()) == pytest.approx(1)
    y = torch.from_numpy(rng.standard_normal((200, 8)))
    one, other = (z - z.mean(0) for z in (x, y))
    k, m = one @ one.T, other @ other.T
    by_grams = (k * m).sum() / (k.norm() * m.norm())
    assert linear_cka(x.numpy(), y.numpy()) == pytest.approx(float(by_grams))
