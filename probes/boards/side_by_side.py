"""Models side by side on one corpus: layer curves, and differences that can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from probes.boards.board import Board, Candidate
from probes.boards.findings import changed_claims, expected_layers
from probes.boards.pairs import Replicates, pair_of, replicates_of
from probes.records.payload import LayerResult
from probes.records.table import Grid
from probes.records.titles import task_head
from probes.statistics.formatting import shown
from probes.statistics.significance import paired_tests

_BARS = "▁▂▃▄▅▆▇█"


def grids(board: Board, models: Sequence[str]) -> Iterator[Grid]:
    """The tables of one board.

    Args:
        models: their names, the one first that the others are compared with.
    """
    by_task = {
        task: {c.name: c for c in found if c.name in models} for task, found in board.tasks.items()
    }
    shared = {
        task: [found[name] for name in models if name in found]
        for task, found in by_task.items()
        if models[0] in found and len(found) > 1
    }
    replicates = {
        c.path: replicates_of(c, [layer.layer for layer in c.result.layers])
        for found in shared.values()
        for c in found
    }
    if shared:
        yield _best_layers(board, shared, replicates)
    for task, candidates in shared.items():
        yield _curve(board, task, candidates, replicates)
    present = [name for name in models if any(name in by_task[task] for task in shared)]
    yield from expected_layers(board, {task: by_task[task] for task in shared}, present)
    common = [task for task, found in shared.items() if len(found) == len(present)]
    yield from changed_claims(board, common, present)
    apart = [(c.result.task.name, c.name, why) for c, why in board.apart if c.name in models]
    if apart:
        yield Grid(
            f"{board.setting} · listed apart", ("task", "model", "why it is not compared"),
            tuple(sorted(apart)), left=3,
        )  # fmt: skip


def _best_layers(
    board: Board,
    shared: Mapping[str, Sequence[Candidate]],
    replicates: Replicates,
) -> Grid:
    pairs = [
        pair_of(first, first.result.best_layer, other, other.result.best_layer, replicates)
        for first, *others in shared.values()
        for other in others
    ]
    tests = iter(zip(pairs, paired_tests([pair.difference for pair in pairs]), strict=True))
    rows = []
    for candidates in shared.values():
        for candidate in candidates:
            result, layer = candidate.result, candidate.result.best_layer
            texts = ("", "")
            if candidate is not candidates[0]:
                pair, test = next(tests)
                texts = pair.texts(*test)
            rows.append(
                (
                    task_head(result, result.task.metric) if candidate is candidates[0] else "",
                    candidate.name,
                    _sparkline(candidate, candidates),
                    f"{layer.layer}/{result.model.n_layers}",
                    shown(candidate.score, result.task.metric),
                    *texts,
                )
            )
    return Grid(
        f"{board.setting} · best layers",
        ("task", "model", "layers 0–L", "best", "score", "less the first", "p"),
        tuple(rows),
        left=3,
        notes=(
            "Best layers are chosen on dev, scores are test's. 95 % intervals resample test "
            "sentences, the same for both models; p is Holm-corrected over this table.",
        ),
    )


def _sparkline(candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    """The layer curve, all models of a task on one scale."""
    all_scores = [s for c in candidates for s in map(c.result.score, c.result.layers)]
    known = [s for s in all_scores if s is not None]
    low, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    scores = map(candidate.result.score, candidate.result.layers)
    return "".join(" " if s is None else _BARS[round(7 * (s - low) / span)] for s in scores)


def _curve(
    board: Board,
    task: str,
    candidates: Sequence[Candidate],
    replicates: Replicates,
) -> Grid:
    """Scores over relative depth, and the differences where two models have a layer there."""
    at = {c.name: _by_depth(c) for c in candidates}
    first, *others = candidates
    depths = sorted({depth for layers in at.values() for depth in layers})
    common = {
        c.name: [d for d in depths if d in at[first.name] and d in at[c.name]] for c in others
    }
    pairs = {
        (c.name, d): pair_of(first, at[first.name][d], c, at[c.name][d], replicates)
        for c in others
        for d in common[c.name]
    }
    tests = paired_tests([pair.difference for pair in pairs.values()])
    said = {key: pair.texts(*test) for (key, pair), test in zip(pairs.items(), tests, strict=True)}
    rows = []
    for depth in depths:
        row = [f"{float(depth):.2f}"]
        for candidate in candidates:
            row.append(_score_at(candidate, at[candidate.name].get(depth)))
            if candidate is not first:
                row += said.get((candidate.name, depth), ("", ""))
        rows.append(tuple(row))
    heads = ["depth", first.name]
    for candidate in others:
        heads += [candidate.name, "less the first", "p"]
    return Grid(
        f"{board.setting} · {task_head(first.result, first.result.task.metric)} by relative depth",
        tuple(heads),
        tuple(rows),
        notes=("★ best layer on dev. p is Holm-corrected over this table.",),
    )


def _by_depth(candidate: Candidate) -> dict[Fraction, LayerResult]:
    n_layers = candidate.result.model.n_layers
    return {Fraction(layer.layer, n_layers): layer for layer in candidate.result.layers}


def _score_at(candidate: Candidate, layer: LayerResult | None) -> str:
    if layer is None:
        return ""
    result = candidate.result
    mark = "★" if layer.layer == result.best_number else " "
    return f"{shown(result.score(layer), result.task.metric)}{mark}"
