"""Transfer between corpora: probes of other corpora, such as other languages, scored on this one.

The probes are applied to this corpus's test split (Pires et al. 2019). Vectors of two languages
differ mainly by a shift. For *centred* scores, the mean of each corpus's training vectors is
subtracted before training and applying probes (Libovický et al. 2020). Since probes standardise
features, this is the same probe with one mean replaced by the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from probes.common.errors import listed
from probes.common.grouping import grouped
from probes.examples.examples import NotServedError
from probes.extraction.reading.views import plain_text
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import NEGATIVES_THRESHOLD, Level, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.table_cells import score_cell
from probes.measurements.trained_probes import Trained
from probes.probing.scores import rows_above
from probes.probing.stored_probes import StoredProbes, why_not_transferred
from probes.records.parameters import of_layer
from probes.records.probe_spec import ProbeSpec
from probes.records.result import Result
from probes.records.row import AxisValue, Row, Rows
from probes.records.values import Frozen, ends
from probes.statistics.bootstrap import bounds, cluster_sums, draws_of, informative, interval
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates, p_values_of
from probes.tables.table import NOTHING, Cell, Table, TableRow
from probes.tasks.task import Task

if TYPE_CHECKING:
    from probes.common.arrays import Ints
    from probes.data.sentence import Corpus
    from probes.measurements.context import TaskContext

NAME = "corpus_transfer"

_NAMED = 10
"""Number of labels that a note names; a task such as `lemma-script` may lack hundreds."""


_RATES = {"false_positive_rate": "FPR", "hit_rate": "recall"}
"""Names of the rates at a threshold, by metric."""


_DEV = "dev of the training corpus"


class Options(Frozen):
    """Options that a run with `--transfer` fills in."""

    trained: dict[str, str] = Field(default_factory=dict)
    """Key of the scores whose probes are applied, by corpus."""


def _reason_without_transfer(task: Task, probe: ProbeSpec, level: Level) -> str:
    """The reason for not measuring a task and probe."""
    if task.kind == "multi-label":
        return "sets of labels are not transferred between corpora"
    return why_not_transferred(probe)


@measurement(
    NAME,
    after="scores",
    options=Options,
    missing=_reason_without_transfer,
    shows=(
        Pivot(
            "score by training corpus",
            ("transfer_score",),
            columns=("task", "train", "vectors"),
            apart="task",
            below=("common_pieces",),
            note="Probes trained on the corpus in the column, scored on this corpus's test split. "
            "Centred: the mean of each corpus's training vectors is subtracted. Common pieces: "
            "percentage of the word pieces of this test split that the training corpus has, too.",
        ),
        Pivot(
            "difference from the probe of this corpus",
            ("transfer_difference",),
            columns=("task", "train", "vectors"),
            apart="task",
            note="± half the width of a 95 % interval over this corpus's test split, whose "
            "documents or groups stay whole. Intervals and p do not include the variance of "
            "training.",
        ),
        *(
            Pivot(
                f"{name} at the threshold {source}",
                (metric,),
                columns=("task", "train", "vectors"),
                where={"negatives": negatives},
                apart="task",
                note="Both ends of an exact 95 % interval over this corpus's test texts.",
            )
            for source, negatives in ((f"from {_DEV}", None), ("from {negatives}", ...))
            for metric, name in _RATES.items()
        ),
        Pivot(
            "cosine of the corpora's mean vectors", ("centroid_cosine",), columns=("task", "train")
        ),
        Lines(
            "corpus_transfer",
            "transfer_score",
            "score by training corpus",
            line="train",
            where={"vectors": None},
        ),
    ),
)
def corpus_transfer(context: TaskContext) -> Measured:
    """Scores of probes trained on the run's other corpora.

    Rows by layer and training corpus (with the axis `vectors` for centred vectors): the score, also
    of this corpus's probe; the difference from that, with p corrected over layers and both kinds of
    vectors (max-T); and the cosine of the mean vectors of training examples. Without a layer: the
    number of test examples whose label the training corpus lacks. These count as errors, as do
    labels that this corpus's train lacks; and the share of the word pieces of test that occur in
    the training corpus (after Pires et al. 2019, section 3), unless vectors were given. For tasks
    with a threshold, the false-positive rate and the hit rate at that of the probe: from dev of the
    training corpus, or with the axis `negatives` from the corpus of `--threshold-from`. A ranking
    has no rows of centred vectors where these add a constant to all margins.

    Raises:
        NotServedError: no other corpus has scores of such examples.
    """
    if not context.trained:
        raise NotServedError("no other corpus of the run has scores of such examples")
    axes = {"train": context.corpus.name}
    predicted = context.predicted(context.layers)
    scores = _replicates(context, predicted).scores
    rows = [
        Row("transfer_score", score, layer, axes=axes)
        for layer, score in zip(context.layers, scores, strict=True)
    ]
    for layer, margins in zip(context.layers, predicted, strict=True):
        rows += _rates(context, context.result, layer, margins, axes)
    rows += _common_pieces(context)
    notes = []
    for name, trained in context.trained.items():
        missing_labels = _without_label(context, trained)
        total = len(context.examples.targets("test"))
        if missing_labels:
            first, n_more = [*missing_labels][:_NAMED], len(missing_labels) - _NAMED
            labels = listed([*first, f"{n_more:,} others"] if n_more > 0 else first)
            notes.append(
                f"{context.task.name}: {name} has no training example labelled {labels}; "
                f"{missing_labels.total():,} of {total:,} test examples are, and count as errors."
            )
        axes = {"train": name}
        rows.append(Row("examples_without_label", missing_labels.total(), n=total, axes=axes))
        if context.data.as_margins and trained.result.examples.classes != context.examples.classes:
            why = f"{name} has other classes"
            rows += [Row("transfer_score", None, x, why=why, axes=axes) for x in context.layers]
            continue
        rows += _transfer_rows(context, name, trained)
    return Measured(rows, notes=notes)


def _common_pieces(context: TaskContext) -> Iterator[Row]:
    """The share of the word pieces of test that each training corpus has, too."""
    if (split := context.tokenizer) is None:
        return

    def pieces(corpus: Corpus, part: str) -> Ints:
        texts = [plain_text(sentence) for sentence in corpus.splits[part]]
        return np.concatenate([text.ids for text in split(texts)])

    test = pieces(context.corpus, "test")
    for corpus in (context.corpus, *(context.elsewhere[name] for name in context.trained)):
        share = float(np.isin(test, pieces(corpus, "train")).mean())
        yield Row("common_pieces", share, n=len(test), axes={"train": corpus.name})


def _without_label(context: TaskContext, trained: Trained) -> Counter[str]:
    """The number of test examples of each label that the training corpus lacks, sorted."""
    classes = set(trained.result.examples.classes)
    labels = (str(example.label) for example in context.examples.splits["test"].examples)
    return Counter(sorted(label for label in labels if classes and label not in classes))


def _transfer_rows(context: TaskContext, name: str, trained: Trained) -> Iterator[Row]:
    """The rows of one training corpus, layer by layer."""
    layers = [x for x in context.layers if of_layer(x, "weight") in trained.parameters]
    ours, theirs = context.parameters(layers), trained.parameters
    # A probe subtracts a stored mean: with our mean in its place, it reads centred vectors.
    means = {array: values for array, values in ours.items() if array.endswith(".mean")}
    outputs = context.examples.predictions(trained.result.examples.classes)
    probes = [
        StoredProbes(context, layers, parameters, outputs)
        for parameters in (theirs, {**theirs, **means})
    ]
    own_replicates = _replicates(context, context.predicted(layers))
    predicted = _probe_predictions(context, probes, layers)
    replicates = _replicates(context, predicted)
    differences, n = replicates.scores - np.tile(own_replicates.scores, 2), len(layers)
    between, p = np.full((2 * n, 2), np.nan), [math.nan] * (2 * n)
    if draws_of(context.scorers["test"].gold, replicates.metric) is not None:
        between = interval(replicates.values - np.tile(own_replicates.values, (2, 1)))
        p = p_values_of([own_replicates, replicates], [(i % n, n + i) for i in range(2 * n)])
    # All probes but MLPs are linear in their mean, which does not change the order of examples.
    only_moved = context.data.as_margins and context.spec.family != "mlp"
    for index, (vectors, layer) in enumerate(product((None, "centred"), layers)):
        axes = {"train": name, "vectors": vectors}
        pair = ends(informative(bounds(between[index])))
        if not (vectors and only_moved):
            score, difference = replicates.scores[index], differences[index]
            yield Row("transfer_score", score, layer, axes=axes)
            yield Row("transfer_difference", difference, layer, *pair, p=p[index], axes=axes)
        yield from _rates(context, trained.result, layer, predicted[index], axes)
    for layer in layers:
        our_mean, their_mean = means[of_layer(layer, "mean")], theirs[of_layer(layer, "mean")]
        cosine = our_mean @ their_mean / (np.linalg.norm(our_mean) * np.linalg.norm(their_mean))
        yield Row("centroid_cosine", float(cosine), layer, axes={"train": name})
    for layer in sorted({*context.layers} - {*layers}):
        reason = f"{name} has no probe of this layer"
        yield Row("transfer_score", None, layer, why=reason, axes={"train": name})


def _rates(
    context: TaskContext,
    trained: Result,
    layer: int,
    margins: NDArray[Any],
    axes: Mapping[str, AxisValue],
) -> Iterator[Row]:
    """Rates on test at the threshold that goes with probes; none where there is no threshold.

    Args:
        trained: the scores of the corpus that the probes were trained on, with the threshold from
            negatives among their evidence if that is to be used.
        margins: their margins on test. Shape (n,).
    """
    threshold = trained.at("threshold", layer, "dev")
    if context.negatives:
        rows = (trained.evidence_rows(NEGATIVES_THRESHOLD) or Rows()).with_metric("threshold")
        threshold = next((row for row in rows if row.layer == layer), None)
        axes = {**axes, **(threshold.axes if threshold else {})}
    if threshold and threshold.value is not None:
        is_above = margins > np.float32(threshold.value)
        yield from rows_above(context.scorers["test"].gold, is_above, layer, axes)


def _probe_predictions(
    context: TaskContext, probes: Sequence[StoredProbes], layers: Sequence[int]
) -> NDArray[Any]:
    """Predictions of probes on test. Shape (probes × L, n)."""
    of_examples = context.data.vectors, context.data.spans["test"]
    return np.stack([x.of_examples(layer, *of_examples) for x in probes for layer in layers])


def _replicates(context: TaskContext, predicted: NDArray[Any]) -> Replicates:
    """The headline score of each row of predictions (cells, n), with its sums over clusters."""
    gold, metric = context.scorers["test"].gold, metrics.get(context.task.metric)
    sums = [cluster_sums(metric.parts(gold, row), gold) for row in predicted]
    cells = range(len(predicted))
    return Replicates(metric(gold, predicted), metric, sums, cells, context.task.name)


_RATES_NOTE = (
    "False-positive rate and recall on each corpus, with probe and threshold of the corpus in the "
    "row: [both ends] of an exact 95 % interval. "
)

_NOTE = (
    "Rows: corpus that the probes were trained on; columns: corpus that they are tested on, at the "
    "layer that is best on dev for its own probes. All layers: python -m probes show RESULTS --by "
    "corpus_transfer."
)


def transfer_tables(results: Iterable[Result]) -> Iterator[Table]:
    """Tables of training × test corpora for each model, task and probe family."""
    with_transfer = (result for result in results if NAME in result.evidence)
    groups = grouped(with_transfer, lambda x: (x.model.name, x.task.name, x.probe.family))
    for of, tested in groups.items():
        names = [result.corpus.name for result in tested]
        heads = "trained on", *(f"{x.corpus.name}, {_best_layer(x)}" for x in tested)
        rows = (
            TableRow.of(name, *(_transfer_cell(result, name) for result in tested))
            for name in names
        )
        yield Table(f"{' · '.join(of)} · transfer", heads, tuple(rows), notes=(_NOTE,))
        rates = (row for x in tested for row in x.evidence[NAME].rows.with_metric("hit_rate"))
        if not (sources := {str(x.axes.get("negatives", _DEV)) for x in rates}):
            continue
        pairs = list(product(tested, _RATES.items()))
        heads = "trained on", *(f"{x.corpus.name}\n{label}" for x, (_, label) in pairs)
        rows = (
            TableRow.of(name, *(_rate_cell(result, name, metric) for result, (metric, _) in pairs))
            for name in names
        )
        title = f"{' · '.join(of)} · transfer at a threshold from {listed(sorted(sources), 'or')}"
        yield Table(title, heads, tuple(rows), notes=(_RATES_NOTE + _NOTE,))


def _best_layer(result: Result) -> str:
    """The best layer on dev in the head of a column."""
    return "no best layer" if result.best_number is None else f"layer {result.best_number}"


def _row_at_best(result: Result, trained_on: str, metric: str) -> Row | None:
    """A corpus's row of probes of another one, or its own, at its best layer, not centred."""
    for row in result.evidence[NAME].rows.with_metric(metric):
        at = row.layer, row.axes.get("train"), row.axes.get("vectors")
        if at == (result.best_number, trained_on, None):
            return row
    return None


def _rate_cell(result: Result, trained_on: str, metric: str) -> Cell:
    """A rate on a corpus at the threshold of another one, or of itself, at its best layer."""
    row = _row_at_best(result, trained_on, metric)
    if row is None or row.value is None:
        return Cell(NOTHING)
    return score_cell(row.value, row.interval, metric, brackets=True)


def _transfer_cell(result: Result, trained_on: str) -> Cell:
    """The score of a corpus's probes at the best layer of another corpus, or of itself."""
    row = _row_at_best(result, trained_on, "transfer_score")
    is_own = trained_on == result.corpus.name
    return score_cell(row.value, None, result.task.metric, best=is_own) if row else Cell(NOTHING)
