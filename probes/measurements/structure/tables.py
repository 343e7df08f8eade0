"""Tables of structure."""

from __future__ import annotations

from collections.abc import Iterator

from probes.common.wording import counted
from probes.measurements.cells import layer_marks, score_cell
from probes.measurements.structure.payload import BINS, LIKE, METRICS, Findings
from probes.measurements.structure.trees import DRAWS
from probes.records.record import Record
from probes.records.table import MARKS, NOTHING, Cell, Table, TableRow
from probes.records.titles import TREES, subject_title
from probes.records.values import Estimate
from probes.statistics.formatting import shown_sd
from probes.statistics.partition import FEWEST
from probes.statistics.rank_correlation import NSPR_LENGTHS
from probes.statistics.significance import borderline


def tables(record: Record[Findings]) -> list[Table]:
    """Scores by layer, UUAS by rank, recall by the distance of words."""
    found, title = record.payload, f"{subject_title(record)} · structure"
    title += f" · {TREES}" * record.corpus.other_trees
    return [_scores(title, found), _by_rank(title, found), _by_distance(title, found)]


def _scores(title: str, found: Findings) -> Table:
    rows = []
    for control in found.controls:
        layer, scores = control.layer, found.cell(control.layer, found.reported).scores["test"]
        rows.append(
            TableRow.of(
                str(layer),
                *(_marked(found, layer, metric, scores[metric]) for metric in METRICS),
                _percent(control.uuas["test"]),
                _percent(control.selectivity["test"]),
                ends_section=layer == found.layers[-1],
            )
        )
    for layer in found.layers:
        identity = found.cell(layer, None).scores["test"]
        cells = (score_cell(identity[x].value, None, LIKE[x]) for x in METRICS)
        rows.append(TableRow.of(f"identity, layer {layer}", *cells, NOTHING, NOTHING, faint=True))
    chain, control_chain = found.chain["test"], found.control_chain["test"]
    rest = [NOTHING] * (len(METRICS) - 1)
    rows.append(
        TableRow.of(
            "chain of neighbours",
            _percent(chain),
            *rest,
            _percent(control_chain),
            NOTHING,
            faint=True,
        )
    )
    heads = ("layer", *METRICS.values(), "UUAS on\ncontrol trees", "selectivity")
    return Table(
        f"{title} · rank {found.reported} · test",
        heads,
        tuple(rows),
        notes=tuple(_notes(found)),
        repeated=1,
    )


def _marked(found: Findings, layer: int, metric: str, estimate: Estimate) -> Cell:
    best = found.best[metric] == layer and estimate.value is not None
    return score_cell(
        estimate.value,
        estimate.interval,
        LIKE[metric],
        value=estimate.value,
        **layer_marks(found.p_best[metric].get(layer), best=best),
    )


def _percent(estimate: Estimate) -> Cell:
    return score_cell(estimate.value, estimate.interval, "accuracy", value=estimate.value)


def _notes(found: Findings) -> Iterator[str]:
    if found.clusters < FEWEST:
        yield f"No intervals and no tests: fewer than {FEWEST} test {found.resampled}."
    else:
        spreads = ", ".join(
            f"{METRICS[metric]} {shown_sd(spread.sd, LIKE[metric])}"
            for metric, spread in found.spread.items()
            if spread
        )
        yield (
            f"± half a 95 % interval over test {found.resampled}. Tests between layers know of the "
            f"variance of training, too (standard deviation: {spreads}), and intervals of control "
            f"trees and selectivity of that of draws{_over_draws(found)}."
        )
    tests = [p for each in found.p_best.values() for p in each.values() if p is not None]
    if borderline(tests).any():
        yield f"{' '.join(MARKS['borderline'])}."
    yield (
        "UUAS: gold edges between words that are not punctuation, found by a spanning tree. DSpr, "
        "NSpr: rank correlation of distances and of depths, in sentences of "
        f"{NSPR_LENGTHS.start} to {NSPR_LENGTHS.stop - 1} words. Control trees: each word form "
        f"depends on the first word or on the one before, as drawn; selectivity: UUAS less the "
        f"mean on control trees of {DRAWS} draws. Identity: the vectors without a probe."
    )
    for split, counts in found.counts.items():
        parts = [
            f"{counts.sentences:,} sentences, {counts.words:,} words",
            *(f"{n:,} left out, {why}" for why, n in counts.left_out.items()),
        ]
        if counts.without_edges:
            parts.append(
                f"{counts.without_edges:,} with fewer than two words that are not punctuation, not "
                "in UUAS"
            )
        if counts.punctuation_roots:
            roots = counted(counts.punctuation_roots, "root")
            parts.append(
                f"{roots} that {'is' if roots == '1 root' else 'are'} punctuation, an error"
            )
        yield f"{split}: {'; '.join(parts)}."


def _over_draws(found: Findings) -> str:
    sds = [x.spread["test"].sd for x in found.controls if x.spread["test"]]
    low, high = (shown_sd(of(sds, default=0.0), LIKE["uuas"]) for of in (min, max))
    return f" (standard deviation: {low} to {high})" if sds else ""


def _by_rank(title: str, found: Findings) -> Table:
    rows = [
        TableRow.of(
            str(layer),
            *(_percent(found.cell(layer, rank).scores["test"]["uuas"]) for rank in found.ranks),
        )
        for layer in found.layers
    ]
    return Table(
        f"{title} · UUAS by rank · test",
        ("layer", *(f"rank {rank}" for rank in found.ranks)),
        tuple(rows),
        repeated=1,
    )


def _by_distance(title: str, found: Findings) -> Table:
    best = found.best["uuas"]
    rows = [
        TableRow.of(
            "chain of neighbours" if recall.layer is None else f"layer {recall.layer}",
            *map(_percent, recall.edges.values()),
            faint=recall.layer is None,
        )
        for recall in found.recall
        if recall.layer in (best, None)
    ]
    words = [
        f"{name} {'word' if name == '1' else 'words'}\n{found.gold_edges[name]:,}" for name in BINS
    ]
    return Table(
        f"{title} · share of gold edges found by the distance of their words · test",
        ("", *words),
        tuple(rows),
        notes=(f"Rank {found.reported}, at the layer that is best in UUAS on dev.",),
    )
