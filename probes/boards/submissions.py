"""Submissions to a board: results whose numbers follow from their sums, and those left off.

Nobody is believed: every record is read strictly, its key and file name have to follow from what it
says, and its scores, intervals and tests from what is stored beside it
(`probes.probing.recomputed_records`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args
from zipfile import BadZipFile, ZipFile

from probes.boards.comparable import SAME_FLOOR, SAME_MODEL, SAME_PAIR, R, select_like, twins_of
from probes.boards.soundness import require_sound
from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.grouping import grouped
from probes.common.process import infrequent_garbage_collection
from probes.data.registered import corpora
from probes.data.splits import DROPPED
from probes.extraction.reading.views import ViewName
from probes.frames.frame import IDENTITY, frame_of_files
from probes.frames.header_columns import values
from probes.frames.joined_results import results_with_evidence
from probes.frames.record_status import reasons_outdated
from probes.frames.record_validation import read_validated
from probes.measurements.plugin_keys import source_of
from probes.probing.recomputed_records import number_text, require_recomputed, why_not_recomputed
from probes.records.record import Record, record_key
from probes.records.record_files import comparable_content, name_of, record_paths
from probes.records.result import Result
from probes.tasks.builtin import tasks, views_of
from probes.tasks.task import plain_name

MOST_BYTES = 20 * 10**6
"""Limit on a file. With sums, scores of a task on a treebank have a tenth of a million."""

PACKED = 10
"""Bytes of arrays that count as one of a file."""

MOST_LETTERS = 200
"""Limit on a text, such as a name or a label."""

COPY = "an earlier submission has the same"
"""Why a copy in another folder is left off."""

_PROSE: Any = {"notes": True, "provenance": True, "corpus": {"citation"}}
"""Fields that may be longer."""

_WEIGHTS = ("model", "revision", "dtype")
_CORPUS = ("corpus", "corpus_version", "limit", "dropped")
_SCORES = (*_WEIGHTS, *_CORPUS, "task", "pooling", *SAME_PAIR)


class LeftOff(NamedTuple):
    """A record that a board does not show, and why."""

    path: Path
    record: Record
    reason: str


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
    """The results below folders, and the records that a board leaves off.

    Raises:
        UserError: a folder does not exist, or a record cannot be read, is too large or is not what
            it says. Nothing is computed again yet.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder; name a folder of results.")
    with infrequent_garbage_collection():
        strict = {path: record for folder in folders for path, record in _read_all(folder).items()}
    by_identity: dict[tuple[Any, ...], tuple[Path, Result]] = {}
    left_off: list[LeftOff] = []
    for records in by_submission(strict).values():
        results, not_shown = _used_results(records)
        left_off += not_shown
        for path, result in results.items():
            if by_identity.setdefault(values(result, IDENTITY), (path, result))[0] != path:
                left_off.append(LeftOff(path, result, COPY))
    return Submission(dict(by_identity.values()), tuple(left_off))


def place_of_submission(path: Path) -> Path:
    """The folder that has the folders of models in which the record at `path` was submitted.

    Only what lies there stands beside the record: evidence, and random twins.
    """
    return Path(*path.absolute().parts[:-3])


def by_submission(records: Mapping[Path, R]) -> dict[Path, dict[Path, R]]:
    """The records of each submission, by its place."""
    submissions = grouped(records.items(), lambda item: place_of_submission(item[0]))
    return {place: dict(of_place) for place, of_place in submissions.items()}


def _used_results(all_records: Mapping[Path, Record]) -> tuple[dict[Path, Result], list[LeftOff]]:
    frame = frame_of_files(all_records)
    records = frame.records()
    outdated = dict(zip(records, reasons_outdated(frame.headers), strict=True))
    reasons = {path: why_not_recomputed(x, path) or outdated[path] for path, x in records.items()}
    counting = {path: record for path, record in records.items() if not reasons[path]}
    for path, record in counting.items():
        require_sound(record, path)
    results = results_with_evidence(counting)
    shown_records = (x for result in results.values() for x in (result, *result.evidence.values()))
    used = {values(x, IDENTITY) for x in shown_records}
    return results, [
        LeftOff(path, record, reasons[path] or "it stands behind other scores")
        for path, record in records.items()
        if reasons[path] or values(record, IDENTITY) not in used
    ]


def _read_all(folder: Path) -> dict[Path, Record]:
    """All records below a folder; one that is too large, or not what it says, is refused."""
    records = {}
    if link := next((path for path in folder.rglob("*") if path.is_symlink()), None):
        raise UserError(f"{link}: a link; a board takes files and folders alone.")
    for path in record_paths(folder):
        for file in (path, path.with_suffix(".npz")):
            sizes = (file.stat().st_size, _unpacked(file) / PACKED) if file.exists() else ()
            if any(size > MOST_BYTES for size in sizes):
                raise UserError(f"{file}: more than {MOST_BYTES:,} bytes; export with --sums.")
        record = read_validated(path)
        key = record_key(
            record.inputs,
            record.measurement,
            record.measurement_version,
            record.settings,
            source_of(record.plug_ins),
        )
        if key != record.key or path.name != name_of(record) or not _has_own_view(record):
            raise UserError(
                f"{path}: its key, name, site or view does not follow from what was measured; "
                "export the record that the suite wrote."
            )
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', record.model_dump_json(exclude=_PROSE))
        if len(longest := max(texts, key=len)) > MOST_LETTERS:
            raise UserError(f"{path}: {longest[:40]}… has more than {MOST_LETTERS} letters.")
        records[path] = record
    return records


def _unpacked(file: Path) -> int:
    """Bytes of the arrays in a file, as it declares them; 0 for other files."""
    try:
        with ZipFile(file) as archive:
            return sum(part.file_size for part in archive.infolist())
    except (BadZipFile, OSError):  # whoever reads it says so
        return 0


def _has_own_view(record: Record) -> bool:
    """Whether site and view are those of the task, whose name alone is in the key."""
    task = record.task
    if task is None:
        return record.view in get_args(ViewName)
    name = plain_name(task.name)
    is_shipped = name in tasks and tasks.origin(name) is None
    full_name = f"{name}@{task.site}" if task.site else name
    return task.name == full_name and (not is_shipped or record.view in views_of(name))


def require_follows(submission: Submission, board: Submission) -> dict[Path, Result]:
    """Compute everything again that is not on a board with the same files (`require_recomputed`).

    Returns:
        the results that were computed again.
    """
    board_contents = {_content(path, result) for path, result in board.results.items()}
    new = {
        path: result
        for path, result in submission.results.items()
        if not board_contents or _content(path, result) not in board_contents
    }
    for path, result in new.items():
        require_recomputed(result, path)
    return new


def _content(path: Path, result: Result) -> tuple[str, ...]:
    """The scores at `path` and the evidence behind them, with digests of their arrays."""
    stored = (result, *result.evidence.values())
    arrays = [path.with_name(name_of(record)).with_suffix(".npz") for record in stored]
    digests = [sha256(file) for file in arrays if file.exists()]
    return (*(record.model_dump_json() for record in stored), *digests)


def require_unchanged(submission: Submission, board: Submission) -> None:
    """Check that nothing contradicts what is on a board.

    The text of a corpus that the suite knows has to be the known one, and the same throughout.

    Raises:
        UserError: the same revision of a model has other weights or another record of the same
            scores, or the same corpus another text.
    """
    board_results = {values(x, IDENTITY): x for x in board.results.values()}
    weights = {values(x, _WEIGHTS): x for x in board.results.values()}
    texts = {values(x, _CORPUS): x.corpus.fingerprint for x in board.results.values()}
    scores = {values(x, _SCORES): x for x in board.results.values()}
    _require_distinct_names(submission, board)
    _require_own_twins(submission, board)
    for path, result in submission.results.items():
        name, corpus = result.model.name, result.corpus
        one = weights.get(values(result, _WEIGHTS), result)
        if values(one, SAME_MODEL) != values(result, SAME_MODEL):
            raise UserError(
                f"{path}: weights {result.model.digest[:8]} of {name} at revision "
                f"{result.model.revision}, which on the board are {one.model.digest[:8]}; name "
                "another revision."
            )
        # There may be several other corpora of a name.
        if corpus.name in corpora and corpora.origin(corpus.name) is None:
            card = corpora.get(corpus.name)
            if corpus.version != card.version:
                raise UserError(
                    f"{path}: version {corpus.version!r} of {corpus.name}, of which the suite has "
                    f"{card.version}; probe on that, or call yours by another name."
                )
            shipped = "" if corpus.limited or DROPPED in corpus.notes else card.fingerprint
            texts.setdefault(values(result, _CORPUS), shipped or corpus.fingerprint)
        text = texts.get(values(result, _CORPUS), corpus.fingerprint)
        if text != corpus.fingerprint:
            raise UserError(
                f"{path}: fingerprint {corpus.fingerprint[:8]} of {corpus.name} {corpus.version}, "
                f"which elsewhere is {text[:8]}; probe on the same files, with the board's "
                "version of the suite."
            )
        same = board_results.get(values(result, IDENTITY))
        if before := same or scores.get(values(result, _SCORES)):
            _require_same_scores(result, path, before)
            _require_same_record(result, path, before)
    for copied in _copies(submission) - _copies(board):
        if copied in board_results:
            path = next(x.path for x in submission.left_off if values(x.record, IDENTITY) == copied)
            raise UserError(
                f"{path}: one of two copies of what is on the board, of which only one has its "
                "random twins beside it; leave yours out."
            )


def _copies(submission: Submission) -> Counter[tuple[Any, ...]]:
    return Counter(values(x.record, IDENTITY) for x in submission.left_off if x.reason == COPY)


def _require_own_twins(submission: Submission, board: Submission) -> None:
    """Refuse new random twins beside models on the board, whose ranks would depend on them."""
    on_board = {values(x, IDENTITY) for x in board.results.values()}
    new = by_submission(
        {path: x for path, x in submission.results.items() if values(x, IDENTITY) not in on_board}
    )
    for path, result in submission.results.items():
        if values(result, IDENTITY) in on_board:
            new_results = new.get(place_of_submission(path), {})
            for twin in select_like(twins_of(result, new_results), result, SAME_FLOOR):
                raise UserError(
                    f"{twin}: would count as a random twin of {result.model.name}, which is on the "
                    "board; put what you submit into a folder of its own."
                )


_LIKE_LATIN = str.maketrans(
    "аеорсухѕіјԁԛԝһӏвнмткαορνικτυχβε\u0131\u2212",
    "aeopcyxsijdqwhlbhmtkaopviktuxbei-",
)

_FILLERS = "\u115f\u1160\u2800\ufe0f"


def _as_seen(name: str) -> str:
    """A name as readers see it: without accents, cases and fillers, and with Latin letters."""
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_LIKE_LATIN)
    kinds = {"Pd": "-", "Mn": "", "Cf": "", **dict.fromkeys(("Zs", "Cc"), " ")}
    seen = "".join("" if c in _FILLERS else kinds.get(unicodedata.category(c), c) for c in letters)
    return " ".join(seen.split())


def _require_distinct_names(submission: Submission, board: Submission) -> None:
    """Refuse names that look like another one of the suite, the board or the submission."""
    seen = {("task", _as_seen(name)): name for name in tasks}
    for name in corpora:
        title = f"{name} {corpora.get(name).version}"
        seen |= {("corpus", _as_seen(name)): name, ("version", _as_seen(title)): title}
    for results, is_new in ((board.results, False), (submission.results, True)):
        for path, result in results.items():
            model, corpus = result.model, result.corpus
            names = {
                "corpus": corpus.name,
                "version": f"{corpus.name} {corpus.version}",
                "model": model.name,
                "revision": f"{model.name}@{model.revision}",
                "task": result.task.name,
            }
            for kind, name in names.items():
                other = seen.setdefault((kind, _as_seen(name)), name)
                if is_new and other != name:
                    raise UserError(
                        f"{path}: the {kind} {name!r} looks like {other!r}; call it by that name, "
                        "or by one that nobody confuses with it."
                    )


def _require_same_scores(result: Result, path: Path, board_result: Result) -> None:
    if [result.layers, {*result.evidence}] != [board_result.layers, {*board_result.evidence}]:
        raise UserError(
            f"{path}: other layers or evidence than on the board for {result.task.name} and the "
            f"same revision of {result.model.name}; leave it out, or name another revision."
        )
    for layer in sorted({*result.layers} & {*board_result.layers}):
        for split in ("test", "dev"):
            now, before = result.score(layer, split), board_result.score(layer, split)
            if now != before:
                raise UserError(
                    f"{path}: {result.task.name}, layer {layer}, {result.task.metric} on {split}: "
                    f"{number_text(now)}, but {number_text(before)} on the board for the same "
                    f"revision of {result.model.name}; leave it out, or name another revision."
                )


def _require_same_record(result: Result, path: Path, board_result: Result) -> None:
    """Refuse another record of what is on the board, which might take its place."""
    now, before = comparable_content(result), comparable_content(board_result)
    if changed_fields := [name for name in now if now[name] != before[name]]:
        raise UserError(
            f"{path}: {', '.join(changed_fields)} of {result.task.name} and the same revision of "
            f"{result.model.name} differ from what is on the board; leave it out, or name another "
            "revision."
        )
