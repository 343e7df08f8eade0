"""Every number that a measurement finds is in its CSV file, and in some table or chart.

Of each measurement there is a record: a published one, or one of rows that are written here. Each
kind of numbers in it is changed in turn. If it is shown, some table or chart is another one then.
Scores are left out: boards have tables of their own for them.
"""

from pathlib import Path

import pytest
from corpus_records import corpus_record
from drawn import data_of
from results_by_hand import evidence_record, make_full_result

from probes.measurements.chart_views import findings_of
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results
from probes.measurements.measurement import get_measurement, measurements
from probes.records.result import SCORES
from probes.records.row import Row, Rows
from probes.tables.charts import PAPER

PUBLISHED = Path(__file__).parents[2] / "results" / "published"

NOT_SHOWN = {
    "training_variance": {"p_best test", "HEADLINE test"},
    "selectivity": {"control_types train", "HEADLINE test", "accuracy test"},
    "description_length": {"codelength train"},
    "localisation": {
        *("mix_score dev", "mix_strength train", "mix_weight train", "total_gain test"),
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
    "geometry": {"contribution test", "zero_vectors test"},
    "attention": {"special test", "relation dev", "role dev", "uuas dev"},
    "ablation": {"ablation_drop dev", "cka test", "cosine test"},
    "erasure": {"erased_rank train", "erased_variance train", "cka test"},
    "cloze": {"answer_threshold train"},
    "corpus_transfer": {"examples_without_label test"},
}
"""What is deliberately in the CSV file alone, or decides what is marked: metrics and splits."""

OF_CHOSEN = {"chosen", "baseline"}
"""Axes of rows of attention that its CSV file has as columns beside the numbers of heads."""


def by_layer(metric, *, split="test", **axes):
    return [
        Row(metric, value, layer, split=split, axes=axes) for layer, value in ((1, 0.4), (2, 0.6))
    ]


def one(metric, value=0.3, *, split="test", **axes):
    return [Row(metric, value, split=split, axes=axes)]


ANSWERS = "loss_increase", "cloze_drop", "smallest_drop", "log_odds_drop"

HAND_MADE = {
    "parallel": [
        *by_layer("retrieval_accuracy", among="en"),
        *by_layer("retrieval_accuracy", among="en", vectors="centred"),
        *by_layer("cka_of_languages"),
        *by_layer("centroid_cosine"),
    ],
    "pairs": [
        *one("pair_accuracy", scoring="left to right", per="text"),
        *one("pair_accuracy", scoring="left to right", per="text", phenomenon="agreement"),
        *one("pair_accuracy", scoring="left to right", per="text", paradigm="a", phenomenon="b"),
        *one("mean_of_paradigms", scoring="left to right", per="text"),
        *one("lost", scoring="left to right", per="text", perturbation="cut", of="pair_accuracy"),
    ],
    "completion": [
        *one("completion_accuracy", phenomenon="role", likeliest=5),
        *one("sensitivity", phenomenon="role", threshold=0.0),
        *one("sensitivity_chance", phenomenon="role", threshold=0.0),
        *one("lost", phenomenon="role", perturbation="cut", of="sensitivity", threshold=0.0),
    ],
    "ablation": [
        *(row for x in ("attention", "block") for row in by_layer("cka", disabled=x, at=2)),
        *by_layer("cka", disabled="head", head=1, at=2),
        *by_layer("cosine", disabled="attention", at=2),
        *by_layer("ablation_drop", disabled="attention", predicts="pos", at=2),
        *by_layer("ablation_drop", disabled="block", predicts="pos", at=2),
        *by_layer("ablation_drop", disabled="head", head=1, predicts="pos", at=2),
        *by_layer("ablation_drop", disabled="head", head=1, predicts="pos", at=2, split="dev"),
        *(row for x in ANSWERS for row in by_layer(x, disabled="attention")),
        *by_layer("importance", head=1, predicts="pos", split="dev"),
        *one("rank_correlation", predicts="pos", heads="head"),
    ],
    "erasure": [
        *by_layer("cka", erased="pos", eraser="labels", at=2),
        *by_layer("probe_score", erased="pos"),
        *by_layer("erased_rank", erased="pos", eraser="labels", split="train"),
        *by_layer("erased_variance", erased="pos", eraser="labels", split="train"),
        *(
            row
            for less in ("nothing", "control task")
            for row in by_layer(
                "erasure_drop",
                **{"erased": "pos", "eraser": "labels", "less": less, "predicts": "pos"},
                **{"probes": "own", "fit": "frozen", "at": 2},
            )
        ),
        *(
            row
            for x in ANSWERS
            for row in by_layer(x, erased="pos", eraser="labels", less="control task")
        ),
    ],
    "cloze": [
        *one("cloze_accuracy"),
        *one("cloze_accuracy", group="attractor", baseline="majority"),
        *one("answer_threshold", split="train"),
        *one("used"),
        *(
            row
            for x in ("decodable", "both", "decodable_only", "used_only", "neither")
            for row in by_layer(x)
        ),
        *by_layer("decodable_less_used"),
        *by_layer("error_consistency"),
    ],
    "sparse_probing": [
        *(row for k in (1, 2) for row in by_layer("sparse_score", k=k)),
        *by_layer("random_features", k=1),
        *by_layer("accuracy", k=1, draw=1),
    ],
    "lens": [
        *by_layer("readable"),
        *by_layer("decodable"),
        *one("readable", baseline="majority"),
        *one("used"),
    ],
    "corpus_transfer": [
        *by_layer("transfer_score", train="gum"),
        *by_layer("transfer_score", train="gum", vectors="centred"),
        *by_layer("transfer_difference", train="gum"),
        *by_layer("centroid_cosine", train="gum"),
        *one("examples_without_label", 3, train="gum"),
    ],
}


@pytest.fixture(scope="module")
def shown_with():
    """By measurement, the records that there are, each as it is shown."""
    records = load(PUBLISHED).records()
    found = {name: [] for name in measurements}
    for result in find_results(PUBLISHED).values():
        for name in result.evidence:
            found[name].append(result)
    for record in records.values():
        if not record.task:
            found[record.measurement].append(record)
    for name, rows in HAND_MADE.items():
        if get_measurement(name).is_evidence:
            result = make_full_result("agreement")
            found[name].append(result.with_evidence(evidence_record(result, name, rows)))
        else:
            record = corpus_record("geometry", rows, 2)
            found[name].append(record.model_copy(update={"measurement": name}))
    return found


def kind(row):
    return row.metric, row.split, *sorted(row.axes)


def tables(its, record):
    return [table.texts for table in its.tables([record])]


def charts(its, record):
    found = findings_of(its, {"m": record})
    drawn = [view for view in its.charts if not view.missing(found)]
    return [[*map(str, data_of(view.draw(found, PAPER)))] for view in drawn]


def changed(record, which):
    """The record with other numbers of a kind."""
    rows = [
        row._replace(value=0.9 * row.value + 0.003)
        if kind(row) == which and row.value is not None
        else row
        for row in record.rows
    ]
    return record.model_copy(update={"rows": Rows.of(rows)})


def few(name, record):
    """A record of no more layers than are needed, since many charts are slow."""
    if name not in ("attention", "structure", "geometry"):
        return record
    rows = [row for row in record.rows if row.layer in (None, 1, 2)]
    return record.model_copy(update={"rows": Rows.of(rows)})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=pytest.mark.slow if x in ("attention", "structure") else ())
        for x in measurements
        if x != SCORES
    ],
)
def test_every_number_is_in_the_file_and_in_some_table_or_chart(name, shown_with):
    its = get_measurement(name)
    done, seen, unseen, left_out = set(), set(), set(), set()
    for record in shown_with[name]:
        record = few(name, record)
        own = its.own(record)
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
