"""Fitted parameters in the cache, a file `<cache>/parameters/<key>.safetensors` for each record.

A record is valid without them: the cache may be pruned. Those of scores are, for the first fit of
each layer,

- ``layer-03.weight`` and ``layer-03.bias``; of an MLP (C outputs, h hidden units) the weight
  (h, H) and bias (h,) of the hidden layer, and ``layer-03.weight-2`` (C, h) and ``.bias-2`` (C,);
- ``layer-03.mean`` and ``layer-03.scale`` (H,), by which features are standardised: a linear probe
  computes weight · ((x − mean) · scale) + bias from the mean vector x of an example's span, or the
  concatenated ones of two spans;
- of probes of all tokens, weight and bias of the formulas in `probes.training.token_probes`, which
  read the tokens of a text, standardised by mean and scale of single tokens;
- of `multi-layer`, the weight (C, layers × P) for the layers up to this one, lowest first, each of
  which has its own mean, scale and projected-scale;
- with `--project`, and of `multi-layer`, ``projection`` P (hidden size, dimensions) and
  ``layer-03.projected-scale``: the standardised values of each span are multiplied by P, and the
  result by this scale;
- of regressions, ``label-unit``, the mean and deviation of training labels in float64: a probe
  predicts standardised labels.

All others are float32. The file's only metadata, ``about``, is JSON that says what they belong to:
measurement, model, corpus, task, probe, key and layers; outputs are ``classes``, in this order.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.files import default_cache, published
from probes.records.record import Record

FOLDER, SUFFIX = "parameters", ".safetensors"

CACHE = ".cache"
"""The file beside records that names the cache of their run, which is no part of what is shared."""

Parameters = Mapping[str, NDArray[np.floating[Any]]]
"""Arrays by name."""


FOLDABLE = ("linear", "mlp", "mean-difference", "sparse", "token-mean")
"""The probe families whose parameters can be `folded`."""

_OF_LAYER = re.compile(r"layer-([0-9]+)\.")


def of_layer(layer: int, name: str) -> str:
    """The name of an array of one layer."""
    return f"layer-{layer:02d}.{name}"


def parameters_path(cache: Path, key: str) -> Path:
    """The file of the parameters behind the record of a key, whether or not it exists."""
    return cache / FOLDER / f"{key[:32]}{SUFFIX}"


def write_parameters(
    cache: Path, record: Record, parameters: Parameters, classes: Sequence[str] = ()
) -> None:
    """Write a record's parameters, whole or not at all.

    Layers that are stored already under the same key, by a run with another output, stay.

    Args:
        classes: classes in the order of the probes' outputs.
    """
    path = parameters_path(cache, record.key)
    with suppress(UserError):  # a damaged file is replaced
        parameters = {**(read_parameters(cache, record.key) or {}), **parameters}
    arrays = {name: np.ascontiguousarray(parameters[name]) for name in sorted(parameters)}
    layers = {int(match[1]) for name in arrays if (match := _OF_LAYER.match(name))}
    about = {
        "key": record.key,
        "measurement": record.measurement,
        "model": record.model.name,
        "corpus": record.corpus.name,
        "task": record.task.name if record.task else "",
        "probe": record.probe.family if record.probe else "",
        "layers": sorted(layers),
        "classes": list(classes),
        "crc32": _checksum(arrays),
    }
    with published(path) as temporary:
        # One entry: safetensors writes several in any order.
        temporary.write_bytes(save(arrays, {"about": json.dumps(about, sort_keys=True)}))


def read_parameters(
    cache: str | os.PathLike[str], key: str
) -> dict[str, NDArray[np.floating[Any]]] | None:
    """The parameters behind a record, by name; None if there are none, or they were pruned.

    Args:
        cache: the folder that `--cache-dir` names.
        key: the record's key.

    Raises:
        UserError: the file is damaged.
    """
    path = parameters_path(Path(cache), key)
    if not path.exists():
        return None
    about = read_about(path)
    with _opened(path) as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    # Safetensors has no checksum, and the file's name only half of the key.
    if about["crc32"] != _checksum(arrays):
        raise _unreadable(path, "its content changed on disk")
    if about["key"] != key:
        raise _unreadable(path, "the parameters of another record")
    with suppress(OSError):  # a read-only cache
        os.utime(path)  # the time of its last use
    return arrays


def note_cache(folder: Path, cache: Path) -> None:
    """Name the cache beside the records, unless it is the one that every reader tries."""
    if cache != default_cache():
        with published(folder / CACHE) as temporary:
            temporary.write_text(str(cache.absolute()), encoding="utf-8")


def caches_of(folder: Path) -> list[Path]:
    """The cache that is noted in a folder of records, if any, and the one that runs use."""
    note = folder / CACHE
    return [*([Path(note.read_text("utf-8"))] if note.exists() else []), default_cache()]


def read_about(path: Path) -> dict[str, Any]:
    """Description of a file of parameters, whose arrays are not checked.

    Raises:
        UserError: it is damaged.
    """
    with _opened(path) as file:
        about: dict[str, Any] = json.loads((file.metadata() or {}).get("about", "{}"))
        if missing := {"key", "model", "crc32"} - about.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    return about


def folded(parameters: Parameters, layer: int, kind: str = "") -> list[tuple[Floats, Floats]]:
    """One layer's probe as a function of the vectors x themselves, in their own unit.

    Standardisation and projection are linear, and become part of the first weight; the unit of a
    regression's labels becomes part of the last.

    Args:
        parameters: parameters behind a record of scores, of a `FOLDABLE` family.
        kind: the task's kind; a "classification" into two classes gets one output, the logit of
            the second class.

    Returns:
        weight (out, in) and bias (out,) of each layer of the probe, in float64: a linear probe
        computes weight · x + bias; of an MLP, negative outputs of the first are replaced by 0.
    """

    def array_of(name: str) -> Floats:
        return parameters[of_layer(layer, name)].astype(np.float64)

    weight, bias, scale = array_of("weight"), array_of("bias"), array_of("scale")
    if "projection" in parameters:
        matrix = parameters["projection"].astype(np.float64)
        of_spans = (weight * array_of("projected-scale")).reshape(len(weight), -1, matrix.shape[1])
        weight = (of_spans @ matrix.T).reshape(len(weight), -1)
    weight = weight * scale
    probe_layers = [(weight, bias - weight @ array_of("mean"))]
    if of_layer(layer, "weight-2") in parameters:
        probe_layers.append((array_of("weight-2"), array_of("bias-2")))
    if "label-unit" in parameters:
        mean, deviation = parameters["label-unit"]
        weight, bias = probe_layers[-1]
        probe_layers[-1] = weight * deviation, bias * deviation + mean
    weight, bias = probe_layers[-1]
    if kind == "classification" and len(bias) == 2:
        probe_layers[-1] = weight[1:] - weight[:1], bias[1:] - bias[:1]
    return probe_layers


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise _unreadable(path, str(error)) from error


def _checksum(arrays: Parameters) -> str:
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(arrays[name].tobytes(), zlib.crc32(name.encode(), value))
    return f"{value:08x}"


def _unreadable(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: not readable ({reason}); delete it and run again.")
