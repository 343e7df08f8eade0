"""What the plan of memory counts."""

from dataclasses import replace

import pytest
import torch

from probes.data.find import find_corpus
from probes.examples.examples import collect_examples
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import tasks
from probes.training.dataset import work_of
from probes.training.memory_plan import Work, block_bytes, group_layers, least

CPU = torch.device("cpu")


def test_more_memory_never_means_fewer_layers_at_once():
    work = Work(PROBES["mlp"], 384, 384, 10**6, 17, 3)
    sizes = [group_layers(1 << b, CPU, work)[0] for b in range(10, 36)]
    assert sizes[0] == 1
    assert sizes == sorted(sizes)
    assert sizes[-1] > 7


@pytest.mark.parametrize(("width", "layers"), [(384, 67), (1536, 6), (3072, 1)])
def test_the_plan_allows_for_the_memory_of_the_closed_form(width, layers):
    budget = 1 << 30
    work = Work(PROBES["linear"], width, width, 10**6, 0, 3)
    assert group_layers(budget, CPU, work)[0] == layers
    # Gram matrix, eigenvectors, and LAPACK's two copies and workspace of twice their size.
    assert layers * 6 * 8 * width**2 < budget


@pytest.mark.parametrize("family", ["linear", "mlp"])
@pytest.mark.parametrize("n_outputs", [0, 17])
def test_the_least_memory_is_that_of_one_layer_at_a_time(family, n_outputs):
    work = Work(PROBES[family], 384, 384, 10**6, n_outputs, 3)
    one, mixes = least(work, 0), least(work, 7)
    assert mixes - one == block_bytes(7, 384)
    for device in (CPU, torch.device("cuda")):
        assert group_layers(one, device, work) == (1, False)
    assert group_layers(2 * one - 1, CPU, work)[0] == 1
    assert group_layers(2 * one, CPU, work)[0] == 2


def test_the_plan_counts_cells_and_batches_of_fits_that_run_together():
    work = Work(PROBES["mlp"], 384, 384, 10**6, 17, 2)
    few, many = (
        group_layers(1 << 30, CPU, replace(work, n_cells=n, n_batches=n))[0] for n in (20, 4)
    )
    assert few == pytest.approx(many / 5, abs=1)


def test_the_plan_counts_blocks_before_their_projection():
    work = Work(PROBES["linear"], 64, 64, 10**6, 17, 1)
    few, many = (group_layers(1 << 30, CPU, replace(work, n_read=n))[0] for n in (7680, 768))
    assert few < many / 3


@pytest.mark.parametrize(
    ("family", "kind", "n_cells", "n_batches"),
    [
        ("linear", "cuda", 4, 1),
        ("mlp", "cpu", 4, 1),
        ("mlp", "cuda", 4, 4),
        ("mlp", "cuda", 30, 10),
    ],
)
def test_a_step_reads_a_batch_of_each_fit_that_runs_with_it(family, kind, n_cells, n_batches):
    corpus = find_corpus("sample", limit=20).load()
    examples = collect_examples(tasks.get("srl"), corpus, "masked")
    device = torch.device(kind)
    work = work_of(examples, 16, 5, PROBES[family], device, n_cells)
    assert (work.n_cells, work.n_batches) == (n_cells, n_batches)
    assert (work.n_features, work.n_read, work.n_outputs) == (10, 42, len(examples.classes))
    # Two layers, in memory before and after they are concatenated.
    both = work_of(examples, 16, 5, PROBES[family], device, n_cells, 2)
    assert (both.n_features, both.n_read) == (20, 2 * 42 + 20)
