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
from probes.data import conll2000, generalisation, gum, numeracy, propbank, uds
from probes.data.conllu_files import read_conllu
from probes.data.diagnostics import read_diagnostics
from probes.data.downloads import Archive, Remote
from probes.data.ewt_join import join
from probes.data.items import KINDS
from probes.data.minimal_pairs import (
    CLAMS,
    LANGUAGES,
    SYNTAXGYM,
    read_blimp,
    read_clams,
    read_suites,
)
from probes.data.parsed import read_once
from probes.data.sentence import LAYERS, SPLITS, Corpus
from probes.data.sources import Column, CorpusRequest, Source, read_checked

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Further:
    """A layer in files of its own, without which a corpus is read, too.

    Attributes:
        files: to download, by role; used if all of them are found.
        terms: name and licence.
        citation: BibTeX.
    """

    files: Mapping[str, Remote]
    terms: str
    citation: str


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
        columns, tasks: see `Source`.
        further: layers that runs have only if their files are found, by layer.
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
    pinned: Mapping[str, str] | None = None
    citation: str = ""
    genre: Callable[[str], str] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    further: Mapping[str, Further] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    fingerprint: str = ""

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
        terms = _terms(f"{self.name} {self.version}: {self.licence}.", self.citation)
        found = request.finder.get(self.name, self.remotes, terms) if self.remotes else {}
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
            {**identity, **(self.pinned or {})},
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
        """The files of a further layer; none if one of them is missing and not to be downloaded."""
        its = self.further[layer]
        if request.complete:
            return request.finder.get(self.name, its.files, _terms(its.terms, its.citation))
        found = {role: request.finder.find(file) for role, file in its.files.items()}
        paths = {role: path for role, path in found.items() if path is not None}
        return paths if len(paths) == len(found) else {}


def _terms(about: str, citation: str) -> str:
    """What is shown before a download."""
    return about + f" Please cite:\n{citation}" * bool(citation)


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
    """Read the treebank, with the annotation of PropBank's release and UDS's where they join."""
    treebank = read_english(source)
    skeletons = propbank.read_skeletons(source.files["propbank"][0])
    counts: Counter[str] = Counter()
    splits = {}
    for split, sentences in treebank.splits.items():
        joined, found = join(sentences, skeletons)
        splits[split] = tuple(joined)
        counts.update(found)
    if uds.IDS in source.files:
        ratings = uds.read_ratings({role: paths[0] for role, paths in source.files.items()})
        splits, rated = uds.join(splits, skeletons, ratings)
        counts.update(rated)
    return replace(treebank, splits=splits, notes=dict(counts))


def read_gum(source: Source) -> Corpus:
    """Read the treebank without the document that is in it twice."""
    treebank = read_english(source)
    train = treebank.splits["train"]
    kept = tuple(sentence for sentence in train if sentence.document != gum.SUPERSEDED)
    notes = {f"train sentences of {gum.SUPERSEDED} left out, superseded": len(train) - len(kept)}
    return replace(treebank, splits={**treebank.splits, "train": kept}, notes=notes)


_PLAIN = frozenset(LAYERS) - {"mentions", "ratings"}

corpora.add(
    "sample",
    Registered(
        name="sample",
        citation=citation("sample"),
        version="1",
        fingerprint="8ecf0010aa4e740863b55f6c90906e325756c9b8d422a0f7b11d6d13fd0b79e7",
        licence="MIT",
        summary="Embedded: 2,000 / 400 / 400 sentences generated by a grammar; all tasks but those "
        "of mentions, ratings and constituents.",
        files={split: HERE / "sample" / f"{split}.conllu" for split in SPLITS},
        read=read_english,
        layers=_PLAIN - {"constituents"},
    ),
)

_UD = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16"
_UD_SHA256 = {
    "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
    "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
}
_PROPBANK = "4abade0b53ce4a181e1d98b3518101c1a44d395a"
_UDS = (
    "https://raw.githubusercontent.com/decompositional-semantics-initiative/decomp/"
    "973705b0c8f0c82701126ac4d8e1e2186bdcab21/decomp/data"
)
_UDS_SHA256 = {
    "ud_ids.json": "82c8e81a9349e48cc92f8142bdf50c1fedab23ac8aaf5f0f1eadcb39385357e7",
    "protoroles.zip": "c264ad6b86c2f85e00164411a149bc5314a5cd72afb5cc43df0a31e4cf72b54f",
    "factuality.zip": "67fe8c2add59ac94960e80931023e3a6b56d615ecc168c4a7e3bbf9805269ab9",
    "genericity.zip": "bb4aaa45ff70f26ef4f212cac79f66310f4339d811b9ad6b4de8f06e02784ef0",
    "wordsense.zip": "a5d9cd262cf27b15491bb07b0a1e7a8ea2db8779b5bbd0080141f278ee7062dd",
}
_UDS_FOLDERS = {".json": "", ".zip": "/2.0/normalized/sentence/annotations"}

corpora.add(
    "ewt",
    Registered(
        name="ewt",
        citation=citation("ewt"),
        version="r2.16",
        fingerprint="2ba84802a425081c084f926705923e162191e8aeebce94084e85549e54489a8f",
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
        layers=_PLAIN,
        pinned={"propbank": propbank.MEMBERS.digest},
        genre=ewt_genre,
        further={
            "ratings": Further(
                {
                    Path(name).stem: Remote(
                        name, f"{_UDS}{_UDS_FOLDERS[Path(name).suffix]}/{name}", digest
                    )
                    for name, digest in _UDS_SHA256.items()
                },
                "UDS 2.0: CC BY-SA 4.0.",
                citation("uds"),
            )
        },
    ),
)

_GUM = "https://github.com/UniversalDependencies/UD_English-GUM"

corpora.add(
    "gum",
    Registered(
        name="gum",
        citation=citation("gum"),
        version="r2.16",
        fingerprint="b14a14ba06e61c4d7575a34996fb5583e9a0edafe8a2bb8e590c1589a7088a71",
        licence="CC BY-NC-SA 4.0 (parts CC BY 4.0)",
        summary="UD English-GUM r2.16: 233,926 words of 15 genres with entities and coreference; "
        "entities, coreference, pos, depth, agreement.",
        files={
            "train": Remote(
                "en_gum-ud-train.conllu",
                f"{_GUM}/archive/{gum.COMMIT}.tar.gz",
                "4f7c67d1a373ea0806b6bd8e55e1db912df1881e9a8f3e53ce4f1ce5b4db5432",
                Archive("en_gum-ud-train.conllu", (), gum.MEMBERS.read, gum.extract_train),
            ),
            **{
                split: Remote(
                    f"en_gum-ud-{split}.conllu",
                    f"{_GUM}/raw/{gum.COMMIT}/en_gum-ud-{split}.conllu",
                    digest,
                )
                for split, digest in (
                    ("dev", "581997015a2d878ad49619032d265a9753e1b6b03d75ca18b04a00bb9ee8991d"),
                    ("test", "fe95c0e744f81cdf2a307ce522604ecc05cd359c7c6d1abaa3a46c85d024f34c"),
                )
            },
        },
        read=read_gum,
        layers=_PLAIN - {"chunks", "frames", "constituents"} | {"mentions"},
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
                Archive("synta*.tar*", (), SYNTAXGYM.read, SYNTAXGYM.extract),
            )
        },
        read=read_suites,
        layers=frozenset(("pairs",)),
        pinned={"suites": SYNTAXGYM.digest},
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
        fingerprint="45eb0ef0a458f05cbd08d2e82a49e777ffadd07f23eac4005eebf306fcd26da3",
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

corpora.add(
    generalisation.NAME,
    Registered(
        name=generalisation.NAME,
        version=generalisation.VERSION,
        fingerprint="7960e9bf1eb8d7d2468017fd006ee495374b4136fb27f1293e35062bae9b9495",
        licence=generalisation.LICENCE,
        summary="Generated by a grammar: 2,000 / 400 / 1,000 sentences in which a linear and a "
        "hierarchical rule agree, in test differ; tasks main-auxiliary and subject-noun.",
        files={},
        read=generalisation.read_corpus,
        layers=frozenset(("upos", "heads", "deprels")),
        tasks=generalisation.TASKS,
        citation=citation("generalisation"),
    ),
)

corpora.mark_as_shipped()
