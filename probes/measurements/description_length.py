"""Description length: bits of the training labels given the vectors (Voita & Titov 2020).

Convex probes have the online code, others the code by prequential replay (Bornschein, Li & Hutter
2022); the two are not to be compared. See `probes.training.online_code` for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from probes.measurements.cells import number_cell, rows_by_layer, task_head
from probes.measurements.learning_curve import ALONE, learning_points, learning_table
from probes.measurements.measurement import Found, Level, ProbeMeasurement, Request
from probes.records.base import Frozen
from probes.records.curves import Curves, Point
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import Cell, Table, TableRow
from probes.records.values import Interval
from probes.tasks.task import Task
from probes.training.families import is_convex

if TYPE_CHECKING:
    from torch import Tensor

    from probes.measurements.probe_context import ProbeContext
    from probes.training.codes import OnlineCode

CodeName = Literal["online code", "prequential replay"]


class LayerCode(Frozen):
    """The code of one layer."""

    layer: int
    bits: float
    """Codelength of the training labels."""
    interval: Interval
    """95 % interval of `bits` over training documents or sentences."""
    block_bits: tuple[float, ...]
    """The part of each block in `bits`."""


class Codelengths(Frozen):
    """What `DescriptionLength` finds."""

    code: CodeName
    ends: tuple[int, ...]
    """Number of training examples sent by the end of each block."""
    n_classes: int
    uniform_bits: float
    """Length of the code in which all labels are equally likely."""
    prior_block_bits: tuple[float, ...]
    """The part of each block in the length of an online code without vectors."""
    layers: tuple[LayerCode, ...]

    @property
    def prior_bits(self) -> float:
        """Length of an online code without vectors."""
        return sum(self.prior_block_bits)

    @property
    def starts(self) -> tuple[int, ...]:
        """Number of training examples sent before each block."""
        return (0, *self.ends[:-1])

    def per_label(self, block_bits: Sequence[float]) -> list[float]:
        """Bits of each block divided by its number of examples."""
        sizes = (end - start for start, end in zip(self.starts, self.ends, strict=True))
        return [bits / size for bits, size in zip(block_bits, sizes, strict=True)]

    def at(self, layer: int) -> LayerCode | None:
        """Of one layer; None if it was not measured."""
        return next((x for x in self.layers if x.layer == layer), None)

    def compression(self, layer: LayerCode) -> float | None:
        """Length of the uniform code divided by that of a layer's; None if that is 0."""
        return self.uniform_bits / layer.bits if layer.bits else None

    def compression_interval(self, layer: LayerCode) -> Interval:
        """95 % interval of the compression."""
        if layer.interval is None or layer.interval[0] <= 0:
            return None
        low, high = layer.interval
        return self.uniform_bits / high, self.uniform_bits / low


class DescriptionLength(ProbeMeasurement[Codelengths]):
    """The online code of convex probes; with full evidence the replay code of others too."""

    name = "description_length"
    version = 2
    summary = "bits of the training labels given the vectors (Voita & Titov 2020)"
    payload: ClassVar[type[Codelengths]] = Codelengths

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Regressions have none, and probes that are not convex have it with full evidence."""
        if task.kind == "regression":
            return "it is not defined for regression"
        if level != "full" and not is_convex(probe):
            return "it is measured with --evidence full"
        return ""

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """One for each prior of linear probes, which have most."""
        return 4

    def cost(self, probe: ProbeSpec) -> float:
        """Of all prefixes, under several priors."""
        return 2.5

    def extent(self, request: Request) -> Extent:
        """Every layer."""
        return dict.fromkeys(request.layers, 1)

    def compute(self, context: ProbeContext) -> Found[Codelengths]:
        """Code the training labels; neither dev nor test is used."""
        from probes.training.codes import decisions, n_cells, prior_block_bits, uniform_bits
        from probes.training.steps import code_steps

        convex = is_convex(context.spec)
        found: list[LayerCode] = []
        groups = list(context.groups(context.layers, n_cells(context.spec)))
        n_outputs = context.data.n_outputs
        steps = code_steps(context.spec, context.data.sentences("train"))
        with context.bar(len(groups) * steps):
            for layers, hold in groups:
                code, labels, sets = _coded(context, layers, hold)
                parts = code.bits.tolist(), code.intervals, code.block_bits.tolist()
                found += [
                    LayerCode(
                        layer=layer, bits=bits, interval=interval, block_bits=tuple(block_bits)
                    )
                    for layer, bits, interval, block_bits in zip(layers, *parts, strict=True)
                ]
        sent, outcomes = decisions(labels, n_outputs, sets)
        alone = (prior_block_bits(each, code.ends, outcomes) for each in sent)
        return Found(
            payload=Codelengths(
                code="online code" if convex else "prequential replay",
                ends=code.ends,
                n_classes=n_outputs,
                uniform_bits=sum(uniform_bits(len(each), outcomes) for each in sent),
                prior_block_bits=tuple(map(sum, zip(*alone, strict=True))),
                layers=tuple(found),
            )
        )

    def numbers(self, record: Record[Codelengths]) -> Iterator[Row]:
        """Codelength and compression of each layer."""
        found = record.payload
        for layer in found.layers:
            low, high = found.compression_interval(layer) or (None, None)
            yield Row("codelength", layer.bits, layer.layer, split="train")
            yield Row(
                "compression", found.compression(layer), layer.layer, low, high, split="train"
            )

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Compression by layer, and the learning curves of each task."""

        def cell(result: Result, layer: int) -> Cell | None:
            found: Codelengths = result.found(self.name)
            at = found.at(layer)
            if at is None:
                return None
            return number_cell(found.compression(at), found.compression_interval(at))

        every: list[Codelengths] = [result.found(self.name) for result in results]
        codes = ", ".join(dict.fromkeys(x.code for x in every))
        return [
            Table(
                f"compression: length of the uniform code over that of the {codes}",
                ("layer", *map(task_head, results)),
                (
                    *rows_by_layer(results, cell),
                    TableRow.of(ALONE, *(f"{x.uniform_bits / x.prior_bits:.2f}" for x in every)),
                ),
                notes=(
                    "Of the training labels, given the layer's vectors (Voita & Titov 2020). ± "
                    "half a 95 % interval, of one order of the training sentences; others change "
                    "codelengths by 1 to 3 % (docs/method.md). 'Labels alone' is the same code "
                    "without vectors.",
                ),
            ),
            *map(learning_table, results, every),
        ]

    def curves(self, results: Mapping[str, Result]) -> list[Curves]:
        """Compression by layer, and learning curves."""
        compression = Curves(
            "compression",
            "Compression by layer (description length)",
            "Length of the uniform code over that of the training labels' code (Voita & Titov "
            "2020); more is better.",
            "compression",
        )
        learning = Curves(
            "learning",
            "Learning curves (description length)",
            "Bits per label of those sent next, after so many training examples: an estimate of "
            "the probe's loss (Voita & Titov 2020). The area under a curve is the codelength.",
            "bits per label",
            what="training examples",
            log=True,
        )
        for model, result in results.items():
            payload: Codelengths | None = result.found(self.name)
            if payload is None:
                regression = result.task.kind == "regression"
                why = (
                    "it is not defined for regression" if regression else "there is no record of it"
                )
                compression.missing[model] = learning.missing[model] = why
                continue
            compression.levels[ALONE] = payload.uniform_bits / payload.prior_bits
            compression.models[model] = [
                Point(x.layer, payload.compression(x), payload.compression_interval(x))
                for x in payload.layers
            ]
            if points := list(learning_points(result, payload)):
                learning.models[model] = points
            else:
                learning.missing[model] = "too few training examples"
        return [compression, learning]


def _coded(
    context: ProbeContext, layers: Sequence[int], hold: bool
) -> tuple[OnlineCode, Tensor, Tensor | None]:
    """The code of some layers, the labels in the order in which they are sent, and label sets.

    Features are freed on return.
    """
    from probes.training.online_code import online_code
    from probes.training.replay_code import replay_code

    train = context.training_batches(layers, hold)
    code_of = online_code if is_convex(context.spec) else replay_code
    code = code_of(train, context.data.n_outputs, context.spec)
    return code, train.labels[0].cpu(), None if train.sets is None else train.sets.cpu()
