"""Geometry: how the vectors of words lie in space, layer by layer.

Anisotropy and contextuality (Ethayarajh 2019), dominant dimensions (Timkey & van Schijndel 2021),
intrinsic dimension, similarity of layers (Kornblith et al. 2019), and clusters (Jawahar et al.
2019). Nothing is trained. Clusters of senses use all splits, other numbers the words of test.
docs/geometry.md explains their limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.errors import counted
from probes.families.geometry import GeometryOptions
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.of_families.cka import ESTIMATES, cka_between, cka_within

if TYPE_CHECKING:
    from probes.families.geometry.labelled_words import LabelSet
    from probes.measurements.context import ModelContext, PairContext

SIMILARITIES = ("self_similarity", "intra_sentence_similarity", "maximum_explainable_variance")
"""Measures of contextuality; each has a baseline, which is subtracted to adjust it."""

TEST_AND_ALL = {"split": ("test", "all")}
"""Splits of clustered items; senses are from all splits."""


@measurement(
    "geometry",
    version=3,
    options=GeometryOptions,
    shows=(
        Pivot(
            metrics=(
                "anisotropy",
                "standardised_anisotropy",
                "participation_ratio",
                "norm_mean",
                "norm_sd",
            ),
            columns=("metric",),
            note="Anisotropy: expected cosine of two random words; standardised: with each "
            "dimension standardised.",
        ),
        Pivot(
            "top dimensions, with share of anisotropy, %",
            ("share_of_anisotropy",),
            columns=("rank",),
            before="dimension",
            note="The dimensions that contribute most to anisotropy, with their share of it if it "
            "is above 0.",
        ),
        Pivot(
            "context",
            tuple(x + y for x in SIMILARITIES for y in ("", "_baseline", "_adjusted")),
            columns=("metric",),
            note="Self-similarity and explainable variance: means over word types; intra-sentence "
            "similarity: mean over sentences. Expected: anisotropy for self-similarity, otherwise "
            "the same measure on as many random words. Adjusted: minus expected.",
        ),
        Pivot(
            "clusters",
            ("nmi", "ami"),
            columns=("labels", "metric"),
            where=TEST_AND_ALL,
            note="k-means with as many clusters as classes, mean over several starts. AMI is "
            "adjusted for chance; NMI is not, and is high for few items. ± half the width "
            "of a 95 % interval over starts and documents or sentences, with clusters fixed; for "
            "senses, over lemmas.",
        ),
        Pivot(
            metrics=("unbiased_cka",),
            columns=("other_layer",),
            note="Linear CKA over test words (unbiased), once per pair of layers; 1 for layers "
            "that are equal up to rotation and scale, 0 on average for independent ones.",
        ),
        Lines(
            "isotropy",
            "anisotropy",
            "Anisotropy",
            "Expected cosine of two random words, over all pairs.",
        ),
        Lines(
            "context",
            tuple(f"{name}_adjusted" for name in SIMILARITIES),
            "Measures of context, adjusted",
            "Minus that of random words (Ethayarajh 2019). The lower self-similarity is, the more "
            "the vectors of a word depend on its context.",
        ),
        Lines(
            "dimensionality",
            "participation_ratio",
            "Intrinsic dimension",
            "Participation ratio of the covariance's eigenvalues.",
        ),
        Lines(
            "clusters",
            "ami",
            "Clusters",
            "k-means clusters against labels; senses: mean over lemmas.",
            line="labels",
            where=TEST_AND_ALL,
        ),
        Cells(
            "cka",
            "unbiased_cka",
            across="other_layer",
            title="Similarity of layers",
            note="Linear CKA over test words (unbiased).",
            low=0.0,
            high=1.0,
        ),
    ),
)
def geometry(context: ModelContext) -> Measured:
    """Anisotropy, contextuality, intrinsic dimension, clusters, similarity of layers."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from probes.families.geometry.labelled_words import label_sets, words_of_test
    from probes.families.geometry.layer import geometry_rows, word_contextuality

    layers, seed = context.layers, context.options.seed
    words, labels = words_of_test(context, context.options.least), label_sets(context)
    rows: list[Row] = []
    means = []
    with context.bar(len(layers) * (len(layers) + 3) // 2) as bar:
        # Threads are slow with many small matrices, and would make k-means depend on timing.
        # Only libraries that are already loaded are limited.
        with threadpool_limits(1):
            for layer in layers:
                vectors, stored = context.words("test", layer), context.vectors.layer(layer)
                means.append(word_contextuality(vectors, words, seed))
                rows += geometry_rows(layer, vectors, words, means[-1], labels, stored, seed)
                bar.update(1)
        cka = cka_within(lambda layer: context.words("test", layer), layers, lambda: bar.update(1))
    for index, layer in enumerate(layers):
        for metric, values in zip(ESTIMATES, cka, strict=True):
            for value, lower_layer in zip(values[index], layers[:index], strict=False):
                rows.append(Row(metric, value, layer, axes={"other_layer": lower_layer}))
    facts: dict[str, Any] = {
        "words": len(words),
        "sentences": words.n_sentences,
        "types": len(words.frequent),
        "resampled": words.partition.clusters,
        "in_several_windows": int(context.in_several_windows("test").sum()),
    }
    for name, label_set in labels.items():
        facts |= {f"{name}_{kind}": n for kind, n in label_set.counts.items()}
    arrays = {
        name: np.stack([getattr(averages, name) for averages in means]).astype(np.float32)
        for name in ("intra_sentence", "self_similarity", "explainable")
    }
    notes = list(_cluster_notes(facts, words.least, rows, labels))
    return Measured(rows, arrays, facts=facts, notes=notes)


@measurement(
    "model_similarity",
    of="pair",
    version=2,
    after="geometry",
    shows=(
        Pivot(metrics=("unbiased_cka",), columns=("base_layer",)),
        Cells(
            "cka_of_models",
            "unbiased_cka",
            across="base_layer",
            title="Similarity of two models",
            note="Linear CKA over test words (unbiased); rows: layers of the model, columns: of "
            "the base.",
            low=0.0,
            high=1.0,
        ),
    ),
)
def model_similarity(context: PairContext) -> Measured:
    """Linear CKA of the layers of two models; made along with geometry.

    Every layer is compared with every layer of the run's first model, on the words of test. Vectors
    may differ in size. Two layers are in memory at a time.
    """
    base = context.base
    with context.bar(len(context.layers) * len(base.layers)) as bar:
        cka = cka_between(
            lambda layer: context.words("test", layer),
            context.layers,
            lambda layer: base.words("test", layer),
            base.layers,
            lambda: bar.update(1),
        )
    rows = [
        Row(metric, value, layer, axes={"base": base.model.name, "base_layer": base_layer})
        for metric, by_layer in zip(ESTIMATES, cka, strict=True)
        for layer, values in zip(context.layers, by_layer, strict=True)
        for base_layer, value in zip(base.layers, values, strict=True)
    ]
    note = (
        f"Linear CKA over test words (unbiased); rows: layers of {context.model.name}, columns: "
        f"layers of {base.model.name}."
    )
    return Measured(rows, facts={"words": len(context.rows("test"))}, notes=(note,))


def _cluster_notes(
    facts: Mapping[str, Any], least: int, rows: Sequence[Row], labels: Mapping[str, LabelSet]
) -> Iterator[str]:
    """Notes on the measured words and clusters."""
    yield (
        f"{facts['words']:,} test words in {facts['sentences']:,} sentences; "
        f"{counted(facts['types'], 'word type')} in at least {least} sentences. ± half the width "
        f"of a 95 % interval over {facts['resampled']}, or over word types or lemmas for means "
        "over these."
    )
    if n := facts["in_several_windows"]:
        yield (f"{n:,} sentences longer than the model's window are measured like the others.")
    zeros = [row for row in rows if row.metric == "zero_vectors" and row.value]
    if zeros:
        counts = ", ".join(f"{row.value:,} at layer {row.layer}" for row in zeros)
        yield f"Words with vector 0, whose cosines count as 0: {counts}."
    for name, label_set in labels.items():
        yield f"Clusters against {name}: {label_set.note}."
