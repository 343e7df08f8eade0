"""Ablation: the cost of disabling one head, all heads of a layer, or one block.

A head is disabled by making its attention uniform (Kovaleva et al. 2019, section 4.6); a block is
skipped. The reported probes are applied as they are to the vectors of all layers from there on.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from probes.common.errors import NoHeadError
from probes.families.interventions import AblationOptions
from probes.families.interventions.changes import ATTENTION, BLOCK, HEAD, disabled_parts
from probes.families.interventions.experiment import ANSWERS, DROP, NO_HEAD, sampled_sentences
from probes.families.interventions.probe_readout import (
    csv_lines_by_task,
    predict_in_passes,
    probed_samples,
)
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import PlacesOf
from probes.records.record import Record, subject_title
from probes.records.row import Row
from probes.statistics.metrics import printed_score
from probes.statistics.partition import FEWEST
from probes.statistics.significance import printed_p
from probes.tables.table import NOTHING, Table, TableRow

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

_LAST = {"at": PlacesOf("unbiased_cka")}


@measurement(
    "ablation",
    of="model",
    after="scores",
    version=4,
    options=AblationOptions,
    head="used",
    extent=lambda request: dict.fromkeys(range(1, request.n_layers + 1), 1),
    more_tables=lambda record: [extreme_heads(record)],
    csv_lines=csv_lines_by_task,
    shows=(
        Pivot("a layer without its attention: drop at the last layer", (DROP,),
              columns=("predicts",), where={"disabled": ATTENTION, **_LAST},
              note="Drop of the task's metric, as a fraction. Probes are not fitted again."),
        Pivot("a block skipped: drop at the last layer", (DROP,), columns=("predicts",),
              where={"disabled": BLOCK, **_LAST}),
        Pivot("the model's own answers, a layer without its attention", ANSWERS,
              columns=("metric",), where={"disabled": ATTENTION}),
        Cells("ablation", DROP, across="head", apart="predicts", where={"disabled": HEAD, **_LAST},
              title="Drop without one head", number="drop, as a fraction", digits=3,
              note="Drop of the task's metric at the last layer if the head is disabled. Probes "
              "are not fitted again."),
    ),
)  # fmt: skip
def ablation(context: ModelContext) -> Measured:
    """Cost of disabling each head and block for probes, vectors and the model's answers.

    Rows have the disabled layer (and ``head``); ``disabled`` is a ``head``, all ``attention`` of
    the layer, or the ``block``. ``ablation_drop`` is the loss of headline score of the probe of
    layer ``at`` on a task (``predicts``), on the same examples, with an interval; at the last layer
    also p, corrected over all heads (or layers) of the task. ``cosine`` is the mean similarity of
    words' vectors to the untouched ones, ``unbiased_cka`` the similarity of the last layer. With a
    language-model head: ``loss_increase``, in nats per piece of words with a letter;
    ``cloze_drop``, in accuracy of cloze agreement on all verbs of test; ``smallest_drop``, the
    drop that would be detected four times in five; ``log_odds_drop``, in the log odds of right
    against wrong form, in nats. Heads are also read on dev (``split``), to find the most and the
    least costly ones.
    """
    from probes.families.interventions.readouts import own_answers, questions_in  # torch

    sites, options = context.sites(), context.options
    every_part = disabled_parts(context.model.n_layers, sites.n_heads, options.how)
    heads = [x for x in every_part if x.is_base or x.axes["disabled"] == HEAD]
    rows: list[Row] = []
    left_out: list[str] = []
    for split, passes in (("dev", heads), ("test", every_part)):
        sample = sampled_sentences(len(context.corpus.splits[split]), options.sentences)
        samples, notes = probed_samples(context, sample, split)
        left_out += notes
        plain = (x for x in samples if x.view == "plain" and split == "test")
        rows += predict_in_passes(context, samples, passes, next(plain, None))
        for task_sample in samples:
            rows += task_sample.rows(passes, DROP)
        try:
            rows += own_answers(context, passes, questions_in(context, split, sample))
        except NoHeadError:
            left_out.append(NO_HEAD)
    left_out = list(dict.fromkeys(left_out))
    facts = {"sentences": len(sample), "heads": sites.n_heads}
    return Measured(rows, facts=facts, notes=left_out)


def extreme_heads(record: Record) -> Table:
    """The heads that cost most and least on dev when disabled, by task, with their cost on test."""
    on_dev, on_test = defaultdict(list), {}
    for row in record.rows:
        if row.metric != DROP or row.axes["disabled"] != HEAD:
            continue
        key = row.layer, *sorted(row.axes.items())
        if row.split == "test":
            on_test[key] = row
        elif row.value is not None:
            on_dev[row.axes["predicts"]].append((-row.value, key))
    lines = []
    # Chosen on test, the extreme of many heads would be extreme by chance.
    for task, drops in on_dev.items():
        drops.sort(key=itemgetter(0))
        for cost, (_, key) in (("costs most", drops[0]), ("costs least", drops[-1])):
            if test := on_test.get(key):
                head, drop = f"{test.layer}-{test.axes['head']}", printed_score(test.value, DROP)
                pair = f"[{printed_score(test.low, DROP)}, {printed_score(test.high, DROP)}]"
                pair = pair if test.low is not None else NOTHING
                p = printed_p(test.p) if test.p is not None else NOTHING
                lines.append(TableRow.of(str(task), cost, head, drop, pair, p))
    note = (
        "Heads (layer-head) that change the score at the last layer most on dev when disabled, "
        "with the drop on test; below 0, the score rises. p: corrected over all heads; none if "
        f"fewer than {FEWEST} documents or sentences change."
    )
    return Table(
        f"{subject_title(record)} · ablation · heads",
        ("task", "disabled", "head", "drop", "interval", "p"),
        tuple(lines),
        left=3,
        notes=(note,),
    )
