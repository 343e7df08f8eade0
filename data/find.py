"""Finding a corpus by what `--corpus` says: a name, files, or a dataset on the hub."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.common.errors import UserError, printable
from probes.common.registry import did_you_mean
from probes.common.wording import listed
from probes.data.registered import corpora
from probes.data.sources import CorpusRequest, Source
from probes.data.treebank import find_treebank

TREEBANK = frozenset((".conllu",))
TABLES = frozenset((".jsonl", ".json", ".csv", ".parquet"))
TEXT = frozenset((".txt",))

_OF_TABLES = ("text", "label", "group", "field")
"""What is asked of tables alone."""


def find_corpus(*names: str, **asked: Any) -> Source:
    """Find a corpus; missing files of registered corpora are downloaded.

    Args:
        *names: a registered name; a folder, files or a pattern; or a dataset on the hub.
        **asked: the other fields of `CorpusRequest`.

    Raises:
        UserError: the corpus does not exist or cannot be obtained.
    """
    request = CorpusRequest(names, **asked)
    if names and names[0] in corpora and len(names) == 1:
        _refuse_unused(request, "task_from", "annotate", "split_by", *_OF_TABLES)
        source = corpora.get(names[0]).find(request)
    else:
        source = _find_own(request)
    return replace(source, limit=request.limit, drop_overlap=request.drop_overlap)


def require_known(names: Sequence[str], labelled: Sequence[str]) -> None:
    """Check that names are a registered corpus, existing files, or possibly a hub dataset.

    Args:
        labelled: the label columns that are asked for.

    Raises:
        UserError: they are none of these; the message suggests the closest registered name.
    """
    if (len(names) == 1 and names[0] in corpora) or expand(names):
        return
    name = " ".join(names)
    if labelled and len(names) == 1 and not _looks_like_path(name):
        return
    if _looks_like_path(name):
        raise UserError(f"--corpus {name}: there is no such file or folder.")
    raise UserError(
        f"Unknown corpus {name!r}. {did_you_mean(name, corpora)} Give a file or folder by its "
        "path; a dataset on the hub needs --task-from, or --text and --label."
    )


def _find_own(request: CorpusRequest) -> Source:
    """The user's own files; their endings determine the reader."""
    paths = expand(request.corpus)
    name = " ".join(request.corpus)
    require_known(request.corpus, request.labelled)
    if not paths:
        _refuse_unused(request, "annotate", "field")
        from probes.data.labelled import find_dataset

        return find_dataset(name, request)
    endings = {path.suffix.lower() for path in paths}
    label = _label(request.corpus, paths)
    if endings <= TREEBANK:
        _refuse_unused(request, "task_from", "annotate", *_OF_TABLES)
        return find_treebank(label, paths, request)
    if endings <= TABLES and len(endings) == 1:
        from probes.data.labelled import find_items_in, find_table

        if not request.labelled:
            if (items := find_items_in(label, paths)) is not None:
                _refuse_unused(request, "annotate", "split_by", "group", "field")
                return items
            raise UserError(
                f"--corpus {name}: give its label column with --task-from, e.g. ner_tags; if its "
                "rows are texts, --text and --label; minimal pairs have the columns sentence_good "
                "and sentence_bad, facts subject, template and object."
            )
        _refuse_unused(request, "annotate")

        return find_table(label, paths, request)
    if endings <= TEXT:
        if not request.annotate:
            raise UserError(
                f"--corpus {name}: raw text has no annotation; give a spaCy pipeline with "
                "--annotate, e.g. en_core_web_sm."
            )
        _refuse_unused(request, "task_from", *_OF_TABLES)
        from probes.data.raw_text import find_text

        return find_text(label, paths, request)
    for path in paths:
        if path.suffix.lower() not in _KINDS:
            raise UserError(
                f"--corpus {path}: not a format that can be read; give {_READABLE} files."
            )
    raise UserError(
        f"--corpus {name}: cannot combine files of the kinds {', '.join(sorted(endings))}; "
        f"give files of one kind: {', '.join(sorted(TREEBANK | TABLES | TEXT))}."
    )


def _refuse_unused(request: CorpusRequest, *fields: str) -> None:
    """Refuse flags that do not apply to this kind of corpus, rather than ignore them."""
    for field in fields:
        if getattr(request, field):
            raise UserError(
                f"--{field.replace('_', '-')}: does not apply to --corpus "
                f"{' '.join(request.corpus)}; leave it out."
            )


def expand(names: Sequence[str]) -> list[Path]:
    """The data files that names, folders and patterns refer to, sorted; empty if none exist.

    Raises:
        UserError: a folder has no data files, or one of several names does not exist.
    """
    paths: set[Path] = set()
    for name in names:
        try:
            path = Path(name).expanduser()
            if path.is_dir():
                if any((path / file).is_file() for file in _SAVED):
                    raise UserError(
                        f"--corpus {name}: was written by datasets.save_to_disk; write each split "
                        "by to_parquet, e.g. to FOLDER/my-train.parquet, and give that folder."
                    )
                found = [p for p in path.iterdir() if _is_data(p)]
                if not found:
                    raise UserError(f"--corpus {name}: the folder has no {_READABLE} file.")
                conllu = [p for p in found if p.suffix.lower() in TREEBANK]
                paths.update(conllu or _without_readme(found))
            elif path.is_file():
                paths.add(path)
            elif matches := glob.glob(str(path)):
                paths.update(p for p in map(Path, matches) if _is_data(p))
            elif len(names) > 1:
                raise UserError(f"--corpus {name}: there is no such file.")
        except (OSError, RuntimeError) as error:
            raise UserError(f"--corpus {name[:80]}: not a valid path ({error}).") from error
    return sorted(paths)


_SAVED = "state.json", "dataset_dict.json"
_KINDS = TREEBANK | TABLES | TEXT
_READABLE = listed(sorted(_KINDS))


def _is_data(path: Path) -> bool:
    return path.suffix.lower() in _KINDS and path.is_file() and not path.name.startswith(".")


def _without_readme(paths: list[Path]) -> list[Path]:
    """A folder's data files, without files such as README.txt if there are tables."""
    tables = [path for path in paths if path.suffix.lower() in TABLES]
    return tables or paths


def _label(names: Sequence[str], paths: Sequence[Path]) -> str:
    """The corpus name of the user's files in tables: the folder's or the file's name."""
    only = Path(names[0]).expanduser()
    if len(names) == 1 and only.is_dir():
        return printable(only.resolve().name)
    return printable(paths[0].stem if len(paths) == 1 else paths[0].resolve().parent.name)


def _looks_like_path(name: str) -> bool:
    return (
        name.startswith((".", "/", "~"))
        or any(mark in name for mark in "*?[\\")
        or (Path(name).suffix.lower() in _KINDS)
    )
