"""The attention heads that were chosen on dev, beside those of a model's random twin.

A head is the best of many, and some head of a model without any training is the best of its own.
How much the one exceeds the other is tested over the same test sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from probes.boards.corpus_groups import of_corpora
from probes.extraction.model_names import is_twin_name
from probes.measurements.attention.gold import FEWEST_TESTED
from probes.measurements.attention.payload import Choice, Findings
from probes.measurements.attention.scoring import Contributions, difference, p_values
from probes.records.files import Arrays, if_readable, read_arrays, read_records
from probes.records.record import AnyRecord
from probes.records.values import Estimate
from probes.statistics.partition import Partition

ATTENTION = "attention"

_ARRAYS = ("test_sums", "test_counts", "test_clusters")


class BeyondTwin(NamedTuple):
    """A chosen head beside that which was chosen in the random twin.

    Attributes:
        twin: the twin's choice.
        difference: how much the model's head scores above the twin's, with an interval over the
            clusters of both.
        p: two-sided, corrected for all differences that are tested together; None for rare
            features, and with too few clusters.
    """

    twin: Choice
    difference: Estimate
    p: float | None


@dataclass(frozen=True)
class ChosenHeads:
    """What `attention` found for a model, with what test sentences contribute to chosen heads.

    Attributes:
        arrays: those beside the record.
        twin: the same of its random twin; None if that was not measured.
    """

    record: AnyRecord
    arrays: Arrays
    twin: ChosenHeads | None = None

    @property
    def found(self) -> Findings:
        """The payload."""
        found: Findings = self.record.payload
        return found

    @property
    def partition(self) -> Partition:
        """What intervals and tests resample."""
        return Partition(self.found.resampled, self.arrays["test_clusters"])

    def contributions(self, place: int) -> Contributions:
        """What test sentences contribute to one choice, by its place in the record."""
        sums, counts = (self.arrays[name][place] for name in ("test_sums", "test_counts"))
        return Contributions(sums[:, None], counts)

    def places(self, *measures: str) -> list[int]:
        """The places of the choices of some measures."""
        return [i for i, choice in enumerate(self.found.choices) if choice.measure in measures]

    def beyond_twin(self, *measures: str) -> dict[int, BeyondTwin]:
        """The choices of some measures beside the twin's, tested together, by their places.

        Empty without a twin.
        """
        if self.twin is None:
            return {}
        choices, of_twin = self.found.choices, self.twin.found.choices
        named = {(x.measure, x.feature): place for place, x in enumerate(of_twin)}
        others = {
            place: named[choices[place].measure, choices[place].feature]
            for place in self.places(*measures)
        }
        pairs = {
            place: (self.contributions(place), self.twin.contributions(other))
            for place, other in others.items()
        }
        tested = [place for place in pairs if choices[place].n_test >= FEWEST_TESTED]
        found = p_values([pairs[place] for place in tested], self.partition)
        p = dict(zip(tested, found, strict=True))
        return {
            place: BeyondTwin(
                of_twin[other], difference(*pairs[place], self.partition), p.get(place)
            )
            for place, other in others.items()
        }


def chosen_heads(path: Path, records: Mapping[Path, AnyRecord]) -> ChosenHeads:
    """The chosen heads of one of several records of attention, beside those of its random twin.

    The twin is among these records, or in the folder beside that of the model.

    Raises:
        UserError: the arrays beside this record cannot be read.
    """
    record, others = records[path], records
    twin = twin_of(record, others)
    if twin is None:
        others = of_corpora(read_records(_twins_beside(path)))
        twin = twin_of(record, others)
    arrays = None if twin is None else if_readable(partial(read_arrays, twin, _ARRAYS))
    of_twin = None if twin is None or arrays is None else ChosenHeads(others[twin], arrays)
    return ChosenHeads(record, read_arrays(path, _ARRAYS), of_twin)


def twin_of(record: AnyRecord, records: Mapping[Path, AnyRecord]) -> Path | None:
    """The record of a model's random twin, of several that with the first seed.

    It is one of the same texts, settings and layers, by the same version of the measurement.
    """
    alike = {
        path: seed
        for path, other in records.items()
        if (seed := other.model.random_seed) is not None
        and is_twin_name(other.model.name, record.model.name)
        and _read(other) == _read(record)
    }
    return min(alike, key=lambda path: alike[path], default=None)


def _read(record: AnyRecord) -> tuple[object, ...]:
    """What a model has in common with its twin."""
    found: Findings = record.payload
    return (
        record.corpus.fingerprint,
        record.measurement_version,
        record.settings,
        record.dtype,
        found.layers,
        found.splits,
    )


def _twins_beside(path: Path) -> list[Path]:
    """Records of attention of random twins on the corpus of a record, where all models' are."""
    folder = path.resolve().parent
    names = f"random*/{folder.name}/{ATTENTION}-????????.json"
    return sorted(folder.parents[1].glob(names)) if len(folder.parents) > 1 else []
