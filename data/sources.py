"""A corpus that has been found but not yet read, and the request that led to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from probes.common.errors import UserError
from probes.common.files import default_cache, default_data_dir, folder_name, sha256
from probes.data.chunk_schemes import Scheme
from probes.data.downloads import FileFinder
from probes.data.items import KINDS, Item, Kind, sample_of_each
from probes.data.sentence import ROOT, SPLITS, Corpus, Sentence, bare, interned
from probes.data.splits import (
    UNNAMED,
    SplitBy,
    Splits,
    cut_missing_splits,
    files_by_split,
    overlap,
    require_splits,
    without_overlap,
)

READERS_VERSION = 3
"""Version of all readers; raise it whenever the same files would give other sentences."""

OTHER_TREES = (
    "sentences whose trees are of the pipeline's own scheme, not UD's: depth, distance and "
    "structure compare with no treebank's"
)
"""A note on raw text. The heads of en_core_web_sm are UD's for 57 % of the words of EWT's test."""


@dataclass(frozen=True)
class CorpusRequest:
    """The user's request; each field is the flag of the same name.

    Attributes:
        corpus: a registered name; a folder, files or a pattern; or a dataset on the hub.
        data_dir: searched for registered files before anything is downloaded.
        cache_dir: folder for downloads.
        offline: never download.
        mirror: see `FileFinder`.
        limit: number of sentences to keep of each split, or of items of each paradigm; None for
            all.
        split_by: unit that must stay whole when a missing split is cut from another.
        drop_overlap: drop training sentences that also occur in dev or test.
        task_from: label columns of the user's own data.
        text, messages, label: column of texts or of chats, and the columns of their labels.
        special_tokens: whether special tokens in texts are treated as special.
        group: column that names what rows share, such as an author; else `document` is looked for.
        field: key under which the rows of a JSON file lie; dotted where it is further below.
        annotate: spaCy pipeline to annotate raw text with.
        complete: download also what a corpus does without, see `Source.further`.
    """

    corpus: tuple[str, ...]
    data_dir: Path | None = field(default_factory=default_data_dir)
    cache_dir: Path = field(default_factory=default_cache)
    offline: bool = False
    mirror: str = ""
    limit: int | None = None
    split_by: SplitBy | None = None
    drop_overlap: bool = False
    task_from: tuple[str, ...] = ()
    annotate: str = ""
    complete: bool = False
    text: str = ""
    messages: str = ""
    special_tokens: bool = False
    label: tuple[str, ...] = ()
    group: str = ""
    field: str = ""

    @property
    def texts(self) -> str:
        """The column of texts or chats; empty for tokens."""
        return self.text or self.messages

    @property
    def labelled(self) -> tuple[str, ...]:
        """The label columns, of words and sentences or of texts."""
        return (*self.task_from, *self.label)

    @property
    def finder(self) -> FileFinder:
        """Finds and downloads the files of registered corpora."""
        return FileFinder(self.data_dir, self.cache_dir, self.offline, self.mirror)


@dataclass(frozen=True)
class LabelColumn:
    """A label column of the user's own data, from which a task is made.

    Attributes:
        name: name of the column.
        shape: whether there is a label per word, per sentence or per text.
        kind: whether labels are classes, sets of classes, or numbers.
        types: the column that has the types of words, on which control labels hang; empty if they
            have none, None if the word itself is its type.
        scheme: how labels mark chunks; None if they do not.
        uneven: whether the largest class of texts is more than 1.5 times as large as it would be if
            all were equal.
        stripped: number of classes from whose edges spaces were removed.
    """

    name: str
    shape: Literal["word", "sentence", "text"]
    kind: Literal["classification", "multi-label", "regression"]
    scheme: Scheme | None = None
    uneven: bool = False
    types: str | None = None
    stripped: int = 0

    @property
    def layer(self) -> str:
        """Its name in `Sentence.columns`, distinct from all annotation layers."""
        return f"column {self.name}"


@dataclass(frozen=True)
class Source:
    """A corpus that has been found but not yet read.

    Attributes:
        name, version, licence: see `Corpus`.
        files: files by role ("train", "dev", "test", …).
        identity: what identifies the content, by role: SHA-256 of a file, a commit, a version.
        read: reads the files into a corpus.
        layers: its annotation layers; None if they are known only after reading.
        silver: the layers that were annotated automatically.
        citation: BibTeX.
        from_user: whether the files are the user's own, so that the name does not identify them.
        columns: label columns from which tasks are made, by name.
        further: digests of further files that hold a layer, by layer; the corpus is also read
            without them, and the digest of its other annotation does not depend on them.
        absent: layers of such files that were not found.
        tasks: the tasks of a run that names none; the standard ones if this is empty.
        group: column that stands for documents; empty if none is named.
        loader: makes the corpus in place of `read_files`, if it was stored when it was read before.
        limit, drop_overlap, split_by: see `CorpusRequest`.
    """

    name: str
    version: str
    licence: str
    files: Mapping[str, tuple[Path, ...]]
    identity: Mapping[str, str | bool]
    read: Callable[[Source], Corpus]
    layers: frozenset[str] | None = None
    silver: frozenset[str] = frozenset()
    citation: str = ""
    from_user: bool = False
    columns: Mapping[str, LabelColumn] = field(default_factory=dict)
    further: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    tasks: tuple[str, ...] = ()
    group: str = ""
    loader: Callable[[Source], Corpus] | None = field(default=None, compare=False, repr=False)
    limit: int | None = None
    drop_overlap: bool = False
    split_by: SplitBy | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content of the files, the version of the readers and the request.

        Known before anything is parsed.
        """
        return self.digest_for(())

    def digest_for(self, layers: Iterable[str]) -> str:
        """The digest for who reads `layers`: with the further files that hold any of these."""
        further = {layer: self.further[layer] for layer in layers if layer in self.further}
        limits = {"limit": self.limit, "drop_overlap": self.drop_overlap, "split_by": self.split_by}
        # Earlier versions took the first items of each paradigm; their results are not reused.
        sampling = {"items": "drawn"} if self.items and self.limit is not None else {}
        return _digest_of_settings({**self._content, **limits, **further, **sampling})

    @cached_property
    def slug(self) -> str:
        """Name of the folder for its results, with a digest for the user's own files."""
        if not self.from_user:
            return folder_name(self.name)
        return f"{folder_name(self.name)}-{_digest_of_settings(self._content)[:8]}"

    def why_missing(self, layers: Iterable[str]) -> str:
        """Reason why it lacks `layers`, with a remedy if there is one."""
        reason = f"{self.name} has no {' or '.join(layers)}"
        if self.absent.issuperset(layers):
            reason += f" yet (`python -m probes fetch {self.name}` gets them)"
        return reason

    @property
    def items(self) -> Kind | None:
        """The kind of items that it is made of; None if of sentences."""
        return next((kind for kind in KINDS if kind in (self.layers or ())), None)

    @property
    def _content(self) -> dict[str, object]:
        return {
            "name": self.name,
            "version": self.version,
            "readers": READERS_VERSION,
            **self.identity,
        }

    def corpus(
        self,
        parts: Mapping[str, Iterable[Sentence]] = {},
        notes: Mapping[str, int] = {},
        items: Iterable[Item] = (),
    ) -> Corpus:
        """The corpus with these sentences or items; `read_files` cuts splits that are missing."""
        parts = parts or dict.fromkeys(SPLITS, ())
        splits = {split: tuple(part) for split, part in parts.items()}
        return Corpus(self.name, self.version, self.licence, splits, notes, items=tuple(items))

    def load(self) -> Corpus:
        """The corpus, as `loader` gives it or read from the files."""
        return self.loader(self) if self.loader else self.read_files()

    def read_files(self) -> Corpus:
        """Read the files, cut missing splits, apply `limit` and `drop_overlap`, count oddities."""
        corpus = self.read(self)
        if corpus.items:
            return self._limited_items(corpus)
        full_splits, cut = cut_missing_splits(
            corpus.splits, self.split_by or "sentence", f"--corpus {self.name}"
        )
        splits = {split: full_splits[split][: self.limit] for split in SPLITS}
        notes = {**corpus.notes, **cut}
        limited = splits != full_splits
        if limited:
            # Readers of registered corpora stop soon after the limit.
            notes = {f"{note}, before --limit": n for note, n in notes.items() if self.from_user}
        splits, changed = _without_spaces_at_edges(splits)
        notes |= changed
        notes |= overlap(splits)
        if self.drop_overlap:
            splits, dropped = without_overlap(splits)
            notes |= dropped
        corpus = replace(corpus, splits=splits, limited=limited)
        for layer in ("upos", "xpos", "heads", "deprels", "chunks"):
            n_without = sum(not sentence.layer(layer) for sentence in corpus)
            if n_without and layer in corpus.layers:
                notes[f"sentences without complete {layer}"] = n_without
        if n_several := sum(sentence.heads.count(ROOT) > 1 for sentence in corpus):
            notes["sentences with several roots, read as if one more word were above them"] = (
                n_several
            )
        return replace(corpus, notes=notes)

    def _limited_items(self, corpus: Corpus) -> Corpus:
        """The corpus with a sample of at most `limit` items of each paradigm."""
        items = corpus.items
        if self.limit is not None:
            items = tuple(sample_of_each(items, self.limit))
        notes = {"items": len(items), "paradigms": len({item.paradigm for item in items})}
        limited = len(items) < len(corpus.items)
        return replace(corpus, items=items, notes={**notes, **corpus.notes}, limited=limited)


def source_of_files(
    name: str,
    paths: Iterable[Path],
    request: CorpusRequest,
    read: Callable[[Source], Corpus],
    unsplit: SplitBy | None = None,
    identity: Mapping[str, str] = {},
    **fields: Any,
) -> Source:
    """The user's own files of sentences, with their splits from their names.

    Args:
        unsplit: unit that stays whole if no name contains a split; None if splits are required.
        identity: what else identifies the content.
        **fields: further fields of `Source`.
    """
    files = files_by_split(name, paths)
    split_by = request.split_by or (unsplit if set(files) == {UNNAMED} else None)
    require_splits(files, split_by, f"--corpus {name}")
    # Readers take ids, and the language, from the names of files.
    content = {
        f"{split} {i}": f"{path.name} {sha256(path)}"
        for split, part in files.items()
        for i, path in enumerate(part)
    }
    return Source(
        name,
        **{"version": "", "licence": "", **fields},
        files=files,
        identity={**content, **identity},
        read=read,
        from_user=True,
        split_by=None if set(files) >= set(SPLITS) else split_by,
    )


def _without_spaces_at_edges(parts: Splits) -> tuple[Splits, dict[str, int]]:
    """Remove white space and zero-width spaces at the edges of words, and count these words."""
    changed = 0

    def without_spaces(sentence: Sentence) -> Sentence:
        nonlocal changed
        words = tuple(map(bare, sentence.words))
        if sentence.whole or words == sentence.words:
            return sentence
        if not all(words):
            number = words.index("") + 1
            raise UserError(f"Sentence {sentence.id!r}: word {number} is only spaces; remove it.")
        changed += sum(map(str.__ne__, words, sentence.words))
        return replace(sentence, words=interned(words))

    splits = {split: tuple(map(without_spaces, part)) for split, part in parts.items()}
    note = {"words with spaces at their edges, which were removed": changed}
    return splits, note if changed else {}


def _digest_of_settings(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
