"""Rankings: results that may be ranked together, by corpus, probe family, encoder and site."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from probes.boards.comparable import SAME_COLUMN, SAME_LEADERBOARD, why_apart
from probes.boards.floors import with_floor
from probes.common.grouping import grouped
from probes.data.registered import corpora
from probes.data.splits import DROPPED
from probes.frames.header_columns import values
from probes.records.record import corpus_title
from probes.records.result import Result
from probes.records.values import Interval
from probes.tasks.builtin import group_of_task, table_order
from probes.tasks.task import TaskGroup

KINDS = {False: "bidirectional", True: "causal"}


@dataclass(frozen=True)
class Candidate:
    """One model's result on one task.

    Attributes:
        name: what tables call the model; see `named_candidates`.
        path: the result's JSON file.
        twins: results of random twins on the task, among which those of the floor are chosen.
    """

    name: str
    path: Path
    result: Result
    twins: Sequence[Result] = ()

    @cached_property
    def floored(self) -> bool:
        """Whether it is not significantly above the floor; tested only for what is shown."""
        tested = None if self.random else with_floor(self.result, self.twins)
        return tested is not None and tested.is_floored(self.result.best_layer)

    @property
    def random(self) -> bool:
        """Whether the model is a random twin."""
        return self.result.model.random_seed is not None

    @property
    def score(self) -> float | None:
        """Test score at the best layer on dev."""
        return self.result.score(self.result.best_layer)

    @property
    def interval(self) -> Interval:
        """95 % interval of the score; None without one."""
        return self.result.interval(self.result.best_layer)

    @property
    def ranked(self) -> bool:
        """Whether the score is above the floor, and so has a rank."""
        return not self.random and not self.floored and self.score is not None

    @property
    def flags(self) -> tuple[str, ...]:
        """Remarks on the result."""
        of = {
            "random twin": self.random,
            "not significantly above the floor": self.floored,
            "silver": self.result.silver,
            "limited": self.result.corpus.limited,
            "cut": self.result.view == "cut",
        }
        return tuple(name for name, there in of.items() if there)


@dataclass(frozen=True)
class Ranking:
    """The candidates that may be ranked together, and those that may not.

    Attributes:
        kind: the kind of encoder; empty if both kinds are ranked together.
        site: the part of blocks at which vectors are read; empty for layers.
        setting: corpus, probe and kind in words.
        tasks: candidates that may be ranked together, by task.
        apart: candidates that cannot be compared with these, and why.
    """

    corpus: str
    probe: str
    kind: str
    site: str
    setting: str
    tasks: Mapping[str, tuple[Candidate, ...]]
    apart: tuple[tuple[Candidate, str], ...]


def named_candidates(
    results: Mapping[Path, Result], submission_of: Callable[[Path], object] = lambda path: None
) -> list[Candidate]:
    """The candidates, with names that say revision, pooling or precision where it is needed.

    Args:
        submission_of: where a result was submitted; only the random twins of that place count.
    """
    revisions = defaultdict(set)
    for result in results.values():
        revisions[result.model.name].add((result.model.revision, result.model.digest))
    twins: dict[object, list[Result]] = defaultdict(list)
    for path, result in results.items():
        if result.model.random_seed is not None:
            twins[submission_of(path), result.task.name].append(result)
    candidates = []
    for path, result in results.items():
        model = result.model
        name = model.name
        # Two revisions would share a name, and one of them be taken for a second measurement.
        if len(revisions[name]) > 1:
            name += f"@{(model.revision or model.digest)[:8]}"
        marks = [f"{result.pooling} pooling"] if result.pooling != "mean" else []
        marks += [result.dtype] if result.dtype != "float32" else []
        name += f" ({', '.join(marks)})" if marks else ""
        of_task = twins[submission_of(path), result.task.name]
        candidates.append(Candidate(name, path, result, of_task))
    return candidates


def make_rankings(candidates: Sequence[Candidate], *, together: bool = False) -> list[Ranking]:
    """The rankings, in order of corpus, probe family, kind of encoder and site.

    Args:
        together: whether causal encoders are ranked with bidirectional ones.
    """

    def subject(candidate: Candidate) -> tuple[str, str, str, str]:
        result = candidate.result
        kind = "" if together else KINDS[result.model.causal]
        return result.corpus.name, result.probe.family, kind, result.task.site or ""

    return [_ranking(*key, group) for key, group in sorted(grouped(candidates, subject).items())]


def by_task_group(ranking: Ranking) -> dict[str, Ranking]:
    """The ranking of each group of tasks that it has results of."""
    apart = grouped(ranking.apart, lambda x: group_of_task(x[0].result.task.name))
    groups = {
        group: {task: cs for task, cs in ranking.tasks.items() if group_of_task(task) == group}
        for group in get_args(TaskGroup)
    }
    return {
        group: replace(ranking, tasks=tasks, apart=tuple(apart.get(group, ())))
        for group, tasks in groups.items()
        if tasks or group in apart
    }


def _ranking(
    corpus: str, probe: str, kind: str, site: str, candidates: Sequence[Candidate]
) -> Ranking:
    comparable, apart = _fitting_candidates(candidates, SAME_LEADERBOARD)
    by_task = grouped(comparable, lambda x: x.result.task.name)
    ranked = {}
    for task in sorted(by_task, key=table_order):
        fitting, left_out = _fitting_candidates(by_task[task], SAME_COLUMN)
        apart += left_out
        once: dict[str, Candidate] = {}
        for candidate in fitting:
            if once.setdefault(candidate.name, candidate) is not candidate:
                apart.append((candidate, "measured twice"))
        ranked[task] = tuple(once.values())
    first = comparable[0].result
    words = [corpus_title(first), f"{probe} probe"]
    words += [f"{kind} encoders"] * bool(kind)
    words += [f"output of {site}" if site in ("attention", "mlp") else f"at {site}"] * bool(site)
    return Ranking(corpus, probe, kind, site, " · ".join(words), ranked, tuple(apart))


def _preference(result: Result) -> tuple[Any, ...]:
    """Sort key: shipped corpora first, then whole ones, then results without projection."""
    corpus = result.corpus
    return (
        # However many are on a text of their own under the name of a corpus of the suite.
        corpus.name in corpora and corpora.get(corpus.name).fingerprint == corpus.fingerprint,
        not corpus.limited,
        DROPPED not in corpus.notes,
        result.project is None,
    )


def _reference_result(candidates: Sequence[Candidate], columns: Sequence[str]) -> Result:
    """A result that others have to equal: a preferred one; of equal ones the most frequent."""

    def words(candidate: Candidate) -> tuple[str, ...]:
        return tuple(map(str, values(candidate.result, columns)))

    counts = Counter(map(words, candidates))

    def sort_key(candidate: Candidate) -> tuple[Any, ...]:
        return _preference(candidate.result), counts[words(candidate)], *words(candidate)

    return max(candidates, key=sort_key).result


def _fitting_candidates(
    candidates: Sequence[Candidate], columns: Sequence[str]
) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:
    """The candidates that may stand together; and the others, with what is different."""
    reference = _reference_result(candidates, columns)
    pairs = [(x, why_apart(x.result, reference, columns)) for x in candidates]
    return [x for x, reason in pairs if not reason], [pair for pair in pairs if pair[1]]
