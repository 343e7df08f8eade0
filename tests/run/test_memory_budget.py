"""That a run stays within its memory, and refuses a budget that is too small."""

import gc
import re
import weakref

import pytest

import probes
from probes.common.errors import UserError
from probes.training.dataset import ProbingData

pytestmark = pytest.mark.integration


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


def test_features_of_one_group_are_freed_before_the_next_are_read(run, monkeypatch, short_schedule):
    """On a device that holds them, two groups at once would take twice what was planned."""
    made = []

    def watched(method):
        def held(*args):
            gc.collect()
            assert all(each() is None for each in made)
            found = method(*args)
            made.extend(weakref.ref(each) for each in found.values())
            return found

        return held

    for name in ("features", "concatenated"):
        monkeypatch.setattr(ProbingData, name, watched(getattr(ProbingData, name)))
    monkeypatch.setattr(ProbingData, "group_layers", lambda *budget: (1, True))
    run(seeds=1, quick=False, twins=0)
    # Scores, samples, control tasks and codes of three layers, layer 0 and this with the highest,
    # and all layers to mix; of each three splits.
    assert len(made) == 3 * (4 * 3 + 2 + 1)
