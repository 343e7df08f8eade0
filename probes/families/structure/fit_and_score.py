"""Fits, applies and scores the probes of every layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from probes.compute.devices import exact_products
from probes.examples.examples import NotServedError
from probes.families.structure.fitting import (
    SAMPLES,
    Batch,
    Kind,
    LayerFit,
    StructuralProbe,
    exact_batches,
    fit_structural_probes,
    n_steps,
    training_batches,
)
from probes.families.structure.sentence_scores import (
    Contributions,
    Edges,
    Matrix,
    chain_hits,
    control_hits,
    gold_edges,
    predicted_trees,
    sentence_contributions,
)
from probes.families.structure.structure_rows import (
    SCORES,
    ScoredSplit,
    counts,
    notes,
    structure_rows,
)
from probes.families.structure.trees import N_CONTROL_TREES, Trees, trees_of
from probes.measurements.context import ModelContext
from probes.measurements.measurement import Measured
from probes.records.best_layer import best_layer_of
from probes.tasks.validation import TaskError
from probes.training.batches import bootstrap_weights

KINDS: tuple[Kind, ...] = ("distance", "depth")


@exact_products()
def fit_and_score(context: ModelContext, ranks: Sequence[int], reported: int) -> Measured:
    """Fit probes to every layer and score them on dev and test.

    Raises:
        TaskError: a dev loss is not finite.
    """
    trees = trees_by_split(context)
    rows, device = {split: context.rows(split) for split in trees}, context.device
    train = training_batches(trees["train"], rows["train"], 0, device)
    exact = {x: exact_batches(trees[x], rows[x], device) for x in ("dev", "test")}
    weights = sample_weights(context, trees["train"])
    probes = structural_probes(ranks, reported)
    fitted: dict[int, LayerFit] = {}
    contributions: dict[str, list[Contributions]] = {split: [] for split in exact}
    controls: dict[str, list[Edges]] = {split: [] for split in exact}
    with context.bar(len(context.layers) * n_steps(len(train))) as bar:
        for layer in context.layers:
            stored = context.vectors.layer(layer)
            layer_fit = fit_structural_probes(
                stored, train, exact["dev"], probes, weights, lambda: bar.update(1)
            )
            if not np.isfinite(list(layer_fit.dev_losses.values())).all():
                raise TaskError(
                    f"Measurement 'structure': the dev loss at layer {layer} is not finite, "
                    "probably because vectors are too large; leave the layer out with --layers."
                )
            fitted[layer], pairs = layer_fit, pairs_of(layer_fit, ranks, reported)
            of_control = [matrix for probe, matrix in layer_fit.matrices.items() if probe.control]
            for x, batches in exact.items():
                contributions[x].append(sentence_contributions(stored, batches, trees[x], pairs))
                controls[x].append(control_hits(stored, batches, trees[x], of_control))
    splits = {
        x: _scored_split(context, x, trees[x], batches, contributions[x], controls[x])
        for x, batches in exact.items()
    }
    # Seeds the noise of training. It depends on what is measured, not on folders or options.
    drawn_by = f"{context.model.digest} {context.corpus.fingerprint}"
    scores = list(structure_rows(drawn_by, ranks, reported, fitted, splits))
    column = list(ranks).index(reported)
    dev_uuas = {x: splits["dev"].score("uuas", i, column) for i, x in enumerate(fitted)}
    best = best_layer_of(dev_uuas)
    pair = pairs_of(fitted[best], [reported], reported)[0]
    predicted = predicted_trees(
        context.vectors.layer(best), exact["test"], trees["test"], pair, len(rows["test"])
    )
    test, resampled = splits["test"], context.partition("test").clusters
    return Measured(
        scores,
        arrays={
            "trees": predicted,
            "layers": np.array(list(fitted)),
            "ranks": np.array([*ranks, 0]),
            **_arrays(splits, len(ranks) + 1),
            "test_refits": np.stack([test.refits(metric) for metric in SCORES], axis=1),
        },
        # Probes of bootstrap samples and control trees serve intervals and tests alone.
        parameters={
            f"{probe.kind}.layer-{layer:02d}.rank-{probe.rank:03d}": matrix
            for layer, fit in fitted.items()
            for probe, matrix in fit.matrices.items()
            if not probe.control and not probe.sample
        },
        facts={
            "unit": "uuas",
            "rank": reported,
            "resampled": resampled,
            "clusters": test.n_used,
            **{f"{x}_{name}": n for x in trees for name, n in counts(trees[x]).items()},
        },
        notes=list(notes(trees, test, resampled, scores)),
    )


def trees_by_split(context: ModelContext) -> dict[str, Trees]:
    """The trees of each split.

    Raises:
        NotServedError: a split has no sentence with a tree to be found.
    """
    trees = {
        split: trees_of(sentences, context.in_several_windows(split))
        for split, sentences in context.corpus.splits.items()
    }
    for split, gold in trees.items():
        if not len(gold.sentences):
            reasons = "; ".join(f"{n:,} {reason}" for reason, n in gold.left_out.items())
            raise NotServedError(f"no sentence of {split} has a tree to be found: {reasons}")
    return trees


def _scored_split(
    context: ModelContext,
    name: str,
    trees: Trees,
    batches: Sequence[Batch],
    contributions: Sequence[Contributions],
    controls: Sequence[Edges],
) -> ScoredSplit:
    """A split with its scores; `contributions` and `controls` have an entry for each layer."""
    partition = context.partition(name)
    return ScoredSplit(
        name,
        trees,
        partition.of_sentence[trees.sentences],
        partition.n,
        gold_edges(trees, batches),
        chain_hits(trees, batches),
        Contributions(*map(np.stack, zip(*contributions, strict=True))),
        np.stack(controls),
    )


def structural_probes(ranks: Sequence[int], reported: int) -> list[StructuralProbe]:
    """All probes of a layer: of each rank, bootstrap sample, and draw of control trees."""
    return [
        *(StructuralProbe(kind, rank) for kind in KINDS for rank in ranks),
        *(StructuralProbe(k, reported, sample=n) for k in KINDS for n in range(1, SAMPLES + 1)),
        *(
            StructuralProbe("distance", reported, control=draw)
            for draw in range(1, N_CONTROL_TREES + 1)
        ),
    ]


def pairs_of(fitted: LayerFit, ranks: Sequence[int], reported: int) -> list[tuple[Matrix, Matrix]]:
    """Distance and depth probe of each rank, of the identity, and of each bootstrap sample."""

    def pair(rank: int, sample: int = 0) -> tuple[Matrix, Matrix]:
        distance, depth = (
            fitted.matrices[StructuralProbe(kind, rank, sample=sample)] for kind in KINDS
        )
        return distance, depth

    samples = (pair(reported, sample) for sample in range(1, SAMPLES + 1))
    return [*map(pair, ranks), (None, None), *samples]


def sample_weights(context: ModelContext, trees: Trees) -> dict[int, torch.Tensor]:
    """Weights of training sentences by bootstrap sample, with mean 1. Each (s,)."""
    clusters = torch.from_numpy(context.partition("train").of_sentence[trees.sentences])
    weights = {sample: bootstrap_weights(clusters, sample) for sample in range(SAMPLES + 1)}
    return {sample: (x / x.mean()).to(context.device) for sample, x in weights.items()}


def _arrays(splits: Mapping[str, ScoredSplit], n: int) -> dict[str, NDArray[np.generic]]:
    """Arrays of the sentences of dev and test; see `structure`.

    Args:
        n: number of ranks, with the identity.
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    for x, split in splits.items():
        parts = split.contributions.at((slice(None), slice(n)))
        arrays |= {f"{x}_{name}": part for name, part in parts._asdict().items()}
        arrays |= {
            f"{x}_sentences": split.trees.sentences,
            f"{x}_lengths": split.trees.lengths,
            f"{x}_clusters": split.clusters,
            f"{x}_edges": split.edges[0],
            f"{x}_control_edges": split.edges[1:],
            f"{x}_control_hits": split.control,
            f"{x}_control_uuas": np.array([split.control_uuas(hits) for hits in split.control]),
            f"{x}_chain_hits": split.chain[0],
        }
    return arrays
