"""Holds a folder of results against what the literature leads one to expect of the methods.

    python benchmarks/check_expectations.py results

For each model and task: whether the MLP's selectivity is below the linear probe's (Hewitt & Liang
2019), whether the random twin's best layer is below the model's, and how accuracy and compression
order the layers (Voita & Titov 2020). Prints Markdown; nothing is decided by it.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from scipy.stats import spearmanr

from probes.boards.comparison import compare
from probes.boards.paired import layer_scores
from probes.measurements.joined_results import find_results
from probes.records.result import Result


def selectivities(linear: Result, mlp: Result) -> str:
    """At how many layers the MLP is less selective, and both where it is best."""
    pairs = []
    for one, other in zip(linear.layers, mlp.layers, strict=True):
        values = [selectivity(linear, one), selectivity(mlp, other)]
        pairs.append([float("nan") if value is None else value for value in values])
    below = sum(b < a for a, b in pairs)
    shown = ", ".join(f"{a:.3f}/{b:.3f}" for a, b in pairs)
    return f"{below} of {len(pairs)} layers; linear/MLP {shown}"


def selectivity(result: Result, layer: int) -> float | None:
    """Of one layer; None where it was not measured."""
    at = result.row("selectivity", "selectivity", layer)
    return None if at is None else at.value


def correlation(result: Result) -> str:
    """Spearman over layers, of accuracy and compression."""
    rows = [result.row("description_length", "compression", x) for x in result.layers]
    found = [row.value for row in rows if row]
    if not found:
        return ""
    accuracy = [result.scores_of(x).get("accuracy") or result.score(x) for x in result.layers]
    return f"{spearmanr(accuracy, found).statistic:.2f}"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    found = find_results(parser.parse_args().results)
    paths = {id(result): path for path, result in found.items()}
    comparisons = {
        (c.task, c.probe): c
        for c in compare(
            list(found.values()), lambda r: layer_scores(r, paths[id(r)], [r.best_layer])[0]
        )
    }

    def unit(result: Result) -> tuple[str, str]:
        return result.model.name, result.task.name

    print("| model | task | MLP less selective at | ρ(accuracy, compression), linear / MLP |")
    print("| --- | --- | --- | --- |")
    for (model, task), group in groupby(sorted(found.values(), key=unit), key=unit):
        by_family = {result.probe.family: result for result in group}
        if by_family.keys() != {"linear", "mlp"} or any(
            r.found("selectivity") is None for r in by_family.values()
        ):
            continue
        linear, mlp = by_family["linear"], by_family["mlp"]
        rho = " / ".join(filter(None, (correlation(linear), correlation(mlp)))) or "–"
        print(f"| {model} | {task} | {selectivities(linear, mlp)} | {rho} |")
    print("\n| task | probe | first on dev | other | difference | p |")
    print("| --- |" + " --- |" * 5)
    for (task, family), comparison in comparisons.items():
        first, *others = comparison.standings
        for other in others:
            if (difference := other.difference) is None:
                continue
            low, high = difference.interval or (float("nan"), float("nan"))
            print(
                f"| {task} | {family} | {first.model} (layer {first.layer}) | {other.model} (layer "
                f"{other.layer}) | {difference.value:.4f} [{low:.4f}, {high:.4f}] | "
                f"{difference.p:.4f} |"
            )


if __name__ == "__main__":
    main()
