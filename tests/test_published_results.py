"""The results that ship: what they print can be computed from what is stored beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probes.boards.claims.claim_reports import make_reports
from probes.boards.leaderboard_csv import COLUMNS, tidy
from probes.boards.overview import p_best
from probes.measurements.joined_results import find_results
from probes.measurements.plugin_keys import is_current
from probes.measurements.resampled import resampled
from probes.statistics import significance
from probes.statistics.bootstrap import blocks, interval, resample
from probes.statistics.replicates import p_values_of

PUBLISHED = Path(__file__).parents[1] / "results" / "published"


@pytest.fixture(scope="module")
def found():
    results = find_results(PUBLISHED)
    if not results:
        pytest.skip("the published results are of another schema")
    return results


@pytest.fixture(autouse=True)
def as_many_resamples_as_then(found, monkeypatch):
    """Before version 3, tests had one block of resamples, however close to .05 a p-value was."""
    evidence = [x for result in found.values() for x in result.evidence.values()]
    if any(x.measurement == "training_variance" and x.measurement_version < 3 for x in evidence):
        monkeypatch.setattr("probes.statistics.replicates.blocks", lambda n: [resample(n)])


@pytest.mark.slow
def test_intervals_and_p_values_follow_from_what_is_stored(found):
    tested = 0
    for path, result in found.items():
        replicates = resampled(result, path, list(result.headline))
        bounds = interval(replicates.values)
        stored = [result.interval(layer) for layer in result.layers]
        np.testing.assert_allclose(bounds, stored, atol=1e-6)
        if (recorded := p_best(result)) is None:
            continue
        pairs = significance.all_pairs(len(result.layers))
        p_values = significance.p_best(replicates.scores, pairs, p_values_of([replicates], pairs))
        # A replicate may tie with what it is compared with, to the last bit.
        assert p_values == pytest.approx(list(recorded.values()), abs=2 / 2001)
        tested += 1
    assert tested


def test_the_leaderboard_is_theirs(found):
    stored = pd.read_csv(PUBLISHED / "leaderboard.csv")
    ours = tidy(found.values())
    assert list(stored.columns) == list(COLUMNS)
    key = ["model", "corpus", "task", "probe", "layer"]
    stored, ours = (frame.sort_values(key).reset_index(drop=True) for frame in (stored, ours))
    assert len(stored) == len(ours)
    for column in ("score", "low", "high", "p_best", "selectivity", "compression", "added_bits"):
        np.testing.assert_allclose(
            stored[column].astype(float), ours[column].astype(float), rtol=1e-5, err_msg=column
        )


def test_claims_can_be_tested_on_them(found):
    if not any(map(is_current, found.values())):
        pytest.skip("the published results are of an earlier version")
    reports = make_reports(found, "linear")
    verdicts = {r.title: {name: x.verdict for name, x in r.outcomes.items()} for r in reports}
    assert any(
        verdict == "supported" for outcomes in verdicts.values() for verdict in outcomes.values()
    )


def test_whether_layer_4_may_be_the_best_in_pos_no_longer_hangs_on_the_seed(found, monkeypatch):
    """One block gave p = .0505, where 38 of 40 seeds would have given less than .05."""
    monkeypatch.setattr("probes.statistics.replicates.blocks", blocks)
    (given,) = (
        (path, result)
        for path, result in found.items()
        if (path.parts[-3][:6], path.parts[-2]) == ("all-Mi", "ewt")
        and (result.task.name, result.probe.family) == ("pos", "linear")
    )
    replicates = resampled(given[1], given[0], range(7))
    pairs = significance.all_pairs(7)
    p_values = significance.p_best(replicates.scores, pairs, p_values_of([replicates], pairs))
    assert {layer for layer, p in enumerate(p_values) if p >= 0.05} == {2, 3}
    assert p_values[4] == pytest.approx(0.0415, abs=0.0033)
    assert not significance.borderline(p_values[4])
