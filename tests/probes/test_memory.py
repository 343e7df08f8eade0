"""What the plan of memory counts, and what is let go of in time."""

import gc
import weakref

import pytest
import torch

import probes
from probes.config import PROBES
from probes.description_length import LOGIT_VARIANCES
from probes.material import Material
from probes.memory import group_layers

CPU = torch.device("cpu")


def test_more_memory_never_means_fewer_layers_at_once():
    spec = PROBES["mlp"]
    sizes = [group_layers(1 << b, CPU, spec, 384, 10**6, 17, 3, 384)[0] for b in range(10, 36)]
    assert sizes[0] == 1
    assert sizes == sorted(sizes)
    assert sizes[-1] > 7


@pytest.mark.parametrize(("width", "layers"), [(384, 67), (1536, 6), (3072, 1)])
def test_the_closed_form_stays_within_its_memory(width, layers):
    budget = 1 << 30
    assert group_layers(budget, CPU, PROBES["linear"], width, 10**6, 0, 3, width)[0] == layers
    # Gram matrix, eigenvectors, and LAPACK's two copies and workspace of twice their size.
    assert layers * 6 * 8 * width**2 < budget


@pytest.fixture
def run(tiny_bert, tmp_path):
    def run(**settings):
        return probes.run_probes(
            str(tiny_bert),
            limit=20,
            tasks=("pos",),
            probes=("linear",),
            device="cpu",
            cache_dir=tmp_path / "cache",
            output=tmp_path / "results",
            **settings,
        )

    return run


def planned(run, monkeypatch, **settings):
    """What a run's plan of memory is asked, budget aside."""
    asked = []

    def plan(*given):
        asked.append(given)
        return group_layers(*given)

    with monkeypatch.context() as patch:
        patch.setattr("probes.material.group_layers", plan)
        run(overwrite="always", twins=0, **settings)
    (_, *rest), *_ = asked
    return rest


def test_blocks_before_their_projection_count(run, monkeypatch, short_schedule):
    device, spec, width, *counts, width_read = planned(run, monkeypatch, quick=True, project=1)
    assert (width, width_read) == (1, 16 + 1)
    # Ten times as wide as what is fitted: they take most of what a layer takes.
    many, few = (group_layers(1 << 30, device, spec, 768, *counts, n)[0] for n in (768, 7680))
    assert few < many / 3


def test_the_probes_of_several_priors_count(run, monkeypatch, short_schedule):
    one = PROBES["linear"].model_copy(update={"strengths": (1e-4, 1e-3, 1e-2)})
    monkeypatch.setitem(PROBES, "linear", one)
    before = group_layers(1 << 30, *planned(run, monkeypatch, seeds=1, quick=True))[0]
    monkeypatch.setitem(LOGIT_VARIANCES, "linear", tuple(range(1, 13)))
    after = group_layers(1 << 30, *planned(run, monkeypatch, seeds=1, quick=True))[0]
    assert after < before / 2


def test_features_of_one_group_are_gone_before_the_next_are_made(run, monkeypatch, short_schedule):
    """On a device that holds them, two groups at once would take twice what was planned."""
    made, features = [], Material.features

    def held(material, layers, hold=False):
        gc.collect()
        assert all(each() is None for each in made)
        found = features(material, layers, hold)
        made.extend(weakref.ref(each) for each in found.values())
        return found

    monkeypatch.setattr(Material, "features", held)
    monkeypatch.setattr(Material, "group_layers", lambda *budget: (1, True))
    run(seeds=1, quick=False, twins=0)
    # Three layers' fits, three layers' codes, and all layers to mix; of each three splits.
    assert len(made) == 3 * (3 + 3 + 1)
