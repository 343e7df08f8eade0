"""Do probe scores move when a model computes in a narrower type, and is it faster?

    python benchmarks/precision.py --dtype bfloat16 --corpus ewt --data-dir DIR --cache-dir CACHE

Fits linear probes to the vectors of both, those in float32 first. A score counts as moved if it
differs by more than 0.1 point and the number of test examples that are right by more than two.
Prints a table; the seconds of encoding are those of views that the cache did not hold.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probes import run_probes
from probes.common.default_folders import default_cache, default_data_dir
from probes.measurements.results import find_results
from probes.measurements.scores import gold_of, read_predictions
from probes.records.probe_scores import LayerScores
from probes.records.result import Result

POINTS, EXAMPLES = 0.1, 2

Found = dict[str, tuple[Result, NDArray[np.bool_]]]
"""By task: a result, and which predictions of seed 0 are right, (layers, n)."""


def found(options: argparse.Namespace, dtype: str, output: Path) -> Found:
    """Results in one precision."""
    run_probes(
        options.model,
        corpus=options.corpus,
        tasks=options.tasks,
        probes=("linear",),
        quick=True,
        dtype=dtype,
        device=options.device,
        limit=options.limit,
        data_dir=options.data_dir,
        cache_dir=options.cache_dir,
        output=output,
        offline=options.offline,
    )
    results: Found = {}
    for path, result in find_results(output).items():
        arrays = read_predictions(path)
        gold = gold_of(result, arrays)
        right = np.stack([gold.right(layer[0]) for layer in arrays["predicted"]])
        results[result.task.name] = result, right
    return results


def headline(result: Result, layer: LayerScores) -> float:
    """A score; not a number where it is undefined."""
    score = result.score(layer)
    return float("nan") if score is None else score


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--tasks", type=lambda text: tuple(text.split(",")), default=())
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--offline", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wide = found(options, "float32", Path(folder) / "float32")
        narrow = found(options, options.dtype, Path(folder) / options.dtype)
    print(f"{options.model}, {options.corpus}, linear, {options.dtype} less float32, by layer")
    print("| task | test examples | points | examples right | layers moved |")
    print("| --- | ---: | --- | --- | ---: |")
    for task, (result, right) in wide.items():
        other, right_there = narrow[task]
        pairs = zip(result.layers, other.layers, strict=True)
        points = [100 * (headline(other, b) - headline(result, a)) for a, b in pairs]
        counts = (right_there.sum(1) - right.sum(1)).astype(float)
        shown = " ".join(f"{n:+.0f}" for n in counts)
        if result.task.kind == "regression":
            counts[:], shown = np.inf, ""
        moved = sum(
            abs(p) > POINTS and abs(n) > EXAMPLES for p, n in zip(points, counts, strict=True)
        )
        print(
            f"| {task} | {right.shape[1]:,} | {' '.join(f'{p:+.2f}' for p in points)} "
            f"| {shown} | {moved} |"
        )


if __name__ == "__main__":
    main()
