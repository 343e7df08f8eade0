"""Interchange of the last token's state between texts or chats of two classes.

Each base is a test text with a prompt behind it; its source is a random one of the other class. The
answers are given, one for each class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.examples import NotServedError
from probes.families.interventions.changes import exchanged_logits
from probes.families.interventions.directions import COMPONENT, DIRECTIONS, directions
from probes.families.interventions.experiment import exchange_rows, resampling_units
from probes.families.interventions.interchange_scores import FLIPPED, LAST, MASKED, OWN, RATIO
from probes.families.interventions.text_prompts import Prompts, about_answers, text_prompts
from probes.measurements.measurement import Measured
from probes.statistics.of_families.strata import Strata

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from probes.common.arrays import Floats, Ints
    from probes.measurements.context import ModelContext, TaskContext
    from probes.records.row import Row

FLAG = "--interchange-answers"

_DRAWN = 8
"""Texts drawn for each that is used, to find some of either class and of different documents."""

SAME_CLASS = "same class"
"""Control: the whole state of a source of the base's own class."""

_NAMES = *(x for x in DIRECTIONS if x != COMPONENT), SAME_CLASS


class TextStates(NamedTuple):
    """Prompts of some texts, in the untouched model.

    Attributes:
        classes: shape (n,).
        states: of the token at which answers are read. Shape (n, layers, H).
        log_odds: log p(answer of class 1) − log p(answer of class 0). Shape (n,).
    """

    prompts: Prompts
    classes: Ints
    states: torch.Tensor
    log_odds: Floats

    @classmethod
    def of(cls, context: ModelContext, task: TaskContext, split: str, n: int) -> TextStates:
        """Up to n random texts of a split whose labels train has; see `text_prompts`.

        Classes take turns, and each has texts of as many documents as possible.
        """
        from probes.families.interventions.readouts import ContinuationLogits

        prompts, examples = text_prompts(context, task, split, _DRAWN * n, FLAG)
        classes = task.examples.targets(split)[examples]
        chosen = _balanced_order([document for document, _ in prompts.units], classes)[:n]
        prompts, classes = prompts.some(chosen), classes[chosen]
        collector = ContinuationLogits(prompts.ends, prompts.columns, context.layers, None)
        (logits,), states = collector.read(context, prompts.texts)
        return cls(prompts, classes, states[:, :, 0], logits[:, 0] - logits[:, 1])


def _balanced_order(documents: Sequence[str], classes: Ints) -> Ints:
    """Numbers of texts, in turn of either class; of each, one of every document, then a second."""

    def stable(names: Iterable[Hashable]) -> Ints:
        seen: defaultdict[Hashable, count[int]] = defaultdict(count)
        return np.argsort([next(seen[name]) for name in names], kind="stable")

    order = stable(documents)
    order = order[classes[order] >= 0]
    return order[stable(classes[order].tolist())]


def interchange_of_texts(context: ModelContext) -> Measured:
    """Answers that follow the last token's state of a text of the other class, by task.

    Raises:
        NotServedError: no task can be measured.
        UserError: the answers begin with the same token.
    """
    rows: list[Row] = []
    notes: list[str] = []
    n_pairs = 0
    for task in context.tasks:
        try:
            of_task, n, note = _task_rows(context, task)
        except NotServedError as error:
            notes.append(f"{error}.")
            continue
        rows += of_task
        notes.append(note)
        n_pairs += n
    if not rows:
        raise NotServedError(" ".join(notes).rstrip(".") or "there is no task of texts")
    return Measured(rows, facts={"pairs": n_pairs}, notes=notes)


def _task_rows(context: ModelContext, task: TaskContext) -> tuple[list[Row], int, str]:
    """Rows of a task, the number of its pairs, and a sentence."""
    name, classes, options = task.task.name, task.examples.classes, context.options
    if len(classes) != 2 or task.task.kind != "classification" or not task.task.position:
        raise NotServedError(f"{name}: only texts of two classes are exchanged")
    train = TextStates.of(context, task, "train", options.training)
    pool = TextStates.of(context, task, "test", 2 * options.pairs)
    if min(np.bincount(x.classes, minlength=2).min() for x in (train, pool)) < 2:
        raise NotServedError(f"{name}: fewer than two texts of a class fit, in train or in test")
    n = min(options.pairs, len(pool.classes))
    sources = {own: _sources(pool.classes, n, own_class=own) for own in (False, True)}
    side, bases = 2 * pool.classes - 1, pool.prompts.some(np.arange(n))
    odds, is_right = _exchanged_log_odds(context, train, pool, sources), side * pool.log_odds > 0
    right = is_right[:n] & is_right[sources[False]]
    rows = _rows(context, task, pool, sources, odds * side[:n], right)
    of_pairs = f"Of {n:,} pairs of texts, {right.sum():,} were answered right."
    return list(rows), n, f"{about_answers(context, task, bases)} {of_pairs}"


def _sources(classes: Ints, n: int, *, own_class: bool) -> Ints:
    """Sources of the first n texts, of their own class or of the other, in turn; never itself.

    Those that are no bases come first: if two texts are each other's source, the effects of both
    exchanges are the same.
    """
    sources = np.zeros(n, dtype=np.int64)
    for k in (0, 1):
        of_class = np.flatnonzero(classes[:n] == k)
        candidates = np.flatnonzero(classes == (k if own_class else 1 - k))
        first = int((candidates < n).sum())
        first += own_class and first == len(candidates)
        sources[of_class] = candidates[(np.arange(len(of_class)) + first) % len(candidates)]
    return sources


def _exchanged_log_odds(
    context: ModelContext, train: TextStates, pool: TextStates, sources: Mapping[bool, Ints]
) -> Floats:
    """Log-odds of bases, untouched and exchanged. Shape (1 + layers × names, n).

    Args:
        pool: the first n are bases.
        sources: of the other class (False), and of the same (True). Each (n,).
    """
    from probes.families.interventions.readouts import ContinuationLogits

    n = len(sources[False])
    prompts, exchanges = pool.prompts.some(np.arange(n)), []
    for i, layer in enumerate(context.layers):
        x, rng = train.states[:, i].double().numpy(), np.random.default_rng(layer)
        by_name = directions(x, train.classes, n, rng, paired=False)
        for name in _NAMES:
            source = pool.states[sources[name == SAME_CLASS], i]
            exchanges.append((layer, None, source, by_name.get(name)))
    collector = ContinuationLogits(prompts.ends, prompts.columns)
    by_pass = np.stack(exchanged_logits(context, prompts.texts, collector, exchanges))
    log_odds: Floats = by_pass[..., 0] - by_pass[..., 1]
    return log_odds


def _rows(
    context: ModelContext,
    task: TaskContext,
    pool: TextStates,
    sources: Mapping[bool, Ints],
    log_odds: Floats,
    right: NDArray[np.bool_],
) -> Iterator[Row]:
    """Means over bases; p is corrected over layers.

    Pairs that have a document in common, also by way of others, are resampled together.

    Args:
        log_odds: of the answer of the base's label against the other; see `_exchanged_log_odds`.
        right: whether base and source were answered right. Shape (bases,).
    """
    everything, layers, documents = np.arange(len(right)), context.layers, pool.prompts.units
    before, changed = log_odds[0], log_odds[1:].reshape(len(layers), len(_NAMES), -1)
    at = {"exchanged": task.task.name, "at": LAST if context.model.causal else MASKED}
    for i, name in enumerate(_NAMES):
        pairs = enumerate(sources[name == SAME_CLASS])
        units = resampling_units([(documents[x][0], documents[y][0]) for x, y in pairs])
        strata = Strata.of(units, [""] * len(units))
        cells = [(layer, {**at, "direction": name, "answers": OWN}) for layer in layers]
        ratio, follows = (before - changed[:, i]).T, ((1 - np.sign(changed[:, i])) / 2).T
        words = "independent pairs of texts", "texts"
        rows = partial(exchange_rows, strata=strata, cells=cells, words=words)
        yield from rows(RATIO, ratio, group=everything, tested=True)
        yield from rows(FLIPPED, follows, group=np.flatnonzero(right), tested=False)
