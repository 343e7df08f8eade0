"""How much the heads of a model differ from those of another, such as before fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from probes.measurements.attention.attention import Attention
from probes.measurements.measurement import Found, PairMeasurement, Request
from probes.records.base import Frozen
from probes.records.charts import Chart, Grid, Panel
from probes.records.record import Extent, Record
from probes.records.row import Row
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.records.titles import subject_title
from probes.records.values import Estimate
from probes.statistics.formatting import shown
from probes.statistics.partition import Cluster

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.corpus_context import CorpusContext

FIGURE = "head_change"


class Options(Frozen):
    """What can be set."""

    sentences: int = Field(
        default=500, ge=1, description="test sentences of whose maps those of the base are held"
    )


class Change(Frozen):
    """Cosine and Jensen–Shannon divergence of maps (nats), averaged over sentences."""

    cosine: Estimate
    divergence: Estimate


class LayerChange(Frozen):
    """The change of one layer."""

    layer: int
    mean: Change
    """Over heads."""
    heads: tuple[Change, ...]


class Changes(Frozen):
    """What `AttentionChange` finds."""

    layers: tuple[LayerChange, ...]
    sentences: int
    left_out: int
    """Sentences of the sample that do not fit into the window of both models."""
    resampled: Cluster
    """What intervals resample."""


class AttentionChange(PairMeasurement[Changes]):
    """Change of each head from the first model of the run, on a sample of test sentences.

    As in Kovaleva et al. (2019), section 4.3, without padding; of each sentence the cosine of the
    two maps, and their Jensen–Shannon divergence averaged over tokens. Models need the same numbers
    of layers and heads and the same tokens.
    """

    name = "attention_change"
    summary = "change of attention heads between two models; made along with attention"
    payload: ClassVar[type[Changes]] = Changes
    options = Options
    figures = (FIGURE,)

    def extent(self, request: Request) -> Extent:
        """Layer 0 has no heads."""
        return Attention().extent(request)

    def view(self, corpus: Corpus, options: Any) -> View:
        """What is stored for `Attention`, so that nothing else is."""
        return Attention().view(corpus, Attention.options())

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Any) -> Collector:
        """See `view`."""
        return Attention().collector(corpus, layers, Attention.options())

    def compute(self, context: CorpusContext) -> Found[Changes]:
        """Read the sample with the base, then with the model.

        Raises:
            NotServedError: heads do not correspond, tokens differ, or no sentence fits into the
                window.
        """
        from probes.measurements.attention.comparing import changes_of

        return Found(payload=changes_of(context, context.options.sentences))

    def numbers(self, record: Record[Changes]) -> Iterator[Row]:
        """Both measures of every head, and their mean over the heads of a layer."""
        base = {"base": _base(record)}
        for layer in record.payload.layers:
            yield from _numbers(layer.layer, layer.mean, base)
            for head, change in enumerate(layer.heads, start=1):
                yield from _numbers(layer.layer, change, {"head": head, **base})

    def tables(self, record: Record[Changes]) -> Sequence[Table]:
        """Change by layer, and the divergence of every head."""
        found, title = record.payload, f"{subject_title(record)} · attention"
        title = f"{title} changed from {_base(record)}"
        means = [
            TableRow.of(str(x.layer), _cell(x.mean.divergence), _cell(x.mean.cosine))
            for x in found.layers
        ]
        note = (
            f"{found.sentences:,} test sentences; intervals over {found.resampled}. Divergence: "
            "Jensen–Shannon, in nats, of a token's attention, at most .693."
        )
        left_out = f"{found.left_out:,} sentences longer than a window are left out."
        heads = [
            TableRow.of(str(x.layer), *(_number(each.divergence) for each in x.heads))
            for x in found.layers
        ]
        names = ("layer", *(str(head) for head in range(1, len(found.layers[0].heads) + 1)))
        return [
            Table(
                f"{title}: mean over heads",
                ("layer", "divergence", "cosine"),
                tuple(means),
                notes=(note, *[left_out] * (found.left_out > 0)),
            ),
            Table(f"{title}: divergence by head", names, tuple(heads), repeated=1),
        ]

    def charts(self, records: Mapping[str, Record[Changes]]) -> Sequence[Chart]:
        """A grid for each pair."""
        panels = {
            f"{label} × {_base(record)}": Panel(
                tuple(str(x.layer) for x in record.payload.layers),
                tuple(str(i) for i, _ in enumerate(record.payload.layers[0].heads, start=1)),
                tuple(tuple(c.divergence.value for c in x.heads) for x in record.payload.layers),
            )
            for label, record in records.items()
        }
        return [
            Grid(
                FIGURE,
                "Change of attention heads",
                "Jensen–Shannon divergence, in nats, from the same head of the first model.",
                "layer",
                "head",
                panels,
                low=0.0,
            )
        ]


def _numbers(layer: int, change: Change, axes: Mapping[str, int | str]) -> Iterator[Row]:
    for name in Change.model_fields:
        found: Estimate = getattr(change, name)
        low, high = found.interval or (None, None)
        yield Row(name, found.value, layer, low, high, axes=axes)


def _cell(found: Estimate) -> Cell:
    pair = found.interval
    half = "" if pair is None else shown((pair[1] - pair[0]) / 2, "")
    return Cell(_number(found), half, value=found.value)


def _number(found: Estimate) -> str:
    return NOTHING if found.value is None else shown(found.value, "")


def _base(record: Record[Changes]) -> str:
    assert record.base is not None
    return record.base.name
