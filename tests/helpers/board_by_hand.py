"""A folder of results written by hand: 400 test sentences of one word, errors counted from the first."""

from __future__ import annotations

import numpy as np
from results_by_hand import make_result, with_layers

from probes.extraction.windows import WINDOW_RULE
from probes.records.files import write_record
from probes.records.keys import Inputs, record_key, record_name

N = 400


def put(folder, model, task, wrong, *, family="linear", predictions=True, current=True, **fields):
    """Write a result whose best layer, the last, errs on the first `wrong` words; return its path.

    Args:
        fields: of the result; of records `model__…`, `corpus__…` and `task__…`; or `wrongs` by layer.
    """
    from probes.records.probe_spec import PROBES

    wrongs = fields.pop("wrongs", (N // 2 + 100, wrong))
    records = {name: fields.pop(name) for name in list(fields) if "__" in name}
    plain = {"probe": PROBES[family], **fields}
    n = len(wrongs)
    labels = {"a": (9, 2, N), "b": (5, 1, 0)}
    result = make_result(task, [1 - w / N for w in wrongs], model=model, labels=labels, **plain)
    random_seed = fields.get("random_seed")
    updates = {"model": {"digest": f"{model} {random_seed}"}, "corpus": {}, "task": {}}
    for name, value in records.items():
        record, attribute = name.split("__")
        updates[record][attribute] = value
    result = result.model_copy(
        update={k: getattr(result, k).model_copy(update=v) for k, v in updates.items()}
    )
    result = with_layers(
        result,
        intervals=lambda layer: {
            "accuracy": (result.score(layer) - 0.03, result.score(layer) + 0.03)
        },
    )
    inputs = Inputs(
        model=result.model.digest,
        corpus=result.corpus.digest,
        task=task,
        task_version=result.task.version,
        kind=result.task.kind,
        probe=result.probe,
        pooling=result.pooling,
        dtype=result.dtype,
        fit_dtype=result.fit_dtype,
        project=result.project,
        windows=WINDOW_RULE if current else "older",
    ).digest
    key = record_key(inputs, "scores", 1, {})
    predicted = np.zeros((n, 1, N), dtype=np.int16)
    for row, w in zip(predicted, wrongs, strict=True):
        row[0, :w] = 1
    arrays = {
        "predicted": predicted,
        "layers": np.arange(n),
        "gold": np.zeros(N, dtype=np.int16),
        "sentence": np.arange(N),
        "punctuation": np.zeros(N, dtype=bool),
        "unseen": np.array([], dtype=str),
    }
    slug = "".join(c if c.isalnum() else "-" for c in model) + f"-{result.model.revision}"
    result = result.model_copy(
        update={"key": key, "inputs": inputs, "arrays": tuple(sorted(arrays))}
    )
    place = folder / slug.strip("-") / result.corpus.name
    path = place / record_name(task, family, "scores", key)
    write_record(path, result, arrays)
    for record in result.evidence.values():
        key = record_key(inputs, record.measurement, 1, {})
        update = {"key": key, "inputs": inputs, "model": result.model, "corpus": result.corpus}
        beside = place / record_name(task, family, record.measurement, key)
        write_record(beside, record.model_copy(update=update), {})
    if not predictions:
        path.with_suffix(".npz").unlink()
    return path
