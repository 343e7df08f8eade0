"""Attention: what every head of every layer attends to.

docs/attention.md says what each number is, and when not to trust it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PositiveInt

from probes.measurements.attention.charts import FIGURES, charts
from probes.measurements.attention.names import CLUSTER_SENTENCES, MIX_SENTENCES
from probes.measurements.attention.numbers import beside, numbers
from probes.measurements.attention.payload import Findings
from probes.measurements.attention.tables import tables
from probes.measurements.measurement import CorpusMeasurement, Found, Request
from probes.records.base import Frozen
from probes.records.charts import Chart
from probes.records.record import Extent, Record
from probes.records.row import Place, Row
from probes.records.table import Table

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.corpus_context import CorpusContext


class Options(Frozen):
    """What can be set."""

    segments: Literal["one", "two"] = Field(
        default="one",
        description="two: pairs of neighbouring sentences, for block patterns, without relations",
    )
    mix_sentences: PositiveInt = Field(
        default=MIX_SENTENCES, description="training sentences for the mixes of heads"
    )
    cluster_sentences: PositiveInt = Field(
        default=CLUSTER_SENTENCES,
        description="sentences on which heads are compared with each other",
    )


class Attention(CorpusMeasurement[Findings]):
    """General statistics, patterns, relations, roles and trees of every head.

    Arrays beside the record: ``test_sums``, ``test_counts``, ``test_baseline_sums`` (choices,
    sentences), what test sentences contribute to the chosen heads and to their baselines, in the
    order of the choices: a score is Σ sums / Σ counts. ``test_clusters`` (sentences,) is the
    document of each, or the sentence itself. ``test_mix_hits`` (probes, sentences) and
    ``test_mix_counts`` (sentences,): words whose head is found by the mixes of each layer's heads
    and, in the last row, of all.

    Parameters: ``mix.layer-03`` (2, heads), how much each head's attention to a word, and from it,
    counts for that word being the head; ``mix.all`` (layers, 2, heads) for all heads of
    the model.
    """

    name = "attention"
    version = 2
    summary = "what attention heads attend to: positions, patterns, relations, roles, trees"
    payload: ClassVar[type[Findings]] = Findings
    options = Options
    figures = FIGURES
    of_pairs = "attention_change"
    csv_name = "heads"
    shares_arrays = True

    def extent(self, request: Request) -> Extent:
        """Layer 0 has no heads."""
        return dict.fromkeys((layer for layer in request.layers if layer), 1)

    def view(self, corpus: Corpus, options: Options) -> View:
        """Sentences of dev and test, or pairs of neighbouring sentences of test."""
        from probes.measurements.attention.texts import view_of

        return view_of(corpus, options.segments)

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Options) -> Collector:
        """See `HeadSums`; it keeps all layers."""
        from probes.measurements.attention.collector import HeadSums
        from probes.measurements.attention.links import text_links

        if options.segments == "two":
            return HeadSums({}, of_words=False)
        return HeadSums(text_links((*corpus.splits["dev"], *corpus.splits["test"])))

    def compute(self, context: CorpusContext) -> Found[Findings]:
        """Average what was collected, choose heads on dev, and score them on test."""
        from probes.measurements.attention.measure import measure

        return measure(context)

    def numbers(self, record: Record[Findings]) -> Iterator[Row]:
        """A number for each layer, head, measure and feature."""
        return numbers(record.payload)

    def beside(self, record: Record[Findings]) -> Iterator[Mapping[str, Place]]:
        """The baseline of each number, and of heads that were chosen on dev chance and p-value."""
        return beside(record.payload)

    def tables(self, record: Record[Findings]) -> Sequence[Table]:
        """Statistics by layer, patterns, chosen heads."""
        return tables(record)

    def charts(self, records: Mapping[str, Record[Findings]]) -> Sequence[Chart]:
        """Grids of layers and heads."""
        return charts(records)
