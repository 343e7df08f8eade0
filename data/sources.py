"""Where corpora come from: files by name and checksum, before anything is parsed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from common.errors import UserError
from common.files import sha256
from common.registry import Registry
from data.conllu_files import read_conllu
from data.ewt_join import JoinCounts, join
from data.propbank import CONTENT_DIGEST, read_skeletons
from data.sentence import LAYERS, SPLITS, Corpus

READERS_VERSION = 1
"""Raise it whenever the same files would give other sentences."""

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """A corpus that has been found, not yet read.

    Attributes:
        name, version, licence: see `Corpus`.
        files: by role ("train", "dev", "test", …).
        identity: SHA-256 of each file's content, by role.
        layers: the annotation layers that it has.
        read: turns the files into a corpus.
        limit: sentences to keep of each split; None for all.
    """

    name: str
    version: str
    licence: str
    files: Mapping[str, Path]
    identity: Mapping[str, str]
    layers: frozenset[str]
    read: Callable[[Source], Corpus]
    limit: int | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the content of the files, the readers' version and the limit.

        Known before anything is parsed.
        """
        content = {
            "name": self.name,
            "version": self.version,
            "readers": READERS_VERSION,
            "limit": self.limit,
            **self.identity,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def load(self) -> Corpus:
        """Read the files; keep the first `limit` sentences of each split.

        Raises:
            UserError: a file is not what it should be.
        """
        corpus = self.read(self)
        if self.limit is None:
            return corpus
        kept = {split: part[: self.limit] for split, part in corpus.splits.items()}
        return replace(corpus, splits=kept, limited=kept != corpus.splits)


Finder = Callable[[Path | None], Source]
corpora: Registry[Finder] = Registry("corpus")
"""By name: a function that finds a corpus, given `--data-dir`."""


def find_corpus(name: str, data_dir: Path | None, limit: int | None = None) -> Source:
    """Find the files of the corpus called `name`.

    Raises:
        UserError: there is no such corpus, or its files are not in `data_dir`.
    """
    return replace(corpora.get(name)(data_dir), limit=limit)


def find_file(
    corpus: str, data_dir: Path | None, name: str, digest: str | None, origin: str
) -> Path:
    """The file whose name matches `name`, anywhere below `data_dir`.

    Args:
        name: a file name, or a glob pattern.
        digest: the file's SHA-256; None if its content is verified when it is read.
        origin: where to get it.

    Raises:
        UserError: there is none; the message says where to get it.
    """
    get = f"get it from {origin} and name its folder with --data-dir (or PROBES_DATA_DIR)"
    if data_dir is None:
        raise UserError(f"--corpus {corpus} needs {name}: {get}.")
    if not data_dir.is_dir():
        raise UserError(f"--data-dir {data_dir}: there is no such folder.")
    found = sorted(data_dir.rglob(name))
    for path in found:
        if digest is None or sha256(path) == digest:
            return path
    if found:
        raise UserError(f"{found[0]}: its sha256 is {sha256(found[0])}, expected {digest}; {get}.")
    raise UserError(f"--corpus {corpus}: no {name} below {data_dir}; {get}.")


def read_treebank(source: Source) -> Corpus:
    """English sentences from the CoNLL-U files "train", "dev" and "test"."""
    splits = {split: tuple(read_conllu(source.files[split], "en")) for split in SPLITS}
    return Corpus(source.name, source.version, source.licence, splits)


@corpora.register("sample")
def sample(data_dir: Path | None) -> Source:
    """Embedded: 2,000 / 400 / 400 sentences from a grammar of our own; all five tasks."""
    files = {split: HERE / "sample" / f"{split}.conllu" for split in SPLITS}
    identity = {split: sha256(path) for split, path in files.items()}
    return Source("sample", "1", "MIT", files, identity, frozenset(LAYERS), read_treebank)


_UD_ORIGIN = "github.com/UniversalDependencies/UD_English-EWT, tag r2.16"
_UD_SHA256 = {
    "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
    "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
}
_PROPBANK_COMMIT = "4abade0b53ce4a181e1d98b3518101c1a44d395a"
_PROPBANK_ORIGIN = f"github.com/propbank/propbank-release, commit {_PROPBANK_COMMIT}"


@corpora.register("ewt")
def ewt(data_dir: Path | None) -> Source:
    """UD English-EWT r2.16 joined with PropBank: 254,818 words of web text; all five tasks."""
    files = {
        split: find_file("ewt", data_dir, f"en_ewt-ud-{split}.conllu", digest, _UD_ORIGIN)
        for split, digest in _UD_SHA256.items()
    }
    pattern = f"propbank-release-{_PROPBANK_COMMIT}*.tar.gz"
    files["propbank"] = find_file("ewt", data_dir, pattern, None, _PROPBANK_ORIGIN)
    identity = {**_UD_SHA256, "propbank": CONTENT_DIGEST}
    return Source("ewt", "r2.16", "CC BY-SA 4.0", files, identity, frozenset(LAYERS), read_ewt)


def read_ewt(source: Source) -> Corpus:
    """The treebank's sentences, with chunks and frames where PropBank's release has them."""
    treebank = read_treebank(source)
    skeletons = read_skeletons(source.files["propbank"])
    counts: JoinCounts = JoinCounts()
    splits = {}
    for split, sentences in treebank.splits.items():
        joined, found = join(sentences, skeletons)
        splits[split] = tuple(joined)
        counts.update(found)
    return replace(treebank, splits=splits, notes=dict(counts))
