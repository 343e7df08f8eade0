"""One model's layer against another's, on the same test sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.boards.board import Candidate
from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.records.payload import Interval, LayerResult
from probes.statistics.formatting import shown, shown_p
from probes.statistics.resampled import Resampled, resampled

NOTHING = "–"

Replicates = Mapping[Path, Resampled | None]
"""Of every layer of a result, by its path."""


@dataclass(frozen=True)
class Pair:
    """A model's layer and another's: what is subtracted, and the replicates of the difference."""

    first: tuple[Candidate, LayerResult]
    second: tuple[Candidate, LayerResult]
    difference: Floats | None

    def texts(self, between: Interval, p: float | None) -> tuple[str, str]:
        """The difference with its interval, and p."""
        (one, layer), (other, theirs) = self.first, self.second
        scores = one.result.score(layer), other.result.score(theirs)
        if scores[0] is None or scores[1] is None:
            return NOTHING, NOTHING
        metric = one.result.task.metric
        text = signed(scores[1] - scores[0], metric)
        if between is not None:
            text += f" [{signed(between[0], metric)}, {signed(between[1], metric)}]"
        return text, NOTHING if p is None else shown_p(p)


def signed(value: float, metric: str) -> str:
    """A difference of scores: +1.2."""
    text = shown(abs(value), metric)
    zero = not text.strip("0.")
    return text if zero else ("−" if value < 0 else "+") + text


def replicates_of(candidate: Candidate, layers: Sequence[int]) -> Resampled | None:
    """Resampled scores of some layers; None if they cannot be had, which is said if it is odd."""
    try:
        return resampled(candidate.result, candidate.path, layers)
    except UserError as error:
        progress.say(f"not tested: {error}")
        return None


def pair_of(
    one: Candidate,
    layer: LayerResult,
    other: Candidate,
    theirs: LayerResult,
    replicates: Replicates,
) -> Pair:
    """A layer of one model, and one of another to subtract it from."""
    first, second = replicates[one.path], replicates[other.path]
    difference = None
    if first and second and first.examples == second.examples:
        places = one.result.layers.index(layer), other.result.layers.index(theirs)
        difference = second.values[places[1]] - first.values[places[0]]
    return Pair((one, layer), (other, theirs), difference)
