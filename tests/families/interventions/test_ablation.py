"""Cost of disabled heads and blocks, against plain transformers with changed weights."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from corpus_records import corpus_record
from grammar_models import grammar_models
from measuring import measure
from plain_passes import losses_of_masked, stored_probe, vectors_of_words, words_of_tokens
from slow_scores import left_to_right, within_word_l2r
from toy_grammar import attractors
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probes.examples.verb_forms import Forms
from probes.families.interventions.ablation import extreme_heads
from probes.families.interventions.changes import ATTENTION, BLOCK, HEAD
from probes.families.interventions.experiment import (
    CLOZE,
    DROP,
    LOG_ODDS,
    LOSS,
    SMALLEST,
    sampled_sentences,
)
from probes.families.interventions.readouts import loss_words
from probes.frames.record_status import why_outdated
from probes.records.row import Row
from probes.tasks.builtin import tasks


@pytest.fixture(scope="module")
def folder_of_model(tmp_path_factory):
    return grammar_models(tmp_path_factory)["masked"]


@pytest.fixture(scope="module")
def tokenizer(folder_of_model):
    return AutoTokenizer.from_pretrained(folder_of_model)


@pytest.fixture
def model(folder_of_model):
    """Read again for each test, which may change it."""
    return AutoModelForMaskedLM.from_pretrained(folder_of_model).eval()


@pytest.fixture(scope="module")
def ablation_run(folder_of_model, tmp_path_factory):
    settings = {"tasks": ("pos", "agreement"), "probes": "linear"}
    folder = tmp_path_factory.mktemp("ablation")
    return measure("ablation", folder_of_model, attractors(), folder, **settings)


def without_attention(model, layer, *heads):
    """A copy whose heads, or all of a layer, have no query, so that their attention is uniform."""
    changed, n_heads = copy.deepcopy(model), model.config.num_attention_heads
    query, size = (
        changed.bert.encoder.layer[layer - 1].attention.self.query,
        model.config.hidden_size,
    )
    with torch.no_grad():
        for head in heads or range(1, n_heads + 1):
            own = slice((head - 1) * size // n_heads, head * size // n_heads)
            query.weight[own], query.bias[own] = 0, 0
    return changed


def accuracy_on_pos(folder, tokenizer, bert, split="test"):
    """Accuracy of the last layer's stored probe, the number of words, and vectors by layer."""
    sentences = attractors().splits[split]
    gold = np.concatenate([sentence.upos for sentence in sentences])
    vectors = vectors_of_words(bert, tokenizer, sentences)
    predicted = stored_probe(folder, "pos", 2).predict(vectors[-1])
    return (predicted == gold).mean(), len(gold), vectors


@pytest.mark.slow
def test_drops_are_those_of_a_model_with_other_weights(ablation_run, tokenizer, model):
    folder, results, record = ablation_run.folder, ablation_run.results, ablation_run.record
    last = model.config.num_hidden_layers
    (result,) = [each for each in results.results if each.task.name == "pos"]
    intact, n, before = accuracy_on_pos(folder, tokenizer, model.bert)
    assert intact == pytest.approx(result.score(last), abs=2 / n)
    cases = [
        (HEAD, 1, 2, without_attention(model, 1, 2)),
        (HEAD, last, 1, without_attention(model, last, 1)),
        (ATTENTION, 1, None, without_attention(model, 1)),
    ]
    for kind, layer, head, changed in cases:
        score, _, after = accuracy_on_pos(folder, tokenizer, changed.bert)
        axes = {"disabled": kind} | ({"head": head} if head else {})
        drop = record.rows.at(DROP, layer, at=last, predicts="pos", **axes)
        assert drop.value == pytest.approx(intact - score, abs=2 / n)
        assert drop.n == n
        cosine = record.rows.at("cosine", layer, at=last, **axes)
        one, other = before[last], after[last]
        norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        assert cosine.value == pytest.approx(((one * other).sum(1) / norms).mean(), abs=1e-3)
        assert cosine.value < 0.9999


@pytest.mark.slow
def test_a_skipped_block_is_one_that_is_not_there(ablation_run, tokenizer, model):
    folder, results, record = ablation_run.folder, ablation_run.results, ablation_run.record
    (result,) = [each for each in results.results if each.task.name == "pos"]
    del model.bert.encoder.layer[0]
    score, n, _ = accuracy_on_pos(folder, tokenizer, model.bert)
    drop = record.rows.at(DROP, 1, disabled=BLOCK, at=2, predicts="pos")
    assert drop.value == pytest.approx(result.score(2) - score, abs=3 / n)
    assert drop.low > 0


@pytest.mark.slow
def test_heads_are_chosen_by_what_they_cost_on_dev(ablation_run, tokenizer, model):
    folder, record = ablation_run.folder, ablation_run.record
    intact, n, _ = accuracy_on_pos(folder, tokenizer, model.bert, "dev")
    for layer, head in ((1, 2), (2, 1)):
        changed = without_attention(model, layer, head).bert
        score, *_ = accuracy_on_pos(folder, tokenizer, changed, "dev")
        row = record.rows.at(DROP, layer, "dev", disabled=HEAD, head=head, at=2, predicts="pos")
        assert (row.value, row.n) == (pytest.approx(intact - score, abs=2 / n), n)
    drops = {"dev": (0.03, -0.01, 0.02), "test": (0.01, 0.02, 0.04)}
    axes = {"disabled": HEAD, "at": 2, "predicts": "pos"}
    rows = [
        Row(DROP, x, layer=1, split=split, axes={**axes, "head": head})
        for split, values in drops.items()
        for head, x in enumerate(values, start=1)
    ]
    most, least = extreme_heads(corpus_record("ablation", rows, 2)).rows
    assert [cell.text for cell in most.cells[1:4]] == ["costs most", "1-1", ".010"]
    assert [cell.text for cell in least.cells[1:4]] == ["costs least", "1-2", ".020"]


@pytest.mark.slow
def test_the_record_is_current_and_says_nothing_of_layers_below(ablation_run):
    record = ablation_run.record
    assert not why_outdated(record)
    for row in record.rows:
        if row.metric in (DROP, "cosine"):
            assert row.axes["at"] >= row.layer


@pytest.mark.slow
def test_the_models_own_answers_are_those_of_plain_passes(ablation_run, tokenizer, model):
    record = ablation_run.record
    corpus = attractors()
    forms = Forms.of(corpus.splits["train"])
    changed = without_attention(model, 2)

    def score(its, text):
        """Log-probability of the verb, and its number of tokens."""
        own = np.array(words_of_tokens(tokenizer, text.words)) == text.kept_span[0]
        return np.array(within_word_l2r(its, tokenizer, "".join(text.words)))[own].sum(), own.sum()

    log_odds = []
    for sentence in corpus.splits["test"]:
        for example in tasks.get("agreement").examples(sentence):
            question = forms.question(sentence, example)
            if isinstance(question, str):
                continue
            both = [[score(x, text) for text in question] for x in (model, changed)]
            if both[0][0][1] == both[0][1][1]:
                log_odds.append([one - other for (one, _), (other, _) in both])
    right = np.array(log_odds) > 0
    drop = record.rows.at(CLOZE, 2, disabled=ATTENTION)
    assert drop.n == len(right) > 100
    assert drop.value == pytest.approx(right[:, 0].mean() - right[:, 1].mean(), abs=1e-6)
    row = record.rows.at(LOG_ODDS, 2, disabled=ATTENTION)
    intact, without = np.mean(log_odds, axis=0)
    assert (row.value, row.n) == (pytest.approx(intact - without, abs=1e-3), len(right))
    assert row.low < row.value < row.high
    assert 0 < record.rows.at(SMALLEST, 2, disabled=ATTENTION).value < 0.3

    texts, words = loss_words(corpus.splits["test"], causal=False)
    with torch.no_grad():
        before, after = (
            torch.cat([losses_of_masked(its, tokenizer, x.words, words[x]) for x in texts])
            for its in (model, changed)
        )
    row = record.rows.at(LOSS, 2, disabled=ATTENTION)
    assert (row.value, row.n) == (
        pytest.approx(float((after - before).mean()), abs=1e-4),
        len(before),
    )


@pytest.mark.slow
def test_words_without_letters_have_no_loss(tmp_path, tmp_path_factory):
    """The causal model is asked every other word, and the verbs of sentences not in the sample."""
    path = grammar_models(tmp_path_factory)["causal"]
    its, tokenizer = (x.from_pretrained(path) for x in (AutoModelForCausalLM, AutoTokenizer))
    corpus = attractors()
    texts, words = loss_words([replace(corpus.splits["test"][0], written=())], causal=True)
    assert words[texts[0]].tolist() == list(range(len(texts[0].words) - 1))  # all but the dot
    settings = {"tasks": "agreement", "probes": "linear"}
    settings["options"] = {"ablation": {"sentences": 20}}
    record = measure("ablation", path, corpus, tmp_path, **settings).record
    shorter = copy.deepcopy(its.eval())
    del shorter.transformer.h[0]
    increases = []
    for i in sampled_sentences(160, 20):
        stretches = corpus.splits["test"][i].written
        of = words_of_tokens(tokenizer, stretches)
        both = [left_to_right(x, tokenizer, "".join(stretches)) for x in (its, shorter)]
        scored = zip(of, *both, strict=True)
        increases += [one - other for word, one, other in scored if stretches[word] != "."]
    row = record.rows.at(LOSS, 1, disabled=BLOCK)
    assert (row.value, row.n) == (pytest.approx(np.mean(increases), abs=1e-4), len(increases))
    assert record.rows.at(CLOZE, 1, disabled=BLOCK).n > 100
    signs = replace(corpus.splits["test"][0], words=("__", "3", "\u00e4"), written=())
    for causal in (True, False):
        texts, words = loss_words([signs], causal)
        assert words[texts[0]].tolist() == [2]


@pytest.mark.slow
def test_p_values_are_of_heads_that_change_enough(ablation_run):
    record = ablation_run.record
    heads = [x for x in record.rows if x.metric == DROP and x.axes["disabled"] == HEAD]
    at_last = [row for row in heads if row.axes["at"] == 2]
    assert all(row.p is None for row in heads if row.axes["at"] < 2)
    for row in at_last:
        if row.p is not None and row.p < 0.05:
            assert not row.low <= 0 <= row.high
