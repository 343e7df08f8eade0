"""Adam against torch's own, and limited-memory BFGS against closed forms."""

import math

import torch

from probes.training.full_batch import minimise
from probes.training.trainer import Adam


def quadratic(matrix, centre, seen=None):
    def evaluate(point, cells):
        if seen is not None:
            seen.append((point, cells))
        ahead = point - centre[:, cells]
        gradient = torch.einsum("lkde,lke->lkd", matrix[:, cells], ahead)
        return 0.5 * (gradient * ahead).sum(2), gradient

    return evaluate


def divided_by(curvature):
    return lambda gradient: gradient / curvature


def test_quadratics_of_different_curvature_reach_their_own_minima():
    torch.manual_seed(0)
    roots = torch.randn(2, 3, 8, 8)
    matrix = roots @ roots.mT + 0.1 * torch.eye(8)
    matrix[1] *= 30
    centre = torch.randn(2, 3, 8)
    found = minimise(quadratic(matrix, centre), torch.zeros(2, 3, 8), divided_by(1), 80)
    torch.testing.assert_close(found, centre, rtol=0, atol=1e-3)


def test_a_step_with_the_true_curvature_is_newtons():
    curvature = torch.tensor([1.0, 10.0, 1000.0])[None, None]
    centre = torch.tensor([3.0, -2.0, 0.5])[None, None]
    matrix = torch.diag_embed(curvature)
    found = minimise(quadratic(matrix, centre), torch.zeros(1, 1, 3), divided_by(curvature), 1)
    torch.testing.assert_close(found, centre)


def test_a_step_that_is_too_long_is_shortened_for_its_problem_alone():
    curvature = torch.tensor([1.0, 1.0])[None, :, None]
    matrix = torch.tensor([1.0, 30.0])[None, :, None, None]
    seen = []
    centre = torch.ones(1, 2, 1)
    evaluate = quadratic(matrix, centre, seen)
    found = minimise(evaluate, torch.zeros(1, 2, 1), divided_by(curvature), 1)
    assert found[0, 0, 0] == 1
    value = 15 * (found[0, 1, 0] - 1) ** 2
    assert value < 15
    assert [cells.tolist() for _, cells in seen[:2]] == [[0, 1], [0, 1]]
    assert {tuple(cells.tolist()) for _, cells in seen[2:]} == {(1,)}


def test_a_problem_ends_when_two_steps_promise_less_than_its_tolerance():
    seen = []

    def quartic(point, cells):  # its curvature vanishes at the minimum, so that steps shrink slowly
        seen.append(cells.tolist())
        return 1 + (point[..., 0] - 3) ** 4, 4 * (point - 3) ** 3

    tolerances = torch.tensor([1e-2, 1e-6])
    found = minimise(quartic, torch.zeros(1, 2, 1), divided_by(108), 50, tolerances)
    coarse, fine = (found[0, :, 0] - 3).abs().tolist()
    # The next step promises about a third of gradient × distance: 4/3 d⁴.
    assert 1e-3 < coarse**4 < 1e-2
    assert fine**4 < 1e-6
    assert seen.index([1]) < len(seen) - 3
    assert len(seen) < 50
    alone = minimise(quartic, torch.zeros(1, 1, 1), divided_by(108), 50, tolerances[:1])
    assert alone[0, 0] == found[0, 0]


def test_fits_that_do_not_converge_are_counted(capsys):
    centre = torch.tensor([[[1.0], [1e6]]])
    evaluate = quadratic(torch.ones(1, 2, 1, 1), centre)
    minimise(evaluate, 0 * centre, divided_by(1e9), 1, torch.tensor([0.0, 0.0]))
    assert "2 of 2 fits ended after 1 steps, not converged" in capsys.readouterr().err


def test_a_problem_without_a_finite_value_ahead_stays_where_it_is():
    def evaluate(point, cells):
        value = torch.where(point[..., 0] == 0, 1.0, math.nan)
        return value, torch.ones_like(point)

    assert minimise(evaluate, torch.zeros(1, 2, 1), divided_by(1), 3).tolist() == [[[0], [0]]]


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
