"""What is counted of the splits, and what stands below the tables of structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from probes.common.wording import counted
from probes.measurements.structure.sentence_scores import SCORES, Sample
from probes.measurements.structure.trees import BINS, Trees
from probes.records.row import Row
from probes.statistics.metrics import label_of, shown_sd
from probes.statistics.partition import FEWEST


def counts(trees: Trees) -> dict[str, int]:
    """What a split has, by name.

    Sentences that are measured, their words, and their edges between words that are not
    punctuation; sentences left out; of those measured, those with fewer than two words that are not
    punctuation, which UUAS does not see, and those whose root is punctuation, an error of the root.
    """
    return {
        "sentences": len(trees.sentences),
        "words": int(trees.lengths.sum()),
        "edges": int(trees.edges.sum()),
        "left_out": sum(trees.left_out.values()),
        "without_edges": sum(int((~each).sum()) < 2 for each in trees.punctuation),
        "punctuation_roots": trees.punctuation_roots,
    }


def notes(
    trees: Mapping[str, Trees], test: Sample, resampled: str, rows: Sequence[Row]
) -> Iterator[str]:
    """What intervals and tests are of, and what was left out.

    Args:
        resampled: what intervals resample on test.
    """
    if test.n_used < FEWEST:
        yield f"No intervals and no tests: fewer than {FEWEST} test {resampled}."
    else:
        over_samples = ", ".join(
            f"{label_of(metric)} {shown_sd(sd, metric)}"
            for metric in SCORES
            for sd in _of_test(rows, f"{metric}_training_sd")
        )
        sds = _of_test(rows, "control_uuas_draw_sd")
        low, high = (shown_sd(of(sds, default=0.0), "uuas") for of in (min, max))
        over_draws = f" (standard deviation: {low} to {high})" if sds else ""
        yield (
            f"± half a 95 % interval over test {resampled}. Tests between layers also include "
            f"the variance of training (standard deviation: {over_samples}), and intervals of "
            f"control trees and selectivity that of draws{over_draws}."
        )
    for split, each in trees.items():
        yield f"{split}: {'; '.join(_counted(each))}."
    edges = zip(BINS, test.edges.sum(0).tolist(), strict=True)
    of_bins = ", ".join(f"{n:,} of {name} word{'s' * (name != '1')}" for name, n in edges)
    yield f"Gold edges of test by the distance of their words: {of_bins}."


def _of_test(rows: Sequence[Row], metric: str) -> list[float]:
    """The values of a metric on test, where it has any."""
    found = (row.value for row in rows if (row.metric, row.split) == (metric, "test"))
    return [value for value in found if value is not None]


def _counted(trees: Trees) -> Iterator[str]:
    found = counts(trees)
    yield f"{found['sentences']:,} sentences, {found['words']:,} words"
    for why, n in trees.left_out.items():
        yield f"{n:,} left out, {why}"
    if found["without_edges"]:
        lacking = "with fewer than two words that are not punctuation, not in UUAS"
        yield f"{found['without_edges']:,} {lacking}"
    if n := found["punctuation_roots"]:
        yield f"{counted(n, 'root')} that {'is' if n == 1 else 'are'} punctuation, an error"
