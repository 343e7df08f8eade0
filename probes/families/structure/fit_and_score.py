"""Fits, applies and scores the probes of every layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from probes.compute.devices import exact_products
from probes.examples.examples import NotServedError
from probes.families.structure.contributions import (
    chain_hits,
    contributions,
    control_hits,
    gold_edges,
    predicted_trees,
)
from probes.families.structure.fitting import (
    SAMPLES,
    Fitted,
    Kind,
    Probe,
    exact_batches,
    fit,
    n_steps,
    training_batches,
)
from probes.families.structure.sentence_scores import SCORES, MeasuredSentences
from probes.families.structure.structure_rows import (
    LayerFound,
    ReferenceEdges,
    best_layer,
    control_uuas,
    counts,
    notes,
    refits,
    structure_rows,
)
from probes.families.structure.trees import DRAWS, Trees, trees_of
from probes.measurements.context import ModelContext
from probes.measurements.measurement import Found
from probes.tasks.validation import TaskError
from probes.training.batches import bootstrap_weights


@exact_products()
def fit_and_score(context: ModelContext, ranks: Sequence[int], reported: int) -> Found:
    """Fit probes to every layer and score them on dev and test.

    Raises:
        NotServedError: a split has no sentence with a tree to be found.
        TaskError: a dev loss is not finite.
    """
    trees = {
        split: trees_of(sentences, context.in_several_windows(split))
        for split, sentences in context.corpus.splits.items()
    }
    for split, each in trees.items():
        if not len(each.sentences):
            why = "; ".join(f"{n:,} {reason}" for reason, n in each.left_out.items())
            raise NotServedError(f"no sentence of {split} has a tree to be found: {why}")
    rows, device = {split: context.rows(split) for split in trees}, context.device
    train = training_batches(trees["train"], rows["train"], 0, device)
    exact = {x: exact_batches(trees[x], rows[x], device) for x in ("dev", "test")}
    weights = sample_weights(context, trees["train"])
    probes = probes_of(ranks, reported)
    layers = {}
    with context.bar(len(context.layers) * n_steps(len(train))) as bar:
        for layer in context.layers:
            stored = context.vectors.layer(layer)
            fitted = fit(stored, train, exact["dev"], probes, weights, lambda: bar.update(1))
            if not np.isfinite(list(fitted.dev_losses.values())).all():
                raise TaskError(
                    f"Measurement 'structure': the dev loss at layer {layer} is not finite, "
                    "probably because vectors are too large; leave the layer out with --layers."
                )
            controls = [fitted.matrices[probe] for probe in control_probes(reported)]
            layers[layer] = LayerFound(
                fitted,
                {
                    split: contributions(
                        stored, exact[split], trees[split], pairs_of(fitted, ranks, reported)
                    )
                    for split in exact
                },
                {s: control_hits(stored, exact[s], trees[s], controls) for s in exact},
            )
    known = {}
    for split, batches in exact.items():
        (edges, *of_controls), (chain, *control_chain) = (
            find(trees[split], batches) for find in (gold_edges, chain_hits)
        )
        sample = MeasuredSentences.of(split, trees[split], edges, context.partition(split))
        known[split] = ReferenceEdges(sample, np.stack(of_controls), chain, np.stack(control_chain))
    drawn_by = f"{context.model.digest} {context.corpus.fingerprint}"
    scores = list(structure_rows(drawn_by, ranks, reported, known, layers))
    best = best_layer(scores, reported)
    pair = pairs_of(layers[best].fitted, [reported], reported)[0]
    predicted = predicted_trees(
        context.vectors.layer(best), exact["test"], trees["test"], pair, len(rows["test"])
    )
    test, resampled = known["test"].sample, context.partition("test").clusters
    return Found(
        scores,
        arrays={"trees": predicted, **arrays(ranks, trees, known, layers)},
        parameters={
            f"{probe.kind}.layer-{layer:02d}.rank-{probe.rank:03d}": matrix
            for layer, found in layers.items()
            for probe, matrix in found.fitted.matrices.items()
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


def probes_of(ranks: Sequence[int], reported: int) -> list[Probe]:
    """All probes of a layer."""
    kinds: tuple[Kind, ...] = ("distance", "depth")
    return [
        *(Probe(kind, rank) for kind in kinds for rank in ranks),
        *(Probe(k, reported, sample=n) for k in kinds for n in range(1, SAMPLES + 1)),
        *control_probes(reported),
    ]


def control_probes(reported: int) -> list[Probe]:
    """One probe for each draw of control trees."""
    return [Probe("distance", reported, control=draw) for draw in range(1, DRAWS + 1)]


def pairs_of(
    fitted: Fitted, ranks: Sequence[int], reported: int
) -> list[tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]]:
    """Distance and depth probe of each rank, of the identity, and of each bootstrap sample."""

    def pair(rank: int, sample: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return (
            fitted.matrices[Probe("distance", rank, sample=sample)],
            fitted.matrices[Probe("depth", rank, sample=sample)],
        )

    samples = (pair(reported, sample) for sample in range(1, SAMPLES + 1))
    return [*map(pair, ranks), (None, None), *samples]


def sample_weights(context: ModelContext, trees: Trees) -> dict[int, torch.Tensor]:
    """Weights of training sentences by bootstrap sample, with mean 1. Each (s,)."""
    clusters = torch.from_numpy(context.partition("train").of_sentence[trees.sentences])
    drawn = {sample: bootstrap_weights(clusters, sample) for sample in range(SAMPLES + 1)}
    return {sample: (each / each.mean()).to(context.device) for sample, each in drawn.items()}


def arrays(
    ranks: Sequence[int],
    trees: Mapping[str, Trees],
    known: Mapping[str, ReferenceEdges],
    layers: Mapping[int, LayerFound],
) -> dict[str, NDArray[np.generic]]:
    """Arrays of the sentences of dev and test; see `structure`."""
    n = len(ranks) + 1
    found: dict[str, NDArray[np.generic]] = {
        "layers": np.array(list(layers)),
        "ranks": np.array([*ranks, 0]),
    }
    for split, each in known.items():
        for part in ("hits", "dspr", "roots", "nspr"):
            of_layers = [getattr(layer.found[split], part)[:n] for layer in layers.values()]
            found[f"{split}_{part}"] = np.stack(of_layers)
        control = [layer.control[split] for layer in layers.values()]
        found |= {
            f"{split}_sentences": trees[split].sentences,
            f"{split}_lengths": each.sample.lengths,
            f"{split}_clusters": each.sample.clusters,
            f"{split}_edges": each.sample.edges,
            f"{split}_control_edges": each.control_edges,
            f"{split}_control_hits": np.stack(control),
            f"{split}_control_uuas": np.array([control_uuas(each, x) for x in control], float),
            f"{split}_chain_hits": each.chain,
        }
    of_samples = [
        [refits(known["test"].sample, layer, metric) for metric in SCORES]
        for layer in layers.values()
    ]
    return found | {"test_refits": np.array(of_samples, float)}
