"""Which records are of a model's random twins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from probes.boards.comparable import SAME_TEXT, values
from probes.extraction.model_names import is_twin_name
from probes.records.files import read_records
from probes.records.header import ModelRecord
from probes.records.record import Record

K = TypeVar("K")
R = TypeVar("R", bound=Record)


def twins_of(record: Record, among: Mapping[K, R]) -> dict[K, R]:
    """The records of random twins of a record's model, on the same text.

    A twin has the model's configuration, whatever it is called. One that is called after the model
    counts as well if its configuration is not known, and if there are no others: revisions share
    the twin of the first of them.
    """
    text, own = values(record, SAME_TEXT), record.model.configuration
    twins = {
        key: other
        for key, other in among.items()
        if values(other, SAME_TEXT) == text and _is_twin(other.model, record.model)
    }
    exact = {key: x for key, x in twins.items() if not own or x.model.configuration in ("", own)}
    return exact or twins


def twins_beside(record: Record, path: Path) -> dict[Path, Record]:
    """The same in the folders of other models beside that of a record.

    Args:
        path: of the record.
    """
    folder = path.resolve().parent
    names = f"random*/{folder.name}/*-????????.json"
    beside = sorted(folder.parents[1].glob(names)) if len(folder.parents) > 1 else []
    return twins_of(record, read_records(beside))


def _is_twin(model: ModelRecord, of: ModelRecord) -> bool:
    if is_twin_name(model.name, of.name):
        return True
    pretrained, random = of.random_seed is None, model.random_seed is not None
    return pretrained and random and model.configuration == of.configuration != ""
