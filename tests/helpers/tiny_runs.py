"""Short runs of a tiny model, and comparisons of their scores."""

import pytest

import probes


def run(model, folder, **settings):
    """A quick run on 60 sentences, in `folder`."""
    settings = {
        "limit": 60,
        "quick": True,
        "cache_dir": folder / "cache",
        "output": folder / "results",
        "device": "cpu",
        **settings,
    }
    return probes.run_probes(str(model), **settings)


def scores(results):
    """Test and dev scores by task, probe family and layer."""
    return {
        (r.task.name, r.probe.family, layer.layer): (r.score(layer), r.score(layer, "dev"))
        for r in results
        for layer in r.layers
    }


def assert_close(ours, theirs):
    """Within 0.1 point or two test examples of about 100."""
    assert ours.keys() == theirs.keys()
    for key, pair in ours.items():
        assert pair == pytest.approx(theirs[key], abs=0.021), key
