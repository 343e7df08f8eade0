"""The measurement `attention`. docs/attention.md explains each number and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from probes.families.attention.heads import numbers
from probes.families.attention.pictures import VIEWS
from probes.families.attention.tables import choice_tables, pattern_table
from probes.measurements.measurement import Found, NoOptions, Request, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import Extent, Record, subject_title
from probes.tables.table import Table

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.context import ModelContext


def blocks(request: Request) -> Extent:
    """All requested layers except 0, which has no heads."""
    return dict.fromkeys((layer for layer in request.layers if layer), 1)


def head_view(corpus: Corpus, options: NoOptions) -> View:
    """Sentences of dev and test."""
    from probes.extraction.views import plain_text, view_over

    sentences = (*corpus.splits["dev"], *corpus.splits["test"])
    return view_over([plain_text(sentence) for sentence in sentences], "plain")


def head_sums(corpus: Corpus, layers: Sequence[int], options: NoOptions) -> Collector:
    """The collector of sums over maps, which keeps all layers."""
    from probes.families.attention.collector import HeadSums

    return HeadSums()


def _tables(record: Record) -> Sequence[Table]:
    """Tables of patterns and of chosen heads."""
    title = f"{subject_title(record)} · attention"
    return [pattern_table(f"{title} · patterns", record.rows), *choice_tables(title, record)]


@measurement(
    "attention",
    version=2,
    csv_name="heads",
    shares_arrays=True,
    extent=blocks,
    view=head_view,
    collector=head_sums,
    more_tables=_tables,
    csv_lines=lambda record: numbers(record.rows),
    views=(
        Pivot(
            "mean over heads, %",
            ("entropy", "first", "separators", "feature", "offset"),
            columns=("metric", "feature"),
            where={"feature": [None, "punctuation", -1, 0, 1], "baseline": [None, "uniform"]},
            mean="head",
            places={
                **{"first": "first\ntoken", "feature": "to", "offset": "to"},
                **{"punctuation": "punct.", -1: "previous", 0: "self", 1: "next"},
            },
        ),
        Pivot(
            "to words, mean over heads, %",
            ("feature",),
            columns=("feature",),
            where={
                "feature": ["nouns", "verbs", "pronouns", "subjects", "objects", "negation"],
                "baseline": [None, "uniform"],
            },
            mean="head",
            note="Attention from a sentence's tokens to the word of this kind that receives most, "
            "averaged over sentences with such a word.",
        ),
        *VIEWS,
    ),
)
def attention(context: ModelContext) -> Found:
    """Attention of heads: positions, patterns, relations, trees.

    `probes.families.attention.heads` describes the rows. Rows of ``class`` name the class in
    ``feature``. Facts count the texts of each split (``test_texts``, ``test_words``,
    ``test_too_long``).

    Arrays: ``test_sums``, ``test_counts``, ``test_baseline_sums`` (choices, sentences) are the
    parts of the chosen heads' scores and baselines, in the order of the choices; a score is
    Σ sums / Σ counts. ``test_clusters`` (sentences,) is the document of each sentence, or the
    sentence itself.
    ``mean_maps`` (layers, heads, tokens, tokens) are means over texts of one length, if any; rows
    attend to columns.
    """
    from probes.families.attention.measure import measure

    return measure(context)
