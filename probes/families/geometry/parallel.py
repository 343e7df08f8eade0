"""Parallel sentences: is the translation the nearest of all sentences (Libovický et al. 2020)?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from probes.common.arrays import Ints
from probes.common.errors import UserError, counted
from probes.data.conllu_files import read_conllu
from probes.data.sentence import SPLITS, Sentence
from probes.data.treebank import language_of
from probes.examples.examples import NotServedError
from probes.extraction.vectors import layer_part
from probes.extraction.views import plain_text, view_over
from probes.families.geometry import ParallelOptions
from probes.families.geometry.cosines import unit_vectors
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.bootstrap import means
from probes.statistics.cka import bias_note, linear_cka
from probes.statistics.partition import Partition, partition
from probes.statistics.sums import Rows, blocks, centred, group_sums

if TYPE_CHECKING:
    from probes.extraction.windows import Pooling
    from probes.measurements.context import ModelContext


@measurement(
    "parallel",
    options=ParallelOptions,
    views=(
        Pivot(
            metrics=("retrieval_accuracy",),
            columns=("among", "vectors"),
            note="Each sentence is the mean of its words. A translation is retrieved if its cosine "
            "is the highest among the sentences named in the column; chance is 1 / pairs. Centred: "
            "minus the mean of the language. ± half a 95 % interval over documents or sentences; "
            "candidates stay the same.",
        ),
        Pivot(metrics=("cka_of_languages", "centroid_cosine")),
        Lines(
            "parallel",
            "retrieval_accuracy",
            "Retrieval of translations",
            line="among",
            where={"vectors": "centred"},
        ),
    ),
)
def parallel(context: ModelContext) -> Found:
    """Retrieval of translations among parallel sentences, and their CKA.

    Sentences of all splits are compared with the sentences of the file that have the same sent_id.

    Rows of each layer: share of sentences whose translation is the nearest, in each direction, raw
    and centred by language; linear CKA of the two sets of sentences (Kornblith et al. 2019), which
    does not depend on centring; and cosine of their means.

    Raises:
        UserError: fewer than two sentences have translations.
        NotServedError: the run uses given vectors.
    """
    if not context.model.window:
        raise NotServedError("given vectors cannot be computed for translations")
    path = cast("ParallelOptions", context.options).file
    theirs = {s.id: s for s in read_conllu(path, language_of(path))}
    ours = [s for s in context.corpus if s.id in theirs]
    if len(ours) < 2:
        raise UserError(
            f"--parallel-file {path}: {len(ours)} sentences have a sent_id of "
            f"{context.corpus.name}. Give a file with translations of this corpus."
        )
    names = context.corpus.name, path.stem
    own = _means_of_own(context, theirs.keys())
    other = _means(context, [theirs[s.id] for s in ours])
    drawn = partition([s.document for s in ours])
    n_all = sum(map(len, context.corpus.splits.values()))
    lacking = f"{counted(n_all - len(ours), 'sentence')} of the corpus and "
    lacking += f"{len(theirs) - len(ours):,}"
    return Found(
        [
            row
            for place, layer in enumerate(context.layers)
            for row in _compared(layer, own[place], other[place], names, drawn)
        ],
        facts={"sentences": len(ours)},
        notes=[
            f"{len(ours):,} pairs of sentences; {lacking} of the file have no translation.",
            *bias_note(len(ours), context.model.hidden_size),
        ],
    )


def _means_of_own(context: ModelContext, ids: Collection[str]) -> Rows:
    """Mean vectors of the corpus's sentences with translations. Shape (L, sentences, H)."""
    found = []
    for layer in context.layers:
        parts = []
        for split in SPLITS:
            sentences = context.corpus.splits[split]
            number = context.sentence_numbers(split)
            sums = group_sums(context.words(split, layer), number, len(sentences))
            sums /= np.bincount(number, minlength=len(sentences))[:, None]
            parts.append(sums[[s.id in ids for s in sentences]])
        found.append(np.concatenate(parts))
    return np.stack(found)


def _means(context: ModelContext, sentences: list[Sentence]) -> Rows:
    """Mean vectors of other sentences, which the model reads. Shape (L, sentences, H)."""
    from probes.extraction.collectors import WordVectors

    texts = [plain_text(sentence) for sentence in sentences]
    view = view_over(texts, "plain")
    pooling = cast("Pooling", context.vectors.manifest["key"]["settings"]["pooling"])
    found = np.empty((len(context.layers), len(view.texts), context.model.hidden_size), np.float32)
    for shard, arrays in context.read(view, WordVectors(context.layers, pooling, "float32")):
        lengths = [len(text.words) for text in shard.texts]
        number = np.repeat(np.arange(len(lengths)), lengths)
        for place, layer in enumerate(context.layers):
            sums = group_sums(arrays[layer_part(layer)].numpy(), number, len(lengths))
            found[place, shard.index] = sums / np.array(lengths)[:, None]
    return found[:, [view.index[text] for text in texts]]


def _compared(
    layer: int, own: Rows, other: Rows, names: tuple[str, str], drawn: Partition
) -> Iterator[Row]:
    for vectors, pair in ((None, (own, other)), ("centred", (centred(own), centred(other)))):
        unit = [unit_vectors(each) for each in pair]
        for start, end in ((0, 1), (1, 0)):
            hits = nearest(unit[start], unit[end]) == np.arange(len(own))
            values = hits[:, None].astype(np.float64)
            (found,) = means(values, drawn.of_sentence, drawn.n, drawn.clusters)
            yield Row(
                "retrieval_accuracy",
                found.value,
                layer,
                *ends(found.interval),
                n=len(own),
                axes={"among": names[end], "vectors": vectors},
            )
    yield Row("cka_of_languages", linear_cka(own, other), layer, n=len(own))
    one, two = own.mean(0), other.mean(0)
    cosine = float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))
    yield Row("centroid_cosine", cosine, layer, n=len(own))


def nearest(queries: Rows, candidates: Rows) -> Ints:
    """The candidate with the highest cosine to each query; the first of equals. Shape (n,).

    Args:
        queries, candidates: unit vectors.
    """
    found = [(queries[some] @ candidates.T).argmax(1) for some in blocks(len(queries))]
    return np.concatenate(found)
