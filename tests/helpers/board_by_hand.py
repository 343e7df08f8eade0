"""A folder of results written by hand: 400 test sentences of one word, errors counted from the first."""

from __future__ import annotations

import json

import numpy as np
from results_by_hand import evidence_record, inputs_digest, make_result, with_intervals

from probes.extraction.reading.windows import WINDOW_RULE
from probes.frames.record_validation import as_result
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import plug_ins_of, source_of
from probes.records.record import record_key, record_name
from probes.records.record_files import read_record, write_record

N = 400


def put(folder, model, task, wrong, *, family="linear", predictions=True, current=True, **fields):
    """Write a result whose best layer, the last, errs on the first `wrong` words; return its path.

    Beside it is its training variance.

    Args:
        fields: of the result; of records `model__…`, `corpus__…` and `task__…`; `wrongs` by layer;
            `documents`, the number of each sentence's; `rules`, on which words baselines are right;
            or `rule_sd`, how much their scores vary with training.
    """
    from probes.records.probe_spec import PROBES

    wrongs = fields.pop("wrongs", (N // 2 + 100, wrong))
    documents, rules = fields.pop("documents", None), fields.pop("rules", {})
    rule_sd = fields.pop("rule_sd", 0.0)
    if rules:
        fields["baselines"] = {name: {"accuracy": np.mean(right)} for name, right in rules.items()}
    clusters = np.arange(N) if documents is None else documents
    records = {name: fields.pop(name) for name in list(fields) if "__" in name}
    plain = {"probe": PROBES[family], **fields}
    n = len(wrongs)
    labels = {"a": (9, 2, N), "b": (5, 1, 0)}
    scores = [1 - w / N for w in wrongs]
    plain["clusters"] = len(np.unique(clusters))
    plain["resampled"] = "sentences" if documents is None else "documents"
    result = make_result(task, scores, model=model, labels=labels, **plain)
    random_seed = fields.get("random_seed")
    updates = {"model": {"digest": f"{model} {random_seed}"}, "corpus": {}, "task": {}}
    for name, value in records.items():
        record, attribute = name.split("__")
        updates[record][attribute] = value
    result = result.model_copy(
        update={k: getattr(result, k).model_copy(update=v) for k, v in updates.items()}
    )
    result = with_intervals(result, 0.03)
    inputs = inputs_digest(result, WINDOW_RULE if current else "older")
    predicted = np.zeros((n, 1, N), dtype=np.int16)
    for row, w in zip(predicted, wrongs, strict=True):
        row[0, :w] = 1
    arrays = {
        "predicted": predicted,
        "layers": np.arange(n),
        "gold": np.zeros(N, dtype=np.int16),
        "sentence": np.arange(N),
        "clusters": clusters,
        "punctuation": np.zeros(N, dtype=bool),
        "unseen": np.array([], dtype=str),
    }
    if rules:
        sums = [np.stack([right, np.ones(N)], axis=1) for right in rules.values()]
        arrays |= {"rules": np.array([*rules]), "rule_sums": np.array(sums)}
        arrays["rule_sd"] = np.full(len(rules), rule_sd)
    slug = "".join(c if c.isalnum() else "-" for c in model) + f"-{result.model.revision}"
    place = folder / slug.strip("-") / result.corpus.name
    path = store(place, result, arrays, inputs)
    if not predictions:
        path.with_suffix(".npz").unlink()
    return path


def store(folder, result, arrays=None, inputs=None):
    """Write a result and its evidence, with keys that follow from `inputs`; return the result's path.

    Args:
        inputs: a digest, if not that of what the result says.
    """
    inputs = inputs or inputs_digest(result)
    key = record_key(inputs, "scores", result.measurement_version, {})
    update = {"key": key, "inputs": inputs, "arrays": tuple(sorted(arrays or ()))}
    path = folder / record_name(result.task.name, result.probe.family, "scores", key)
    write_record(path, result.model_copy(update=update), arrays or {})
    for record in result.evidence.values():
        put_evidence(path, record.measurement, record.rows)
    return path


def put_evidence(path, measurement, rows, *, version=None, settings=(), **fields):
    """Write a record of evidence beside the scores at `path`; return its path.

    Args:
        version: the present one of the measurement if not given.
    """
    version = version or get_measurement(measurement).version
    scores = as_result(read_record(path), path)
    settings = dict(settings)
    plug_ins = plug_ins_of(measurement=measurement)
    key = record_key(scores.inputs, measurement, version, settings, source_of(plug_ins))
    record = evidence_record(scores, measurement, rows, key=key, settings=settings)
    update = {"measurement_version": version, "plug_ins": (*scores.plug_ins, *plug_ins), **fields}
    record = record.model_copy(update=update)
    name = record_name(scores.task.name, scores.probe.family, measurement, key)
    write_record(path.with_name(name), record, {})
    return path.with_name(name)


def edited(path, change):
    """Change the content of a record; return its path."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def place_of(content, metric, layer, split="test"):
    """The place of a row of the scores in the columns of their record."""
    rows = content["rows"]
    splits = rows.get("split") or ["test"] * len(rows["metric"])
    return [*zip(rows["metric"], rows["layer"], splits, strict=True)].index((metric, layer, split))
