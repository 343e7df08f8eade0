"""Models side by side on one corpus: layers, expected layers, and claims that they differ on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from probes.boards.board import Board, Candidate
from probes.boards.claims.claim_reports import CAVEAT, make_reports
from probes.boards.claims.table import all_claims
from probes.boards.paired import (
    Difference,
    LayerScore,
    paired_differences,
    readable_layer_scores,
    tested_note,
)
from probes.measurements.cells import counted_head, estimate_cell, score_cell
from probes.measurements.measurement import LOCALISATION
from probes.statistics.significance import all_pairs
from probes.tables.table import BARS, Cell, Table, TableRow

Scores = Mapping[Path, Mapping[int, LayerScore]]
"""By the path of a result and the number of a layer."""


def side_by_side_tables(board: Board, models: Sequence[str]) -> Iterator[Table]:
    """The tables of one board.

    Args:
        models: their names; the others are compared with the first.
    """
    by_task = {
        task: {c.name: c for c in found if c.name in models} for task, found in board.tasks.items()
    }
    shared = {
        task: [found[name] for name in models if name in found]
        for task, found in by_task.items()
        if models[0] in found and len(found) > 1
    }
    scores = {
        c.path: {x.layer: x for x in readable_layer_scores(c.result, c.path, c.result.layers)}
        for found in shared.values()
        for c in found
    }
    if shared:
        yield _best_layers(board, shared, scores)
    for candidates in shared.values():
        yield _by_relative_depth(board, candidates, scores)
    present = [name for name in models if any(name in by_task[task] for task in shared)]
    yield from _expected_layers(board, {task: by_task[task] for task in shared}, present)
    common = [task for task, found in shared.items() if len(found) == len(present)]
    yield from _changed_claims(board, common, present)
    apart = [(c.result.task.name, c.name, why) for c, why in board.apart if c.name in models]
    if apart:
        yield Table(
            f"{board.setting} · listed apart",
            ("task", "model", "why it is not compared"),
            tuple(TableRow.of(*texts) for texts in sorted(apart)),
            left=3,
            repeated=2,
        )


def _best_layers(board: Board, shared: Mapping[str, Sequence[Candidate]], scores: Scores) -> Table:
    def at_best(candidate: Candidate) -> LayerScore:
        return scores[candidate.path][candidate.result.best_layer]

    rows = []
    shown: list[Difference] = []
    for candidates in shared.values():
        pairs = all_pairs(len(candidates))
        # Those with the first come first.
        found = paired_differences([at_best(c) for c in candidates], pairs)
        shown += found[: len(candidates) - 1]
        differences = iter(found)
        for candidate in candidates:
            result, first = candidate.result, candidate is candidates[0]
            rows.append(
                TableRow.of(
                    counted_head(result) if first else "",
                    candidate.name,
                    _sparkline(candidate, candidates),
                    f"{result.best_layer}/{result.model.n_layers}",
                    score_cell(candidate.score, None, result.task.metric),
                    *(("", "") if first else next(differences).cells),
                )
            )
    return Table(
        f"{board.setting} · best layers",
        ("task", "model", "layers 0–L", "best", "score", "difference from the first model", "p"),
        tuple(rows),
        left=3,
        repeated=2,
        notes=(f"Best layers are chosen on dev; scores are on test. {tested_note(shown)}",),
    )


def _sparkline(candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    """The layer curve, all models of a task on one scale."""
    all_scores = [s for c in candidates for s in map(c.result.score, c.result.layers)]
    known = [s for s in all_scores if s is not None]
    low, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    scores = map(candidate.result.score, candidate.result.layers)
    return "".join(" " if s is None else BARS[round(7 * (s - low) / span)] for s in scores)


def _by_relative_depth(board: Board, candidates: Sequence[Candidate], scores: Scores) -> Table:
    """Scores by relative depth, with differences wherever two models have a layer there."""
    at = {c.name: _by_depth(c) for c in candidates}
    first, *others = candidates
    depths = sorted({depth for layers in at.values() for depth in layers})
    cells = [(c, depth) for c in candidates for depth in depths if depth in at[c.name]]
    place = {(c.name, depth): i for i, (c, depth) in enumerate(cells)}
    pairs = {
        (c.name, depth): (place[first.name, depth], place[c.name, depth])
        for c, depth in cells
        if c is not first and (first.name, depth) in place
    }
    found = paired_differences(
        [scores[c.path][at[c.name][depth]] for c, depth in cells], list(pairs.values())
    )
    cells_of = {key: difference.cells for key, difference in zip(pairs, found, strict=True)}
    rows = []
    for depth in depths:
        row: list[str | Cell] = [f"{float(depth):.2f}"]
        for candidate in candidates:
            row.append(_score_at(candidate, at[candidate.name].get(depth)))
            if candidate is not first:
                row += cells_of.get((candidate.name, depth), ("", ""))
        rows.append(TableRow.of(*row))
    heads = ["depth", first.name]
    for candidate in others:
        heads += [candidate.name, "difference from the first model", "p"]
    return Table(
        f"{board.setting} · {counted_head(first.result)} by relative depth",
        tuple(heads),
        tuple(rows),
        notes=("★ best layer on dev. p is corrected by max-T over this table.",),
    )


def _by_depth(candidate: Candidate) -> dict[Fraction, int]:
    n_layers = candidate.result.model.n_layers
    return {Fraction(layer, n_layers): layer for layer in candidate.result.layers}


def _score_at(candidate: Candidate, layer: int | None) -> Cell:
    if layer is None:
        return Cell()
    result = candidate.result
    best = layer == result.best_number
    return score_cell(result.score(layer), None, result.task.metric, best=best)


def _expected_layers(
    board: Board, by_task: Mapping[str, Mapping[str, Candidate]], models: Sequence[str]
) -> Iterator[Table]:
    """Expected layers by task, if any result has one."""
    rows = []
    for task, found in by_task.items():
        measured = {name: c.result.row(LOCALISATION, "expected_layer") for name, c in found.items()}
        if any(measured.values()):
            rows.append(TableRow.of(task, *(estimate_cell(measured.get(x)) for x in models)))
    if rows:
        depths = {
            c.name: c.result.model.n_layers for found in by_task.values() for c in found.values()
        }
        heads = ("task", *(f"{name} (L = {depths[name]})" for name in models))
        note = "Mean layer of the gains of mixes of layers 0 to k (Tenney et al. 2019a)."
        yield Table(f"{board.setting} · expected layer", heads, tuple(rows), notes=(note,))


def _changed_claims(board: Board, tasks: Collection[str], models: Sequence[str]) -> Iterator[Table]:
    """The claims on which models differ, tested on the same tasks."""
    verdicts: dict[str, list[str]] = {claim.name: [] for claim in all_claims()}
    for name in models:
        own = {c.path: c.result for task in tasks for c in board.tasks[task] if c.name == name}
        reports = make_reports(own, board.probe)
        if not reports:
            return
        for claim in all_claims():
            verdicts[claim.name].append(reports[0].outcomes[claim.name].verdict)
    if not models:
        return
    rows = tuple(
        TableRow.of(claim.statement, *verdicts[claim.name])
        for claim in all_claims()
        if len(set(verdicts[claim.name])) > 1
    )
    tested = sum(any(v != "not tested" for v in found) for found in verdicts.values())
    note = (
        f"Of {len(all_claims())} claims {tested} could be tested on {', '.join(tasks)}; on "
        f"{tested - len(rows)} of these the verdicts are the same. {CAVEAT}"
    )
    title = f"{board.setting} · claims that change"
    if rows:
        yield Table(title, ("claim", *models), rows, left=1 + len(models), notes=(note,))
