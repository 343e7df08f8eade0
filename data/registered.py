"""Corpora with a name: their files, readers, licences and citations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.registry import Registry, did_you_mean
from probes.data import conll2000, numeracy, propbank, syntaxgym
from probes.data.conllu_files import read_conllu
from probes.data.corpus_checks import read_checked
from probes.data.diagnostics import read_diagnostics
from probes.data.downloads import Archive, Remote
from probes.data.ewt_join import join
from probes.data.items import KINDS
from probes.data.minimal_pairs import CLAMS, LANGUAGES, read_blimp, read_clams
from probes.data.sentence import LAYERS, SPLITS, Corpus
from probes.data.sources import Column, CorpusRequest, Source

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Registered:
    """A corpus that `--corpus` knows by name.

    Attributes:
        name, version, licence, layers, silver, citation: see `Source`.
        summary: one line for `--list-corpora`.
        files: files to download, or embedded ones, by role.
        pinned: further digests that identify the content, by role.
        read: reads the files into a corpus.
        genre: the genre of a document, by its name; None if names do not tell.
        columns: see `Source`.
    """

    name: str
    version: str
    licence: str
    summary: str
    files: Mapping[str, Remote | Path]
    read: Callable[[Source], Corpus]
    layers: frozenset[str]
    silver: frozenset[str] = frozenset()
    pinned: Mapping[str, str] | None = None
    citation: str = ""
    genre: Callable[[str], str] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)

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
        terms = f"{self.name} {self.version}: {self.licence}."
        terms += f" Please cite:\n{self.citation}" * bool(self.citation)
        found = request.finder.get(self.name, self.remotes, terms) if self.remotes else {}
        files = {
            role: file if isinstance(file, Path) else found[role]
            for role, file in self.files.items()
        }
        identity = {
            role: file.sha256 if isinstance(file, Remote) else sha256(file)
            for role, file in self.files.items()
        }
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
            {role: (path,) for role, path in files.items()},
            {**identity, **(self.pinned or {})},
            read,
            self.layers | {column.layer for column in self.columns.values()},
            self.silver,
            self.citation,
            columns=self.columns,
        )


def _with_genres(
    read: Callable[[Source], Corpus], genre: Callable[[str], str], source: Source
) -> Corpus:
    """What `read` returns, with the genre of every sentence whose document is known."""
    corpus = read(source)
    of = {document: genre(document) for document in {s.document for s in corpus} - {""}}
    splits = {
        split: tuple(replace(s, genre=of.get(s.document, "")) for s in sentences)
        for split, sentences in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


corpora: Registry[Registered] = Registry("corpus")


def citation(name: str) -> str:
    """The BibTeX entries of a data card; empty if it has none."""
    card = (HERE / "cards" / f"{name}.md").read_text(encoding="utf-8")
    return "\n\n".join(
        entry.strip() for entry in re.findall(r"^```bibtex\n(.*?)^```", card, re.S | re.M)
    )


def read_english(source: Source) -> Corpus:
    """Read English sentences from the CoNLL-U files "train", "dev" and "test"."""
    splits = {split: tuple(read_conllu(source.files[split][0], "en")) for split in SPLITS}
    return Corpus(source.name, source.version, source.licence, splits)


def ewt_genre(document: str) -> str:
    """The first part of a document's name: ``weblog`` of ``weblog-juancole.com_…``."""
    return document.partition("-")[0]


def read_ewt(source: Source) -> Corpus:
    """Read the treebank, with the annotation of PropBank's release where it joins."""
    treebank = read_english(source)
    skeletons = propbank.read_skeletons(source.files["propbank"][0])
    counts: Counter[str] = Counter()
    splits = {}
    for split, sentences in treebank.splits.items():
        joined, found = join(sentences, skeletons)
        splits[split] = tuple(joined)
        counts.update(found)
    return replace(treebank, splits=splits, notes=dict(counts))


corpora.add(
    "sample",
    Registered(
        name="sample",
        citation=citation("sample"),
        version="1",
        licence="MIT",
        summary="Embedded: 2,000 / 400 / 400 sentences generated by a grammar; all tasks but those "
        "of constituents.",
        files={split: HERE / "sample" / f"{split}.conllu" for split in SPLITS},
        read=read_english,
        layers=frozenset(LAYERS) - {"constituents"},
    ),
)

_UD = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16"
_UD_SHA256 = {
    "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
    "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
}
_PROPBANK = "4abade0b53ce4a181e1d98b3518101c1a44d395a"

corpora.add(
    "ewt",
    Registered(
        name="ewt",
        citation=citation("ewt"),
        version="r2.16",
        licence="CC BY-SA 4.0",
        summary="UD English-EWT r2.16 joined with PropBank: 254,818 words of web text (answers, "
        "email, newsgroup, reviews, weblog); all tasks.",
        files={
            **{
                split: Remote(
                    f"en_ewt-ud-{split}.conllu", f"{_UD}/en_ewt-ud-{split}.conllu", digest
                )
                for split, digest in _UD_SHA256.items()
            },
            "propbank": Remote(
                f"propbank-release-{_PROPBANK}.ewt-only.tar",
                f"https://github.com/propbank/propbank-release/archive/{_PROPBANK}.tar.gz",
                "79154a8418c38881a245e32e697141b667f453bc7a939cd1104d51ef20beaa72",
                Archive(
                    f"propbank-release-{_PROPBANK}*.tar.gz",
                    tuple(
                        f"propbank-release-{_PROPBANK}{part}.tar.gz" for part in (".ewt-only", "")
                    ),
                    propbank.MEMBERS.read,
                    propbank.MEMBERS.extract,
                ),
            ),
        },
        read=read_ewt,
        layers=frozenset(LAYERS),
        pinned={"propbank": propbank.MEMBERS.digest},
        genre=ewt_genre,
    ),
)

corpora.add(
    "conll2000",
    Registered(
        name="conll2000",
        citation=citation("conll2000"),
        version="2000",
        licence="none stated",
        summary="CoNLL-2000 shared task: 259,104 words of newspaper text with gold chunks; "
        "chunking, and pos (silver).",
        files={
            "archive": Remote(
                "conll2000.zip",
                "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/"
                "conll2000.zip",
                "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd",
            )
        },
        read=conll2000.read_corpus,
        layers=frozenset(("xpos", "chunks")),
        silver=frozenset(("xpos",)),
    ),
)

corpora.add(
    "blimp",
    Registered(
        name="blimp",
        citation=citation("blimp"),
        version="1.0",
        licence="CC BY 4.0",
        summary="BLiMP: 67,000 English minimal pairs in 67 paradigms; --measurements pairs.",
        files={
            "archive": Remote(
                "BLiMP.zip",
                "https://raw.githubusercontent.com/alexwarstadt/blimp/"
                "3e56b06fcabca9b30822fc66435fca6b1aa40bb1/BLiMP.zip",
                "172a1a714d72e72a89e8384dd531483f3d0f8a9aee3d33dccaf7992d8cecbb73",
            )
        },
        read=read_blimp,
        layers=frozenset(("pairs",)),
    ),
)

_CLAMS = "36b5c9a56ecc51d3eedb6c1a85b805085d631c71"

for _name, _languages in (("clams", LANGUAGES), *((f"clams-{x}", (x,)) for x in LANGUAGES)):
    corpora.add(
        _name,
        Registered(
            name=_name,
            citation=citation("clams"),
            version="2020",
            licence="Apache 2.0",
            summary=f"CLAMS: minimal pairs of agreement in {', '.join(_languages)}; "
            "--measurements pairs.",
            files={
                "archive": Remote(
                    "clams-evalsets.tar",
                    f"https://github.com/aaronmueller/clams/archive/{_CLAMS}.tar.gz",
                    "5e13cf568ad09c6843ed77ab78ae589bb96abc9bdde8dcd0b47062531480c56e",
                    Archive("clams*.tar*", (), CLAMS.read, CLAMS.extract),
                )
            },
            read=partial(read_clams, languages=_languages),
            layers=frozenset(("pairs",)),
            pinned={"evaluation sets": CLAMS.digest},
        ),
    )

_SYNTAXGYM = "43f1f86b746254406dafc89bd17b9d4976607ef6"

corpora.add(
    "syntaxgym",
    Registered(
        name="syntaxgym",
        citation=citation("syntaxgym"),
        version="2020",
        licence="MIT",
        summary="SyntaxGym: 34 English suites with predictions over regions; --measurements pairs.",
        files={
            "archive": Remote(
                "syntaxgym-suites.tar",
                f"https://github.com/cpllab/syntactic-generalization/archive/{_SYNTAXGYM}.tar.gz",
                "f2f3503ea48052f81dbca9fb62ad0c28d0f92da6445e8ed4a13cf6578027ed63",
                Archive("synta*.tar*", (), syntaxgym.MEMBERS.read, syntaxgym.MEMBERS.extract),
            )
        },
        read=syntaxgym.read_suites,
        layers=frozenset(("pairs",)),
        pinned={"suites": syntaxgym.MEMBERS.digest},
    ),
)

_DIAGNOSTICS = (
    "https://raw.githubusercontent.com/aetting/lm-diagnostics/"
    "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c/datasets"
)

corpora.add(
    "lm-diagnostics",
    Registered(
        name="lm-diagnostics",
        citation=citation("lm-diagnostics"),
        version="2020",
        licence="MIT",
        summary="CPRAG-102, ROLE-88 and NEG-136: contexts to be completed; --measurements cloze.",
        files={
            role: Remote(f"{name}.tsv", f"{_DIAGNOSTICS}/{folder}/{name}.tsv", digest)
            for role, folder, name, digest in (
                (
                    "cprag",
                    "CPRAG-102",
                    "CPRAG-102",
                    "d06ea9e3d97f8647839fe69b77817f4554e1fd1c79b8a3074bbfec44bbc05afb",
                ),
                (
                    "role",
                    "ROLE-88",
                    "ROLE-88",
                    "06a3dfdfbeb3fe0a86fcf4fdbe388c4384c69749b39a8ba3abd6eccf2712915e",
                ),
                (
                    "neg-simp",
                    "NEG-136",
                    "NEG-136-SIMP",
                    "3691043f229d247a2d8de572e505e929e17f5726ee58b5ad1c515232ce46e0f0",
                ),
                (
                    "neg-nat",
                    "NEG-136",
                    "NEG-136-NAT",
                    "60c090ed858850ee7eef47956c97db0ffe10e3e4842c0ec1d9094308c3ca67af",
                ),
            )
        },
        read=read_diagnostics,
        layers=frozenset(("contexts",)),
    ),
)

corpora.add(
    numeracy.NAME,
    Registered(
        name=numeracy.NAME,
        version=numeracy.VERSION,
        licence=numeracy.LICENCE,
        summary="Generated by rule: 800 / 200 / 400 sentences with numbers as digits or words; "
        "tasks value and largest.",
        files={},
        read=numeracy.read_corpus,
        layers=frozenset(),
        columns=numeracy.COLUMNS,
        citation=citation("numeracy"),
    ),
)

corpora.mark_as_shipped()
