"""Treebanks in CoNLL-U: the user's own, and registered ones of English."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from probes.common.errors import UserError
from probes.data.conllu_files import read_conllu
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import CorpusRequest, Source, source_of_files
from probes.data.splits import with_distinct_ids

_LANGUAGE = re.compile(r"([a-z]{2,3})_")
UNKNOWN_LANGUAGE = "und"
WITHHELD = "_"
"""Replaces every word in treebanks released without their text."""


def find_treebank(name: str, paths: list[Path], request: CorpusRequest) -> Source:
    """The treebank in files whose names follow UD's convention for splits.

    Raises:
        UserError: a file is empty; see also `source_of_files`.
    """
    for path in paths:
        if not path.stat().st_size:
            raise UserError(f"{path}: the file is empty.")
    return source_of_files(name, paths, request, read_treebank)


def read_treebank(source: Source) -> Corpus:
    """Read all files, in order of their names. A note counts the files of a split with several."""
    files = [path for paths in source.files.values() for path in paths]
    by_file = with_distinct_ids(
        {str(path): tuple(read_conllu(path, language_of(path))) for path in files}
    )
    words = [word for part in by_file.values() for sentence in part for word in sentence.words]
    if 2 * words.count(WITHHELD) > len(words):
        raise UserError(
            f"--corpus {source.name}: most words are {WITHHELD!r}, so the release has no text; "
            "merge it with its source first, see its README."
        )
    parts = {
        split: [sentence for path in paths for sentence in by_file[str(path)]]
        for split, paths in source.files.items()
    }
    notes = {f"files of {split}": len(p) for split, p in source.files.items() if len(p) > 1}
    return source.corpus(parts, notes)


def language_of(path: Path) -> str:
    """The language code at the start of a UD file name; ``und`` if there is none."""
    match = _LANGUAGE.match(path.name)
    return match[1] if match else UNKNOWN_LANGUAGE


def read_english(
    source: Source, keep: Callable[[Sentence], bool] = lambda sentence: True
) -> Corpus:
    """Read English sentences from the CoNLL-U files "train", "dev" and "test".

    With a limit, no more is read than that, and one more sentence of each split, which shows that
    there are others. Sentences for which `keep` is false are left out.
    """
    limit = None if source.limit is None else source.limit + 1
    sentences = {split: read_conllu(source.files[split][0], "en") for split in SPLITS}
    splits = {split: tuple(islice(filter(keep, x), limit)) for split, x in sentences.items()}
    return source.corpus(splits)


_SUPERSEDED = "GUM_conversation_court"
"""An earlier state of the document that GUM's release calls GUM_court_carpet."""


def read_gum(source: Source) -> Corpus:
    """Read GUM (Zeldes 2017) without the document that is in it twice."""
    left_out = 0

    def keep(sentence: Sentence) -> bool:
        nonlocal left_out
        left_out += sentence.document == _SUPERSEDED
        return sentence.document != _SUPERSEDED

    treebank = read_english(source, keep)
    notes = {f"train sentences of {_SUPERSEDED} left out, superseded": left_out}
    return replace(treebank, notes=notes)


def write_gum_train(members: Mapping[str, bytes], folder: str, target: Path) -> None:
    """Write GUM's training file: the documents that dev and test lack, in the order of names."""
    held_out = {
        name
        for split in ("dev", "test")
        for name in re.findall(rb"^# newdoc id = (\S+)", members[f"en_gum-ud-{split}.conllu"], re.M)
    }
    documents = {Path(path).stem.encode(): members[path] for path in sorted(members) if "/" in path}
    target.write_bytes(b"".join(text for name, text in documents.items() if name not in held_out))
