"""Description length against hand computations, entropies and planted features."""

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted_examples import one_cell

from probes.measurements.measurement import get_measurement
from probes.records.probe_spec import PROBES
from probes.records.row import Rows
from probes.statistics.partition import Partition
from probes.training.family import Linear
from probes.training.online_code import (
    OnlineCode,
    codelength_error,
    mixture_bits,
    sentence_bits,
    sentence_clusters,
)


def saying(*shares):
    """Linear probes that see nothing: each says these shares of two classes, or more."""
    bias = torch.tensor(shares).log()[None]
    return [torch.zeros(*bias.shape, 3), bias]


def test_a_block_is_coded_by_the_mixture_of_its_probes():
    # Half of 40 labels are 0. Four probes say 1/2, 3/4, 1/8 and 1/2 for it.
    y = torch.tensor([0, 1] * 20)
    said = (0.5, 0.75, 0.125, 0.5)
    parameters = saying(*[(p, 1 - p) for p in said])
    block = one_cell(torch.zeros(1, 40, 3), y, per_sentence=4)
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
    assert codelength_error([excess], [sentence_clusters(block)], 1).item() == pytest.approx(
        0, abs=1e-9
    )


def test_a_label_that_a_probe_rules_out_costs_no_more_than_the_escape():
    y = torch.tensor([1])
    parameters = saying((1.0, 0.0))
    block = one_cell(torch.zeros(1, 1, 3), y)
    each, _ = sentence_bits(Linear(), parameters, block, 2, n_sent=40)
    assert each.item() == pytest.approx(-math.log2(1 / 82), rel=1e-6)


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
        block = replace(one_cell(torch.zeros(1, 1000, 3), y, per_sentence=5), partition=documents)
        bits, excess = mixture_bits(*sentence_bits(Linear(), parameters, block, 2, n_sent=1000))
        found.append(bits.item())
        errors.append(codelength_error([excess], [sentence_clusters(block)], 1).item())
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)


def test_a_document_with_sentences_in_several_blocks_counts_once():
    # Two documents, one above and one below the mean in both blocks: ±(1 + 1), not ±1 and ±1.
    halves = [torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, -1.0]])]
    found = codelength_error(halves, [torch.tensor([0, 1]), torch.tensor([0, 1])], 1)
    assert found.item() == pytest.approx(math.sqrt((4 + 4) * 2 / 1))
    apart = codelength_error(halves, [torch.tensor([0, 1]), torch.tensor([2, 3])], 1)
    assert apart.item() == pytest.approx(math.sqrt(4 * 4 / 3))


def bits(rows, layer=None, **axes):
    """Length of a code."""
    return rows.at("codelength", layer, "train", **axes).value


def bits_per_label(rows, layer=None, **axes):
    """Bits per label of the blocks that begin after 0 and after 5 examples."""
    blocks = (rows.at("bits_per_label", layer, "train", examples=n, **axes) for n in (0, 5))
    return [row.value for row in blocks]


class PlantedCodes:
    """Codes of 12 labels in blocks of 5 and 7, whose bits follow from the layer."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr("probes.training.online_code.online_code", self._code)

    def _code(self, train, n_outputs, spec):
        self.asked.append((n_outputs, spec.family))
        bits = torch.tensor([[5.0, 7.0 + layer] for layer in train.features])
        return OnlineCode((5, 12), bits, torch.tensor([1.0] * len(bits)))

    def found(self, labels, n_outputs, sets=None):
        """Rows of the codes of layers 2, 3 and 7, of which two fit in memory."""
        context = SimpleNamespace(
            spec=PROBES["linear"],
            layers=(2, 3, 7),
            data=SimpleNamespace(n_outputs=n_outputs, sentences=lambda split: torch.arange(12)),
            bar=lambda n_steps: nullcontext(),
            groups=lambda layers, n_cells: [([2, 3], True), ([7], True)],
            training_batches=lambda layers, hold: SimpleNamespace(
                features=layers, labels=labels[None], sets=sets
            ),
        )
        return Rows.of(get_measurement("description_length")(context).rows)


def test_layers_are_coded_in_groups_and_compared_with_codes_without_vectors(monkeypatch):
    codes = PlantedCodes(monkeypatch)
    labels = torch.tensor([0, 0, 1, 0, 1, 2, 0, 0, 1, 0, 2, 0])
    rows = codes.found(labels, 3)
    assert codes.asked == [(3, "linear")] * 2
    # The first block after 0 examples has 5, the second after 5 has 7.
    for layer, whole, second in ((2, 14, 9), (3, 15, 10), (7, 19, 14)):
        assert bits(rows, layer) == whole
        assert bits_per_label(rows, layer) == pytest.approx([5 / 5, second / 7])
    interval = rows.at("codelength", 2, "train").interval
    assert interval == pytest.approx((14 - 1.96, 14 + 1.96))
    uniform = 12 * math.log2(3)
    assert bits(rows, baseline="uniform code") == pytest.approx(uniform)
    assert rows.at("compression", 2, "train").value == pytest.approx(uniform / 14)
    # After 0 0 1 0 1: 3.5, 2.5 and .5 of 6.5. Sent: 2 0 0 1 0 2 0.
    sent = [0.5, 3.5, 3.5, 2.5, 3.5, 0.5, 3.5]
    later = -sum(math.log2(x / 6.5) for x in sent)
    assert bits(rows, baseline="labels alone") == pytest.approx(5 * math.log2(3) + later)
    per_label = bits_per_label(rows, baseline="labels alone")
    assert per_label == pytest.approx([math.log2(3), later / 7])


def test_sets_of_labels_are_sent_label_by_label(monkeypatch):
    codes = PlantedCodes(monkeypatch)
    sets = torch.tensor([[0.0, 0, 0], [1, 0, 1]])
    labels = torch.tensor([0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    rows = codes.found(labels, 3, sets)
    # Three decisions of one bit each; two are 0 1 1 0 1 and seven times 1, one is never present.
    assert bits(rows, baseline="uniform code") == pytest.approx(3 * 12)
    often = 5 - 7 * math.log2(3.5 / 6)
    never = 5 - 7 * math.log2(5.5 / 6)
    assert bits(rows, baseline="labels alone") == pytest.approx(2 * often + never)
