"""What the plan of memory counts, and that features are freed in time."""

import gc
import re
import weakref
from dataclasses import replace

import pytest
import torch

import probes
from probes.cli.main import main
from probes.common.errors import UserError
from probes.records.probe_spec import PROBES
from probes.training.dataset import ProbingData
from probes.training.linear import Linear
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


@pytest.fixture
def run(tiny_bert, tmp_path):
    def run(**settings):
        return probes.run_probes(
            str(tiny_bert),
            limit=20,
            probes=("linear",),
            device="cpu",
            cache_dir=tmp_path / "cache",
            output=tmp_path / "results",
            **{"tasks": ("pos",), **settings},
        )

    return run


def planned(run, monkeypatch, **settings):
    """The device and work of a run's plan of memory."""
    asked = []

    def plan(memory, *given):
        asked.append(given)
        return group_layers(memory, *given)

    with monkeypatch.context() as patch:
        patch.setattr("probes.training.dataset.group_layers", plan)
        run(overwrite="always", twins=0, **settings)
    return asked[0]


def test_the_plan_counts_blocks_before_their_projection(run, monkeypatch, short_schedule):
    device, work = planned(run, monkeypatch, quick=True, project=1)
    assert (work.n_features, work.n_read) == (1, 16 + 1)
    # Ten times as wide as what is fitted: they take most of what a layer takes.
    widths = (replace(work, n_features=768, n_read=n) for n in (768, 7680))
    many, few = (group_layers(1 << 30, device, each)[0] for each in widths)
    assert few < many / 3


def test_the_plan_counts_the_probes_of_several_priors(run, monkeypatch, short_schedule):
    before = group_layers(1 << 30, *planned(run, monkeypatch, seeds=1, quick=True))[0]
    monkeypatch.setattr(Linear, "logit_variances", tuple(range(1, 13)))
    after = group_layers(1 << 30, *planned(run, monkeypatch, seeds=1, quick=True))[0]
    assert after < before / 2


def test_the_plan_counts_fits_that_run_together(run, monkeypatch, short_schedule):
    device, alone = planned(run, monkeypatch, seeds=1, quick=True)
    assert (alone.n_cells, alone.n_batches) == (len(Linear.logit_variances), 1)
    monkeypatch.setattr("probes.training.dataset.fits_at_once", lambda device: 10)
    _, beside = planned(run, monkeypatch, seeds=1, quick=True)
    assert (beside.n_cells, beside.n_batches) == (10 * alone.n_cells, 10)
    few, many = (group_layers(1 << 30, device, work)[0] for work in (beside, alone))
    assert few < many / 2
    # Its batches alone, of few cells.
    narrow = replace(alone, n_cells=1, n_features=8, n_read=1 << 14)
    few, many = (group_layers(1 << 32, device, replace(narrow, n_batches=n))[0] for n in (16, 4))
    assert few == pytest.approx(many / 4, abs=1)


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


@pytest.mark.parametrize("settings", [{"quick": True}, {"seeds": 2}, {"project": 5}, {"layers": 1}])
def test_the_need_stated_before_encoding_is_that_of_the_plan_of_training(
    run, monkeypatch, short_schedule, settings
):
    foretold, followed = [], []

    def tell(work, n_mixed):
        foretold.append((work, n_mixed))
        return 0

    def plan(memory, device, work):
        followed.append(work)
        return group_layers(memory, device, work)

    monkeypatch.setattr("probes.engines.memory_check.least", tell)
    monkeypatch.setattr("probes.training.dataset.group_layers", plan)
    tasks = ("pos", "depth", "agreement", "srl", "deprel")
    layers = (1,) if "layers" in settings else ()
    run(**{**settings, "layers": layers, "tasks": tasks, "memory": "1GB", "twins": 0})
    assert [work for work, _ in foretold] == list(dict.fromkeys(followed))
    assert len(foretold) == len(tasks)
    mixed = {0} if layers or "quick" in settings else {3}
    assert {n for _, n in foretold} == mixed


def test_a_budget_that_is_too_small_is_refused_before_anything_is_computed(
    run, tmp_path, short_schedule
):
    with pytest.raises(UserError) as caught:
        run(memory="1MB", tasks=("pos", "depth"), twins=0)
    said = re.fullmatch(
        r"--memory 1MB: fitting (pos|depth) with linear probes takes at least (\d+)MB, one layer "
        r"at a time; give --memory \2MB, or reduce the need with --quick or --project\.",
        str(caught.value),
    )
    assert not (tmp_path / "cache" / "vectors").exists()
    assert not list((tmp_path / "results").rglob("*.json"))
    less = int(said[2]) * 1_000_000 - 1_000_000
    with pytest.raises(UserError, match=f"takes at least {said[2]}MB"):
        run(memory=less, tasks=("pos", "depth"), twins=0)
    assert run(memory=f"{said[2]}MB", tasks=("pos", "depth"), twins=0).frame.score.notna().all()
    # Where nothing is left to be done, nothing is needed.
    assert len(run(memory="1MB", tasks=("pos", "depth"), twins=0).results) == 2


def test_a_budget_that_is_too_small_ends_in_one_line_with_status_2(tiny_bert, tmp_path, capsys):
    line = f"--model {tiny_bert} --limit 20 --tasks pos --memory 1MB --device cpu"
    line += f" --output {tmp_path / 'r'} --cache-dir {tmp_path / 'c'}"
    assert main(line.split()) == 2
    (error,) = [x for x in capsys.readouterr().err.splitlines() if "error" in x]
    assert error.startswith("error: --memory 1MB: fitting pos with mlp probes takes ")


def test_features_of_one_group_are_freed_before_the_next_are_read(run, monkeypatch, short_schedule):
    """On a device that holds them, two groups at once would take twice what was planned."""
    made, features = [], ProbingData.features

    def held(data, layers, hold=False):
        gc.collect()
        assert all(each() is None for each in made)
        found = features(data, layers, hold)
        made.extend(weakref.ref(each) for each in found.values())
        return found

    monkeypatch.setattr(ProbingData, "features", held)
    monkeypatch.setattr(ProbingData, "group_layers", lambda *budget: (1, True))
    run(seeds=1, quick=False, twins=0)
    # Three layers' fits, three layers' codes, and all layers to mix; of each three splits.
    assert len(made) == 3 * (3 + 3 + 1)
