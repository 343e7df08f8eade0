"""Raw text annotated by a spaCy pipeline; the labels are silver, since a machine made them.

Paragraphs are separated by blank lines, and line breaks within them are spaces; in a file without
blank lines, every line is a paragraph. Splits keep paragraphs whole.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from probes.common.errors import UserError
from probes.common.files import read_text, sha256
from probes.data.sentence import ROOT, Corpus, Sentence, interned
from probes.data.sources import OTHER_TREES, CorpusRequest, Source, source_of_files

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Span

_UD = """
acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct
reparandum root vocative xcomp
"""
"""The relations of Universal Dependencies, without subtypes."""


def find_text(name: str, paths: list[Path], request: CorpusRequest) -> Source:
    """Text files and the pipeline that annotates them."""
    folder = _pipeline_folder(request.annotate)
    other_trees = ", trees not UD" if _tree_scheme(folder) == "other" else ""
    return source_of_files(
        name,
        paths,
        request,
        partial(_read_with_pipeline, pipeline=folder),
        unsplit="document",
        identity={**_pipeline_digests(folder), "spacy": version("spacy")},
        version=f"annotated by {folder.name}{other_trees}",
        silver=frozenset(("upos", "xpos", "feats", "heads", "chunks")),
    )


def _pipeline_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a pipeline, by its role in the identity of a corpus."""
    return {
        f"pipeline {path.relative_to(folder)}": sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def _tree_scheme(folder: Path) -> Literal["none", "UD", "other"]:
    """Scheme of the relations that a pipeline's parser predicts."""
    try:
        # Of all components, only a parser has a label ROOT.
        labels = json.loads(read_text(folder / "meta.json")).get("labels", {})
        trees = [set(map(str.lower, names)) for names in labels.values() if "ROOT" in names]
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / 'meta.json'}: damaged ({error}); restore it.") from error
    relations = {label.partition(":")[0] for names in trees for label in names}
    return "none" if not trees else "UD" if relations <= set(_UD.split()) else "other"


def _pipeline_folder(name: str) -> Path:
    """The folder of a pipeline, given as a path or an installed package."""
    path = Path(name).expanduser()
    if (path / "config.cfg").is_file():
        return path.resolve()
    try:
        spec = importlib.util.find_spec(name) if re.fullmatch(r"\w+", name) else None
    except (ImportError, ValueError):
        spec = None
    # A package has the pipeline in a folder with its version, en_core_web_sm-3.8.0.
    package = map(Path, (spec.submodule_search_locations or []) if spec else [])
    for folder in (path, *package):
        if configs := sorted(folder.glob("*/config.cfg")):
            return configs[-1].parent.resolve()
    raise UserError(
        f"--annotate {name}: neither the folder of a spaCy pipeline nor an installed one; run "
        f"python -m spacy download {name}, or give a folder."
    )


def _read_with_pipeline(source: Source, pipeline: Path) -> Corpus:
    import spacy

    try:
        nlp = spacy.load(pipeline)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"--annotate {pipeline}: spaCy cannot load it ({reason}); give another pipeline."
        ) from error
    notes: Counter[str] = Counter()
    parts: dict[str, list[Sentence]] = {}
    for split, paths in source.files.items():
        parts[split] = [s for path in paths for s in _sentences_of_file(nlp, path, notes)]
        if not parts[split]:
            raise UserError(f"{paths[0]}: contains no text; is it the right file?")
    if not _pipeline_digests(pipeline).items() <= source.identity.items():
        raise UserError(f"--annotate {pipeline}: changed while texts were read; start again.")
    with_trees = sum(bool(sentence.heads) for part in parts.values() for sentence in part)
    if with_trees and _tree_scheme(pipeline) != "UD":
        notes[OTHER_TREES] = with_trees
    return source.corpus(parts, notes)


def _sentences_of_file(nlp: Language, path: Path, notes: Counter[str]) -> Iterator[Sentence]:
    """Yield the sentences of one file."""
    paragraphs = list(_paragraphs(read_text(path)))
    for line, text in paragraphs:
        if len(text) > nlp.max_length:
            raise UserError(
                f"{path}, line {line}: a paragraph of {len(text):,} characters, but the pipeline "
                f"allows {nlp.max_length:,}; separate paragraphs by blank lines."
            )
    notes["paragraphs"] += len(paragraphs)
    docs = nlp.pipe(text for _, text in paragraphs)
    for line, _ in paragraphs:
        try:
            doc = next(docs)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError, RuntimeError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise UserError(
                f"--annotate {nlp.meta['name']}: the pipeline failed ({reason}); use another."
            ) from error
        if not doc.has_annotation("SENT_START"):
            raise UserError(
                f"--annotate {nlp.meta['name']}: the pipeline does not split sentences; use one "
                "with a parser, a senter or a sentencizer."
            )
        # None if the language or the pipeline does not provide them.
        is_parsed = doc.has_annotation("DEP")
        chunks = list(doc.noun_chunks) if is_parsed and doc.vocab.get_noun_chunks else None
        for number, span in enumerate(doc.sents, start=1):
            notes["whitespace tokens left out"] += sum(token.is_space for token in span)
            words = [token for token in span if not token.is_space]
            if words:
                name = f"{path.stem}-{line}"
                yield _sentence_of_pipeline(words, chunks, f"{name}-{number}", name, str(nlp.lang))


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Each paragraph with the number of its first line."""
    lines = text.rstrip().split("\n")
    n_blank = next((i for i, line in enumerate(lines) if line.strip()), 0)
    by_line = all(line.strip() for line in lines[n_blank:])
    start, block = 0, list[str]()
    for i, line in enumerate([*lines, ""]):
        if line.strip():
            start = start if block else i
            block.append(line.strip())
        if block and (by_line or not line.strip()):
            yield start + 1, " ".join(block)
            block = []


def _sentence_of_pipeline(
    words: list[Any], chunks: list[Span] | None, name: str, document: str, language: str
) -> Sentence:
    word_index = {token.i: i for i, token in enumerate(words)}
    upos = interned(token.pos_ for token in words)
    xpos = interned(token.tag_ for token in words)
    feats = tuple(token.morph.to_dict() for token in words)
    return Sentence(
        id=name,
        language=language,
        words=interned(token.text for token in words),
        upos=upos if all(upos) else (),
        xpos=xpos if all(xpos) else (),
        feats=feats if any(feats) else (),
        heads=_heads_within_sentence(words, word_index),
        chunks=() if chunks is None else _bio(chunks, word_index),
        document=document,
    )


def _heads_within_sentence(words: list[Any], word_index: dict[int, int]) -> tuple[int, ...]:
    """Heads within the sentence, skipping whitespace tokens; empty without a parser."""
    if not words[0].doc.has_annotation("DEP"):
        return ()
    heads = []
    for token in words:
        head = token.head
        while head.i not in word_index and head.head.i != head.i:
            head = head.head
        heads.append(ROOT if head.i == token.i or head.i not in word_index else word_index[head.i])
    return tuple(heads)


def _bio(chunks: list[Span], word_index: dict[int, int]) -> tuple[str, ...]:
    tags = ["O"] * len(word_index)
    for chunk in chunks:
        indices = [word_index[token.i] for token in chunk if token.i in word_index]
        for i in indices:
            tags[i] = "I-NP"
        if indices:
            tags[indices[0]] = "B-NP"
    return tuple(tags)
