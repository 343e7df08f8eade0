"""What a probing task is: a rule that turns a sentence into examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from reprlib import repr as shortened
from typing import Any, Literal, get_args

from probes.common.errors import UserError
from probes.common.origin import described, place_in
from probes.common.registry import Registry, did_you_mean
from probes.data.sentence import LAYERS, Sentence, Span
from probes.tasks.checked import TaskError, fault, items_of

Shape = Literal["word", "pair", "span", "span pair", "sentence"]
Kind = Literal["classification", "multi-label", "regression"]
Label = str | float | tuple[str, ...]
"""A class; a number for regression; any number of classes for multi-label."""

PUNCTUATION = "punctuation"
"""The group of words that root accuracy passes over (Hewitt & Manning 2019)."""


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to predict, and the words to predict it from.

    Attributes:
        label: what the probe shall say; for multi-label each label that holds, or none.
        span: the words whose vectors it sees; their mean, if several.
        span2: for pairs, the second span; the two means are concatenated.
        type: what a control task hangs its random label on, e.g. the word type.
        words: what the encoder reads in place of the sentence's words, e.g. lower-cased or
            without its context. Spans, `hide` and `cue` then count in these.
        hide: a word the encoder must not see. `span` is then that word's place.
        cue: with `hide`, a word without which the label cannot be known. Where the
            encoder can only cut the text before the hidden word, an example whose cue
            would be cut away is left out and counted.
        groups: the breakdowns that the example falls in, e.g. ``1+ attractors``.
        reference: the label that a simple rule with access to the annotation would
            give; its score stands beside the probes' as an upper reference.
    """

    label: Label
    span: Span
    span2: Span | None = None
    type: str = ""
    words: tuple[str, ...] | None = None
    hide: int | None = None
    cue: int | None = None
    groups: tuple[str, ...] = ()
    reference: Label = ""


@dataclass(frozen=True, slots=True)
class Excluded:
    """A candidate that is no example, and why; the run counts these by reason."""

    reason: str


Rule = Callable[[Sentence], Iterable[Example | Excluded]]


@dataclass(frozen=True)
class Task:
    """A probing task.

    Attributes:
        name: what `--tasks` calls it.
        version: raise it whenever the same sentence would give other examples, so that
            no stored result is taken for a new one.
        needs: annotation layers of a sentence without which there are no examples.
        shape: what an example is made of.
        kind: what is predicted.
        metric: the headline metric, by name (see probes/statistics/metrics.py).
        also: further metrics, reported beside it.
        rule: yields the examples of one sentence.
        summary: one line for `--list-tasks`.
        reference: what `Example.reference` stands for, if it is used.
        stand_ins: by needed layer, another that serves where a corpus has none of it.
    """

    name: str
    version: int
    needs: tuple[str, ...]
    shape: Shape
    kind: Kind
    metric: str
    also: tuple[str, ...]
    rule: Rule
    summary: str
    reference: str = ""
    stand_ins: Mapping[str, str] = field(default_factory=dict)

    def missing(self, layers: Collection[str]) -> tuple[str, ...]:
        """The annotation layers that this task needs and that are not among `layers`."""
        return tuple(layer for layer in self.on(layers).needs if layer not in layers)

    def on(self, layers: Collection[str]) -> Task:
        """The task as a corpus with `layers` serves it, stand-ins in their places.

        Decided for the whole corpus, so that no two tag sets mix.
        """
        used = {
            layer: other
            for layer, other in self.stand_ins.items()
            if layer not in layers and other in layers
        }
        if not used:
            return self
        needs = tuple(used.get(layer, layer) for layer in self.needs)
        return replace(self, needs=needs, rule=partial(_standing_in, self.rule, used))

    def examples(self, sentence: Sentence) -> list[Example | Excluded]:
        """The examples of `sentence`; none if it lacks a layer that the task needs.

        Raises:
            TaskError: the rule failed, or yielded what is no example of this task.
        """
        if not all(sentence.layer(layer) for layer in self.needs):
            return []
        found = self._yielded(sentence)
        for example in found:
            if isinstance(example, Example):
                words = sentence.words if example.words is None else example.words
                for start, end in filter(None, (example.span, example.span2)):
                    if not 0 <= start < end <= len(words):
                        raise self.fault(
                            sentence,
                            f"the span ({start}, {end}) in {len(words)} words; spans are "
                            "[start, end) and not empty",
                        )
        return found

    def _yielded(self, sentence: Sentence) -> list[Example | Excluded]:
        """What the rule yields, its fields checked."""
        found: list[Example | Excluded] = []
        try:
            for item in items_of(self.rule(sentence)):
                if not isinstance(item, (Example, Excluded)):
                    what = f"{shortened(item)}, which is neither an Example nor Excluded"
                elif isinstance(item, Excluded):
                    what = "a reason that is no string" * (not isinstance(item.reason, str))
                else:
                    what = fault(item, self.kind)
                if what:
                    raise self.fault(sentence, what)
                found.append(item)  # type: ignore[arg-type]
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            origin = tasks.origin(self.name)
            place = place_in(error, origin) if origin else ""
            raise TaskError(
                f"Task {self.name!r}, sentence {sentence.id!r}: the rule raised "
                f"{described(error)}. Mend {place or self._source()}."
            ) from error
        return found

    def fault(self, sentence: Sentence, what: str) -> TaskError:
        """The error that says `what` is wrong with an example of `sentence`."""
        where = f"Task {self.name!r}, sentence {sentence.id!r}"
        return TaskError(f"{where}: the rule gave {what}. Mend {self._source()}.")

    def _source(self) -> str:
        """Where its rule is written, as far as that is known."""
        origin = tasks.origin(self.name)
        rule: Any = self.rule
        if getattr(rule, "func", None) is _standing_in:
            rule = rule.args[0]
        code = getattr(getattr(rule, "func", rule), "__code__", None)
        if origin is None or code is None:
            return "the task"
        return f"{origin.name}, line {code.co_firstlineno}"


def _standing_in(
    rule: Rule, stand_ins: Mapping[str, str], sentence: Sentence
) -> Iterable[Example | Excluded]:
    changes: dict[str, Any] = {layer: sentence.layer(b) for layer, b in stand_ins.items()}
    return rule(replace(sentence, **changes))


tasks: Registry[Task] = Registry("task")


def task(
    name: str,
    *,
    version: int,
    needs: Iterable[str],
    metric: str,
    also: Iterable[str] = (),
    shape: Shape = "word",
    kind: Kind = "classification",
    reference: str = "",
    stand_ins: Mapping[str, str] | None = None,
) -> Callable[[Rule], Rule]:
    """Decorate a function from a sentence to its examples: that makes it a task.

    The first line of the function's docstring is the summary that `--list-tasks` shows.

    Raises:
        UserError: a name that cannot stand in a list, an unknown annotation layer, shape or kind,
            or a second task of this name.
    """
    if not re.fullmatch(r"\w[\w.-]{0,59}", name):
        raise UserError(f"Task {name!r}: use up to 60 letters, digits, _, - and . for its name.")
    if isinstance(needs, str):
        raise UserError(f"Task {name!r}: needs={needs!r} is one string; write [{needs!r}].")
    if isinstance(also, str):
        raise UserError(f"Task {name!r}: also={also!r} is one string; write [{also!r}].")
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError(f"Task {name!r}: version={version!r} is no whole number; write version=1.")
    needs = tuple(needs)
    for what, given, known in (
        *(("annotation layer", layer, LAYERS) for layer in (*needs, *(stand_ins or {}).values())),
        ("shape", shape, get_args(Shape)),
        ("kind", kind, get_args(Kind)),
    ):
        if given not in known:
            raise UserError(
                f"Task {name!r}: unknown {what} {given!r}. {did_you_mean(given, known)}"
            )

    def decorate(rule: Rule) -> Rule:
        summary = (rule.__doc__ or "").strip().split("\n")[0]
        tasks.add(
            name,
            Task(
                name,
                version,
                needs,
                shape,
                kind,
                metric,
                tuple(also),
                rule,
                summary,
                reference,
                stand_ins or {},
            ),
        )
        return rule

    return decorate
