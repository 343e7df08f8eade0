"""Short runs of a tiny model, and comparisons of their scores."""

from contextlib import contextmanager

import pytest

import probes
from probes.probing.resampled_scores import resampled_scores
from probes.records.probe_spec import PROBES


def shorten_schedule(patch):
    """Let probes stop early, for tests of everything around the fit."""
    patch.setattr("probes.training.scalar_mix._MIN_STEPS", 60)
    for family, spec in PROBES.items():
        update = {"epochs": 1, "min_steps": 24, "hidden": spec.hidden // 16 or spec.hidden}
        patch.setitem(PROBES, family, spec.model_copy(update=update))


@contextmanager
def shortened_schedule():
    """Probes that stop early while the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_schedule(patch)
        yield


def run(model, folder, *, beside=(), **settings):
    """A quick run on 60 sentences, in `folder`; with other models `beside` this one."""
    settings = {
        "limit": 60,
        "quick": True,
        "cache_dir": folder / "cache",
        "output": folder / "results",
        "device": "cpu",
        **settings,
    }
    return probes.run_probes([*map(str, (model, *beside))], **settings)


def scores(results):
    """Test and dev scores of `Results`, or of some of them, by task, probe family and layer."""
    return {
        (r.task.name, r.probe.family, layer): (r.score(layer), r.score(layer, "dev"))
        for r in getattr(results, "results", results)
        for layer in r.layers
    }


def found_in(results):
    """The rows that were found, by task, probe family and measurement."""
    return {
        (r.task.name, r.probe.family, record.measurement): list(record.rows)
        for r in getattr(results, "results", results)
        for record in (r, *r.evidence.values())
    }


def files_of(folder, pattern="*.json"):
    """Content and time of change of the records, by their file."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted((folder / "results").rglob(pattern))
        if not path.name.startswith(".")
    }


def assert_close(ours, theirs):
    """Within 0.1 point or two test examples of about 100."""
    assert ours.keys() == theirs.keys()
    for key, pair in ours.items():
        assert pair == pytest.approx(theirs[key], abs=0.021), key


def of_all_layers(result):
    """Replicates of all layers, from `probes.probing.resampled_scores.resampled_scores`."""
    return resampled_scores(result, list(result.extent))
