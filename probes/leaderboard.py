"""Tidy rows, one per model, corpus, task, probe and layer: derived from result files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from common.files import published
from probes.records import Interval
from probes.results import Result, read_results

COLUMNS = (
    "model",
    "revision",
    "random_seed",
    "causal",
    "parameters",
    "layers",
    "hidden_size",
    "corpus",
    "corpus_version",
    "corpus_fingerprint",
    "task",
    "task_version",
    "probe",
    "layer",
    "pooling",
    "dtype",
    "project",
    "view",
    "metric",
    "dev_score",
    "score",
    "low",
    "high",
    "best",
    "p_best",
    "majority",
    "type_majority",
    "control_metric",
    "selectivity",
    "selectivity_low",
    "selectivity_high",
    "seed_sd",
    "seeds",
    "n_train",
    "n_test",
    "strength",
    "probe_parameters",
    "limited",
    "quick",
    "silver",
    "key",
    "suite_version",
)
"""Columns of `leaderboard.csv`.

`score` is seed 0's on test, `low` and `high` its 95 % interval, `best` the layer chosen on dev,
`p_best` the corrected p-value of the difference from it, `seed_sd` the spread over seeds.
`selectivity` is seed 0's, by `control_metric`. `random_seed` is empty for pretrained weights.
"""


def tidy(results: Iterable[Result]) -> pd.DataFrame:
    """One row per result and layer, with the columns `COLUMNS`."""
    rows = [row for result in results for row in _rows(result)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(result: Result) -> list[dict[str, object]]:
    best = result.best_layer.layer
    return [
        {
            "model": result.model.name,
            "revision": result.model.revision,
            "random_seed": result.model.random_seed,
            "causal": result.model.causal,
            "parameters": result.model.parameters,
            "layers": result.model.n_layers,
            "hidden_size": result.model.hidden_size,
            "corpus": result.corpus.name,
            "corpus_version": result.corpus.version,
            "corpus_fingerprint": result.corpus.fingerprint[:16],
            "task": result.task.name,
            "task_version": result.task.version,
            "probe": result.probe.family,
            "layer": layer.layer,
            "pooling": result.pooling,
            "dtype": result.dtype,
            "project": result.project,
            "view": result.view,
            "metric": result.task.metric,
            "dev_score": result.score(layer, "dev"),
            "score": result.score(layer),
            **_bounds("", layer.intervals.get(result.task.metric)),
            "best": layer.layer == best,
            "p_best": layer.p_best,
            "majority": result.baselines["majority"][result.task.metric],
            "type_majority": result.baselines["type majority"][result.task.metric],
            "control_metric": result.control and result.control.metric,
            "selectivity": layer.cells[0].selectivity and layer.cells[0].selectivity.value,
            **_bounds("selectivity_", layer.selectivity),
            "seed_sd": result.seed_spread(layer),
            "seeds": len(layer.cells),
            "n_train": result.examples.n["train"],
            "n_test": result.examples.n["test"],
            "strength": layer.cells[0].strength,
            "probe_parameters": result.probe_parameters,
            "limited": result.corpus.limited,
            "quick": result.quick,
            "silver": result.silver,
            "key": result.key[:8],
            "suite_version": result.suite_version,
        }
        for layer in result.layers
    ]


def _bounds(prefix: str, interval: Interval) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}


def write_leaderboard(output: Path) -> Path:
    """Rebuild `<output>/leaderboard.csv` from all results below `output`."""
    frame = tidy(read_results(output)).astype(dict.fromkeys(("random_seed", "project"), "Int64"))
    frame = frame.sort_values(
        ["corpus", "task", "probe", "view", "model", "key", "layer"], kind="stable"
    )
    path = output / "leaderboard.csv"
    with published(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6f", lineterminator="\n")
    return path
