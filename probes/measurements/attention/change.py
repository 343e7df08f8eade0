"""How much the heads of a model differ from those of another, such as before fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from probes.measurements.attention.attention import Attention
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, Measurement, Request
from probes.measurements.pivots import Pivot
from probes.records.charts import Chart
from probes.records.record import Extent, Record
from probes.records.values import Frozen

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.context import Context


class ChangeOptions(Frozen):
    """What can be set."""

    sentences: int = Field(
        default=500, ge=1, description="test sentences of whose maps those of the base are held"
    )


class AttentionChange(Measurement):
    """Change of each head from the first model of the run, on a sample of test sentences.

    As in Kovaleva et al. (2019), section 4.3, without padding; of each sentence the cosine of the
    two maps, and their Jensen–Shannon divergence averaged over tokens. Models need the same numbers
    of layers and heads and the same tokens. Rows without a head are means over those of a layer.

    Facts: ``sentences`` that are compared, ``left_out`` those that do not fit into the window of
    both models, and what intervals have ``resampled``.
    """

    name = "attention_change"
    asks = ("base",)
    summary = "change of attention heads between two models; made along with attention"
    options = ChangeOptions
    views = (
        Pivot("mean over heads", ("divergence", "cosine"), where={"head": None}),
        Pivot("divergence by head", ("divergence",), columns=("head",), where={"head": ...}),
        Cells(
            "head_change",
            "divergence",
            across="head",
            title="Change of attention heads",
            note="Jensen–Shannon divergence, in nats, from the same head of the first model.",
            low=0.0,
            where={"head": ...},
        ),
    )

    def extent(self, request: Request) -> Extent:
        """Layer 0 has no heads."""
        return Attention().extent(request)

    def view(self, corpus: Corpus, options: Any) -> View:
        """What is stored for `Attention`, so that nothing else is."""
        return Attention().view(corpus, Attention.options())

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Any) -> Collector:
        """See `view`."""
        return Attention().collector(corpus, layers, Attention.options())

    def compute(self, context: Context) -> Found:
        """Read the sample with the base, then with the model.

        Raises:
            NotServedError: heads do not correspond, tokens differ, or no sentence fits into the
                window.
        """
        from probes.measurements.attention.comparing import changes_of

        return changes_of(context, context.options.sentences)

    def charts(
        self, records: Mapping[str, Record], paths: Mapping[str, Path] | None = None
    ) -> Sequence[Chart]:
        """A grid for each pair."""
        pairs = {
            f"{label} × {record.base.name if record.base else ''}": record
            for label, record in records.items()
        }
        return super().charts(pairs)
