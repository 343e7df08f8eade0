"""Description length against hand computations, entropies and planted features."""

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from found_in_rows import code_in
from tiny_runs import run

from probes.measurements.description_length import DescriptionLength
from probes.measurements.measurement import Request, Scored
from probes.records.probe_spec import PROBES
from probes.statistics.partition import Partition
from probes.tasks.builtin import tasks
from probes.training.batches import Batches, batch_bounds
from probes.training.codes import (
    OnlineCode,
    deviation,
    mixture_bits,
    prior_block_bits,
    sentence_bits,
    sentence_clusters,
    uniform_bits,
)
from probes.training.dataset import ProbingData
from probes.training.features import Held
from probes.training.linear import Linear
from probes.training.online_code import online_code


def examples(x, y, per_sentence=1):
    """Examples of weight 1 with features (L, N, H)."""
    sentences = torch.arange(len(y)) // per_sentence
    return Batches(Held(x), y[None], torch.ones(1, len(y)), sentences, batch_bounds(sentences))


def saying(*shares):
    """Linear probes that see nothing: each says these shares of two classes, or more."""
    bias = torch.tensor(shares).log()[None]
    return [torch.zeros(*bias.shape, 3), bias]


def test_a_block_is_coded_by_the_mixture_of_its_probes():
    # Half of 40 labels are 0. Four probes say 1/2, 3/4, 1/8 and 1/2 for it.
    y = torch.tensor([0, 1] * 20)
    said = (0.5, 0.75, 0.125, 0.5)
    parameters = saying(*[(p, 1 - p) for p in said])
    block = examples(torch.zeros(1, 40, 3), y, 4)
    each, words = sentence_bits(Linear(), parameters, block, 2, n_sent=40)
    assert words.tolist() == [4] * 10
    # A share 2 / (2 · 40 + 2) of every distribution is uniform.
    e = 1 / 41
    pairs = [((1 - e) * p + e / 2) * ((1 - e) * (1 - p) + e / 2) for p in said]
    for k in range(4):
        assert each[0, k].tolist() == pytest.approx([-2 * math.log2(pairs[k])] * 10, rel=1e-6)
    bits, excess = mixture_bits(each, words)
    assert bits.item() == pytest.approx(-math.log2(sum(p**20 for p in pairs) / 4), rel=1e-6)
    assert bits.item() == pytest.approx(40.9969, abs=1e-4)
    # All sentences cost the same.
    assert deviation([excess], [sentence_clusters(block)], 1).item() == pytest.approx(0, abs=1e-9)


def test_a_label_that_a_probe_rules_out_costs_no_more_than_the_escape():
    y = torch.tensor([1])
    parameters = saying((1.0, 0.0))
    block = examples(torch.zeros(1, 1, 3), y)
    each, _ = sentence_bits(Linear(), parameters, block, 2, n_sent=40)
    assert each.item() == pytest.approx(-math.log2(1 / 82), rel=1e-6)


def test_a_probe_that_knows_label_frequencies_gives_the_prior_code():
    y = torch.from_numpy(np.random.default_rng(0).choice(3, 500, p=[0.9, 0.08, 0.02]))
    shares = torch.bincount(y[:200], minlength=3) / 200
    parameters = [torch.zeros(1, 1, 3, 3), shares.log()[None, None]]
    each, words = sentence_bits(
        Linear(), parameters, examples(torch.zeros(1, 300, 3), y[200:]), 3, n_sent=200
    )
    bits, _ = mixture_bits(each, words)
    assert bits.item() == pytest.approx(
        sum(prior_block_bits(y, (200, 500), 3)) - 200 * math.log2(3), rel=1e-6
    )


def test_the_prior_code_is_a_hand_computation():
    y = torch.tensor([0, 0, 1, 0, 1])
    # Block 1: 3 labels of 1 bit. Block 2: one 0 and one 1 after two 0 and one 1.
    expected = [3, -math.log2(2.5 / 4) - math.log2(1.5 / 4)]
    assert prior_block_bits(y, (3, 5), 2) == pytest.approx(expected)


@pytest.mark.parametrize("of_a_document", [1, 4])
def test_the_standard_error_is_that_of_resampled_sentences_or_documents(of_a_document):
    torch.manual_seed(0)
    parameters = saying((0.9, 0.1))
    documents = Partition("documents", np.arange(200) // of_a_document)
    found, errors = [], []
    for _ in range(300):
        # Words of a sentence, and sentences of a document, depend on each other.
        kind = torch.rand(200 // of_a_document).repeat_interleave(5 * of_a_document)
        y = (torch.rand(1000) < 0.3 * kind).long()
        block = replace(examples(torch.zeros(1, 1000, 3), y, 5), partition=documents)
        bits, excess = mixture_bits(*sentence_bits(Linear(), parameters, block, 2, n_sent=1000))
        found.append(bits.item())
        errors.append(deviation([excess], [sentence_clusters(block)], 1).item())
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)


def test_a_document_with_sentences_in_several_blocks_counts_once():
    # Two documents, one above and one below the mean in both blocks: ±(1 + 1), not ±1 and ±1.
    halves = [torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, -1.0]])]
    found = deviation(halves, [torch.tensor([0, 1]), torch.tensor([0, 1])], 1)
    assert found.item() == pytest.approx(math.sqrt((4 + 4) * 2 / 1))
    apart = deviation(halves, [torch.tensor([0, 1]), torch.tensor([2, 3])], 1)
    assert apart.item() == pytest.approx(math.sqrt(4 * 4 / 3))


def test_intervals_are_normal_ones():
    code = OnlineCode((1, 2), torch.tensor([[10.0, 20.0], [5.0, 5.0]]), torch.tensor([2.0, 0.0]))
    assert code.bits.tolist() == [30, 10]
    assert code.intervals == [pytest.approx((26.08, 33.92)), (10, 10)]


def test_too_few_examples_for_two_blocks_have_a_uniform_code():
    y = torch.tensor([0, 1, 2] * 10)
    code = online_code(examples(torch.randn(2, 30, 4), y), 3, PROBES["linear"])
    assert code.ends == (30,)
    assert code.bits.tolist() == pytest.approx([uniform_bits(30, 3)] * 2)


def test_class_weights_are_left_out():
    torch.manual_seed(0)
    y = torch.tensor([0, 0, 0, 1] * 50)
    data = examples(torch.randn(1, 200, 3), y, 4)
    weighted = replace(data, weights=torch.where(y == 0, 2 / 3, 2.0)[None])
    one, other = (online_code(x, 2, PROBES["linear"]) for x in (data, weighted))
    assert one.block_bits.tolist() == other.block_bits.tolist()


def test_labels_independent_of_the_features_cost_little_more_than_their_entropy():
    share = torch.tensor([0.6, 0.3, 0.1])
    torch.manual_seed(0)
    y = torch.multinomial(share, 3000, replacement=True)
    code = online_code(examples(torch.randn(1, 3000, 64), y, 5), 3, PROBES["linear"])
    entropy = -(share * share.log2()).sum().item()
    deviation = (share * (-share.log2() - entropy) ** 2).sum().sqrt().item()
    low = 3000 * entropy - 3 * deviation * 3000**0.5
    assert low < code.bits.item() < 1.1 * sum(prior_block_bits(y, code.ends, 3))


def test_informative_features_give_a_far_shorter_code():
    torch.manual_seed(0)
    y = torch.randint(4, (3000,))
    x = torch.randn(2, 3000, 64)
    x[1, :, :4] = 2 * torch.nn.functional.one_hot(y, 4).float()
    code = online_code(examples(x, y, 5), 4, PROBES["linear"])
    noise, planted = code.bits.tolist()
    assert noise > 0.95 * 6000
    assert planted < 0.15 * 6000


def scored(family):
    return Scored(PROBES[family], (0, 1), 1, True)


@pytest.mark.parametrize(
    ("task", "family", "level", "why"),
    [
        ("pos", "linear", "standard", ""),
        ("pos", "mlp", "full", ""),
        ("pos", "mlp", "standard", "it is measured with --evidence full"),
        ("depth", "linear", "full", "it is not defined for regression"),
    ],
)
def test_what_has_a_code(task, family, level, why):
    assert DescriptionLength().missing(tasks.get(task), PROBES[family], level) == why
    request = Request((0, 1), 1, level=level, scored=scored(family))
    assert DescriptionLength().extent(request) == {0: 1, 1: 1}


class PlantedCodes:
    """Codes of 12 labels in blocks of 5 and 7, whose bits follow from the layer."""

    def __init__(self, monkeypatch):
        self.asked = []
        for name in ("online_code", "replay_code"):
            monkeypatch.setattr(f"probes.training.{name}.{name}", self._of(name))

    def _of(self, name):
        def code(train, n_outputs, spec):
            self.asked.append((name, n_outputs, spec.family))
            bits = torch.tensor([[5.0, 7.0 + layer] for layer in train.features])
            return OnlineCode((5, 12), bits, torch.tensor([1.0] * len(bits)))

        return code

    def found(self, family, labels, n_outputs, sets=None):
        """What is found at layers 2, 3 and 7, of which two fit in memory."""
        context = SimpleNamespace(
            spec=PROBES[family],
            layers=(2, 3, 7),
            data=SimpleNamespace(n_outputs=n_outputs, sentences=lambda split: torch.arange(12)),
            bar=lambda n_steps: nullcontext(),
            groups=lambda layers, n_cells: [([2, 3], True), ([7], True)],
            training_batches=lambda layers, hold: SimpleNamespace(
                features=layers, labels=labels[None], sets=sets
            ),
        )
        return code_in(DescriptionLength().compute(context))


@pytest.mark.parametrize(
    ("family", "name", "function"),
    [("linear", "online code", "online_code"), ("mlp", "prequential replay", "replay_code")],
)
def test_layers_are_coded_in_groups_and_compared_with_codes_without_vectors(
    monkeypatch, family, name, function
):
    codes = PlantedCodes(monkeypatch)
    labels = torch.tensor([0, 0, 1, 0, 1, 2, 0, 0, 1, 0, 2, 0])
    found = codes.found(family, labels, 3)
    assert codes.asked == [(function, 3, family)] * 2
    assert (found.code, found.starts) == (name, [0, 5])
    assert [(x.layer, x.bits, [5 * x.per_label[0], 7 * x.per_label[1]]) for x in found.layers] == [
        (2, 14, pytest.approx([5, 9])),
        (3, 15, pytest.approx([5, 10])),
        (7, 19, pytest.approx([5, 14])),
    ]
    assert found.layers[0].interval == pytest.approx((14 - 1.96, 14 + 1.96))
    assert found.uniform_bits == pytest.approx(12 * math.log2(3))
    # After 0 0 1 0 1: 3.5, 2.5 and .5 of 6.5. Sent: 2 0 0 1 0 2 0.
    sent = [0.5, 3.5, 3.5, 2.5, 3.5, 0.5, 3.5]
    later = -sum(math.log2(x / 6.5) for x in sent)
    assert found.prior_bits == pytest.approx(5 * math.log2(3) + later)
    # The first block after 0 examples has 5, the second after 5 has 7.
    assert found.prior_per_label == pytest.approx([math.log2(3), later / 7])
    assert found.layers[0].per_label == [1, 9 / 7]
    assert found.layers[0].compression == pytest.approx(12 * math.log2(3) / 14)


def test_sets_of_labels_are_sent_label_by_label(monkeypatch):
    codes = PlantedCodes(monkeypatch)
    sets = torch.tensor([[0.0, 0, 0], [1, 0, 1]])
    labels = torch.tensor([0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    found = codes.found("linear", labels, 3, sets)
    # Three decisions of one bit each; two are 0 1 1 0 1 and seven times 1, one is never present.
    assert found.uniform_bits == pytest.approx(3 * 12)
    often = 5 - 7 * math.log2(3.5 / 6)
    never = 5 - 7 * math.log2(5.5 / 6)
    assert found.prior_bits == pytest.approx(2 * often + never)


def test_full_evidence_has_the_code_with_replay_of_mlps(tiny_bert, tmp_path, short_schedule):
    settings = {"quick": False, "twins": 0, "tasks": ("pos",), "limit": 40}
    found = {
        r.probe.family: code_in(r.evidence["description_length"])
        for r in run(tiny_bert, tmp_path, evidence=("full",), **settings)
    }
    assert {family: x.code for family, x in found.items()} == {
        "linear": "online code",
        "mlp": "prequential replay",
    }
    # They send the same labels in the same blocks.
    linear, mlp = found.values()
    assert (mlp.starts, mlp.uniform_bits, mlp.prior_bits) == (
        linear.starts,
        linear.uniform_bits,
        linear.prior_bits,
    )
    for layer in mlp.layers:
        assert len(layer.per_label) == len(mlp.starts)
        assert 0.5 < layer.compression < 2


@pytest.mark.real_data
def test_ewt_dev_changes_nothing_and_compression_is_sensible(
    real_data, tiny_bert, tmp_path, monkeypatch
):
    def measured(name):
        (result,) = run(
            tiny_bert,
            tmp_path,
            quick=False,
            evidence=("description_length",),
            corpus="ewt",
            data_dir=real_data,
            limit=150,
            twins=0,
            tasks=("pos",),
            probes=("linear",),
            output=tmp_path / name,
        )
        return result

    result = measured("a")
    found = code_in(result.evidence["description_length"])
    assert found.code == "online code"
    alone = found.prior_compression
    assert alone == pytest.approx(found.uniform_bits / found.prior_bits)
    sizes = np.diff([*found.starts, result.examples.n["train"]])
    assert 1 < alone < 1.3
    assert [x.layer for x in found.layers] == [0, 1, 2]
    for layer in found.layers:
        assert layer.per_label @ sizes == pytest.approx(layer.bits)
        low, high = layer.compression_interval
        assert low < layer.compression < high
        assert layer.compression > 1.05 * alone

    def shuffled(self, split, *others):
        made = batches(self, split, *others)
        return replace(made, labels=made.labels.flip(1)) if split == "dev" else made

    batches = ProbingData.batches
    monkeypatch.setattr(ProbingData, "batches", shuffled)
    other = measured("b")
    assert code_in(other.evidence["description_length"]) == found
    assert other.at("dev_loss", 0, "dev") != result.at("dev_loss", 0, "dev")
