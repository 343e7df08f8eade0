"""Importance and pruning of heads, against transformers with gated heads and changed weights."""

import copy
from contextlib import ExitStack
from itertools import product

import numpy as np
import pytest
import torch
from measuring import measure
from plain_passes import losses_of_masked, stored_probe, vectors_of_words
from scipy.stats import spearmanr
from tiny_models import FAMILIES, build_config, save_tokenizer
from transformers import AutoTokenizer, BertForMaskedLM

from probes.data.conllu_files import read_conllu
from probes.families.interventions.controls import N_ORDERS
from probes.families.interventions.experiment import DROP, LOSS, sampled_sentences
from probes.families.interventions.pruning import CORRELATION, IMPORTANCE, RANDOM
from probes.families.interventions.readouts import loss_words

HEADS = list(product((1, 2, 3), (1, 2)))
DEAD = 2, 2
"""A head that nothing reads."""

SIZE, SENTENCES = 8, 25
POS = {"tasks": ("pos",), "probes": "linear"}


def without(model, heads):
    """A copy with columns of the output projection set to zero."""
    changed = copy.deepcopy(model)
    for layer, head in heads:
        dense = changed.bert.encoder.layer[layer - 1].attention.output.dense
        dense.weight.data[:, SIZE * (head - 1) : SIZE * head] = 0
    return changed


@pytest.fixture(scope="module")
def pruning_run(session_runs, tmp_path_factory):
    folder, family = tmp_path_factory.mktemp("pruning"), FAMILIES["bert"]
    changes = {"num_hidden_layers": 3, "max_position_embeddings": 256}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = BertForMaskedLM(build_config(family, family.tokenizer(), **changes)).eval()
    without(model, [DEAD]).save_pretrained(folder / "bert")
    save_tokenizer("bert", folder / "bert")
    settings = {**POS, "options": {"pruning": {"sentences": SENTENCES}}}
    return measure("pruning", folder / "bert", session_runs.corpus(40), folder, **settings)


@pytest.fixture(scope="module")
def record(pruning_run):
    return pruning_run.record


@pytest.fixture(scope="module")
def plain(pruning_run):
    """The model and its tokenizer, as transformers loads them."""
    model = BertForMaskedLM.from_pretrained(pruning_run.model).eval()
    return model, AutoTokenizer.from_pretrained(pruning_run.model)


def sentences(run, split):
    every = list(read_conllu(run.corpus / f"{split}.conllu", "en"))
    return [every[i] for i in sampled_sentences(len(every), SENTENCES)]


def losses(model, tokenizer, sentences):
    """Losses of the pieces of some words of each sentence, which are masked together."""
    texts, words = loss_words(sentences, causal=False)
    for text in texts:
        if len(words[text]):
            yield losses_of_masked(model, tokenizer, text.words, words[text])


def loss_of(run, plain, heads):
    """Loss per piece of test without some heads."""
    with torch.no_grad():
        own = torch.cat([*losses(without(plain[0], heads), plain[1], sentences(run, "test"))])
    return float(own.mean()), len(own)


@pytest.fixture(scope="module")
def importance(pruning_run, plain):
    """Mean absolute gradients at a gate on the input of the output projection. Shape (3, 2)."""
    model, tokenizer = plain
    gates = torch.ones(3, 2, requires_grad=True)

    def gated(block):
        return lambda _, given: (given[0] * gates[block].repeat_interleave(SIZE),)

    with ExitStack() as hooks:
        for block, layer in enumerate(model.bert.encoder.layer):
            dense = layer.attention.output.dense
            hooks.enter_context(dense.register_forward_pre_hook(gated(block)))
        gradients = [
            torch.autograd.grad(own.mean(), gates)[0].abs()
            for own in losses(model, tokenizer, sentences(pruning_run, "dev"))
        ]
    return torch.stack(gradients).mean(0).numpy()


def by_importance(importance):
    """Heads in the order of importance divided by the norm of the layer."""
    size = {
        (i + 1, j + 1): importance[i, j] / np.linalg.norm(importance[i])
        for i, j in np.ndindex(importance.shape)
    }
    return sorted(HEADS, key=size.get)


def test_importance_is_the_gradient_at_a_mask_of_heads(record, importance):
    for layer, head in HEADS:
        row = record.rows.at(IMPORTANCE, layer, "dev", head=head)
        assert row.value == pytest.approx(importance[layer - 1, head - 1], rel=1e-3, abs=1e-7)
        assert row.low <= row.value <= row.high
        assert row.n == SENTENCES
    assert importance.max() > 0.01


def test_a_dead_head_has_no_importance_and_costs_nothing(record, importance):
    assert record.rows.at(IMPORTANCE, DEAD[0], "dev", head=DEAD[1]).value == 0
    assert record.rows.at(LOSS, DEAD[0], head=DEAD[1]).value == 0
    assert by_importance(importance)[0] == DEAD
    first = {"order": "importance", "percent_disabled": 17}
    assert record.rows.at(LOSS, **first).value == 0
    assert record.rows.at(DROP, at=3, predicts="pos", **first).value == 0


def test_importance_is_compared_with_the_loss_without_each_head(
    record, pruning_run, plain, importance
):
    intact, n = loss_of(pruning_run, plain, [])
    increases = []
    for layer, head in HEADS:
        row = record.rows.at(LOSS, layer, head=head)
        increases.append(loss_of(pruning_run, plain, [(layer, head)])[0] - intact)
        assert (row.value, row.n) == (pytest.approx(increases[-1], abs=1e-5), n)
    expected = spearmanr(importance.ravel(), increases)
    row = record.rows.at(CORRELATION)
    assert (row.value, row.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert row.n == 6


def test_disabled_heads_are_columns_of_zeros(record, pruning_run, plain, importance):
    test, order = sentences(pruning_run, "test"), by_importance(importance)
    gold = np.concatenate([sentence.upos for sentence in test])
    probe = stored_probe(pruning_run.folder, "pos", 3)

    def score(heads):
        bert = without(plain[0], heads).bert
        return (probe.predict(vectors_of_words(bert, plain[1], test)[3]) == gold).mean()

    drops = set()
    for count, share in enumerate((0, 17, 33, 50, 67, 83, 100)):
        axes = {"order": "importance", "percent_disabled": share}
        row = record.rows.at(DROP, at=3, predicts="pos", **axes)
        drops.add(drop := score([]) - score(order[:count]))
        assert (row.value, row.n) == (pytest.approx(drop, abs=2 / len(gold)), len(gold))
        loss = loss_of(pruning_run, plain, order[:count])[0] - loss_of(pruning_run, plain, [])[0]
        assert record.rows.at(LOSS, **axes).value == pytest.approx(loss, abs=1e-5)
    assert max(drops) > 5 / len(gold)


def test_random_orders_have_their_mean_and_range(record, pruning_run, plain):
    rng, intact = np.random.default_rng(0), loss_of(pruning_run, plain, [])[0]
    orders = [[HEADS[i] for i in rng.permutation(6)] for _ in range(N_ORDERS)]
    for count, share in ((2, 33), (6, 100)):
        values = [loss_of(pruning_run, plain, order[:count])[0] - intact for order in orders]
        row = record.rows.at(LOSS, order=RANDOM, percent_disabled=share)
        expected = np.mean(values), min(values), max(values)
        assert (row.value, row.low, row.high) == pytest.approx(expected, abs=1e-5)
        assert row.p is None
