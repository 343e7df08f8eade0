"""Parallel sentences: do languages lie apart, and is a translation the nearest sentence?

A sentence's vector is the mean of its word vectors. Means of languages are fitted to every second
document, and all numbers are of the other documents. Sources: Libovický, Rosa & Fraser 2019
(centring, a lexical caveat); Pires, Schlinger & Garrette 2019, section 5 (translation by adding the
difference of means); see *A Primer in BERTology*, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.common.errors import UserError, counted
from probes.data.conllu_files import read_conllu
from probes.data.treebank import language_of
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import plain_text, view_over
from probes.families.geometry import ParallelSentencesOptions
from probes.families.geometry.cosines import unit_vectors
from probes.families.geometry.position_share import PlacesOfTypes
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.bootstrap import means
from probes.statistics.partition import partition
from probes.statistics.sums import VectorRows

if TYPE_CHECKING:
    from probes.data.sentence import Corpus, Sentence
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import View
    from probes.measurements.context import ModelContext

READ, CENTRED, SHIFTED = "as read", "centred", "shifted"
"""Vectors as they are, without the mean of their language, and plus the difference of means."""


class HitKey(NamedTuple):
    """Metric and places of a mean over sentences."""

    metric: str
    layer: int | None
    language: str
    vectors: str | None = None
    baseline: str | None = None
    direction: str | None = None


Hits = Iterator[tuple[HitKey, Floats]]
"""Keys, and how far each sentence of the second half is right, from 0 to 1. Shape (n,)."""

_ALL = {"split": "all"}


def translations(corpus: Corpus, options: ParallelSentencesOptions) -> dict[str, list[Sentence]]:
    """The sentences that the corpus and all files have, in one order, by language.

    Raises:
        UserError: there are no files, two of one name, one without `sent_id`, or fewer than four
            documents (two for each half).
    """
    if not options.files:
        raise UserError("--measurements parallel_sentences: it needs --parallel-sentences-files.")
    for path in options.files:  # The reader numbers such sentences, whatever their order.
        if path.is_file() and not re.search(rb"(?m)^#\s*sent_id\s*=", path.read_bytes()):
            raise UserError(f"--parallel-sentences-files {path}: its sentences have no sent_id.")
    by_id = {
        path.stem.partition("-ud-")[0]: {s.id: s for s in read_conllu(path, language_of(path))}
        for path in options.files
    }
    ours = [s for s in corpus if all(s.id in theirs for theirs in by_id.values())]
    flag = f"--parallel-sentences-files {','.join(map(str, options.files))}"
    if len({corpus.name, *by_id}) < 1 + len(options.files):
        raise UserError(
            f"{flag}: files, and the corpus {corpus.name}, need different names before -ud-; "
            "rename one."
        )
    if partition([s.document for s in ours]).n < 4:
        raise UserError(
            f"{flag}: all of them translate {counted(len(ours), 'sentence')} of {corpus.name}; "
            "give files with its sent_id, of four documents or more."
        )
    return {corpus.name: ours} | {name: [x[s.id] for s in ours] for name, x in by_id.items()}


def _parallel_view(corpus: Corpus, options: ParallelSentencesOptions) -> View:
    languages = translations(corpus, options).values()
    return view_over((plain_text(s) for part in languages for s in part), "plain")


def _sentence_collector(corpus: Corpus, layers: Sequence[int], options: object) -> Collector:
    from probes.families.geometry.sentence_vectors import SentenceVectors

    return SentenceVectors(layers, storage="float32")


@measurement(
    "parallel_sentences",
    options=ParallelSentencesOptions,
    reads=_parallel_view,
    collector=_sentence_collector,
    shows=(
        Pivot(
            "variance between languages, %",
            ("language_share",),
            columns=("language", "vectors"),
            where=_ALL,
            note="Share of the variance of sentence vectors that lies between two languages.",
        ),
        Pivot(
            "language identification, %",
            ("language_accuracy",),
            columns=("language", "vectors"),
            where=_ALL,
            note="Share of sentences whose nearest sentence in other documents, of both languages, "
            "is in their own language; chance is 50 %.",
        ),
        Pivot(
            "retrieval of translations, %",
            ("retrieval_accuracy",),
            columns=("language", "direction"),
            where={**_ALL, "vectors": ...},
            apart="vectors",
            note="Share of sentences whose translation is the nearest of all. To: the corpus's "
            "sentences look for those of the language.",
        ),
        Pivot(
            "lexical baseline, %",
            ("retrieval_accuracy",),
            rows="baseline",
            columns=("language", "direction"),
            where={**_ALL, "layer": None},
            below=("common_pieces",),
            note="Retrieval by letters in common (TF-IDF of 2 to 4 letters). Common pieces: share "
            "of a sentence's pieces that occur in other documents of the language it looks into.",
        ),
        Lines(
            "parallel_sentences",
            "retrieval_accuracy",
            "Retrieval of translations",
            "Share of the corpus's sentences whose translation is the nearest; of several models, "
            "after centring. Dashed: lexical baseline.",
            line="vectors",
            apart="language",
            where={**_ALL, "direction": "to"},
            of_several={"vectors": (CENTRED, None)},
        ),
    ),
)
def parallel_sentences(context: ModelContext) -> Measured:
    """How far languages lie apart, and whether translations are each other's nearest sentences."""
    languages = translations(context.corpus, context.options)
    source, *targets = languages
    units = partition([s.document for s in languages[source]])
    fitted = units.of_sentence % 2 == 0
    # The other documents have odd numbers: 1, 3, 5 become clusters 0, 1, 2.
    cluster, n = units.of_sentence[~fitted] // 2, int(np.count_nonzero(~fitted))
    rows, hits = [], dict(_lexical_hits(context, languages, fitted))
    index = {
        name: [context.view.index[plain_text(s)] for s in part] for name, part in languages.items()
    }
    for layer in context.layers:
        vectors = context.of_texts(layer_part(layer)).astype(np.float64)
        for name in targets:
            pair = vectors[index[source]], vectors[index[name]]
            hits |= layer_hits(layer, name, pair, fitted)
            for kind, rows_of in kinds_of_vectors(pair, fitted).items():
                axes, value = {"language": name, "vectors": kind}, language_share(rows_of, fitted)
                reason = "vectors do not vary" if value is None else ""
                rows.append(
                    Row("language_share", value, layer, split="all", n=2 * n, why=reason, axes=axes)
                )
    columns = np.stack(list(hits.values()), axis=1)
    estimates = means(columns, cluster, int(cluster.max()) + 1, units.clusters)
    for key, estimate in zip(hits, estimates, strict=True):
        places = dict(zip(HitKey._fields[2:], key[2:], strict=True))
        rows.append(Row.estimated(key.metric, estimate, key.layer, split="all", n=n, axes=places))
    note = (
        f"{len(fitted):,} of {sum(map(len, context.corpus.splits.values())):,} sentences are in "
        f"all files. Means are of one half of the {units.clusters}, numbers of {n:,} sentences of "
        f"the other; a translation is the nearest by chance in {100 / n:.2g} %."
    )
    return Measured(rows, facts={"sentences": len(fitted), "candidates": n}, notes=[note])


def kinds_of_vectors(
    pair: Sequence[VectorRows], fitted: NDArray[np.bool_]
) -> dict[str, Sequence[VectorRows]]:
    """The vectors of two languages as they are, and minus the mean of each."""
    return {READ: pair, CENTRED: [rows - rows[fitted].mean(0) for rows in pair]}


def language_share(pair: Sequence[VectorRows], fitted: NDArray[np.bool_]) -> float | None:
    """Share of the variance that lies between two languages (ε²); None without any variance."""
    rows = np.concatenate([x[~fitted] for x in pair])
    language = np.repeat([0, 1], len(rows) // 2)
    shares = PlacesOfTypes(language, np.zeros_like(language)).shares(rows, [])
    return None if shares is None else float(shares[0])


def layer_hits(
    layer: int, name: str, pair: Sequence[VectorRows], fitted: NDArray[np.bool_]
) -> Hits:
    """Identification of two languages at one layer, and retrieval with three kinds of vectors.

    Args:
        name: name of the other language.
        pair: vectors of the corpus's sentences, and of their translations. Shape (sentences, H).
        fitted: True for sentences of the half that means are of. Shape (sentences,).
    """
    kinds = kinds_of_vectors(pair, fitted)
    for kind, of_languages in kinds.items():
        unit = [unit_vectors(x) for x in of_languages]
        candidates = np.concatenate([x[fitted] for x in unit]).T
        second = [(x[~fitted] @ candidates).argmax(1) >= np.count_nonzero(fitted) for x in unit]
        right = np.mean([~second[0], second[1]], axis=0)
        yield HitKey("language_accuracy", layer, name, kind), right
        key = HitKey("retrieval_accuracy", layer, name, kind)
        yield from retrieval_hits(unit[0][~fitted] @ unit[1][~fitted].T, key)
    # A vector plus the difference of means is as far from a candidate as both are when centred.
    ours, theirs = (x[~fitted] for x in kinds[CENTRED])
    nearness = ours @ theirs.T - (ours**2).sum(1)[:, None] / 2 - (theirs**2).sum(1) / 2
    yield from retrieval_hits(nearness, HitKey("retrieval_accuracy", layer, name, SHIFTED))


def retrieval_hits(nearness: Floats, key: HitKey) -> Hits:
    """Whether each sentence is nearest to its translation, in both directions.

    If k candidates are equally near, the translation counts 1 / k.

    Args:
        nearness: of the corpus's sentences (rows) and translations (columns). Shape (n, n).
    """
    for direction, values in (("to", nearness), ("from", nearness.T)):
        nearest = np.isclose(values, values.max(1, keepdims=True), rtol=1e-9, atol=0)
        yield key._replace(direction=direction), nearest.diagonal() / nearest.sum(1)


def _lexical_hits(
    context: ModelContext, languages: Mapping[str, Sequence[Sentence]], fitted: NDArray[np.bool_]
) -> Hits:
    """Retrieval by letters, and shares of word pieces in common."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    assert context.tokenizer is not None, "given vectors are refused where they are read"
    pieces = {
        name: [text.ids for text in context.tokenizer([plain_text(s) for s in part])]
        for name, part in languages.items()
    }
    source, *targets = languages
    for name in targets:
        texts = [" ".join(s.words) for x in (source, name) for s in compress(languages[x], ~fitted)]
        rows = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)).fit_transform(texts)
        ours, theirs = rows[: len(texts) // 2], rows[len(texts) // 2 :]
        key = HitKey("retrieval_accuracy", None, name, baseline="letters")
        yield from retrieval_hits((ours @ theirs.T).toarray(), key)
        for direction, query, searched in (("to", source, name), ("from", name, source)):
            of_language = np.concatenate([*compress(pieces[searched], fitted)])
            shares = [np.isin(x, of_language).mean() for x in compress(pieces[query], ~fitted)]
            yield HitKey("common_pieces", None, name, direction=direction), np.array(shares)
