"""How much the heads of a model differ from those of another, such as before fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probes.measurements.attention.attention import blocks, head_sums, head_view
from probes.measurements.attention.options import AttentionOptions, ChangeOptions
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.context import PairContext


def _view(corpus: Corpus, options: Any) -> View:
    """The texts that are stored for `attention`, so that no others are."""
    return head_view(corpus, AttentionOptions())


def _collector(corpus: Corpus, layers: Sequence[int], options: Any) -> Collector:
    """As of `attention`; see `_view`."""
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

    The change of each head from the first model of the run, on a sample of test sentences.

    As in Kovaleva et al. (2019), section 4.3, without padding; of each sentence the cosine of the
    two maps, and their Jensen–Shannon divergence averaged over tokens. Models need the same numbers
    of layers and heads and the same tokens. Rows without a head are means over those of a layer.

    Facts: ``sentences`` that are compared, ``left_out`` those that do not fit into the window of
    both models, and what intervals have ``resampled``.

    Raises:
        NotServedError: heads do not correspond, tokens differ, or no sentence fits into the
            window.
    """
    from probes.measurements.attention.comparing import changes_of

    return changes_of(context, context.options.sentences)
