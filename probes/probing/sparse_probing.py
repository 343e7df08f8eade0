"""Sparse probing: scores of probes of 1, 2, 5 and 16 features (Gurnee et al. 2023).

The features are those by which class means of the training examples differ most. The control has
as many features, drawn at random; the control of the labels is `selectivity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, Request, measurement
from probes.measurements.pivots import Pivot
from probes.probing.scores import intervals_by_metric
from probes.records.probe_spec import PROBES
from probes.records.record import FitsPerLayer
from probes.records.row import AxisValue, Row
from probes.records.values import ends

if TYPE_CHECKING:
    from probes.measurements.context import TaskContext

N_FEATURE_DRAWS, N_MORE_FEATURE_DRAWS = 3, 10
"""Draws of random features; the second number with full evidence."""

_FAMILY = "sparse"


def _feature_draws_per_layer(request: Request) -> FitsPerLayer:
    n_draws = N_MORE_FEATURE_DRAWS if request.level == "full" else N_FEATURE_DRAWS
    return dict.fromkeys(request.layers, n_draws)


_NOTE = (
    "Features by which class means of the training examples differ most (Gurnee et al. 2023), and "
    "as many features drawn at random: mean over draws."
)


@measurement(
    "sparse_probing",
    after="scores",
    extent=_feature_draws_per_layer,
    missing=lambda task, probe, level: (
        "" if probe.family == _FAMILY else "only sparse probes have a number of features"
    ),
    shows=(
        Pivot(
            "score by number of features k",
            ("sparse_score", "random_features"),
            columns=("metric", "k"),
            apart="task",
            note=f"{_NOTE} ± half the width of a 95 % interval over test documents or sentences.",
        ),
        Lines(
            "sparse_probing",
            "sparse_score",
            "Scores of sparse probes, by layer and number of features",
            _NOTE,
            line="k",
        ),
    ),
)
def sparse_probing(context: TaskContext) -> Measured:
    """Scores of probes of 1, 2, 5 and 16 features (Gurnee et al. 2023).

    There are three draws of random features, and ten with full evidence. A draw has the same
    features at every layer.

    Rows by layer and number of features `k`: test score of the probe of the features by which
    class means differ most; mean score of probes of random features; and the score of each draw.
    """
    from probes.training.class_means import SIZES
    from probes.training.fit import FitSeed, fit_steps

    name, test = context.task.metric, context.scorers["test"]
    n_draws = max(context.extent.values())
    groups, rows = list(context.groups(context.layers, 1)), []
    n_fits = len(groups) * sum(k <= context.data.width for k in SIZES) * (1 + n_draws)
    sentences = context.data.sentences("train")
    steps = fit_steps(context.spec, sentences, context.data.n_outputs, [FitSeed()])
    with context.bar(n_fits * steps):
        for layers, room in groups:
            for k, predicted in _predictions_by_size(context, layers, room, n_draws).items():
                between = intervals_by_metric(test.gold, (name,), predicted[0])[name]
                for index, layer in enumerate(layers):
                    at: dict[str, AxisValue] = {"k": k}
                    score, *scores = (test.scores(x[index : index + 1])[0][name] for x in predicted)
                    rows.append(Row("sparse_score", score, layer, *ends(between[index]), axes=at))
                    known_scores = [x for x in scores if x is not None]
                    mean = sum(known_scores) / n_draws if len(known_scores) == n_draws else None
                    rows.append(Row("random_features", mean, layer, axes=at))
                    for draw, of_draw in enumerate(scores, start=1):
                        rows.append(Row(name, of_draw, layer, axes={**at, "draw": draw}))
    return Measured(rows, facts={"unit": name})


def _predictions_by_size(
    context: TaskContext, layers: Sequence[int], room: int, n_draws: int
) -> dict[int, list[NDArray[Any]]]:
    """Test predictions (L, n) by number of features: of the best ones, then of each draw."""
    import torch

    from probes.training.class_means import SIZES, feature_columns, features_by_variance, fit_narrow
    from probes.training.features import InMemory

    data = context.data
    features = data.features(layers, room)
    splits = {split: data.batches(split, features[split]) for split in ("train", "dev")}
    orders = [features_by_variance(splits["train"], data.n_outputs)[:, 0]]
    for draw in range(n_draws):
        # Seeded by its number alone: layers have the same features, however they are grouped.
        order = torch.randperm(data.width, generator=torch.Generator().manual_seed(draw))
        orders.append(order.expand_as(orders[0]))
    predicted: dict[int, list[NDArray[Any]]] = {k: [] for k in SIZES if k <= data.width}
    for order in orders:
        columns = order[:, : SIZES[-1]]
        widest = {split: feature_columns(x, columns).values for split, x in features.items()}
        for k, predictions in predicted.items():
            narrow = {split: InMemory(values[..., :k]) for split, values in widest.items()}
            parts = [replace(x, features=narrow[split]) for split, x in splits.items()]
            fitted = fit_narrow(parts[0], parts[1], data.n_outputs, context.spec)
            predictions.append(data.predictions(fitted, narrow["test"], PROBES["linear"])[:, 0])
    return predicted
