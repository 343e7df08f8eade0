"""Adam against torch's own."""

import pytest
import torch

from probes.training.trainer import Adam


def test_steps_are_those_of_torchs_adam():
    start = [torch.randn(2, 3, 4), torch.randn(2, 3)]
    ours = [p.clone() for p in start]
    theirs = [p.clone().requires_grad_() for p in start]
    adam = Adam(ours, 0.1)
    reference = torch.optim.Adam(theirs, betas=(0.9, 0.99))
    for step in range(1, 6):
        gradients = [torch.randn_like(p) for p in start]
        adam.step(gradients, 1 / step)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        reference.param_groups[0]["lr"] = 0.1 / step
        reference.step()
    for a, b, before in zip(ours, theirs, start, strict=True):
        torch.testing.assert_close(a, b.detach())
        assert (a - before).abs().min() > 1e-4


@pytest.mark.parametrize(
    "gradient", [torch.ones(2, 1), torch.ones(6), torch.ones(2, 3, dtype=torch.float64)]
)
def test_a_gradient_of_another_shape_or_dtype_is_refused(gradient):
    with pytest.raises(RuntimeError, match="gradient"):
        Adam([torch.zeros(2, 3)], 0.1).step([gradient], 1)


def test_gradients_need_not_be_contiguous():
    gradient = torch.arange(6.0).view(3, 2)
    one, other = torch.zeros(2, 3), torch.zeros(2, 3)
    Adam([one], 0.1).step([gradient.T], 1)
    Adam([other], 0.1).step([gradient.T.contiguous()], 1)
    assert torch.equal(one, other)
    assert one[0, 0] == 0 > one[0, 1]
