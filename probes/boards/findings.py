"""What models' results on one corpus say beyond scores: expected layers, claims that change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from probes.boards.board import Board, Candidate
from probes.boards.claims.literature import CAVEAT, CLAIMS
from probes.boards.claims.report import make_reports
from probes.boards.pairs import NOTHING
from probes.records.payload import Estimate
from probes.records.table import Grid


def expected_layers(
    board: Board, by_task: Mapping[str, Mapping[str, Candidate]], models: Sequence[str]
) -> Iterator[Grid]:
    """Expected layers by task, if any result has them."""
    rows = []
    for task, found in by_task.items():
        places = {name: c.result.localisation for name, c in found.items()}
        if any(places.values()):
            cells = [
                _estimate(x.expected_layer) if (x := places.get(n)) else NOTHING for n in models
            ]
            rows.append((task, *cells))
    if rows:
        depths = {
            c.name: c.result.model.n_layers for found in by_task.values() for c in found.values()
        }
        heads = ("task", *(f"{name} (L = {depths[name]})" for name in models))
        note = "Mean layer of the gains of mixes of layers 0 to k (Tenney et al. 2019a)."
        yield Grid(f"{board.setting} · expected layer", heads, tuple(rows), notes=(note,))


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"none: {estimate.missing}" if estimate.missing else NOTHING
    text = f"{estimate.value:.2f}"
    if estimate.interval is not None:
        low, high = estimate.interval
        text += f" [{low:.2f}, {high:.2f}]".replace("-", "−")
    return text


def changed_claims(board: Board, tasks: Collection[str], models: Sequence[str]) -> Iterator[Grid]:
    """The claims on which models differ, by what they say of the same tasks."""
    verdicts: dict[str, list[str]] = {claim.name: [] for claim in CLAIMS}
    for name in models:
        own = {c.path: c.result for task in tasks for c in board.tasks[task] if c.name == name}
        reports = make_reports(own, board.probe)
        if not reports:
            return
        for claim in CLAIMS:
            verdicts[claim.name].append(reports[0].findings[claim.name].verdict)
    if not models:
        return
    rows = tuple(
        (claim.statement, *verdicts[claim.name])
        for claim in CLAIMS
        if len(set(verdicts[claim.name])) > 1
    )
    tested = sum(any(v != "not tested" for v in found) for found in verdicts.values())
    note = (
        f"Of {len(CLAIMS)} claims {tested} could be tested on {', '.join(tasks)}; on "
        f"{tested - len(rows)} of these the verdicts are the same. {CAVEAT}"
    )
    title = f"{board.setting} · claims that change"
    yield Grid(title, ("claim", *models), rows, left=1 + len(models), notes=(note,))
