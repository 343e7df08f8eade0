"""Adam against torch's own, and limited-memory BFGS against closed forms."""

import math

import torch

from probes.training.full_batch import minimise
from probes.training.trainer import Adam


def quadratic(matrix, centre, seen=None):
    def evaluate(point):
        if seen is not None:
            seen.append(point)
        ahead = point - centre
        gradient = torch.einsum("lkde,lke->lkd", matrix, ahead)
        return 0.5 * (gradient * ahead).sum(2), gradient

    return evaluate


def test_quadratics_of_different_curvature_reach_their_own_minima():
    torch.manual_seed(0)
    roots = torch.randn(2, 3, 8, 8)
    matrix = roots @ roots.mT + 0.1 * torch.eye(8)
    matrix[1] *= 30
    centre = torch.randn(2, 3, 8)
    found = minimise(quadratic(matrix, centre), torch.zeros(2, 3, 8), torch.ones(2, 3, 8), 80)
    torch.testing.assert_close(found, centre, rtol=0, atol=1e-3)


def test_a_step_with_the_true_curvature_is_newtons():
    curvature = torch.tensor([1.0, 10.0, 1000.0])[None, None]
    centre = torch.tensor([3.0, -2.0, 0.5])[None, None]
    matrix = torch.diag_embed(curvature)
    found = minimise(quadratic(matrix, centre), torch.zeros(1, 1, 3), curvature, 1)
    torch.testing.assert_close(found, centre)


def test_a_step_that_is_too_long_is_shortened_for_its_problem_alone():
    curvature = torch.tensor([1.0, 1.0])[None, :, None]
    matrix = torch.tensor([1.0, 30.0])[None, :, None, None]
    seen = []
    centre = torch.ones(1, 2, 1)
    found = minimise(quadratic(matrix, centre, seen), torch.zeros(1, 2, 1), curvature, 1)
    assert found[0, 0, 0] == 1
    value = 15 * (found[0, 1, 0] - 1) ** 2
    assert value < 15
    assert all(point[0, 0, 0] in (0, 1) for point in seen)
    assert len(seen) > 2


def test_a_problem_without_a_finite_value_ahead_stays_where_it_is():
    def evaluate(point):
        value = torch.where(point[..., 0] == 0, 1.0, math.nan)
        return value, torch.ones_like(point)

    assert minimise(evaluate, torch.zeros(1, 2, 1), torch.ones(1, 2, 1), 3).tolist() == [[[0], [0]]]


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
