"""Random projection of vectors to a given width."""

import pytest
import torch

from probes.training.features import Held
from probes.training.standardisation import projected


def test_the_vector_of_every_span_is_projected_alike_and_standardised_again():
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(2, 3000, 8, generator=generator) @ torch.randn(8, 8, generator=generator)
    values = (values - values.mean(1, keepdim=True)) / values.std(1, keepdim=True)
    # The second span is the first one again.
    pair = torch.cat([values, values], 2)
    found = projected({"train": Held(pair), "dev": Held(pair[:, :10])}, 5, spans=2)
    train = found["train"].block(slice(None))
    assert found["train"].shape == train.shape == (2, 3000, 10)
    torch.testing.assert_close(train[..., :5], train[..., 5:])
    torch.testing.assert_close(train.square().mean(1), torch.ones(2, 10))
    torch.testing.assert_close(found["dev"].block(slice(2, 7)), train[:, 2:7])


def test_distances_survive_a_projection():
    """Johnson and Lindenstrauss: within a factor near 1, if the width is large enough."""
    values = torch.randn(1, 400, 1000, generator=torch.Generator().manual_seed(2))
    found = projected({"train": Held(values)}, 300, spans=1)["train"].block(slice(None))
    before = torch.cdist(values[0, :50], values[0, 50:100]) / 1000**0.5
    after = torch.cdist(found[0, :50], found[0, 50:100]) / 300**0.5
    assert (after / before).mean() == pytest.approx(1, abs=0.02)
    assert (after / before).std() < 0.06
