"""What the plan of memory counts."""

import pytest
import torch

from probes.records.probe_spec import PROBES
from probes.training.memory_plan import Work, group_layers

CPU = torch.device("cpu")


def test_more_memory_never_means_fewer_layers_at_once():
    work = Work(PROBES["mlp"], 384, 384, 10**6, 17, 3)
    plans = [group_layers(1 << b, CPU, work) for b in range(10, 36)]
    for held in (False, True):
        sizes = [size for size, room in plans if bool(room) == held]
        assert sizes[0] == 1
        assert sizes == sorted(sizes)
    assert plans[-1][0] > 7
    # Of a million examples of 384 features.
    assert {room % (4 * 384 * 10**6) for _, room in plans} == {0}
    assert all(room < 1 << b for (_, room), b in zip(plans, range(10, 36), strict=True))


@pytest.mark.parametrize(("width", "layers"), [(384, 67), (1536, 6), (3072, 1)])
def test_the_plan_allows_for_the_memory_of_the_closed_form(width, layers):
    budget = 1 << 30
    work = Work(PROBES["linear"], width, width, 10**6, 0, 3)
    assert group_layers(budget, CPU, work)[0] == layers
    # Gram matrix, eigenvectors, and LAPACK's two copies and workspace of twice their size.
    assert layers * 6 * 8 * width**2 < budget
