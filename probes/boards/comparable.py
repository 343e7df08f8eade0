"""Which records may stand together: what has to be equal, for which purpose, and why.

Two scores can be compared if the same question was put to the same text and was answered by the
same probe; then what differs between them is the model. Every purpose below is a list of what has
to be equal for it; `alike` and `sifted` are the ways in which boards, charts and claims group
records. What is the same measurement is a narrower question, and keys answer it: see
`probes.records.files.identity`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

from probes.extraction.model_names import is_twin_name
from probes.measurements.plugin_keys import has_current_numerics, in_words, is_current
from probes.records.files import read_records
from probes.records.header import ModelRecord
from probes.records.record import Record, corpus_title

K = TypeVar("K")
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Aspect:
    """Something that may set two records apart.

    Attributes:
        name: what a reason calls it.
        value: what is compared.
        words: the value as a reason gives it; None if it can be printed as it is.
    """

    name: str
    value: Callable[[Any], Hashable]
    words: Callable[[Any], str] | None = None

    def in_words(self, record: Record) -> str:
        """The value of a record, to be read."""
        return str(self.value(record)) if self.words is None else self.words(record)


def _extent(result: Record) -> str:
    return f"limit {result.corpus.limit}" if result.corpus.limited else "whole"


# The model.
MODEL = Aspect("model", lambda r: (r.model.name, r.model.digest))

# The vectors. Pooling and precision change them, and with them every score; a projection also
# changes how many parameters a probe has.
POOLING = Aspect("pooling", lambda r: r.pooling)
PRECISION = Aspect("precision", lambda r: r.dtype)
PROJECTION = Aspect(
    "projection",
    lambda r: r.project,
    lambda r: "none" if r.project is None else f"{r.project} dimensions",
)

# The text. The fingerprint is over words and annotation; the digest is over the files that they
# were read from, and so the stricter.
TEXT = Aspect(
    "corpus",
    lambda r: r.corpus.fingerprint,
    lambda r: f"{_extent(r)}, fingerprint {r.corpus.fingerprint[:8]}",
)
CORPUS_NAME = Aspect("name of the corpus", lambda r: r.corpus.name)
CORPUS_FILES = Aspect("corpus", lambda r: r.corpus.digest)

# The question. A task of another version, view, metric or source asks another one, and labels that
# a machine made are others than a person's.
TASK = Aspect("task", lambda r: r.task.name)
TASK_VERSION = Aspect("task version", lambda r: r.task.version)
VIEW = Aspect("view", lambda r: r.view)
METRIC = Aspect("metric", lambda r: r.task.metric)
SILVER = Aspect("silver labels", lambda r: r.silver)
SOURCE = Aspect(
    "plug-in source",
    lambda r: in_words(r.plug_ins),
    lambda r: in_words(r.plug_ins) or "of the suite",
)

# The probe, and the numerics that fitted it.
PROBE = Aspect(
    "probe specification",
    lambda r: r.probe.digest,
    lambda r: f"sha256:{r.probe.digest[:8]}",
)
NUMERICS = Aspect(
    "numerics",
    lambda r: has_current_numerics(r),
    lambda r: "of this version" if has_current_numerics(r) else "of another version",
)
OUTDATED = Aspect("version", lambda r: not is_current(r))

# A measurement of the corpus as a whole.
MEASUREMENT = Aspect("measurement", lambda r: r.measurement)
MEASUREMENT_VERSION = Aspect("version", lambda r: r.measurement_version)
BASE = Aspect("base", lambda r: r.base.name if r.base else "")
CORPUS_TITLE = Aspect("corpus", corpus_title)
CURRENT = Aspect(
    "numerics", is_current, lambda r: "of this version" if is_current(r) else "of another version"
)


OPTIONS = Aspect("options", lambda r: repr(sorted(r.settings.items())))


def options_of(record: Record) -> list[Aspect]:
    """Each option of a record's measurement, called by its flag."""

    def option(name: str) -> Aspect:
        flag = f"--{record.measurement}-{name}".replace("_", "-")
        return Aspect(flag, lambda r: str(r.settings.get(name)))

    return [option(name) for name in sorted(record.settings)]


SAME_LEADERBOARD = (TEXT, PROBE, PROJECTION, NUMERICS)
"""Models are ranked on one text by one probe. Pooling and precision belong to a model's entry: a
model may be entered with either, and is then called so."""

SAME_COLUMN = (TASK_VERSION, VIEW, SOURCE)
"""What must be equal besides, within one task of a leaderboard."""

SAME_PAIR = (TEXT, TASK_VERSION, PROBE, SOURCE, PROJECTION, VIEW)
"""Two models of one run, on one task with one family of probes. They have been fitted or checked by
this version. That they were scored on the same examples is left to whoever has the predictions."""

SAME_CHART = (CORPUS_NAME, TEXT, PROBE, POOLING, PROJECTION)
"""A page or figure has one scale for all models, so the vectors must be made alike too."""

SAME_CURVE = (TASK, TASK_VERSION, VIEW, METRIC, SILVER, SOURCE, OUTDATED)
"""What must be equal besides, within one chart. Results of another version have charts of their
own, since a page shows everything there is."""

SAME_LAYER_TABLE = (CORPUS_FILES, POOLING, PRECISION, PROJECTION)
"""The columns of one model's layer × task table. They must not be outdated either,
since a table has one column for a task and probe. The same holds for the random twins in it."""

SAME_MEASUREMENT = (
    MEASUREMENT,
    CORPUS_TITLE,
    TEXT,
    BASE,
    POOLING,
    MEASUREMENT_VERSION,
    SOURCE,
    CURRENT,
    OPTIONS,
)
"""Models whose records of a measurement of the corpus share tables and charts."""

SAME_TEXT = (TEXT, CORPUS_FILES, POOLING, PRECISION)
"""A model and its random twin have read the same text in the same way."""

SAME_VECTORS = (MODEL, CORPUS_FILES, POOLING, PRECISION)
"""What claims relate scores and measurements of the corpus of."""

SAME_CLAIM = SAME_VECTORS
"""Claims relate one model's results on several tasks. They must not be outdated
either."""


def values(record: Record, purpose: Iterable[Aspect]) -> tuple[Hashable, ...]:
    """What two records have to have in common for a purpose."""
    return tuple(aspect.value(record) for aspect in purpose)


def alike(found: Mapping[K, R], purpose: Sequence[Aspect]) -> list[dict[K, R]]:
    """The records in groups that are equal in every aspect, in the order of their first ones."""
    groups: dict[tuple[Hashable, ...], dict[K, R]] = defaultdict(dict)
    for key, record in found.items():
        groups[values(record, purpose)][key] = record
    return list(groups.values())


def sifted(
    found: Mapping[K, R], like: R, purpose: Sequence[Aspect]
) -> tuple[dict[K, R], dict[K, str]]:
    """The records that may stand with another one; and the others, with what is different."""
    why = {key: reasons(record, like, purpose) for key, record in found.items()}
    return (
        {key: record for key, record in found.items() if not why[key]},
        {key: text for key, text in why.items() if text},
    )


def differences(result: Record, other: Record, purpose: Iterable[Aspect]) -> list[Aspect]:
    """What keeps two results apart; empty if they may stand together."""
    return [aspect for aspect in purpose if aspect.value(result) != aspect.value(other)]


def reasons(result: Record, other: Record, purpose: Iterable[Aspect]) -> str:
    """What sets a result apart from another, in words: ``view cut, not plain``."""
    return "; ".join(
        f"{aspect.name} {aspect.in_words(result)}, not {aspect.in_words(other)}"
        for aspect in differences(result, other, purpose)
    )


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


def twins_beside(record: Record, path: Path, *, same_unit: bool = False) -> dict[Path, Record]:
    """The same in the folders of other models beside that of a record.

    Args:
        path: of the record.
        same_unit: only of the task and probe family of the scores at `path`.
    """
    folder = path.resolve().parent
    unit = escape(path.name.rpartition("scores-")[0]) if same_unit else ""
    names = f"random*/{escape(folder.name)}/{unit}*-????????.json"
    beside = sorted(folder.parents[1].glob(names)) if len(folder.parents) > 1 else []
    return twins_of(record, read_records(beside))


def _is_twin(model: ModelRecord, of: ModelRecord) -> bool:
    if is_twin_name(model.name, of.name):
        return True
    pretrained, random = of.random_seed is None, model.random_seed is not None
    return pretrained and random and model.configuration == of.configuration != ""
