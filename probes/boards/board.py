"""Which results may be ranked together: a board per corpus, probe family and kind of encoder."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.boards.leaderboard_csv import spec_digest
from probes.measurements.current import has_current_numerics
from probes.measurements.plugin_keys import as_loaded, in_words
from probes.records.probe_spec import PROBES
from probes.records.result import Result
from probes.records.titles import corpus_title
from probes.tasks.builtin import tasks

KINDS = {False: "bidirectional", True: "causal"}


@dataclass(frozen=True)
class Candidate:
    """One model's result on one task.

    Attributes:
        name: what tables call the model; see `named`.
        path: of its JSON.
    """

    name: str
    path: Path
    result: Result

    @property
    def random(self) -> bool:
        """Whether the model is a random twin."""
        return self.result.model.random_seed is not None

    @property
    def score(self) -> float | None:
        """Test score at the best layer on dev."""
        return self.result.score(self.result.best_layer)

    @property
    def flags(self) -> tuple[str, ...]:
        """What sets the result apart from others."""
        of = {
            "random twin": self.random,
            "silver": self.result.silver,
            "quick": self.result.quick,
            "limited": self.result.corpus.limited,
            "cut": self.result.view == "cut",
        }
        return tuple(name for name, there in of.items() if there)


@dataclass(frozen=True)
class Board:
    """What may be ranked together, and what may not.

    Attributes:
        kind: of encoder; empty if both are together.
        setting: corpus, probe and kind in words.
        tasks: by name, candidates of one version, view, text, probe and projection.
        apart: candidates that cannot be compared with these, and why.
    """

    corpus: str
    probe: str
    kind: str
    setting: str
    tasks: Mapping[str, tuple[Candidate, ...]]
    apart: tuple[tuple[Candidate, str], ...]


def named(results: Mapping[Path, Result]) -> list[Candidate]:
    """Candidates, models of one name told apart by revision; other pooling or precision is said."""
    revisions = defaultdict(set)
    for result in results.values():
        revisions[result.model.name].add((result.model.revision, result.model.digest))
    candidates = []
    for path, result in results.items():
        model = result.model
        name = model.name
        if len(revisions[name]) > 1:
            name += f"@{(model.revision or model.digest)[:8]}"
        marks = [f"{result.pooling} pooling"] * (result.pooling != "mean")
        marks += [result.dtype] * (result.dtype != "float32")
        candidates.append(
            Candidate(f"{name} ({', '.join(marks)})" if marks else name, path, result)
        )
    return candidates


def make_boards(candidates: Sequence[Candidate], *, together: bool = False) -> list[Board]:
    """The boards, corpora by name.

    Args:
        together: rank causal encoders with bidirectional ones.
    """
    groups: dict[tuple[str, str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        result = candidate.result
        kind = "" if together else KINDS[result.model.causal]
        groups[result.corpus.name, result.probe.family, kind].append(candidate)
    return [_board(*key, groups[key]) for key in sorted(groups)]


def _board(corpus: str, probe: str, kind: str, candidates: Sequence[Candidate]) -> Board:
    setting = _foremost(candidates, _setting)
    alike, apart = _sifted(candidates, setting, _setting)
    by_task: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in alike:
        by_task[candidate.result.task.name].append(candidate)
    known = list(tasks)
    order = [*known, *sorted(by_task.keys() - set(known))]
    ranked = {}
    for task in sorted(by_task, key=order.index):
        form = _foremost(by_task[task], _form)
        fitting, others = _sifted(by_task[task], form, _form)
        apart += others
        once: dict[str, Candidate] = {}
        for candidate in fitting:
            if once.setdefault(candidate.name, candidate) is not candidate:
                apart.append((candidate, "measured twice"))
        ranked[task] = tuple(once.values())
    first = alike[0].result
    words = [corpus_title(first), f"{probe} probe"]
    words += [f"{kind} encoders"] * bool(kind)
    return Board(corpus, probe, kind, " · ".join(words), ranked, tuple(apart))


def _setting(result: Result) -> dict[str, Any]:
    """What has to be the same throughout a board, in words that tell two of them apart."""
    limit = f"limit {result.corpus.limit}" if result.corpus.limited else "whole"
    return {
        "corpus": f"{limit}, fingerprint {result.corpus.fingerprint[:8]}",
        "probe specification": spec_digest(result.probe),
        "projection": "none" if result.project is None else f"{result.project} dimensions",
        "numerics": "of this version" if has_current_numerics(result) else "of another version",
    }


def _form(result: Result) -> dict[str, Any]:
    """What else has to be the same within a task."""
    return {
        "task version": result.task.version,
        "view": result.view,
        "source": in_words(result.plug_ins) or "of the suite",
    }


def _preference(result: Result) -> tuple[Any, ...]:
    """Foremost is what this version would compute, from whole corpora, without projection."""
    name = result.task.name
    version = tasks.get(name).version if name in tasks else None
    return (
        has_current_numerics(result),
        result.probe == PROBES.get(result.probe.family),
        not result.corpus.limited,
        result.project is None,
        result.task.version == version,
        as_loaded(result.task, result.probe.family, result.plug_ins),
    )


def _foremost(candidates: Sequence[Candidate], of: Any) -> dict[str, Any]:
    """The setting or form to rank in: the preferred one; of equal ones the most frequent."""
    counts = Counter(tuple(of(c.result).values()) for c in candidates)

    def place(candidate: Candidate) -> tuple[Any, ...]:
        values = tuple(of(candidate.result).values())
        return _preference(candidate.result), counts[values], *map(str, values)

    found: dict[str, Any] = of(max(candidates, key=place).result)
    return found


def _sifted(
    candidates: Sequence[Candidate], wanted: Mapping[str, Any], of: Any
) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:
    """Those that are as wanted; and the others, with what is different."""
    alike, apart = [], []
    for candidate in candidates:
        found = of(candidate.result)
        why = [f"{k} {found[k]}, not {wanted[k]}" for k in wanted if found[k] != wanted[k]]
        if why:
            apart.append((candidate, "; ".join(why)))
        else:
            alike.append(candidate)
    return alike, apart
