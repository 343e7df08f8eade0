"""A folder of results written by hand: 400 test sentences of one word, errors counted from the first."""

from __future__ import annotations

import numpy as np
from results_by_hand import make_result

from probes.extraction.windows import WINDOW_RULE
from probes.records.files import write_result
from probes.records.keys import FitKey, result_name

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
    layers = tuple(
        layer.model_copy(update={"intervals": {"accuracy": (s - 0.03, s + 0.03)}})
        for layer in result.layers
        for s in [result.score(layer)]
    )
    key = FitKey(
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
    result = result.model_copy(update={"key": key, "layers": layers})
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
    path = folder / slug.strip("-") / result.corpus.name / result_name(task, family, key)
    write_result(path, result, arrays)
    if not predictions:
        path.with_suffix(".npz").unlink()
    return path
