"""Structural probes: do distances and lengths of projected vectors show the tree of a sentence?

After Hewitt & Manning (2019). docs/geometry.md explains each number and its limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.families.structure import StructureOptions
from probes.families.structure.trees import N_CONTROL_TREES
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot, Section
from probes.measurements.row_filters import BestOnDev, PlacesOf
from probes.statistics.metrics import label_of
from probes.statistics.rank_correlation import NSPR_LENGTHS

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

REPORTED = 64
"""The rank of controls, tests and predicted trees, or else the next lower requested rank."""

AT_REPORTED = {"rank": PlacesOf("uuas_p_best")}

CHAIN = "chain of neighbours"

MEANINGS = (
    "UUAS: share of gold edges that a spanning tree finds, without punctuation. DSpr, NSpr: rank "
    f"correlation of distances and of depths, in sentences of {NSPR_LENGTHS.start} to "
    f"{NSPR_LENGTHS.stop - 1} words. Control UUAS: mean over {N_CONTROL_TREES} "
    "draws of control trees, in which each word form depends on the first word or on the one "
    "before. Selectivity: UUAS minus control UUAS. Identity: the vectors without a probe."
)


@measurement(
    "structure",
    version=2,
    needs=("heads", "upos"),
    options=StructureOptions,
    shows=(
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
            note="In %; the probes have the rank of the first table.",
        ),
        Lines(
            "ranks",
            "uuas",
            "UUAS by rank",
            f"Distance probes; with several models, at the best layer on dev. Dashed: the {CHAIN}.",
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
                "Probes of rank {rank}, with 95 % intervals.",
                where=AT_REPORTED,
                levels={CHAIN: "chain_uuas"} if metric == "uuas" else {},
            )
            for metric in ("uuas", "dspr", "root_accuracy", "nspr")
        ),
    ),
)
def structure(context: ModelContext) -> Measured:
    """Structural probes: trees in distances and lengths of projected vectors, by rank.

    Distance and depth probes of every rank are fitted on every layer; see
    `probes.families.structure.fitting`.

    Arrays for dev and test: ``test_hits`` (layers, ranks, sentences, bins), gold edges found, by
    distance of their words; ``test_dspr``, ``test_roots``, ``test_nspr`` (layers,
    ranks, sentences); ``test_control_hits`` (layers, draws, sentences, bins);
    ``test_control_edges`` (draws, sentences, bins); ``test_control_uuas`` (layers, draws);
    ``test_chain_hits``, ``test_edges`` (sentences, bins); ``test_sentences`` (their numbers in the
    split), ``test_lengths``, ``test_clusters`` (sentences,). ``layers`` and ``ranks`` name the
    axes; rank 0 means the vectors themselves. ``test_refits`` (layers, scores, samples) are test
    scores (UUAS, DSpr, root accuracy, NSpr) of probes of the reported rank that were fitted to
    bootstrap samples. ``trees`` (words of test,) are the trees predicted with the reported rank at
    the best layer on dev: the head of each word within its sentence, oriented from the predicted
    root; -1 for the root, -2 for punctuation and for excluded sentences.

    Parameters: ``distance.layer-03.rank-064`` and ``depth.layer-03.rank-064``, matrices (rank,
    hidden size) for the model's vectors.
    """
    from probes.families.structure.fit_and_score import fit_and_score

    ranks = context.options.up_to(context.model.hidden_size)
    reported = max([x for x in ranks if x <= REPORTED] or ranks[:1])
    return fit_and_score(context, ranks, reported)
