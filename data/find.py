"""Finding a corpus by the value of `--corpus`: a name, files, or a dataset on the hub.

To add a kind of input, add an entry to `_KINDS`: its file ending, a function that makes a `Source`,
and the flags that it takes.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from probes.common.errors import UserError, listed, printable
from probes.common.registry import did_you_mean
from probes.data.item_suites import find_items
from probes.data.registered import corpora
from probes.data.sources import CorpusRequest, Source
from probes.data.stored_corpora import FOLDER, stored_corpus, stored_table
from probes.data.treebank import find_treebank


def _table_source(name: str, paths: list[Path], request: CorpusRequest) -> Source:
    from probes.data.labelled import find_table, read_table

    if request.labelled or request.texts:
        return stored_table(name, paths, request, find_table)
    items = find_items(name, paths, [read_table(path) for path in paths])
    if items is None:
        raise UserError(
            f"--corpus {' '.join(request.corpus)}: give its label column with --task-from, e.g. "
            "ner_tags; if its rows are texts, --text and --label; minimal pairs have the columns "
            "sentence_good and sentence_bad, facts subject, template and object."
        )
    _refuse_unused(request, ())
    return items


def _raw_text(name: str, paths: list[Path], request: CorpusRequest) -> Source:
    from probes.data.raw_text import find_text

    if not request.annotate:
        raise UserError(
            f"--corpus {' '.join(request.corpus)}: raw text has no annotation; give a spaCy "
            "pipeline with --annotate, e.g. en_core_web_sm."
        )
    return find_text(name, paths, request)


_OF_TABLES = ("task_from", "text", "label", "group", "split_by")
_KINDS: dict[str, tuple[Callable[[str, list[Path], CorpusRequest], Source], tuple[str, ...]]] = {
    ".conllu": (find_treebank, ("split_by",)),
    **dict.fromkeys(
        (".jsonl", ".json", ".csv", ".parquet"), (_table_source, (*_OF_TABLES, "field"))
    ),
    ".txt": (_raw_text, ("annotate", "split_by")),
}
"""By file ending: the function that makes a source from the corpus's name, the files and the
request; and the fields of `CorpusRequest` that apply (others are refused)."""

_FLAGS = tuple(dict.fromkeys(flag for _, flags in _KINDS.values() for flag in flags))
_ENDINGS = sorted(_KINDS)
_READABLE = listed(_ENDINGS)


def find_corpus(*names: str, **fields: Any) -> Source:
    """Find a corpus; missing files of registered corpora are downloaded.

    Args:
        *names: a registered name; a folder, files or a pattern; or a dataset on the hub.
        **fields: the other fields of `CorpusRequest`.
    """
    request = CorpusRequest(names, **fields)
    if len(names) == 1 and names[0] in corpora:
        # All have splits, and `--transfer` may read them beside a treebank that has none.
        _refuse_unused(request, ("split_by",))
        source = corpora.get(names[0]).find(request)
    else:
        require_known(names, request.labelled or request.texts)
        source = _find_own(request, expand(names))
    source = replace(source, limit=request.limit, drop_overlap=request.drop_overlap)
    # What the reader of a plug-in depends on is not known; items are read as fast as stored ones.
    if corpora.origin(names[0]) or source.items:
        return source
    return replace(source, loader=partial(stored_corpus, folder=request.cache_dir / FOLDER))


def require_known(names: Sequence[str], labelled: Sequence[str]) -> None:
    """Check that names are a registered corpus, existing files, or, with labels, a hub dataset.

    Raises:
        UserError: they are none of these; the message suggests the closest registered name.
    """
    if (len(names) == 1 and names[0] in corpora) or expand(names):
        return
    name = " ".join(names)
    if _looks_like_path(name):
        raise UserError(f"--corpus {name}: there is no such file or folder.")
    if not labelled or len(names) > 1:
        raise UserError(
            f"Unknown corpus {name!r}. {did_you_mean(name, corpora)} Give a file or folder by its "
            "path; a dataset on the hub needs --task-from, or --text and --label."
        )


def _find_own(request: CorpusRequest, paths: list[Path]) -> Source:
    """The user's own files, whose endings determine the reader, or a dataset on the hub."""
    name = " ".join(request.corpus)
    if not paths:
        _refuse_unused(request, _OF_TABLES)
        from probes.data.labelled import find_dataset

        return find_dataset(name, request)
    endings = {path.suffix.lower() for path in paths}
    if len(endings) == 1 and (kind := _KINDS.get(paths[0].suffix.lower())):
        make, flags = kind
        _refuse_unused(request, flags)
        return make(_corpus_label(request.corpus, paths), paths, request)
    for path in paths:
        if path.suffix.lower() not in _ENDINGS:
            raise UserError(
                f"--corpus {path}: not a format that can be read; give {_READABLE} files."
            )
    raise UserError(
        f"--corpus {name}: cannot combine files of the kinds {', '.join(sorted(endings))}; "
        f"give files of one kind: {', '.join(_ENDINGS)}."
    )


def _refuse_unused(request: CorpusRequest, flags: tuple[str, ...]) -> None:
    """Refuse flags that do not apply to this kind of corpus, rather than ignore them."""
    for field in _FLAGS:
        if field not in flags and getattr(request, field):
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
                paths.update(_in_folder(path, name))
            elif path.is_file():
                paths.add(path)
            elif matches := glob.glob(str(path)):
                paths.update(p for p in map(Path, matches) if _is_data(p))
            elif len(names) > 1:
                raise UserError(f"--corpus {name}: there is no such file.")
        except (OSError, RuntimeError) as error:
            raise UserError(f"--corpus {name[:80]}: not a valid path ({error}).") from error
    return sorted(paths)


def _in_folder(folder: Path, name: str) -> list[Path]:
    """The treebank in a folder; without one its tables, or else its texts."""
    if any((folder / file).is_file() for file in ("state.json", "dataset_dict.json")):
        raise UserError(
            f"--corpus {name}: was written by datasets.save_to_disk; write each split "
            "by to_parquet, e.g. to FOLDER/my-train.parquet, and give that folder."
        )
    data_files = [path for path in folder.iterdir() if _is_data(path)]
    for endings in ([".conllu"], [e for e in _ENDINGS if e not in (".conllu", ".txt")], [".txt"]):
        if paths := [path for path in data_files if path.suffix.lower() in endings]:
            return paths
    raise UserError(f"--corpus {name}: the folder has no {_READABLE} file.")


def _is_data(path: Path) -> bool:
    return path.suffix.lower() in _ENDINGS and path.is_file() and not path.name.startswith(".")


def _corpus_label(names: Sequence[str], paths: Sequence[Path]) -> str:
    """The corpus name of the user's files in tables: the folder's or the file's name."""
    only = Path(names[0]).expanduser()
    if len(names) == 1 and only.is_dir():
        return printable(only.resolve().name)
    return printable(paths[0].stem if len(paths) == 1 else paths[0].resolve().parent.name)


def _looks_like_path(name: str) -> bool:
    has_mark = any(mark in name for mark in "*?[\\")
    return has_mark or name.startswith((".", "/", "~")) or Path(name).suffix.lower() in _ENDINGS
