"""Probing tasks: rules that turn a sentence into examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from reprlib import repr as shortened
from typing import Any, Literal, get_args

from probes.common.errors import UserError
from probes.common.origin import described, failing_line
from probes.common.registry import Registry, did_you_mean
from probes.data.sentence import JOINED, LAYERS, Sentence, Span, windows
from probes.tasks.positions import Position
from probes.tasks.validation import TaskError, fault, items_of

Shape = Literal["word", "pair", "span", "span pair", "sentence", "text"]
Kind = Literal["classification", "multi-label", "regression"]
ReadSite = Literal["mid", "attention", "mlp", "unnormed"]
"""A site of blocks other than the layer: the state between attention and MLP, what one of these
adds to it, or the output of the last block before the final norm."""

SITE_VERSIONS: Mapping[str, int] = {"attention": 2, "mlp": 2}
"""Versions of sites, in names of stored vectors and keys of probes; none for version 1. Raise one
when other states are read there. Keys are made before a model is loaded, so all models have it."""

TaskGroup = Literal["surface", "syntax", "morphology", "semantics", "discourse", "other"]
"""Linguistic level of a task. `--tasks GROUP` selects all tasks of a group."""

Label = str | float | tuple[str, ...]
"""A class; a number for regression; a tuple of classes for multi-label."""

PUNCTUATION = "punctuation"
"""The group of words that root accuracy ignores (Hewitt & Manning 2019)."""


@dataclass(frozen=True, slots=True)
class Example:
    """One label to predict, and the words to predict it from.

    Attributes:
        label: the correct label; for multi-label all labels that apply, possibly none.
        span: the words whose vectors the probe sees (their mean if there are several).
        span2: for pairs, the second span; the two means are concatenated.
        type: the key of the control task's random label, e.g. the word type. The majority label of
            a type is a baseline if types consist of words of the spans, otherwise a reference.
        words: words for the encoder to read instead of the sentence's, e.g. lower-cased or
            without context. `span`, `span2`, `hide` and `cue` are then indices into these.
        hide: index of a word that the encoder must not see; `span` must be this word.
        cue: with `hide`, index of a word that is needed to know the label. If an encoder reads only
            the text before the hidden word, examples whose cue is cut off are excluded and counted.
        groups: groups of the breakdowns that the example belongs to, e.g. ``1+ attractors``.
        reference: prediction of a simple rule. The rule's score is an upper reference or a
            baseline, depending on the task (`Task.reference`, `Task.baseline`).
        cues: features that may tell the label without vectors, e.g. ``equally long``. A classifier
            of the cues of train is a baseline or an upper reference (`Task.cues_baseline`,
            `Task.cues_reference`).
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
    cues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Excluded:
    """An excluded candidate, with the reason. Runs count these by reason."""

    reason: str


Rule = Callable[..., Iterable[Example | Excluded]]
"""Function of a sentence; if there is `Task.from_train`, its result is the first argument."""

FromTrain = Callable[[Sequence[Sentence]], Any]


@dataclass(frozen=True)
class Task:
    """A probing task.

    Attributes:
        name: name for `--tasks`.
        version: raise it whenever a sentence would give other examples, so that results of earlier
            versions are not reused.
        needs: annotation layers that a sentence must have to give examples.
        shape: the words of an example: word, span, sentence, text, or a pair of words or spans.
        kind: kind of the labels.
        metric: name of the headline metric, by which the best layer is chosen.
        also: names of further metrics to report.
        rule: yields the examples of one sentence.
        summary: one line for `--list-tasks`.
        reference: description of `Example.reference` if the rule uses the annotation. The rule's
            score is then an upper reference.
        baseline: description of `Example.reference` if the rule uses only the words of the spans.
            The rule's score is then a baseline.
        cues_baseline: description of `Example.cues` if these use only the words of the spans. A
            classifier of cues is then a baseline.
        cues_reference: description of `Example.cues` if these use the annotation. A classifier of
            cues is then an upper reference.
        window: number of sentences of a document that the rule and the encoder see at once: a
            sentence and those before it, as one `Sentence`. Its `starts` has the first word of
            each. The rule should yield only examples whose last span ends in the last sentence,
            since others would come up in several windows. Resampling counts an example to the last
            sentence. Windows have no `frames`, `ratings`, `constituents` or label columns.
        stand_ins: replacements for needed layers that the corpus lacks.
        reading: how a column of the user's data was read, for the line that announces the task.
        ambiguous: whether only types that have several labels in train give examples; the others
            are excluded and counted.
        position: where the vector of a text is read; None for tasks of other shapes.
        from_train: computes what the rule must know of the training sentences, such as frequencies.
        site: the site of block b whose states stand for layer b, see
            `probes.extraction.reading.collectors.WordVectors`; None for the layer itself.
        group: linguistic level of the task.
        fpr: highest false-positive rate on dev of a threshold between two classes; None for no
            threshold.
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
    reading: str = ""
    ambiguous: bool = False
    position: Position | None = None
    baseline: str = ""
    cues_baseline: str = ""
    cues_reference: str = ""
    window: int = 1
    from_train: FromTrain | None = None
    site: ReadSite | None = None
    group: TaskGroup = "other"
    fpr: float | None = None

    @property
    def is_bag(self) -> bool:
        """Whether an example is a text with all its tokens."""
        return self.position is not None and self.position.is_bag

    def at(self, site: ReadSite | None) -> Task:
        """A copy that reads vectors at another site: ``pos@mlp`` or ``true@last@mlp``; without a
        site ``pos``, which reads layers.
        """
        name = plain_name(self.name)
        return replace(self, name=f"{name}@{site}" if site else name, site=site)

    def missing(self, layers: Collection[str]) -> tuple[str, ...]:
        """Annotation layers that the task needs and `layers` lacks."""
        return tuple(layer for layer in self.on(layers).needs if layer not in layers)

    def on(self, layers: Collection[str]) -> Task:
        """The task for a corpus with `layers`, with stand-ins for missing layers.

        This is decided for a whole corpus at once, so that tag sets are never mixed.
        """
        used = {
            layer: stand_in
            for layer, stand_in in self.stand_ins.items()
            if layer not in layers and stand_in in layers
        }
        if not used:
            return self
        needs = tuple(used.get(layer, layer) for layer in self.needs)
        return replace(self, needs=needs, rule=partial(_standing_in, self.rule, used))

    def texts(self, sentences: Iterable[Sentence]) -> Iterable[Sentence]:
        """Sentences for the rule: those given, or the window of each."""
        return windows(sentences, self.window) if self.window > 1 else sentences

    def informed(self, train: Sequence[Sentence]) -> Task:
        """A copy whose rule has the result of `from_train` for the training sentences.

        Raises:
            TaskError: `from_train` failed.
        """
        if self.from_train is None:
            return self
        try:
            train_result = self.from_train(train)
        except (Exception, SystemExit) as error:
            raise self._failure("training sentences", error) from error
        return replace(self, rule=partial(self.rule, train_result), from_train=None)

    def examples(self, sentence: Sentence) -> list[Example | Excluded]:
        """Examples of one of the task's `texts`; none if it lacks a layer that the task needs.

        Raises:
            TaskError: the rule failed or yielded something invalid.
        """
        if not all(sentence.layer(layer) for layer in self.needs):
            return []
        examples = self._checked_output(sentence)
        for example in examples:
            if isinstance(example, Example):
                words = sentence.words if example.words is None else example.words
                for start, end in filter(None, (example.span, example.span2)):
                    if not 0 <= start < end <= len(words):
                        raise self.fault(
                            sentence,
                            f"the span ({start}, {end}) for {len(words)} words; spans are "
                            "[start, end) and must not be empty",
                        )
        return examples

    def _checked_output(self, sentence: Sentence) -> list[Example | Excluded]:
        """Output of the rule, with fields checked."""
        examples: list[Example | Excluded] = []
        try:
            for output in items_of(self.rule(sentence)):
                if not isinstance(output, (Example, Excluded)):
                    problem = f"{shortened(output)}, which is neither an Example nor Excluded"
                elif isinstance(output, Excluded):
                    sound = isinstance(output.reason, str)
                    problem = "" if sound else "a reason that is not a string"
                else:
                    problem = fault(output, self.kind)
                if problem:
                    raise self.fault(sentence, problem)
                if self.window > 1 and isinstance(output, Example) and output.words is None:
                    output = replace(output, words=sentence.words)
                examples.append(output)  # type: ignore[arg-type]
        except UserError:
            raise
        except (Exception, SystemExit) as error:  # a rule may call exit()
            raise self._failure(f"sentence {sentence.id!r}", error) from error
        return examples

    def _failure(self, where: str, error: BaseException) -> TaskError:
        """The error for an exception of the rule."""
        origin = tasks.origin(self.name)
        line = failing_line(error, origin) if origin else ""
        return TaskError(
            f"Task {self.name!r}, {where}: the rule raised {described(error)}. "
            f"Fix {line or self._source()}."
        )

    def fault(self, sentence: Sentence, problem: str) -> TaskError:
        """The error for an invalid example of `sentence`; `problem` describes it."""
        where = f"Task {self.name!r}, sentence {sentence.id!r}"
        return TaskError(f"{where}: the rule yielded {problem}. Fix {self._source()}.")

    def _source(self) -> str:
        """File and line of the rule if known, else "the task"."""
        origin = tasks.origin(self.name)
        rule: Any = self.rule
        if getattr(rule, "func", None) is _standing_in:
            rule = rule.args[0]
        code = getattr(getattr(rule, "func", rule), "__code__", None)
        if origin is None or code is None:
            return "the task"
        return f"{origin.name}, line {code.co_firstlineno}"


def plain_name(name: str) -> str:
    """The name of a task without the site: ``pos`` for ``pos@mlp``."""
    plain, _, site = name.rpartition("@")
    return plain if site in get_args(ReadSite) else name


def layers_at(site: ReadSite | None, layers: Iterable[int], n_layers: int) -> tuple[int, ...]:
    """The layers of some at which a model of L layers has a site: blocks, or the last block."""
    first = n_layers if site == "unnormed" else int(site is not None)
    return tuple(layer for layer in layers if layer >= first)


def _standing_in(
    rule: Rule, stand_ins: Mapping[str, str], sentence: Sentence
) -> Iterable[Example | Excluded]:
    changes: dict[str, Any] = {layer: sentence.layer(b) for layer, b in stand_ins.items()}
    return rule(replace(sentence, **changes))


tasks: Registry[Task] = Registry(
    "task", "--list-tasks lists all. A task of your own needs --include FILE."
)


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
    baseline: str = "",
    cues_baseline: str = "",
    cues_reference: str = "",
    window: int = 1,
    stand_ins: Mapping[str, str] | None = None,
    ambiguous: bool = False,
    from_train: FromTrain | None = None,
    group: TaskGroup = "other",
) -> Callable[[Rule], Rule]:
    """Decorator that registers a function from a sentence to its examples as a task.

    The arguments are attributes of `Task`. The first line of the function's docstring becomes the
    summary that `--list-tasks` shows.

    Raises:
        UserError: an invalid name or version, an unknown annotation layer, shape, kind or
            group, a layer that windows lack, or a name that is taken.
    """
    if not re.fullmatch(r"\w[\w.-]{0,59}", name):
        raise UserError(f"Task {name!r}: a name may have up to 60 letters, digits, _, - and .")
    # A string is an iterable of strings, so type checkers let it pass.
    if isinstance(needs, str):
        raise UserError(f"Task {name!r}: needs={needs!r} is one string; write [{needs!r}].")
    if isinstance(also, str):
        raise UserError(f"Task {name!r}: also={also!r} is one string; write [{also!r}].")
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError(f"Task {name!r}: version={version!r} is not an integer; write version=1.")
    if stand_ins and from_train:
        raise UserError(f"Task {name!r}: from_train= would not see stand_ins=; remove one of them.")
    needs = tuple(needs)
    for noun, value, allowed in (
        *(("annotation layer", layer, LAYERS) for layer in (*needs, *(stand_ins or {}).values())),
        ("shape", shape, get_args(Shape)),
        ("kind", kind, get_args(Kind)),
        ("group", group, get_args(TaskGroup)),
    ):
        if value not in allowed:
            raise UserError(
                f"Task {name!r}: unknown {noun} {value!r}. {did_you_mean(value, allowed)}"
            )

    if window > 1 and (layers := [layer for layer in needs if layer not in JOINED]):
        raise UserError(
            f"Task {name!r}: windows of several sentences have no {layers[0]}; leave window= out."
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
                baseline=baseline,
                cues_baseline=cues_baseline,
                cues_reference=cues_reference,
                window=window,
                ambiguous=ambiguous,
                from_train=from_train,
                group=group,
            ),
        )
        return rule

    return decorate
