"""Every number that a measurement finds is in its CSV file, and in some table or chart.

Each kind of numbers of a published record is changed in turn. If it is shown, some table or chart
is another one then. Scores are left out: boards have tables of their own for them.
"""

from pathlib import Path

import pytest
from drawn import data_of

from probes.frames.joined_results import results_with_evidence
from probes.frames.measurement_tables import findings_of, measurement_tables
from probes.frames.record_validation import read_validated
from probes.measurements.measurement import get_measurement, measurements
from probes.records.record_files import read_records, record_paths
from probes.records.result import SCORES
from probes.records.row import Rows
from probes.tables.charts import PAPER

PUBLISHED = Path(__file__).parents[2] / "results" / "published"

NOT_SHOWN = {
    "training_variance": {"p_best test", "HEADLINE test"},
    "selectivity": {"control_types train", "HEADLINE test", "accuracy test"},
    "description_length": {"codelength train"},
    "localisation": {
        *("mix_score dev", "mix_strength train", "mix_weight train", "total_gain test")
    },
    "sparse_probing": {"HEADLINE test"},
    "malformed": {"malformed_score test", "intact_score test"},
    "structure": {
        *("uuas dev", "dspr dev", "root_accuracy dev", "nspr dev", "selectivity dev"),
        *("control_uuas dev", "control_uuas_draw_sd dev", "control_uuas_draw_sd test"),
        *("chain_uuas dev", "chain_control_uuas dev", "distance_loss dev", "depth_loss dev"),
        *(f"{x}_training_sd test" for x in ("uuas", "dspr", "root_accuracy", "nspr")),
        *(f"{x}_p_best test" for x in ("uuas", "dspr", "root_accuracy", "nspr")),
    },
    "geometry": {"contribution test", "zero_vectors test", "cka test"},
    "model_similarity": {"cka test"},
    "ablation": {"cosine test", "unbiased_cka test", "ablation_drop dev", "loss_increase dev"},
    "erasure": {"cosine test", "unbiased_cka test", "erased_rank train", "erased_variance train"},
    "cloze": {"answer_threshold train"},
    "corpus_transfer": {"examples_without_label test"},  # A note says it.
    "attention": {"special test", "relation dev", "uas dev", "uuas dev"},
}
"""What is deliberately in the CSV file alone, or decides what is marked: metrics and splits."""

OF_CHOSEN = {"chosen", "baseline"}
"""Axes of rows of attention that its CSV file has as columns beside the numbers of heads."""


@pytest.fixture(scope="module")
def shown_with():
    """By measurement, the records that there are, each as it is shown."""
    # Those of another version, too, which `load` leaves out.
    records = read_records(record_paths(PUBLISHED), read_validated)
    found = {name: [] for name in measurements}
    for result in results_with_evidence(records).values():
        for name in result.evidence:
            found[name].append(result)
    for record in records.values():
        if not record.task:
            found[record.measurement].append(record)
    return found


def kind(row):
    return row.metric, row.split, *sorted(row.axes)


def tables(its, record):
    return [table.texts for table in measurement_tables(its, [record])]


def charts(its, record):
    found = findings_of(its, {"m": record})
    drawn = [view for view in its.charts if not view.missing(found)]
    return [[*map(str, data_of(view.chart(found, PAPER)))] for view in drawn]


def changed(record, which):
    """The record with other numbers of a kind."""
    rows = [
        row._replace(value=0.4 * row.value + 0.003)
        if kind(row) == which and row.value is not None
        else row
        for row in record.rows
    ]
    return record.model_copy(update={"rows": Rows.of(rows)})


def few(name, record):
    """A record of no more layers than are needed, since many charts are slow."""
    if name not in ("attention", "structure", "geometry", "ablation", "erasure", "interchange"):
        return record
    rows = [row for row in record.rows if row.layer in (None, 1, 2) or "chosen" in row.axes]
    return record.model_copy(update={"rows": Rows.of(rows)})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=pytest.mark.slow if x in ("attention", "structure") else ())
        for x in measurements
        if x != SCORES and any(PUBLISHED.rglob(f"*{x}-????????.json"))
    ],
)
def test_every_number_is_in_the_file_and_in_some_table_or_chart(name, shown_with):
    its = get_measurement(name)
    done, seen, unseen, left_out = set(), set(), set(), set()
    for record in shown_with[name]:
        record = few(name, record)
        own = its.own_record(record)
        kinds = {kind(row) for row in own.rows if row.value is not None} - done
        if not kinds:
            continue
        before = tables(its, record), charts(its, record)
        lines = [*its.csv_lines(own)]
        values = {x for line in lines for x in line.values() if isinstance(x, (int, float))}
        for which in kinds:
            headline = record.task and which[0] == record.task.metric
            metric = f"{'HEADLINE' if headline else which[0]} {which[1]}"
            other = changed(own, which)
            other = record.with_evidence(other) if its.is_evidence else other
            same = tables(its, other) == before[0] and charts(its, other) == before[1]
            (unseen if same else seen).add(metric)
            if not {row.value for row in own.rows if kind(row) == which} - {None} <= values:
                left_out.add(which)
        done |= kinds
    assert done
    assert unseen - seen == NOT_SHOWN.get(name, set())
    assert all(OF_CHOSEN & {*axes} for _, _, *axes in left_out)
    assert not left_out or name == "attention"
