"""Choice of a run's tasks and measurements, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import product

from probes.common.errors import UserError, counted
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.data.items import KINDS, Kind
from probes.data.sentence import Corpus
from probes.data.sources import LabelColumn
from probes.examples.scoring import require_metrics
from probes.measurements.measurement import Request, corpus_measurements, get_measurement
from probes.measurements.plugin_keys import plugin_failure
from probes.measurements.plugins import included_tasks
from probes.run.config import RunConfig
from probes.run.inputs import LazyCorpus
from probes.tasks.builtin import STANDARD, TASK_GROUPS, expand_groups, group_of_task, tasks
from probes.tasks.columns import task_of
from probes.tasks.morphology import is_morphological, morphology
from probes.tasks.positions import Position
from probes.tasks.task import Task, plain_name
from probes.training.families import why_unfit


class Omission(Enum):
    """Kinds of what a run leaves out; each is reported in another way."""

    SKIPPED, UNMADE, UNSERVED, FAILED = "skipped", "unmade", "unserved", "failed"


class LeftOutError(Exception):
    """A job is not made, for a reason that stops no others.

    Args:
        kind: the list of `Omissions` that takes it.
        about: what is left out, and why, as the method for that list takes it.
    """

    def __init__(self, kind: Omission, *about: str) -> None:
        super().__init__(kind, *about)
        self.kind, self.about = kind, about


@dataclass
class Omissions:
    """Collected while a run goes on, and reported at its end; each is said once.

    Attributes:
        skipped: by task, why the corpus does not serve it, though nobody asked for it by name.
        unserved: by model and task, the same of tasks that were asked for.
        unmade: by measurement and job, why what was asked for by name is not made.
        failed: by model, task and probe family, the fault of a task or plug-in of the user.
    """

    skipped: dict[str, str] = field(default_factory=dict)
    unserved: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unmade: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, left_out: LeftOutError) -> None:
        """Add a job that is not made."""
        report: dict[Omission, Callable[..., None]] = {
            Omission.SKIPPED: self.skip,
            Omission.UNMADE: self.not_made,
            Omission.UNSERVED: self.not_served,
            Omission.FAILED: self.fail,
        }
        report[left_out.kind](*left_out.about)

    def skip(self, task: str, reason: str) -> None:
        """Leave out a task that the corpus does not serve."""
        if self.skipped.get(task) != reason:
            self.skipped[task] = reason
            progress.say(f"skipped {task}: {reason}", "skipped", task=task)

    def not_made(self, measurement: str, title: str, reason: str) -> None:
        """Leave out a measurement that was asked for by name, of a model or a task."""
        if title not in (title for _, title in self.unmade):
            self.unmade[measurement, title] = reason
            progress.say(f"left out {title}: {reason}", "left out")

    def not_served(self, model: str, task: str, reason: str) -> None:
        """Report a task that was asked for and that the corpus does not serve after all."""
        self._warn(self.unserved, model, task, reason)

    def fail(self, model: str, title: str, reason: str) -> None:
        """Report a failure that costs `what` alone; the run goes on."""
        self._warn(self.failed, model, title, reason)

    @staticmethod
    def _warn(reasons: dict[str, str], model: str, title: str, reason: str) -> None:
        if reasons.get(f"{model} · {title}") != reason:
            reasons[f"{model} · {title}"] = reason
            progress.warn(f"failed  {title}: {reason}")


def choose_tasks(config: RunConfig, corpus: LazyCorpus, omissions: Omissions) -> list[Task]:
    """The tasks that the corpus serves of those that are asked for; the others are omitted.

    Raises:
        UserError: a task asked for by name cannot be served or scored, or no task is left.
    """
    if items := corpus.source.items:
        if all(get_measurement(name).reads_items(items) for name in config.measurements):
            return []
        raise UserError(
            f"--corpus {corpus.source.name}: it consists of {KINDS[items]}, not of sentences that "
            f"probes read; {_for_items(items)}"
        )
    positions = map(Position.parse, config.positions) if config.texts else (None,)
    columns = corpus.source.columns.values()
    if config.metric and not columns:
        raise UserError(
            f"--metric {config.metric}: ranks two classes of your own labels; name their column "
            "with --label."
        )
    ranking = config.ranked_by, config.fpr if config.metric else None
    own_tasks = {x.name: x for x in (task_of(*of, *ranking) for of in product(columns, positions))}
    column_by_needs = {(x.layer,): x for x in columns}
    usual = corpus.source.tasks or ("standard",)
    default = (*own_tasks, *usual, *included_tasks(config.include))
    feature_tasks, reasons = _of_treebank(config, corpus, own_tasks)
    # A label column of the user hides a feature of the treebank that has its name.
    own_tasks = {**feature_tasks, **own_tasks}
    served_tasks = []
    for name in expand_groups(config.tasks or default, own_tasks):
        if name in reasons:
            continue
        task = own_tasks[name] if name in own_tasks else tasks.get(name)
        if config.metric and task.needs in column_by_needs:
            _require_two_classes(config.metric, column_by_needs[task.needs], corpus.value)
        try:
            require_metrics(task)
        except UserError as error:
            if name in config.tasks:
                raise
            omissions.failed[name] = str(error)
            continue
        if missing := task.missing(corpus.layers):
            reasons[name] = corpus.source.why_missing(missing)
        elif all(unfit := [why_unfit(x, task.kind, is_bag=task.is_bag) for x in config.probes]):
            if name in config.tasks:
                raise UserError(f"--tasks {name}: {unfit[0]}; add linear to --probes.")
            reasons[name] = unfit[0]
        else:
            served_tasks += [task.on(corpus.layers).at(site) for site in config.task_sites]
    for name, reason in reasons.items():
        if name in config.tasks:
            raise UserError(f"--tasks {name}: {reason}; leave it out, or choose another --corpus.")
        if not served_tasks or (columns and name in STANDARD):
            # Nobody expects standard tasks from a table of labels: not worth a line. If no task is
            # left, the error below has the reasons.
            omissions.skipped[name] = reason
        else:
            omissions.skip(name, reason)
    for group in config.tasks:
        members = expand_groups([group], own_tasks)
        served = {plain_name(task.name) for task in served_tasks}
        if group in TASK_GROUPS and served.isdisjoint(members):
            of_group = {**reasons, **omissions.failed}
            reason = _listed(
                {n: of_group[n] for n in of_group if n in members or group_of_task(n) == group}
            )
            raise UserError(
                f"--tasks {group}: {corpus.source.name} has the annotation for no task of this "
                f"group{reason}; leave it out, or choose another --corpus."
            )
    if not served_tasks:
        all_reasons = {**omissions.skipped, **omissions.failed}
        reason = _listed({x: all_reasons[x] for x in own_tasks if x in all_reasons} or all_reasons)
        raise UserError(f"--corpus {corpus.source.name} serves no task{reason}.")
    return served_tasks


def _require_two_classes(metric: str, column: LabelColumn, corpus: Corpus) -> None:
    """Check that a label column has the two classes that a metric ranks."""
    labels = {x for sentence in corpus for x in sentence.layer(column.layer)} - {None}
    names = ", ".join(sorted(map(str, labels))[:5]) + ", …" * (len(labels) > 5)
    several = f"{counted(len(labels), 'class', 'classes')} ({names})"
    kinds = {"regression": "numbers", "multi-label": "sets of classes"}
    if column.kind in kinds or len(labels) != 2:
        raise UserError(
            f"--metric {metric}: ranks two classes, and {column.name} has "
            f"{kinds.get(column.kind, several)}; give a column of two, or leave --metric out."
        )


def _listed(reasons: Mapping[str, str]) -> str:
    listed_reasons = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    return f" ({listed_reasons})" if reasons else ""


def _of_treebank(
    config: RunConfig, corpus: LazyCorpus, own_tasks: Mapping[str, Task]
) -> tuple[dict[str, Task], dict[str, str]]:
    """The tasks of morphology, if any is asked for; and why others that are asked for are none."""
    other_tasks = (*own_tasks, *tasks)
    features = [name for name in config.tasks if is_morphological(name) and name not in other_tasks]
    if not features and "morphology" not in config.tasks:
        return {}, {}
    feature_tasks, reasons = morphology(corpus.value)
    all_features = (*feature_tasks, *reasons)
    for name in features:
        if name not in all_features:
            hint = did_you_mean(name, all_features)
            raise UserError(f"--tasks {name}: {corpus.source.name} has no such feature. {hint}")
    requested = all_features if "morphology" in config.tasks else features
    return feature_tasks, {name: reason for name, reason in reasons.items() if name in requested}


def require_measurable(config: RunConfig, corpus: LazyCorpus) -> None:
    """Check that the corpus serves the measurements of it that are asked for.

    Raises:
        UserError: one cannot be made, or fails to say whether it can.
    """
    items = corpus.source.items
    for name in config.about_corpus:
        definition = get_measurement(name)
        if items and not definition.reads_items(items):
            raise UserError(
                f"--measurements {name}: it reads sentences, and the corpus {corpus.source.name} "
                f"consists of {KINDS[items]}; {_for_items(items)}"
            )
        try:
            reason = definition.missing_annotation(corpus.layers)
        except Exception as error:
            if failure := plugin_failure(error, name, None, ""):
                raise UserError(failure) from error
            raise
        if reason:
            raise UserError(
                f"--measurements {name}: not of the corpus {corpus.source.name}, since {reason}; "
                "leave it out, or choose another --corpus."
            )
        layers = config.layers if isinstance(config.layers, tuple) else ()
        # Numbers below 0 depend on the model.
        if layers and layers[0] >= 0 and not definition.extent(Request(layers, layers[-1])):
            numbers = ",".join(map(str, layers))
            raise UserError(
                f"--layers {numbers}: --measurements {name} finds nothing there; name other layers."
            )


def _for_items(kind: Kind) -> str:
    names = [
        definition.name for definition in corpus_measurements() if definition.reads_items(kind)
    ]
    names.sort(key=lambda name: name != kind)  # what reads all such items comes first
    return f"use --measurements {' or '.join(names)}."


def require_pairs(config: RunConfig, n_models: int) -> None:
    """Check that there are two models for the measurements that compare models.

    Raises:
        UserError: there is only one.
    """
    for name in config.about_corpus:
        if get_measurement(name).of == "pair" and n_models < 2:
            raise UserError(
                f"--measurements {name}: it compares models; name two after --model, or leave the "
                "random twin to be measured."
            )
