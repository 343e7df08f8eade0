"""Records of measurements of a corpus, by hand."""

from __future__ import annotations

from results_by_hand import inputs_digest, make_result

from probes.measurements.measurement import as_measured, get_measurement
from probes.measurements.plugin_keys import plug_ins_of, source_of
from probes.records.record import Record, record_key, record_name
from probes.records.record_files import write_record
from probes.records.row import Row, Rows
from probes.records.values import Estimate


def estimate(value, half=0.01):
    return Estimate(value=value, interval=(value - half, value + half))


def corpus_record(measurement, rows, n_layers, *, model="m", digest="m", key="3" * 64, **more):
    """A record of a measurement of the corpus `c`, which is that of results by hand."""
    result = make_result(model=model, n_layers=n_layers, p_best=False, **more.pop("result", {}))
    fields = {name: getattr(result, name) for name in Record.model_fields}
    its = get_measurement(measurement)
    fields |= {
        "measurement": measurement,
        "measurement_version": its.version,
        "settings": its.options().model_dump(mode="json"),
        "model": result.model.model_copy(update={"digest": digest}),
        "extent": dict.fromkeys(range(n_layers + 1), 1),
        "task": None,
        "probe": None,
        "arrays": (),
        "key": key,
        "rows": Rows.of(rows),
        "facts": {},
        "examples": None,
        "plug_ins": plug_ins_of(measurement=measurement),
    }
    return Record(**{**fields, **more})


def record_of(measurement, found, n_layers, **more):
    """A record of what `compute` of a measurement of the corpus has returned."""
    found = as_measured(found)
    fields = {"facts": found.facts, "notes": tuple(found.notes)}
    return corpus_record(measurement, found.rows, n_layers, **fields, **more)


def geometry(anisotropy, *, half=0.01, self_similarity=None, **more):
    """A record of geometry, with as many numbers as claims and charts read.

    Args:
        anisotropy, self_similarity: by layer; the second less its baseline.
    """
    n = len(anisotropy)
    similar = self_similarity or [0.5] * n
    rows = []
    for layer in range(n):
        estimates = {
            "anisotropy": anisotropy[layer],
            "self_similarity_adjusted": similar[layer],
            "intra_sentence_similarity_adjusted": 0.1,
            "maximum_explainable_variance_adjusted": 0.02,
        }
        rows += [Row.estimated(name, estimate(x, half), layer) for name, x in estimates.items()]
        rows += [Row("participation_ratio", 10.0 + layer, layer), Row("norm_mean", 1.0, layer)]
        for labels, ami, split in (("chunks", 0.3, "test"), ("senses", 0.2, "all")):
            axes = {"labels": labels}
            rows.append(Row.estimated("ami", estimate(ami, half), layer, split=split, axes=axes))
    rows += [
        Row("unbiased_cka", 1 - (i - j) / 10, i, axes={"other_layer": j})
        for i in range(n)
        for j in range(i)
    ]
    return corpus_record("geometry", rows, n - 1, **more)


def store_record(folder, record):
    """Write a record into the folder of its model and corpus; return its path."""
    inputs = inputs_digest(record)
    version, source = record.measurement_version, source_of(record.plug_ins)
    key = record_key(inputs, record.measurement, version, record.settings, source)
    place = folder / record.model.name.replace(":", "-") / record.corpus.name
    path = place / record_name("", "", record.measurement, key)
    write_record(path, record.model_copy(update={"key": key, "inputs": inputs}), {})
    return path
