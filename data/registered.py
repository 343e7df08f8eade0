"""Corpora with a name: the facts on their data cards, and the readers of their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from probes.common.errors import DiskError, UserError
from probes.common.files import published, sha256
from probes.common.registry import Registry, did_you_mean
from probes.common.terminal import progress
from probes.data import conll2000, generalisation, numeracy
from probes.data.diagnostics import read_diagnostics
from probes.data.downloads import HERE, Card, Remote, read_card
from probes.data.ewt import read_ewt
from probes.data.items import KINDS
from probes.data.minimal_pairs import LANGUAGES, read_blimp, read_clams, read_suites
from probes.data.sentence import LAYERS, SPLITS, Corpus, Sentence
from probes.data.sources import CorpusRequest, LabelColumn, Source, read_checked
from probes.data.treebank import read_english, read_gum, write_gum_train


@dataclass(frozen=True)
class Registered:
    """A corpus that `--corpus` knows by name.

    Attributes:
        name, version, licence, layers, silver, citation: see `Source`.
        summary: one line for `--list-corpora`.
        files: files to download, or embedded ones, by role.
        read: reads the files into a corpus.
        genre: the genre of a document, by its name; None if names do not tell.
        columns, tasks: see `Source`.
        further: cards of layers that runs have only if their files are found, by layer.
        fingerprint: of the whole corpus, by which boards know it; see `Corpus.fingerprint`.
    """

    name: str
    version: str
    licence: str
    summary: str
    files: Mapping[str, Remote | Path]
    read: Callable[[Source], Corpus]
    layers: frozenset[str]
    silver: frozenset[str] = frozenset()
    citation: str = ""
    genre: Callable[[str], str] | None = None
    columns: Mapping[str, LabelColumn] = field(default_factory=dict)
    further: Mapping[str, Card] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    fingerprint: str = ""

    @classmethod
    def from_card(cls, name: str, read: Callable[[Source], Corpus], **fields: Any) -> Registered:
        """The corpus of a data card.

        Args:
            name: name of the corpus and of its card.
            read: reads the files into a corpus.
            **fields: other fields of the class, which take precedence.
        """
        card = read_card(name)
        further = {layer: read_card(other) for layer, other in card.further.items()}
        return cls(name=name, read=read, **{**vars(card), "further": further, **fields})

    @cached_property
    def remotes(self) -> dict[str, Remote]:
        """The files that are not embedded."""
        return {role: file for role, file in self.files.items() if isinstance(file, Remote)}

    def find(self, request: CorpusRequest) -> Source:
        """Find the files; missing ones are downloaded.

        Raises:
            UserError: a file is missing and cannot be downloaded, or a layer is unknown.
        """
        for layer in sorted(self.layers | self.silver):
            if layer not in (*LAYERS, *KINDS):
                hint = did_you_mean(layer, LAYERS)
                raise UserError(f"Corpus {self.name!r}: unknown annotation layer {layer!r}. {hint}")
        for file in self.files.values():
            if isinstance(file, Path) and not file.is_file():
                raise UserError(
                    f"Corpus {self.name!r}: its file {file} does not exist; restore it."
                )
        found = {}
        if self.remotes:
            found = request.finder.get(self.name, self.remotes, _terms(self.name, self))
        found_further = {layer: self._further(layer, request) for layer in self.further}
        further = {layer: paths for layer, paths in found_further.items() if paths}
        files = {
            role: file if isinstance(file, Path) else found[role]
            for role, file in self.files.items()
        }
        identity = {
            role: file.sha256 if isinstance(file, Remote) else sha256(file)
            for role, file in self.files.items()
        }
        for file in self.remotes.values():
            if file.archive and file.archive.identity:
                identity[file.archive.identity] = file.archive.digest
        read = self.read
        if self.genre is not None:
            read = partial(_with_genres, read, self.genre)
        if origin := corpora.origin(self.name):
            identity["plug-in"] = origin.sha256
            read = partial(read_checked, read, origin)
        elif self.remotes and self.layers & set(LAYERS):
            read = partial(read_once, read, request.finder.folder)
        return Source(
            self.name,
            self.version,
            self.licence,
            {role: (path,) for paths in (files, *further.values()) for role, path in paths.items()},
            identity,
            read,
            self.layers | {column.layer for column in self.columns.values()} | further.keys(),
            self.silver,
            "\n\n".join((self.citation, *(self.further[layer].citation for layer in further))),
            columns=self.columns,
            further={
                layer: {role: file.sha256 for role, file in self.further[layer].files.items()}
                for layer in further
            },
            absent=frozenset(self.further.keys() - further.keys()),
            tasks=self.tasks,
        )

    def _further(self, layer: str, request: CorpusRequest) -> dict[str, Path]:
        """Files of an optional layer; none if one of them is missing and not to be downloaded."""
        card = self.further[layer]
        if request.complete:
            return request.finder.get(self.name, card.files, _terms(f"{self.name} {layer}", card))
        found = {role: request.finder.find(file) for role, file in card.files.items()}
        paths = {role: path for role, path in found.items() if path is not None}
        return paths if len(paths) == len(found) else {}


def _terms(name: str, corpus: Registered | Card) -> str:
    """Name, licence and citation, shown before a download."""
    about = f"{name} {corpus.version}: {corpus.licence}."
    return about + f" Please cite:\n{corpus.citation}" * bool(corpus.citation)


def _with_genres(
    read: Callable[[Source], Corpus], genre: Callable[[str], str], source: Source
) -> Corpus:
    """Read a corpus, with the genre of every sentence whose document is known."""
    corpus = read(source)
    genres = {document: genre(document) for document in {s.document for s in corpus} - {""}}
    splits = {
        split: tuple(replace(s, genre=genres.get(s.document, "")) for s in sentences)
        for split, sentences in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


@cache
def _sentence() -> TypeAdapter[Sentence]:
    return TypeAdapter(Sentence)


def read_once(read: Callable[[Source], Corpus], folder: Path, source: Source) -> Corpus:
    """Read a corpus and keep it in the cache; from then on, read it from there.

    A file of the cache has a line of counts, a line of JSON for each sentence, and the digest of
    both. Its name has a digest of the corpus's files and of the readers. A new file replaces those
    of other versions. With a limit, no more is read than necessary; this is not kept. Notes of the
    reader are about whole files, so a limited corpus has none.

    Args:
        folder: folder of the kept files.

    Raises:
        UserError: a file of the corpus is invalid.
    """
    whole = replace(source, limit=None, drop_overlap=False)
    content = f"{whole.digest_for(whole.further)} {_readers()}".encode()
    path = folder / f"{source.name}-{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
    corpus = _kept(path, source)
    if corpus is None:
        corpus = read(source)
        if source.limit is None:
            try:
                _keep(path, corpus)
            except DiskError as error:
                progress.say(f"{source.name} is not kept as it was read: {error}")
    limited = source.limit is not None and any(
        len(part) > source.limit for part in corpus.splits.values()
    )
    return replace(corpus, notes={}) if limited else corpus


@cache
def _readers() -> str:
    """Digest of the readers of corpora, since a change of one may read other sentences."""
    return " ".join(sha256(path) for path in sorted(Path(__file__).parent.glob("*.py")))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _keep(path: Path, corpus: Corpus) -> None:
    sizes = {split: len(corpus.splits[split]) for split in SPLITS}
    head = json.dumps({"sizes": sizes, "notes": dict(corpus.notes)}).encode()
    content = b"\n".join((head, *map(_sentence().dump_json, corpus)))
    with published(path) as temporary:
        temporary.write_bytes(content + b"\n" + _digest(content))
    for other in path.parent.glob(f"{corpus.name}-{'[0-9a-f]' * 16}.jsonl"):
        if other != path:
            other.unlink(missing_ok=True)


def _kept(path: Path, source: Source) -> Corpus | None:
    """The corpus in a file; None if there is no such file, or if it is damaged."""
    try:
        content, _, last = path.read_bytes().rpartition(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    if last != _digest(content):
        progress.say(f"{path}: damaged; the files of {source.name} are read again")
        return None
    first, *lines = content.split(b"\n")
    head = json.loads(first)
    rest = iter(lines)
    splits = {}
    for split in SPLITS:
        part = list(islice(rest, head["sizes"][split]))
        some = part if source.limit is None else part[: source.limit + 1]
        splits[split] = tuple(map(_sentence().validate_json, some))
    return Corpus(source.name, source.version, source.licence, splits, head["notes"])


def ewt_genre(document: str) -> str:
    """The first part of a document's name: ``weblog`` of ``weblog-juancole.com_…``."""
    return document.partition("-")[0]


corpora: Registry[Registered] = Registry("corpus")

_sample = {split: HERE / "sample" / f"{split}.conllu" for split in SPLITS}
_gum = dict(read_card("gum").files)
assert _gum["train"].archive is not None
_gum["train"] = replace(
    _gum["train"], archive=replace(_gum["train"].archive, write=write_gum_train)
)
_clams = Registered.from_card("clams", read_clams)

for _corpus in (
    Registered.from_card("sample", read_english, files=_sample),
    Registered.from_card("ewt", read_ewt, genre=ewt_genre),
    Registered.from_card("gum", read_gum, files=_gum),
    Registered.from_card("conll2000", conll2000.read_corpus),
    Registered.from_card("blimp", read_blimp),
    _clams,
    *(
        replace(
            _clams,
            name=f"clams-{language}",
            summary=f"CLAMS: minimal pairs of agreement in {language}; --measurements pairs.",
            read=partial(read_clams, languages=(language,)),
        )
        for language in LANGUAGES
    ),
    Registered.from_card("syntaxgym", read_suites),
    Registered.from_card("lm-diagnostics", read_diagnostics),
    Registered.from_card("numeracy", numeracy.read_corpus, columns=numeracy.COLUMNS),
    Registered.from_card("generalisation", generalisation.read_corpus),
):
    corpora.add(_corpus.name, _corpus)

corpora.mark_as_shipped()
