"""Results written by hand, for tests of what is derived from them."""

from __future__ import annotations

from probes.extraction.reading.windows import WINDOW_RULE
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import digests
from probes.records.header import (
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    ModelRecord,
    TaskRecord,
)
from probes.records.probe_spec import PROBES
from probes.records.record import SCHEMA_VERSION, Inputs, Record
from probes.records.result import Result
from probes.records.row import Row, Rows
from probes.tasks.builtin import version_of

MAJORITIES = "majority", "type majority"


def make_result(task="pos", scores=(0.1, 0.2), p_best=None, *, layers=None, n_layers=None, **more):
    """A result with these test scores, which are dev's too, and training variance.

    Args:
        p_best: p-values by layer, None where nothing could be tested; 1 for the best layer and .001
            for every other one if not given; False for a result without training variance.
        more: fields of the record, or `baselines`, `references`, `model`, `random_seed`, `metric`,
            `labels`, `unseen`, `groups`, `resampled` and `clusters`.
    """
    layers = tuple(range(len(scores))) if layers is None else layers
    best = max(range(len(scores)), key=lambda i: (scores[i] or 0, -i))
    if p_best is None:
        p_best = [1.0 if i == best else 0.001 for i in range(len(scores))]
    metric = more.pop("metric", "accuracy")
    rules = {
        "baseline": more.pop("baselines", {name: {metric: 0.1} for name in MAJORITIES}),
        "reference": more.pop("references", {}),
    }
    rows = [
        row for layer, x in zip(layers, scores, strict=True) for row in fit_rows(layer, x, metric)
    ]
    rows += [
        Row(name, value, axes={axis: rule})
        for axis, given in rules.items()
        for rule, values in given.items()
        for name, value in values.items()
    ]
    fields = {
        "schema_version": SCHEMA_VERSION,
        "suite_version": "0",
        "measurement": "scores",
        "measurement_version": get_measurement("scores").version,
        "key": "0" * 64,
        "inputs": "1" * 64,
        "extent": dict.fromkeys(layers, 1),
        "model": ModelRecord(
            name=more.pop("model", "m"),
            revision="",
            digest="m",
            architecture="a",
            n_layers=n_layers or max(layers),
            hidden_size=4,
            parameters=1,
            window=8,
            causal=False,
            random_seed=more.pop("random_seed", None),
        ),
        "corpus": CorpusRecord(
            name="c",
            version="1",
            licence="",
            citation="",
            silver=(),
            digest="c",
            fingerprint="f" * 64,
            sentences={},
            words={},
            notes={},
            limit=None,
            limited=False,
        ),
        "task": TaskRecord(
            name=task,
            version=version_of(task) or 1,
            needs=(),
            kind="classification",
            shape="word",
            metric=metric,
        ),
        "view": "plain",
        "pooling": "mean",
        "dtype": "float32",
        "probe": PROBES["linear"],
        "project": None,
        "encoding": EncodingRecord(
            storage="float16", unknown_words=0, texts_in_several_windows=0, batch_tokens=1
        ),
        "seconds": {},
        "provenance": {},
        "examples": ExampleCounts(
            n={"train": 9, "dev": 9, "test": 9},
            labels=more.pop("labels", {}),
            excluded={},
            unseen_test_labels=more.pop("unseen", {}),
            groups=more.pop("groups", {}),
            typed=True,
            covered_sentences=None,
            resampled=more.pop("resampled", "sentences"),
            clusters=more.pop("clusters", 9),
            test_digest="e" * 64,
        ),
        "facts": {"probe_parameters": 1, "group_metric": "accuracy"},
        "rows": Rows.of(rows),
    }
    result = Result(**{**fields, **more})
    if p_best is False:
        return result
    found = variance_rows(dict(zip(layers, p_best, strict=True)))
    return result.with_evidence(evidence_record(result, "training_variance", found))


def fit_rows(layer, score, metric, **axes):
    """Rows of one fit, whose dev and test scores are the same."""
    return [
        Row(metric, score, layer, split="dev", axes=axes),
        Row(metric, score, layer, axes=axes),
        Row("strength", 0.1, layer, split="train", axes=axes),
        Row("stopped", 1.0, layer, split="dev", axes=axes),
        Row("dev_loss", 1.0, layer, split="dev", axes=axes),
    ]


def variance_rows(p_best, sd=0.01, df=4):
    """Rows of training variance: p-values by layer, and a pooled deviation of convex probes."""
    return [
        Row("training_sd", sd, n=df),
        Row("retraining_sd", None),
        Row("sampling_sd", sd),
        *(Row("p_best", p, layer) for layer, p in p_best.items()),
    ]


def evidence_record(result, measurement, rows, **more):
    """A record of evidence behind a result."""
    fields = {name: getattr(result, name) for name in Record.model_fields}
    fields |= {"measurement": measurement, "key": "2" * 64, "arrays": (), "facts": {}}
    fields |= {"rows": Rows.of(rows), "behind": result.headline, "examples": None}
    return Record(**{**fields, **more})


def with_rows(result, rows):
    """The result with these rows, each in the place of one that it may have already."""
    places = {(x.metric, x.layer, x.split, tuple(x.axes.items())): x for x in result.rows}
    places |= {(x.metric, x.layer, x.split, tuple(x.axes.items())): x for x in rows}
    return result.model_copy(update={"rows": Rows.of(places.values())})


def with_intervals(result, interval):
    """The result with an interval at every layer, or with its score ± half an interval."""
    rows = []
    for layer in result.layers:
        row = result.at(result.task.metric, layer)
        half = interval if isinstance(interval, float) else None
        low, high = interval if half is None else (row.value - half, row.value + half)
        rows.append(row._replace(low=low, high=high))
    return with_rows(result, rows)


def changed(result, part, **fields):
    """The result or record with other fields of a part of its header, such as `model`."""
    return result.model_copy(update={part: getattr(result, part).model_copy(update=fields)})


def with_seeds(result, n):
    """The result with so many fits of each layer, all of which have the same scores."""
    metric = result.task.metric
    rows = [
        row
        for layer in result.layers
        for seed in range(1, n)
        for row in fit_rows(layer, result.score(layer), metric, seed=seed)
    ]
    extent = dict.fromkeys(result.layers, n)
    return with_rows(result, rows).model_copy(update={"extent": extent})


def make_full_result(task="pos", scores=(0.5, 0.7, 0.6), *, half=0.02, located=True, **more):
    """A result with intervals, groups and all evidence."""
    metric = more.get("metric", "accuracy")
    given = make_result(
        task,
        scores,
        groups={"seen": 5, "unseen": 4},
        labels={"a": (5, 5, 5), "b": (4, 4, 4)},
        **more,
    )
    result, score = with_intervals(given, half), given.score
    groups = [
        Row(metric, score(layer) - less, layer, axes={"group": name})
        for layer in given.layers
        for name, less in (("seen", 0.0), ("unseen", 0.1))
    ]
    result = with_rows(result, groups)

    def row_within(name, value, layer):
        return Row(name, value, layer, value - half, value + half)

    controls = [row_within("selectivity", score(x) - 0.3, x) for x in given.layers]
    codes = [Row("compression", 300 / 280, split="train", axes={"baseline": "labels alone"})]
    for x in given.layers:
        low, high = 300 * score(x) / 110, 300 * score(x) / 90
        codes += [
            Row("codelength", 100 / score(x), x, split="train"),
            Row("compression", 3 * score(x), x, low, high, split="train"),
            Row("bits_per_label", 10 / score(x), x, split="train", axes={"examples": 0}),
            Row("bits_per_label", 12 / score(x), x, split="train", axes={"examples": 4}),
        ]
    gains = [
        row_within(name, value, x)
        for x in given.layers[1:]
        for name, value in (("added_bits", 2 * score(x)), ("added_points", score(x) - 0.3))
    ]
    mixes = mix_rows(scores, half, located=located)
    return result.with_evidence(
        evidence_record(result, "selectivity", controls),
        evidence_record(result, "conditional_probing", gains),
        evidence_record(result, "description_length", codes),
        evidence_record(result, "localisation", mixes),
    )


def mix_rows(scores, half, *, located=True):
    """Rows of localisation, of mixes with these test scores, which are dev's too."""
    undefined = Row("expected_layer", None, why="no gain")
    rows = [
        Row("total_gain", 0.1, None, 0.05, 0.15),
        Row("expected_layer", 1.25, None, 1.0, 1.5) if located else undefined,
        Row("centre_of_gravity", 1.5, None, 1.25, 1.75),
        Row("kl", 0.25, None, 0.0, 0.5),
    ]
    for k, score in enumerate(scores):
        rows += [
            Row("mix_score", score, k, score - half, score + half),
            Row("mix_score", score, k, split="dev"),
            *(
                Row("mix_weight", 1 / (k + 1), k, split="train", axes={"of": i})
                for i in range(k + 1)
            ),
        ]
    return rows


def inputs_digest(record, windows=WINDOW_RULE):
    """The digest of the inputs that a record names."""
    task = record.task
    return Inputs(
        model=record.model.digest,
        corpus=record.corpus.digest,
        task=task.name if task else "",
        task_version=task.version if task else 0,
        kind=task.kind if task else "",
        probe=record.probe,
        pooling=record.pooling,
        dtype=record.dtype,
        project=record.project if task else None,
        windows=windows,
        plug_ins=digests(x for x in record.plug_ins if x.kind != "measurement"),
    ).digest
