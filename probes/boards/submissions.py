"""Submissions to a board: results whose numbers follow from their sums, and those left off.

Nobody is believed: every record is read strictly, its key and file name have to follow from what it
says, and its scores, intervals and tests from what is stored beside it
(`probes.measurements.recomputed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from probes.boards.comparable import SAME_MODEL, SAME_PAIR
from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.process import infrequent_garbage_collection
from probes.data.registered import corpora
from probes.data.splits import DROPPED
from probes.measurements.frame import IDENTITY, load
from probes.measurements.header_columns import values
from probes.measurements.joined_results import joined
from probes.measurements.plugin_keys import source_of
from probes.measurements.recomputed import number_text, require_recomputed, why_not_recomputed
from probes.measurements.record_validation import validated
from probes.measurements.soundness import require_sound
from probes.records.header import CorpusRecord
from probes.records.record import Record, record_key
from probes.records.record_files import name_of, read_record, record_paths
from probes.records.result import Result

MOST_BYTES = 20 * 10**6
"""Limit on a file. With sums, scores of a task on a treebank have a tenth of a million."""

MOST_LETTERS = 200
"""Limit on a text, such as a name or a label."""

_PROSE: Any = {"notes": True, "provenance": True, "corpus": {"citation"}}
"""Fields that may be longer."""

_WEIGHTS = ("model", "revision", "dtype")
_CORPUS = ("corpus", "corpus_version", "limit", "dropped")
_SCORES = (*_WEIGHTS, *_CORPUS, "task", "pooling", *SAME_PAIR)


class LeftOff(NamedTuple):
    """A record that a board does not show, and why."""

    path: Path
    record: Record
    why: str


@dataclass(frozen=True)
class Submission:
    """Results to be shown together, with the evidence behind them.

    Attributes:
        results: by their files.
        left_off: records of which nothing can be computed again.
    """

    results: Mapping[Path, Result]
    left_off: tuple[LeftOff, ...]


def read_submission(folders: Iterable[Path]) -> Submission:
    """Everything below folders.

    Raises:
        UserError: a folder does not exist, or a record cannot be read, is too large or is not what
            it says. Nothing is computed again yet.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder; name a folder of results.")
    with infrequent_garbage_collection():
        strict = {path: record for folder in folders for path, record in _strictly(folder).items()}
        frame = load(*folders, read=strict.__getitem__, cached=False)
    records = frame.records()
    reasons = {path: why_not_recomputed(record, path) for path, record in records.items()}
    older = frame.only(frame.headers["older"]).paths
    reasons |= dict.fromkeys(older, "there is one of a newer definition")
    counting = {path: record for path, record in records.items() if not reasons[path]}
    for path, record in counting.items():
        require_sound(record, path)
    results = joined(counting)
    shown = (each for result in results.values() for each in (result, *result.evidence.values()))
    used = {values(each, IDENTITY) for each in shown}
    left_off = [
        LeftOff(path, record, reasons[path] or "it stands behind other scores")
        for path, record in records.items()
        if reasons[path] or values(record, IDENTITY) not in used
    ]
    return Submission(results, tuple(left_off))


def _strictly(folder: Path) -> dict[Path, Record]:
    """All records below a folder.

    Raises:
        UserError: one cannot be read, has an impossible number or is too large, or its key or name
            does not follow from what it says.
    """
    found = {}
    for path in record_paths(folder):
        for file in (path, path.with_suffix(".npz")):
            if file.exists() and file.stat().st_size > MOST_BYTES:
                raise UserError(f"{file}: more than {MOST_BYTES:,} bytes; export with --sums.")
        record = validated(read_record(path), path)
        key = record_key(
            record.inputs,
            record.measurement,
            record.measurement_version,
            record.settings,
            source_of(record.plug_ins),
        )
        if key != record.key or path.name != name_of(record):
            raise UserError(
                f"{path}: its key or its name does not follow from what was measured; export the "
                "record that the suite wrote."
            )
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', record.model_dump_json(exclude=_PROSE))
        if len(longest := max(texts, key=len)) > MOST_LETTERS:
            raise UserError(f"{path}: {longest[:40]}… has more than {MOST_LETTERS} letters.")
        found[path] = record
    return found


def require_follows(submission: Submission, board: Submission) -> dict[Path, Result]:
    """Compute everything again that is not on a board with the same files.

    See `probes.measurements.recomputed.require_recomputed`.

    Returns:
        the results that were computed again.

    Raises:
        UserError: a stored number does not follow from its sums.
    """
    known = {_content(path, result) for path, result in board.results.items()}
    new = {
        path: result
        for path, result in submission.results.items()
        if not known or _content(path, result) not in known
    }
    for path, result in new.items():
        require_recomputed(result, path)
    return new


def _content(path: Path, result: Result) -> tuple[str, ...]:
    """The scores at `path` and the evidence behind them, with digests of their arrays."""
    stored = (result, *result.evidence.values())
    arrays = [path.with_name(name_of(each)).with_suffix(".npz") for each in stored]
    digests = [sha256(file) for file in arrays if file.exists()]
    return (*(each.model_dump_json() for each in stored), *digests)


def require_unchanged(submission: Submission, board: Submission) -> None:
    """Check that nothing contradicts what is on a board.

    The text of a corpus that the suite knows has to be the known one, and the same throughout.

    Raises:
        UserError: the same revision of a model has other weights or another score, or the same
            corpus another text.
    """
    weights = {values(x, _WEIGHTS): x for x in board.results.values()}
    texts = {values(x, _CORPUS): x.corpus.fingerprint for x in board.results.values()}
    scores = {values(x, _SCORES): x for x in board.results.values()}
    for path, result in submission.results.items():
        name, corpus = result.model.name, result.corpus
        one = weights.get(values(result, _WEIGHTS), result)
        if values(one, SAME_MODEL) != values(result, SAME_MODEL):
            raise UserError(
                f"{path}: weights {result.model.digest[:8]} of {name} at revision "
                f"{result.model.revision}, which on the board are {one.model.digest[:8]}; name "
                "another revision."
            )
        if known := _known_text(corpus):
            texts.setdefault(values(result, _CORPUS), known)
        text = texts.get(values(result, _CORPUS), corpus.fingerprint)
        if text != corpus.fingerprint:
            raise UserError(
                f"{path}: fingerprint {corpus.fingerprint[:8]} of {corpus.name} {corpus.version}, "
                f"which elsewhere is {text[:8]}; probe on the same files, with the board's "
                "version of the suite."
            )
        _require_same_scores(result, path, scores.get(values(result, _SCORES), result))


def _known_text(corpus: CorpusRecord) -> str:
    """The fingerprint of one of the suite's corpora, in its version; its own for a part of it.

    Empty for other corpora: there may be several of a name.
    """
    name = corpus.name
    if name not in corpora or corpora.origin(name) or corpora.get(name).version != corpus.version:
        return ""
    known = "" if corpus.limited or DROPPED in corpus.notes else corpora.get(name).fingerprint
    return known or corpus.fingerprint


def _require_same_scores(result: Result, path: Path, known: Result) -> None:
    for layer in sorted({*result.layers} & {*known.layers}):
        for split in ("test", "dev"):
            now, before = result.score(layer, split), known.score(layer, split)
            if now != before:
                raise UserError(
                    f"{path}: {result.task.name}, layer {layer}, {result.task.metric} on {split}: "
                    f"{number_text(now)}, but {number_text(before)} on the board for the same "
                    f"revision of {result.model.name}; leave it out, or name another revision."
                )
