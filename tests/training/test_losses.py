"""Losses against those of torch."""

import pytest
import torch

from probes.training.losses import CrossEntropy


def test_cross_entropy_is_that_of_torch():
    torch.manual_seed(0)
    logits, y = torch.randn(1, 1, 4, 50), torch.randint(4, (1, 50))
    ours = CrossEntropy().total(logits, y, torch.ones(1, 50))
    assert ours.item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits[0, 0].T, y[0], reduction="sum").item()
    )


def test_the_first_class_of_equal_logits_is_predicted():
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 5.0]]).T[None, None]
    assert CrossEntropy().decide(logits).tolist() == [[[1, 0, 2]]]
