"""The results that ship: what they print can be computed from what is stored beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probes.boards.claims.claim_reports import make_reports
from probes.boards.leaderboard_csv import COLUMNS, tidy
from probes.frames.joined_results import find_results

PUBLISHED = Path(__file__).parents[1] / "results" / "published"


@pytest.fixture(scope="module")
def published_results():
    results = find_results(PUBLISHED)
    if not results:
        pytest.skip("the published results are of another schema")
    return results


def test_the_leaderboard_is_theirs(published_results):
    stored = pd.read_csv(PUBLISHED / "leaderboard.csv")
    ours = tidy(published_results.values())
    assert list(stored.columns) == list(COLUMNS)
    key = ["model", "corpus", "task", "probe", "layer"]
    stored, ours = (frame.sort_values(key).reset_index(drop=True) for frame in (stored, ours))
    assert len(stored) == len(ours)
    for column in ("score", "low", "high", "p_best", "selectivity", "compression", "added_bits"):
        np.testing.assert_allclose(
            stored[column].astype(float), ours[column].astype(float), rtol=1e-5, err_msg=column
        )


def test_claims_can_be_tested_on_them(published_results):
    if not published_results:
        pytest.skip("the published results are of an earlier version")
    reports = make_reports(published_results, "linear")
    verdicts = {r.title: {name: x.verdict for name, x in r.outcomes.items()} for r in reports}
    assert any(
        verdict == "supported" for outcomes in verdicts.values() for verdict in outcomes.values()
    )
