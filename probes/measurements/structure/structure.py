"""Structural probes: do distances and lengths of projected vectors show the tree of a sentence?

After Hewitt & Manning (2019). docs/structure.md says what each number is, and when not to trust it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.measurements.chart_views import Lines
from probes.measurements.choosing import BestOnDev, PlacesOf
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot, Section
from probes.measurements.structure.options import StructureOptions
from probes.measurements.structure.trees import DRAWS
from probes.statistics.metrics import label_of
from probes.statistics.rank_correlation import NSPR_LENGTHS

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

REPORTED = 64
"""The rank of controls, tests and predicted trees, or the next lower one that is asked for."""

AT_REPORTED = {"rank": PlacesOf("uuas_p_best")}

CHAIN = "chain of neighbours"

MEANINGS = (
    "UUAS: gold edges between words that are not punctuation, found by a spanning tree. DSpr, "
    "NSpr: rank correlation of distances and of depths, in sentences of "
    f"{NSPR_LENGTHS.start} to {NSPR_LENGTHS.stop - 1} words. Control UUAS: the mean on {DRAWS} "
    "draws of control trees, in which each word form depends on the first word or on the one "
    "before; selectivity: UUAS minus that mean. Identity: the vectors without a probe."
)


@measurement(
    "structure",
    version=2,
    needs=("heads", "upos"),
    options=StructureOptions,
    views=(
        Pivot(
            "rank {rank} · test",
            ("uuas", "dspr", "root_accuracy", "nspr", "control_uuas", "selectivity"),
            columns=("metric",),
            where=AT_REPORTED,
            marked=True,
            sections=(
                Section("identity", where={"rank": 0}),
                Section(CHAIN, {"chain_uuas": "uuas", "chain_control_uuas": "control_uuas"}),
            ),
            note=MEANINGS,
        ),
        Pivot(
            "UUAS by rank · test",
            ("uuas",),
            columns=("rank",),
            note="Rank 0: the vectors without a probe.",
        ),
        Pivot(
            "share of gold edges found, by the distance of their words · test",
            ("recall",),
            columns=("words",),
            sections=(Section(CHAIN, {"chain_recall": "recall"}),),
            note="In %, by probes of the rank of the first table.",
        ),
        Lines(
            "ranks",
            "uuas",
            "UUAS by rank",
            "Of distance probes, of several models at the layer that is best on dev; dashed: the "
            f"{CHAIN}.",
            x="rank",
            line="layer",
            log=True,
            of_several={"layer": BestOnDev("uuas", AT_REPORTED)},
            levels={CHAIN: "chain_uuas"},
        ),
        *(
            Lines(
                f"structure_{metric}",
                metric,
                f"{label_of(metric)} by layer",
                "Of probes of rank {rank}, with 95 % intervals.",
                where=AT_REPORTED,
                levels={CHAIN: "chain_uuas"} if metric == "uuas" else {},
            )
            for metric in ("uuas", "dspr", "root_accuracy", "nspr")
        ),
    ),
)
def structure(context: ModelContext) -> Found:
    """Structural probes: trees in distances and lengths of projected vectors, by rank.

    Distance and depth probes of every rank on every layer.

    Probes are fitted with Adam for ten epochs, with a learning rate that falls to 0; of ten states
    that with the least dev loss counts. See `probes.measurements.structure.fitting`.

    Arrays beside the record, for dev and test: ``test_hits`` (layers, ranks, sentences, bins), gold
    edges found by distance of both words; ``test_dspr``, ``test_roots``, ``test_nspr`` (layers,
    ranks, sentences); ``test_control_hits`` (layers, draws, sentences, bins);
    ``test_control_edges`` (draws, sentences, bins); ``test_control_uuas`` (layers, draws);
    ``test_chain_hits``, ``test_edges`` (sentences, bins); ``test_sentences`` (their numbers in the
    split), ``test_lengths``, ``test_clusters`` (sentences,). ``layers`` and ``ranks`` name the
    axes, rank 0 being the vectors themselves. ``test_refits`` (layers, scores, samples) are test
    scores of the probes of the reported rank that were fitted to bootstrap samples: UUAS, DSpr,
    root accuracy, NSpr.
    ``trees`` (words of test,) are the trees predicted by the reported rank at the layer that is
    best on dev: the head of each word within its sentence, oriented from the predicted root, -1
    for the root, -2 for punctuation and for sentences that are left out.

    Parameters: ``distance.layer-03.rank-064`` and ``depth.layer-03.rank-064``, (rank, hidden size)
    each, to be applied to the model's vectors.
    """
    from probes.measurements.structure.fit_and_score import fit_and_score

    ranks = context.options.up_to(context.model.hidden_size)
    reported = max([x for x in ranks if x <= REPORTED] or ranks[:1])
    return fit_and_score(context, ranks, reported)
