"""Structural probes: do distances and lengths of projected vectors show the tree of a sentence?

After Hewitt & Manning (2019). docs/structure.md says what each number is, and when not to trust it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, Field

from probes.common.wording import names_in
from probes.measurements.measurement import CorpusMeasurement, Found
from probes.measurements.structure.charts import FIGURES, charts
from probes.measurements.structure.numbers import numbers
from probes.measurements.structure.payload import Findings
from probes.measurements.structure.tables import tables
from probes.records.base import Frozen
from probes.records.charts import Chart
from probes.records.record import Record
from probes.records.row import Row
from probes.records.table import Table

if TYPE_CHECKING:
    from probes.measurements.corpus_context import CorpusContext

REPORTED = 64
"""The rank of controls, tests and predicted trees, or the next lower one that is asked for."""


def _ranks(text: str) -> str:
    """Ranks in ascending order, each once."""
    names = names_in(text)
    if not names or not all(name.isdecimal() and int(name) for name in names):
        raise ValueError("give whole numbers from 1 on, separated by commas")
    return ",".join(map(str, sorted({int(name) for name in names})))


class Options(Frozen):
    """What can be set."""

    ranks: Annotated[str, AfterValidator(_ranks)] = Field(
        default="1,2,4,8,16,32,64,128", description="ranks of the probes"
    )

    def up_to(self, hidden_size: int) -> list[int]:
        """The ranks, with the hidden size in the place of all that are above it."""
        return sorted({min(int(rank), hidden_size) for rank in self.ranks.split(",")})


class Structure(CorpusMeasurement[Findings]):
    """Distance and depth probes of every rank on every layer.

    Probes are fitted with Adam for ten epochs, with a learning rate that falls to 0; of ten states
    that with the least dev loss counts. See `probes.measurements.structure.fitting`.

    Arrays beside the record, for dev and test: ``test_hits`` (layers, ranks, sentences, bins), gold
    edges found by distance of both words; ``test_dspr``, ``test_roots``, ``test_nspr`` (layers,
    ranks, sentences); ``test_control_hits`` (layers, draws, sentences, bins);
    ``test_control_edges`` (draws, sentences, bins); ``test_chain_hits``, ``test_edges`` (sentences,
    bins); ``test_sentences`` (their numbers in the split), ``test_lengths``, ``test_clusters``
    (sentences,). ``layers`` and ``ranks`` name the axes, rank 0 being the vectors themselves.
    ``trees`` (words of test,) are the trees predicted by the reported rank at the layer that is
    best on dev: the head of each word within its sentence, oriented from the predicted root, -1
    for the root, -2 for punctuation and for sentences that are left out.

    Parameters: ``distance.layer-03.rank-064`` and ``depth.layer-03.rank-064``, (rank, hidden size)
    each, to be applied to the model's vectors.
    """

    name = "structure"
    version = 2
    summary = "structural probes: trees in distances and lengths of projected vectors, by rank"
    payload: ClassVar[type[Findings]] = Findings
    options = Options
    figures = FIGURES

    def missing(self, layers: frozenset[str]) -> str:
        """Heads and parts of speech are needed."""
        lacking = [name for name in ("heads", "upos") if name not in layers]
        return f"it has no {' and no '.join(lacking)}" if lacking else ""

    def compute(self, context: CorpusContext) -> Found[Findings]:
        """Fit every layer's probes at once, then score them."""
        from probes.measurements.structure.measure import measure

        ranks = context.options.up_to(context.model.hidden_size)
        return measure(context, ranks, max([x for x in ranks if x <= REPORTED] or ranks[:1]))

    def numbers(self, record: Record[Findings]) -> Iterator[Row]:
        """All scores on dev and test, by layer and rank."""
        return numbers(record.payload)

    def tables(self, record: Record[Findings]) -> Sequence[Table]:
        """Scores by layer, UUAS by rank, recall by the distance of words."""
        return tables(record)

    def charts(self, records: Mapping[str, Record[Findings]]) -> Sequence[Chart]:
        """UUAS by rank, and scores by layer."""
        return charts(records)
