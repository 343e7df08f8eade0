"""Sparse probing in a run, and tasks for which families made from class means have no probes."""

import numpy as np
import pytest
from tiny_runs import run

from probes.cli.main import main

FAMILIES = ("linear", "mean-difference", "sparse")
EVIDENCE = ("training_variance", "selectivity", "sparse_probing")


def test_scores_by_number_of_features(tiny_bert, tmp_path, capsys):
    settings = {"tasks": ("pos", "depth"), "probes": FAMILIES, "evidence": EVIDENCE}
    results = run(tiny_bert, tmp_path, **settings)
    said = capsys.readouterr().err
    for family in FAMILIES[1:]:
        assert f"left out depth · {family}: {family} probes need examples of one class" in said
    made = {(x.task.name, x.probe.family): x for x in results.results}
    assert made.keys() == {("depth", "linear"), *(("pos", family) for family in FAMILIES)}
    for (_, family), result in made.items():
        assert tuple(result.evidence) == EVIDENCE[: 2 + (family == "sparse")]
    result = made["pos", "sparse"]
    n_classes = len(result.examples.classes)
    assert result.facts["probe_parameters"] == 16 * n_classes + n_classes
    rows = result.evidence["sparse_probing"].rows
    for layer in result.layers:
        scores = {k: rows.at("sparse_score", layer, k=k) for k in (1, 2, 5, 16)}
        # The reported probe is that of 16 features.
        assert (scores[16].value, scores[16].low, scores[16].high) == pytest.approx(
            (result.score(layer), *result.interval(layer))
        )
        assert scores[1].value < scores[5].value < scores[16].value
        for k in scores:
            draws = [rows.at("accuracy", layer, k=k, draw=draw).value for draw in (1, 2, 3)]
            random = rows.at("random_features", layer, k=k).value
            assert random == pytest.approx(np.mean(draws))
            assert k == 16 or len(set(draws)) > 1
        # The model's vectors have sixteen features: any draw takes all of them.
        assert draws == [scores[16].value] * 3


def test_a_run_without_any_probe_for_a_task_is_refused(capsys, tiny_bert, tmp_path):
    line = f"--tasks depth --probes sparse --limit 20 --quick --cache-dir {tmp_path}"
    assert main(["--model", str(tiny_bert), "--output", str(tmp_path), *line.split()]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line == (
        "error: --tasks depth: sparse probes need examples of one class each, and the task is "
        "regression; add linear to --probes."
    )
