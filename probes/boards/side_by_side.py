"""Models side by side on one corpus: layers, expected layers, and claims that they differ on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from probes.boards.claims.claim_reports import CAVEAT, make_reports
from probes.boards.claims.score_claims import all_claims
from probes.boards.compression import compression_tables
from probes.boards.paired import Difference, differences_from_first, readable_score, tested_note
from probes.boards.rankings import Candidate, Ranking
from probes.measurements.measurement import LOCALISATION
from probes.measurements.table_cells import counted_head, estimate_cell, few_note, score_cell
from probes.tables.table import BARS, Cell, Table, TableRow


def side_by_side_tables(ranking: Ranking, models: Sequence[str]) -> Iterator[Table]:
    """The tables of one ranking.

    Args:
        models: their names; the others are compared with the first.
    """
    by_task = {
        task: {c.name: c for c in cs if c.name in models} for task, cs in ranking.tasks.items()
    }
    shared = {
        task: [cs[name] for name in models if name in cs]
        for task, cs in by_task.items()
        if models[0] in cs and len(cs) > 1
    }
    present = [name for name in models if any(name in by_task[task] for task in shared)]
    if shared:
        yield from compression_tables(ranking.setting, shared, present)
        yield _best_layers_table(ranking, shared)
    yield from _expected_layers(ranking, {task: by_task[task] for task in shared}, present)
    common = [task for task, cs in shared.items() if len(cs) == len(present)]
    yield from _changed_claims(ranking, common, present)
    apart = [(c.result.task.name, c.name, note) for c, note in ranking.apart if c.name in models]
    if apart:
        yield Table(
            f"{ranking.setting} · listed apart",
            ("task", "model", "why it is not compared"),
            tuple(TableRow.of(*texts) for texts in sorted(apart)),
            left=3,
            repeated=2,
        )


def _best_layers_table(ranking: Ranking, shared: Mapping[str, Sequence[Candidate]]) -> Table:
    rows = []
    shown_differences: list[Difference] = []
    for candidates in shared.values():
        differences = differences_from_first([readable_score(c.result) for c in candidates])
        shown_differences += differences
        compared: list[tuple[str | Cell, ...]] = [("", ""), *(x.cells for x in differences)]
        for candidate, cells in zip(candidates, compared, strict=True):
            result, first = candidate.result, candidate is candidates[0]
            rows.append(
                TableRow.of(
                    counted_head(result) if first else "",
                    candidate.name,
                    _sparkline(candidate, candidates),
                    f"{result.best_layer}/{result.model.n_layers}",
                    score_cell(candidate.score, None, result.task.metric),
                    *cells,
                )
            )
    return Table(
        f"{ranking.setting} · best layers",
        ("task", "model", "layers 0–L", "best", "score", "difference", "p"),
        tuple(rows),
        left=3,
        repeated=2,
        notes=(
            "Best layers are chosen on dev; scores are on test; differences are from the first "
            f"model. {tested_note(shown_differences)}",
            *few_note([x.result for cs in shared.values() for x in cs]),
        ),
    )


def _sparkline(candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    """The layer curve, all models of a task on one scale."""
    all_scores = [s for c in candidates for s in map(c.result.score, c.result.layers)]
    known_scores = [s for s in all_scores if s is not None] or [0.0]
    low = min(known_scores)
    # Where all scores are equal, there is no span to divide by.
    span = max(known_scores) - low or 1.0
    scores = map(candidate.result.score, candidate.result.layers)
    return "".join(" " if s is None else BARS[round(7 * (s - low) / span)] for s in scores)


def _expected_layers(
    ranking: Ranking, by_task: Mapping[str, Mapping[str, Candidate]], models: Sequence[str]
) -> Iterator[Table]:
    """Expected layers by task, if any result has one."""
    rows = []
    for task, cs in by_task.items():
        measured = {name: c.result.row(LOCALISATION, "expected_layer") for name, c in cs.items()}
        if any(measured.values()):
            rows.append(TableRow.of(task, *(estimate_cell(measured.get(x)) for x in models)))
    if rows:
        depths = {c.name: c.result.model.n_layers for cs in by_task.values() for c in cs.values()}
        heads = ("task", *(f"{name} (L = {depths[name]})" for name in models))
        note = "Mean layer of the gains of mixes of layers 0 to k (Tenney et al. 2019a)."
        yield Table(f"{ranking.setting} · expected layer", heads, tuple(rows), notes=(note,))


def _changed_claims(
    ranking: Ranking, tasks: Collection[str], models: Sequence[str]
) -> Iterator[Table]:
    """The claims on which models differ, tested on the same tasks."""
    verdicts: dict[str, list[str]] = {claim.name: [] for claim in all_claims()}
    for name in models:
        results = {c.path: c.result for t in tasks for c in ranking.tasks[t] if c.name == name}
        reports = make_reports(results, ranking.probe)
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
    tested = sum(any(v != "not tested" for v in x) for x in verdicts.values())
    note = (
        f"Of {len(all_claims())} claims {tested} could be tested on {', '.join(tasks)}; on "
        f"{tested - len(rows)} of these the verdicts are the same. {CAVEAT}"
    )
    title = f"{ranking.setting} · claims that change"
    if rows:
        yield Table(title, ("claim", *models), rows, left=1 + len(models), notes=(note,))
