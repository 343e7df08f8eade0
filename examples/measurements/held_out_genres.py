"""How well a probe does on a genre that it was not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes import Measurement, Pivot, Quantity, Row, UserError, measurement, metrics, quantities

if TYPE_CHECKING:
    from probes import Context

TITLES = {
    "held_out_score": "score of the probe trained on other genres",
    "held_out_drop": "drop from the reported probe",
    "random_drop": "drop without as many examples, at random",
}
for name in TITLES:
    quantities.add(name, Quantity(of_task=True))


@measurement
class HeldOutGenres(Measurement):
    """Each genre is held out in turn, at the best layer on dev.

    The probe without a genre has fewer examples. So a second one is trained without as many
    examples in sentences drawn at random.
    """

    name = "held_out_genres"
    asks = ("scores",)
    summary = "scores on each genre of probes trained on the others"
    views = tuple(Pivot(title, (name,), rows="genre") for name, title in TITLES.items())

    def missing(self, task, probe, level) -> str:
        return "" if probe.family == "linear" else "only linear probes are fitted without a genre"

    def fits_at_once(self, probe, level):
        return 2

    def extent(self, request):
        return {request.scores.best: 1}

    def compute(self, context: Context):
        from probes import Draw  # imports torch

        (layer,) = context.layers
        sentence = {split: context.examples.splits[split].sentence for split in ("train", "test")}
        train, test = (
            np.array([context.corpus.splits[split][i].genre for i in numbers])
            for split, numbers in sentence.items()
        )
        genres = sorted({*train} & {*test} - {""})
        if not genres or len({*train}) == 1:
            raise UserError("No genre is in train and test, beside others in train.")
        metric, gold = metrics.get(context.task.metric), context.scorers["test"].gold
        for genre in genres:
            kept = kept_examples(train == genre, sentence["train"])
            fits = context.fits([layer], [Draw(), Draw()], kept=kept)
            keep = test == genre
            predicted = np.concatenate([context.predicted([layer]), fits.predicted["test"][0]])
            reported, held_out, fewer = metric(gold.part(keep), predicted[:, keep])
            values = held_out, reported - held_out, reported - fewer
            for name, value in zip(TITLES, values, strict=True):
                yield Row(name, value, layer, axes={"genre": genre}, n=int(keep.sum()))


def kept_examples(left_out, sentence):
    """Training examples of other genres, and of as many sentences of any genre. Shape (2, n)."""
    numbers, sizes = np.unique(sentence, return_counts=True)
    order = np.random.default_rng(0).permutation(len(numbers))
    before = np.cumsum(sizes[order]) - sizes[order]
    dropped = numbers[order[before < left_out.sum()]]
    return np.stack([~left_out, ~np.isin(sentence, dropped)])
