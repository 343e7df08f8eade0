"""Corpora with a name: the facts on their data cards, and the readers of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.origin import Origin, described, failing_line
from probes.common.registry import Registry, did_you_mean
from probes.data import conll2000
from probes.data.downloads import DATA_FOLDER, Remote, read_card
from probes.data.ewt import read_ewt
from probes.data.generated import COLUMNS, read_generalisation, read_numeracy
from probes.data.item_suites import LANGUAGES, read_blimp, read_clams, read_diagnostics, read_suites
from probes.data.items import KINDS
from probes.data.sentence import LAYERS, ROOT, SPLITS, Corpus, Sentence
from probes.data.sources import CorpusRequest, LabelColumn, Source
from probes.data.treebank import read_english, read_gum, write_gum_train


@dataclass(frozen=True)
class Registered:
    """A corpus that `--corpus` knows by name.

    Attributes:
        name: name for `--corpus`.
        version, licence: see `Corpus`.
        layers: annotation layers.
        silver: layers that were annotated automatically.
        citation: BibTeX.
        summary: one line for `--list-corpora`.
        files: files to download, or embedded ones, by role.
        read: reads the files into a corpus. Ids of sentences must be unique.
        genre: the genre of a document, by its name; None if names do not tell.
        columns, tasks: see `Source`.
        further: layers that runs have only if their files exist; each has the card of a
            corpus, which has no reader.
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
    further: Mapping[str, Registered] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    fingerprint: str = ""

    @classmethod
    def from_card(cls, name: str, read: Callable[[Source], Corpus], **fields: Any) -> Registered:
        """The corpus of the data card `name`; `fields` take precedence over those of the card."""
        facts = read_card(name)
        further = {
            layer: cls.from_card(card, read) for layer, card in facts.get("further", {}).items()
        }
        return cls(name=name, read=read, **{**facts, "further": further, **fields})

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
        embedded = {role: file for role, file in self.files.items() if isinstance(file, Path)}
        for file in embedded.values():
            if not file.is_file():
                raise UserError(
                    f"Corpus {self.name!r}: its file {file} does not exist; restore it."
                )
        files = {**embedded, **self._get(self.name, request)}
        identity = {role: sha256(file) for role, file in embedded.items()}
        for role, remote in self.remotes.items():
            identity[role] = remote.sha256
            if remote.archive and remote.archive.identity:
                identity[remote.archive.identity] = remote.archive.digest
        further = {}
        for layer, card in self.further.items():
            # Runs do without these files; `python -m probes fetch` downloads them.
            paths = card._get(f"{self.name} {layer}", request, optional=not request.complete)
            files |= paths
            if paths:
                further[layer] = card
        reader = self.read
        if self.genre is not None:
            reader = partial(_with_genres, reader, self.genre)
        if origin := corpora.origin(self.name):
            identity["plug-in"] = origin.sha256
            # Tests check the readers of the suite; one of a plug-in is checked whenever it reads.
            reader = partial(_checked_corpus, reader, origin)
        return Source(
            self.name,
            self.version,
            self.licence,
            {role: (path,) for role, path in files.items()},
            identity,
            reader,
            self.layers | {column.layer for column in self.columns.values()} | further.keys(),
            self.silver,
            "\n\n".join((self.citation, *(card.citation for card in further.values()))),
            columns=self.columns,
            further={
                layer: {role: file.sha256 for role, file in card.remotes.items()}
                for layer, card in further.items()
            },
            absent=frozenset(self.further.keys() - further.keys()),
            tasks=self.tasks,
        )

    def _get(self, name: str, request: CorpusRequest, optional: bool = False) -> dict[str, Path]:
        """The files that are not embedded.

        Args:
            name: name in the terms that are shown before a download.
            optional: download nothing; no files if one of them is missing.
        """
        if optional:
            all_paths = {role: request.finder.find(file) for role, file in self.remotes.items()}
            paths = {role: path for role, path in all_paths.items() if path is not None}
            return paths if len(paths) == len(all_paths) else {}
        terms = f"{name} {self.version}: {self.licence}."
        if self.citation:
            terms += f" Please cite:\n{self.citation}"
        return request.finder.get(name.partition(" ")[0], self.remotes, terms)


def _with_genres(
    reader: Callable[[Source], Corpus], genre: Callable[[str], str], source: Source
) -> Corpus:
    """Read a corpus, with the genre of every sentence whose document is known."""
    corpus = reader(source)
    genres = {document: genre(document) for document in {s.document for s in corpus} - {""}}
    splits = {
        split: tuple(replace(s, genre=genres.get(s.document, "")) for s in sentences)
        for split, sentences in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


_NOT_BY_WORD = "frames", "mentions", "ratings", "constituents"
"""Layers that do not have one entry per word."""


def _checked_corpus(reader: Callable[[Source], Corpus], origin: Origin, source: Source) -> Corpus:
    """Call the reader of the plug-in `origin` and check the corpus that it returns."""
    where = f"Corpus {source.name!r}"
    try:
        corpus = reader(source)
    except UserError:
        raise
    except Exception as error:
        line = failing_line(error, origin) or str(origin)
        raise UserError(f"{where}: its reader raised {described(error)}. Fix {line}.") from error
    if problem := _fault(corpus):
        raise UserError(f"{where}: its reader returned {problem}. Fix {origin}.")
    return corpus


def _fault(corpus: object) -> str:
    if not isinstance(corpus, Corpus):
        return f"{shortened(corpus)}, which is not a Corpus"
    if set(corpus.splits) != set(SPLITS):
        return f"the splits {sorted(corpus.splits)}; they must be {', '.join(SPLITS)}"
    seen: set[str] = set()
    for split in SPLITS:
        for number, sentence in enumerate(corpus.splits[split], 1):
            position = f"as sentence {number} of {split}"
            if not isinstance(sentence, Sentence):
                return f"{shortened(sentence)} {position}, which is not a Sentence"
            if problem := _sentence_fault(sentence):
                return f"{problem} {position} ({sentence.id!r})"
            if sentence.id in seen:
                return f"the id {sentence.id!r} again {position}; ids must be unique"
            seen.add(sentence.id)
    return ""


def _sentence_fault(sentence: Sentence) -> str:
    if not (isinstance(sentence.words, tuple) and sentence.words):
        return f"the words {shortened(sentence.words)}, which are not a non-empty tuple,"
    if not all(isinstance(word, str) and word for word in sentence.words):
        return "a word that is empty or not a string"
    n_words = len(sentence.words)
    for layer in (x for x in LAYERS if x not in _NOT_BY_WORD):
        entries = sentence.layer(layer)
        if not isinstance(entries, tuple) or len(entries) not in (0, n_words):
            return f"a layer {layer} that is not a tuple with one entry for each of {n_words} words"
    if not isinstance(sentence.genre, str):
        return f"the genre {shortened(sentence.genre)}, which is not a string,"
    for head in sentence.heads:
        if head != ROOT and not 0 <= head < n_words:
            return f"the head {head!r}, which is neither the index of a word nor {ROOT},"
    return ""


corpora: Registry[Registered] = Registry("corpus")

_sample = {split: DATA_FOLDER / "sample" / f"{split}.conllu" for split in SPLITS}
_clams = Registered.from_card("clams", read_clams)
_gum = dict(read_card("gum")["files"])
_gum["train"] = replace(
    _gum["train"], archive=replace(_gum["train"].archive, write=write_gum_train)
)

for _corpus in (
    Registered.from_card("sample", read_english, files=_sample),
    Registered.from_card("ewt", read_ewt, genre=lambda document: document.partition("-")[0]),
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
    Registered.from_card("numeracy", read_numeracy, columns=COLUMNS),
    Registered.from_card("generalisation", read_generalisation),
):
    corpora.add(_corpus.name, _corpus)

corpora.mark_as_shipped()
