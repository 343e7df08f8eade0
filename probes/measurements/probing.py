"""All that is measured for one task and probe family: scores, and the evidence behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.errors import out_of_memory
from probes.common.terminal import progress
from probes.compute.devices import FitDType
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.compute.precision import exact_products, fit_dtype_of
from probes.examples.examples import Examples
from probes.examples.scoring import baselines, count_examples, references
from probes.extraction.store import Vectors
from probes.extraction.views import View
from probes.measurements.layer_scores import Stopwatch, fit_layers, stored_types
from probes.measurements.localisation import localise
from probes.measurements.online_code import block_ends, code_record, online_code, with_codelengths
from probes.measurements.selectivity import control_record
from probes.records.header import EncodingRecord, ExampleCounts
from probes.records.payload import (
    CodeRecord,
    ControlRecord,
    LayerResult,
    Localisation,
    Scores,
)
from probes.records.probe_spec import ProbeSpec
from probes.training.dataset import ProbingData
from probes.training.memory_plan import block_bytes

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What is measured; `probes.records.result.Result` adds what it was measured with."""

    layers: tuple[LayerResult, ...]
    control: ControlRecord | None
    baselines: dict[str, Scores]
    references: dict[str, Scores]
    code: CodeRecord | None
    examples: ExampleCounts
    group_metric: str
    probe_parameters: int
    localisation: Localisation | None
    arrays: dict[str, Array]
    seconds: dict[str, float]


@exact_products()
def probe(
    examples: Examples,
    view: View,
    vectors: Vectors,
    spec: ProbeSpec,
    layers: Sequence[int],
    n_seeds: int,
    device: torch.device,
    memory: int | None = None,
    quick: bool = False,
    project: int | None = None,
    fit_dtype: FitDType = "float32",
    on_layers: Callable[[int], None] = lambda n: None,
) -> Outcome:
    """Fit and score one task with one probe family at `layers`.

    Layers are fitted in groups that fit in memory; except for rounding, no number depends on the
    groups.

    Args:
        memory: bytes to stay below; by default a share of what is free.
        quick: leave out controls, description length and localisation.
        project: dimension of a random projection of each span's vector.
        fit_dtype: type of the products in training.
        on_layers: called after each group with its number of layers.

    Raises:
        UserError: there is not enough memory for a single layer.
    """
    what = f"fitting {examples.task.name} with {spec.family} probes"
    with explain_out_of_memory(what, "use --limit, --project or --seeds 1, or free some memory."):
        data = ProbingData(
            examples,
            view,
            vectors,
            device,
            n_seeds=n_seeds,
            control=not quick,
            project=project,
            fit_dtype=fit_dtype_of(fit_dtype),
        )
        memory = memory or default_budget(device)
        while True:
            try:
                return _outcome(data, spec, layers, memory, quick, on_layers)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error) or data.group_layers(memory, spec) == (1, False):
                    raise
            # Outside the handler: the error would keep tensors alive.
            memory //= 2
            progress.say(
                f"not enough memory; {what} continues with {memory / 1e6:,.0f} MB",
                "fewer layers at once",
                memory=memory,
            )


def _outcome(
    data: ProbingData,
    spec: ProbeSpec,
    layers: Sequence[int],
    memory: int,
    quick: bool,
    on_layers: Callable[[int], None],
) -> Outcome:
    examples, n_seeds = data.examples, len(data.seeds)
    stopwatch = Stopwatch()
    found, predicted, n_parameters = fit_layers(data, spec, layers, memory, stopwatch, on_layers)
    test = data.scorers["test"]
    n_outputs = data.n_outputs
    gold_type, predicted_type = stored_types(examples.task.kind, n_outputs)
    arrays = {
        "predicted": predicted[:, :n_seeds].astype(predicted_type),
        "gold": test.gold.labels.astype(gold_type),
        "sentence": test.gold.sentence.astype(np.int32),
        "punctuation": test.gold.punctuation,
        "unseen": np.array(test.gold.unseen, dtype=np.str_),
        "layers": np.array(layers, dtype=np.int32),
    }
    if test.gold.sets is not None:
        arrays["sets"] = test.gold.sets
    code, localisation = None, None
    if n_outputs and not quick:
        with stopwatch("code"):
            found, code = _code(data, spec, found, memory)
    if not quick and list(layers) == list(range(data.n_layers)):
        with stopwatch("mix"):
            localisation, by_mixes = _localise(data, spec, found, memory)
            arrays["predicted_cumulative"] = by_mixes.astype(predicted_type)
    return Outcome(
        layers=found,
        control=control_record(examples) if data.control else None,
        baselines=baselines(examples, examples.targets("train"), test),
        references=references(examples, test),
        code=code,
        examples=count_examples(examples, test),
        group_metric=test.group_metric,
        probe_parameters=n_parameters,
        localisation=localisation,
        arrays=arrays,
        seconds=stopwatch.seconds,
    )


def _code(
    data: ProbingData, spec: ProbeSpec, found: Sequence[LayerResult], memory: int
) -> tuple[tuple[LayerResult, ...], CodeRecord]:
    """The layers with their codelengths, and the codes that these are compared to."""
    group_size, hold = data.group_layers(memory, spec)
    coded: list[LayerResult] = []
    for first in range(0, len(found), group_size):
        group = found[first : first + group_size]
        layers, record = _code_group(data, spec, group, hold)
        coded += layers
    return tuple(coded), record


def _code_group(
    data: ProbingData, spec: ProbeSpec, group: Sequence[LayerResult], hold: bool
) -> tuple[list[LayerResult], CodeRecord]:
    """`_code` of one group of layers; its features are freed on return."""
    features = data.features([layer.layer for layer in group], hold)
    train = data.batches("train", features["train"]).of_cells(slice(0, 1))
    code = online_code(train, data.n_outputs, spec)
    coded = with_codelengths(group, code)
    labels, sets = train.labels[0].cpu(), None if train.sets is None else train.sets.cpu()
    return coded, code_record(labels, block_ends(train.sentences), data.n_outputs, sets)


def _localise(
    data: ProbingData, spec: ProbeSpec, found: Sequence[LayerResult], memory: int
) -> tuple[Localisation, Array]:
    """Localisation from the mixes of all layers, and the test predictions of every mix."""
    left = memory - block_bytes(len(found), data.width_read)
    group_size, hold = data.group_layers(left, spec)
    features = data.features([layer.layer for layer in found], hold and group_size >= len(found))
    train, dev = (
        data.batches(split, features[split]).of_cells(slice(0, 1)) for split in ("train", "dev")
    )
    return localise(
        train,
        dev,
        features["test"],
        data.n_outputs,
        spec,
        len(data.seeds),
        data.scorers,
        data.in_labels_unit,
        group_size,
    )


def encoding_record(manifest: Mapping[str, Any]) -> EncodingRecord:
    """How stored vectors were encoded, from their manifest."""
    return EncodingRecord(**{name: manifest[name] for name in EncodingRecord.model_fields})
