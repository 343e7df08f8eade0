"""Differences between layers of two results, tested on the same resamples of the test sentences.

The one place where models are compared: the summary of a run, `compare` and the ranks of
`leaderboard` all ask `paired_differences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.resampled import resampled
from probes.records.probe_scores import LayerScores
from probes.records.result import ALPHA, Result
from probes.records.table import NOTHING
from probes.records.values import Interval
from probes.statistics.formatting import shown, shown_p
from probes.statistics.significance import paired_tests


@dataclass(frozen=True)
class LayerScore:
    """The test score of one layer, seed 0's, and its value in every resample.

    Attributes:
        examples: digest of the examples that were scored; empty if there are no predictions.
        replicates: the resampled scores, shape (resamples,); None if they cannot be computed.
    """

    result: Result
    layer: LayerScores
    examples: str = ""
    replicates: Floats | None = None

    @property
    def value(self) -> float | None:
        """The score itself."""
        return self.result.score(self.layer)

    def paired_with(self, other: LayerScore) -> bool:
        """Whether both have been resampled, and over the same examples."""
        both = self.replicates is not None and other.replicates is not None
        return both and self.examples == other.examples


@dataclass(frozen=True)
class Difference:
    """How much a layer scores above another.

    Attributes:
        value: the difference of the scores; None if either is undefined.
        tested: whether the two could be resampled together.
        interval: 95 % interval of the difference.
        p: two-sided, Holm-corrected over the differences that were computed together.
    """

    metric: str
    value: float | None
    tested: bool
    interval: Interval = None
    p: float | None = None

    @property
    def separated(self) -> bool:
        """Whether the data tell the two apart."""
        return self.p is not None and self.p < ALPHA

    @property
    def texts(self) -> tuple[str, str]:
        """The difference with its interval, and p."""
        if self.value is None:
            return NOTHING, NOTHING
        text = _signed(self.value, self.metric)
        if self.interval is not None:
            low, high = (_signed(bound, self.metric) for bound in self.interval)
            text += f" [{low}, {high}]"
        return text, NOTHING if self.p is None else shown_p(self.p)


def layer_scores(result: Result, path: Path, layers: Sequence[LayerScores]) -> list[LayerScore]:
    """Scores of some layers of the result at `path`, resampled if its predictions are there.

    Raises:
        UserError: the predictions cannot be read, or are those of other scores.
    """
    found = resampled(result, path, [layer.layer for layer in layers])
    if found is None:
        return [LayerScore(result, layer) for layer in layers]
    return [
        LayerScore(result, layer, found.examples, values)
        for layer, values in zip(layers, found.values, strict=True)
    ]


def readable_layer_scores(
    result: Result, path: Path, layers: Sequence[LayerScores]
) -> list[LayerScore]:
    """`layer_scores`, with a message and without replicates if predictions cannot be read."""
    try:
        return layer_scores(result, path, layers)
    except UserError as error:
        progress.say(f"not tested: {error}")
        return [LayerScore(result, layer) for layer in layers]


def paired_differences(pairs: Sequence[tuple[LayerScore, LayerScore]]) -> list[Difference]:
    """The second score of each pair minus the first, with intervals and p-values.

    The p-values are Holm-corrected over all pairs.
    """
    replicates = [
        second.replicates - first.replicates if first.paired_with(second) else None  # type: ignore[operator]
        for first, second in pairs
    ]
    return [
        Difference(
            first.result.task.metric,
            None if first.value is None or second.value is None else second.value - first.value,
            differences is not None,
            interval,
            p,
        )
        for (first, second), differences, (interval, p) in zip(
            pairs, replicates, paired_tests(replicates), strict=True
        )
    ]


def _signed(value: float, metric: str) -> str:
    """A difference of scores: +1.2."""
    text = shown(abs(value), metric)
    zero = not text.strip("0.")
    return text if zero else ("−" if value < 0 else "+") + text
