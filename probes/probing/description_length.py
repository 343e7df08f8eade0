"""Description length: bits of the training labels given the vectors (Voita & Titov 2020).

Only for convex probes; see `probes.training.online_code`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Level, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.probe_spec import ProbeSpec
from probes.records.row import AxisValue, Row
from probes.records.values import Interval, ends
from probes.tasks.task import Task
from probes.training.families import family_of, why_not_convex

if TYPE_CHECKING:
    from torch import Tensor

    from probes.measurements.context import TaskContext
    from probes.training.online_code import OnlineCode

ALONE = {"baseline": "labels alone"}
"""The axis of the code without vectors."""

UNIFORM = {"baseline": "uniform code"}
"""Axis of the code in which all labels are equally likely."""

_OF_TRAIN = {"split": "train"}


def _reason_without_code(task: Task, probe: ProbeSpec, level: Level) -> str:
    if task.kind == "regression":
        return "it is not defined for regression"
    return why_not_convex(probe, "have an online code")


@measurement(
    "description_length",
    after="scores",
    version=2,
    missing=_reason_without_code,
    shows=(
        Pivot(
            "compression: length of the uniform code over that of the training labels",
            ("compression",),
            columns=("task",),
            where=_OF_TRAIN,
            note="Code of the training labels, given the layer's vectors (Voita & Titov 2020). ± "
            "half the width of a 95 % interval for one order of the training sentences; other "
            "orders change codelengths by 1 to 3 % (docs/probes.md). 'Labels alone': the code "
            "without vectors.",
        ),
        Pivot(
            "learning curve: bits per label after so many training examples",
            ("bits_per_label",),
            columns=("examples",),
            apart="task",
            where=_OF_TRAIN,
            note="For the labels sent next, by probes trained on those before; at 0 by a uniform "
            "code. The area under a row's curve is the codelength.",
        ),
        Lines(
            "compression",
            "compression",
            "Compression by layer (description length)",
            "Length of the uniform code over that of the training labels' code (Voita & Titov "
            "2020); more is better.",
            where=_OF_TRAIN,
        ),
        Lines(
            "learning",
            "bits_per_label",
            "Learning curves (description length)",
            "Bits per label sent next, by number of training examples: an estimate of the probe's "
            "loss (Voita & Titov 2020). The area under a curve is the codelength.",
            x="examples",
            line="layer",
            log=True,
            where=_OF_TRAIN,
        ),
    ),
)
def description_length(context: TaskContext) -> Measured:
    """Bits of the training labels given the vectors (Voita & Titov 2020).

    The online code of convex probes on train; dev and test are not used.

    Rows by layer, and for the code without vectors: codelength in bits, compression (length of the
    uniform code / codelength), and bits per label of each block, by the number of examples sent
    before. Also the length of the uniform code.
    """
    from probes.training.online_code import (
        PREFIX_STEPS,
        block_ends,
        decisions,
        prior_block_bits,
        uniform_bits,
    )

    rows: list[Row] = []
    n_priors = len(family_of(context.spec).logit_variances)
    groups = list(context.groups(context.layers, n_priors))
    n_outputs = context.data.n_outputs
    steps = PREFIX_STEPS * (len(block_ends(context.data.sentences("train"))) - 1)
    uniform = 0.0
    with context.bar(len(groups) * steps):
        for layers, room in groups:
            code, labels, sets = _coded(context, layers, room)
            sequences, outcomes = decisions(labels, n_outputs, sets)
            uniform = sum(uniform_bits(len(sequence), outcomes) for sequence in sequences)
            parts = code.bits.tolist(), code.intervals, code.block_bits.tolist()
            for layer, bits, interval, block_bits in zip(layers, *parts, strict=True):
                rows += _code_rows(uniform, bits, interval, block_bits, code.ends, layer)
    # All groups of layers send the same labels in the same blocks: here, those of the last group.
    bits_alone = [prior_block_bits(sequence, code.ends, outcomes) for sequence in sequences]
    alone = [sum(blocks) for blocks in zip(*bits_alone, strict=True)]
    rows += _code_rows(uniform, sum(alone), None, alone, code.ends, None, ALONE)
    rows.append(Row("codelength", uniform, split="train", axes=UNIFORM))
    facts: dict[str, AxisValue] = {"code": "online code", "classes": n_outputs}
    return Measured(rows, facts=facts, notes=["Code: online code."])


def _code_rows(
    uniform: float,
    bits: float,
    interval: Interval,
    block_bits: Sequence[float],
    ends_of: Sequence[int],
    layer: int | None,
    axes: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Row]:
    """The rows of a code.

    Args:
        uniform: bits of the uniform code.
        interval: interval of `bits`.
        ends_of: number of examples sent by the end of each block.
    """
    compressed = None
    if interval is not None and interval[0] > 0:
        compressed = uniform / interval[1], uniform / interval[0]
    yield Row("codelength", bits, layer, *ends(interval), split="train", axes=axes)
    value = uniform / bits if bits else None
    yield Row("compression", value, layer, *ends(compressed), split="train", axes=axes)
    for start, end, of_block in zip((0, *ends_of), ends_of, block_bits, strict=False):
        block_axes: dict[str, AxisValue] = {**axes, "examples": start}
        yield Row("bits_per_label", of_block / (end - start), layer, split="train", axes=block_axes)


def _coded(
    context: TaskContext, layers: Sequence[int], room: int
) -> tuple[OnlineCode, Tensor, Tensor | None]:
    """The code of some layers, the labels in the order of sending, and label sets.

    Features are freed on return.
    """
    from probes.training.online_code import online_code

    train = context.training_batches(layers, room)
    code = online_code(train, context.data.n_outputs, context.spec)
    return code, train.labels[0].cpu(), None if train.sets is None else train.sets.cpu()
