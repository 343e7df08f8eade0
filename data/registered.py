"""Corpora with a name: the facts on their data cards, and the readers of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.registry import Registry, did_you_mean
from probes.data import conll2000, generalisation, numeracy
from probes.data.diagnostics import read_diagnostics
from probes.data.downloads import HERE, Card, Remote, read_card
from probes.data.ewt import read_ewt
from probes.data.items import KINDS
from probes.data.minimal_pairs import LANGUAGES, read_blimp, read_clams, read_suites
from probes.data.sentence import LAYERS, SPLITS, Corpus
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
