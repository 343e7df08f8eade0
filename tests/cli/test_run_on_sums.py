"""Runs on results that were exported without predictions."""

import re

import pytest
from tiny_runs import files_of, run

from probes.__main__ import main

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.fixture
def shared(tiny_bert, tmp_path):
    """A folder with results of `pos`, which have sums instead of predictions."""
    run(tiny_bert, tmp_path, tasks=("pos",), probes="linear")
    there = tmp_path / "shared" / "results"
    assert main(["export", str(tmp_path / "results"), str(there), "--sums"]) == 0
    return tmp_path / "shared"


def names(results):
    return {r.task.name: set(r.evidence) for r in results}


def test_evidence_that_takes_predictions_is_left_out_with_the_reason(tiny_bert, shared, capsys):
    before = files_of(shared, "*.npz")
    capsys.readouterr()
    settings = {"quick": False, "probes": "linear", "evidence": "training_variance", "twins": 0}
    found = run(tiny_bert, shared, tasks=("pos", "depth"), **settings)
    said = capsys.readouterr()
    (reason,) = [line for line in said.err.splitlines() if "left out" in line]
    assert re.fullmatch(
        r"left out pos · linear · training_variance of tiny-bert: pos-linear-scores-\w+\.json has sums "
        r"instead of predictions \(from export --sums\); use --overwrite always to fit the probes again",
        reason,
    )
    # The scores stand in the table, and everything else is made.
    (pos,) = (r for r in found if r.task.name == "pos")
    assert f"{100 * pos.score(pos.best_layer):.1f}" in said.out
    assert names(found) == {"pos": set(), "depth": {"training_variance"}}
    assert before.items() <= files_of(shared, "*.npz").items()
    found = run(tiny_bert, shared, tasks=("pos",), overwrite="always", **settings)
    assert names(found) == {"pos": {"training_variance"}}
    assert "left out" not in capsys.readouterr().err
