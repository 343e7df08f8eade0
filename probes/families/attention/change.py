"""The measurement `attention_change`: heads of a model compared with those of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probes.families.attention import AttentionOptions, ChangeOptions
from probes.families.attention.attention import blocks, head_sums, head_view
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.context import PairContext


def _view(corpus: Corpus, options: Any) -> View:
    """The texts of `attention`, so that no further ones are stored."""
    return head_view(corpus, AttentionOptions())


def _collector(corpus: Corpus, layers: Sequence[int], options: Any) -> Collector:
    """The collector of `attention`, for the same reason."""
    return head_sums(corpus, layers, AttentionOptions())


@measurement(
    "attention_change",
    of="pair",
    after="attention",
    options=ChangeOptions,
    extent=blocks,
    view=_view,
    collector=_collector,
    views=(
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
            apart="base",
        ),
    ),
)
def attention_change(context: PairContext) -> Found:
    """Change of attention heads between two models; made along with attention.

    Each head is compared with the same head of the run's first model on a sample of test
    sentences: cosine of the two maps, and Jensen–Shannon divergence averaged over tokens (Kovaleva
    et al. 2019, section 4.3, without padding). The models need equal numbers of layers and heads,
    and the same tokens. Rows without a head are means over the heads of a layer.

    Facts: ``sentences`` compared, ``left_out`` because a window is too short, and the unit
    that intervals have ``resampled``.

    Raises:
        NotServedError: heads do not correspond, tokens differ, or no sentence fits.
    """
    from probes.families.attention.comparing import changes_of

    return changes_of(context, context.options.sentences)
