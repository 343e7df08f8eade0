"""Adam against torch's own."""

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
