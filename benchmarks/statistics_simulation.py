"""How often intervals cover a known truth, and tests reject a true null, in simulated test sets.

    python benchmarks/statistics_simulation.py

Sentences have 5 to 30 words and a difficulty of their own, so that their words are not
independent. The truth is the metric of a test set two hundred times as large.
"""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.statistics.bootstrap import interval, replicates, resample
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import metrics
from probes.statistics.significance import ALPHA, max_t

METRICS = {
    "accuracy": (0.93, 0.97),
    "balanced_accuracy": (0.93, 0.97),
    "span_f1": (0.93, 0.97),
    "macro_f1": (0.91, 0.97),
    "nspr": (0.91, 0.97),
    "corpus_spearman": (0.91, 0.97),
}
"""Metric → bounds between which the coverage of its 95 % interval must lie."""

TAGS = ("B-NP", "B-VP", "I-NP", "I-VP", "O")
_SHARES = np.array([0.25, 0.1, 0.3, 0.1, 0.25])
_N_RESAMPLES = 500


def simulate(
    metric: str, n_sentences: int, rng: np.random.Generator, n_systems: int = 1
) -> tuple[Gold, NDArray[np.generic]]:
    """A test set, and predictions (n,) of a system of fixed quality on it.

    With several systems, which are equally good, predictions (systems, n).
    """
    lengths = rng.integers(5, 31, n_sentences)
    sentence = np.repeat(np.arange(n_sentences), lengths)
    n = len(sentence)
    difficulty = np.repeat(rng.normal(0, 0.7, n_sentences), lengths)
    rows = []
    if metric in ("nspr", "spearman", "root_accuracy", "mae", "corpus_spearman"):
        labels: NDArray[Any] = rng.integers(0, 6, n).astype(np.float32)
        first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        labels[first] = 0
        for _ in range(n_systems):
            rows.append(labels + rng.normal(0, 1, n) * 1.5 * np.exp(difficulty / 2))
        classes: tuple[str, ...] = ()
    else:
        labels = rng.choice(len(TAGS), n, p=_SHARES)
        for _ in range(n_systems):
            right = rng.random(n) < 1 / (1 + np.exp(-1.2 - difficulty))
            rows.append(np.where(right, labels, rng.choice(len(TAGS), n, p=_SHARES)))
        classes = TAGS
    gold = Gold(labels, sentence, classes, rng.random(n) < 0.1)
    return gold, np.stack(rows) if n_systems > 1 else rows[0]


@cache
def truth(metric: str) -> float:
    """The metric of the system on a test set so large that its error does not matter."""
    gold, given = simulate(metric, 40_000, np.random.default_rng(10_000))
    return float(metrics.get(metric)(gold, given[None])[0])


def _replicates(metric: str, gold: Gold, given: Predictions, seed: int) -> Floats:
    return replicates(
        metrics.get(metric), gold, given, resample(gold.n_sentences, _N_RESAMPLES, seed)
    )


def coverage(metric: str, n_sets: int, n_sentences: int) -> float:
    """Share of simulated test sets whose 95 % interval holds the truth."""
    hits = 0
    for number in range(n_sets):
        gold, given = simulate(metric, n_sentences, np.random.default_rng(number))
        low, high = interval(_replicates(metric, gold, given[None], number))[0]
        hits += bool(low <= truth(metric) <= high)
    return hits / n_sets


def false_rejections(metric: str, n_sets: int, n_sentences: int) -> float:
    """Share of simulated test sets in which two equally good systems differ at .05."""
    wrong = 0
    for number in range(n_sets):
        gold, given = simulate(metric, n_sentences, np.random.default_rng(number), n_systems=2)
        scores = metrics.get(metric)(gold, given)
        (p,) = max_t(scores, _replicates(metric, gold, given, number), [(0, 1)])
        wrong += bool(p < ALPHA)
    return wrong / n_sets


def main() -> None:
    """Print the table of docs/method.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    print("| metric | 95 % intervals that cover the truth | true nulls rejected at .05 |")
    print("| --- | ---: | ---: |")
    for name in METRICS:
        covered = coverage(name, options.sets, options.sentences)
        rejected = false_rejections(name, options.sets, options.sentences)
        print(f"| {name} | {covered:.1%} | {rejected:.1%} |")


if __name__ == "__main__":
    main()
