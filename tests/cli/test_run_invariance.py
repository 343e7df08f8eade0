"""What scores depend on, and what they do not."""

import pytest
from found_in_rows import controls_in, mixes_in, variance_in
from tiny_runs import assert_close, found_in, run, scores

from probes.measurements.measurement import EVIDENCE

pytestmark = pytest.mark.usefixtures("short_schedule")


def test_recomputing_gives_identical_numbers(tiny_bert, tmp_path):
    settings = {"tasks": ("pos", "depth"), "overwrite": "always"}
    first = run(tiny_bert, tmp_path, cache_dir=tmp_path / "one", **settings)
    second = run(tiny_bert, tmp_path, cache_dir=tmp_path / "two", **settings)
    assert scores(first) == scores(second)


def test_scores_do_not_depend_on_batch_size(tiny_bert, tmp_path):
    settings = {"probes": ("linear",), "tasks": ("pos", "agreement", "depth"), "limit": 100}
    usual = scores(run(tiny_bert, tmp_path / "usual", **settings))
    for n in (16, 4096):
        other = run(tiny_bert, tmp_path / f"{n}", batch_tokens=n, **settings)
        assert_close(usual, scores(other))


def test_scores_do_not_depend_on_which_other_tasks_are_run(tiny_bert, tmp_path):
    together = scores(run(tiny_bert, tmp_path / "a", probes=("linear",)))
    for task in ("pos", "agreement"):
        alone = scores(run(tiny_bert, tmp_path / task, tasks=(task,), probes=("linear",)))
        assert_close(alone, {key: value for key, value in together.items() if key[0] == task})


def test_device_map_gives_the_scores_of_one_device(tiny_bert, tmp_path):
    pytest.importorskip("accelerate")
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    spread = run(tiny_bert, tmp_path / "map", device="map", **settings)
    # A map puts a model on a GPU if there is one.
    assert_close(scores(spread), scores(run(tiny_bert, tmp_path / "cpu", **settings)))


@pytest.mark.slow
def test_a_tiny_memory_budget_changes_no_score(tiny_bert, tmp_path):
    settings = {"tasks": ("pos", "depth"), "seeds": 2, "evidence": tuple(EVIDENCE)}
    ample = run(tiny_bert, tmp_path, memory="2GB", **settings)
    tight = run(tiny_bert, tmp_path, memory="1KB", overwrite="always", **settings)
    assert_close(scores(ample), scores(tight))
    for one, other in zip(ample, tight, strict=True):
        # How many layers share a product may change its rounding. A convex fit passes on that error,
        # some 1e-7 of a sum; the fit of an MLP magnifies it, and so moves its mixes.
        convex = one.probe.family == "linear"
        losses = [
            [row.value for row in result.rows if row.metric == "dev_loss"]
            for result in (one, other)
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4 if convex else 1e-2)
        for ours, theirs in zip(
            controls_in(one.evidence["selectivity"]).layers,
            controls_in(other.evidence["selectivity"]).layers,
            strict=True,
        ):
            assert ours.controls == pytest.approx(theirs.controls, abs=0.021)
        varied = [variance_in(x.found("training_variance")).layers for x in (one, other)]
        assert varied[0].keys() == varied[1].keys()
        for ours, theirs in zip(*(each.values() for each in varied), strict=True):
            assert ours.resampled == pytest.approx(theirs.resampled, abs=0.021)
            assert ours.reseeded == pytest.approx(theirs.reseeded, abs=0.021)
        if not convex:
            continue
        a, b = (mixes_in(x.found("localisation")) for x in (one, other))
        for ours, theirs in zip(a.mixes, b.mixes, strict=True):
            assert ours.test.value == pytest.approx(theirs.test.value, abs=0.021)
            assert ours.weights == pytest.approx(theirs.weights, abs=0.02)
        assert a.kl.value == pytest.approx(b.kl.value, abs=0.02)


@pytest.mark.slow
def test_a_finding_depends_on_nothing_that_is_measured_beside_it(tiny_bert, tmp_path):
    """To the last bit: neither on other tasks, families and evidence, nor on the order of runs."""
    everything = found_in(
        run(tiny_bert, tmp_path / "all", tasks=("pos", "depth"), evidence=tuple(EVIDENCE))
    )
    # Linear probes have mixes, pairs of layers, and codes of classes; MLPs have none of them.
    assert len(everything) == 2 * (2 * 3 + 2) + 1
    for family in ("linear", "mlp"):
        settings = {"tasks": ("depth",), "probes": (family,)}
        for name in reversed(EVIDENCE):
            alone = found_in(run(tiny_bert, tmp_path / "some", evidence=name, **settings))
            assert alone == {key: everything[key] for key in alone}
            assert ("depth", family, name) in alone or name in (
                "conditional_probing",
                "description_length",
                "localisation",
                "sparse_probing",
            )


def test_layer_0_of_the_masked_view_encodes_only_position(tiny_bert, tmp_path):
    (result,) = run(tiny_bert, tmp_path, tasks=("agreement",), probes=("linear",), limit=400)
    assert result.score(result.layers[0]) == pytest.approx(0.5, abs=0.12)
    assert result.references["subject's Number"]["balanced_accuracy"] > 0.95
    assert {"0 attractors", "1+ attractors"} < set(result.examples.groups)


def test_a_projection_gives_a_separate_result_with_fewer_parameters(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    (full,) = run(tiny_bert, tmp_path, **settings)
    (narrow,) = run(tiny_bert, tmp_path, project=4, **settings)
    # 16 or 4 features and a bias for each of 15 tags.
    parameters = [result.facts["probe_parameters"] for result in (full, narrow)]
    assert parameters == [15 * 17, 15 * 5]
    assert (narrow.project, narrow.key != full.key) == (4, True)
    assert full.score(full.layers[2]) > narrow.score(narrow.layers[2])
