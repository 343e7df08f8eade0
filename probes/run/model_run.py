"""The measurements of one model on one corpus: what is there, what remains, and the results so far.

No torch here: what has to be computed is given to an engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.data.find import find_corpus
from probes.data.sources import Source
from probes.run.config import RunConfig
from probes.run.inputs import LazyCorpus, LazyModel, for_language
from probes.run.settings import for_items, options_of
from probes.run.task_choice import Omissions, choose_tasks, require_measurable, require_pairs
from probes.run.unit import Measure, State, Unit, layers_of
from probes.extraction.model_files import stored_layers
from probes.extraction.windows import window_rule
from probes.measurements.joined_results import joined
from probes.measurements.measurement import (
    TRANSFER,
    Measurement,
    Request,
    Scored,
    corpus_measurements,
    get_measurement,
)
from probes.measurements.plugin_keys import (
    digests,
    plug_ins_of,
    source_of,
)
from probes.measurements.stored_probes import Trained
from probes.measurements.validation import as_result, validated
from probes.records.files import Index, is_complete
from probes.records.parameters import read_parameters
from probes.records.probe_spec import PROBES, ProbeSpec
from probes.records.record import Inputs, Record, record_key
from probes.records.result import SCORES, Result
from probes.tasks.task import Task


@dataclass(eq=False)
class ModelRun:
    """One model of a run.

    Attributes:
        tasks: what probes predict; none if no probes are asked for.
        omissions: what turns out not to be served, or fails, is added here.
        index: the records that are there.
        command: the command line, for the records' provenance; empty for a run from Python.
        several: whether it is one of several models.
        base: the run of the first model, with which this one is compared; None for itself.
        elsewhere: runs of this model on other corpora, whose probes are scored on this one.
        results: scores with their evidence, by task and probe family.
        others: records of measurements of the corpus as a whole, by measurement.
    """

    config: RunConfig
    model: LazyModel
    corpus: LazyCorpus
    tasks: Sequence[Task]
    omissions: Omissions
    index: Index
    command: str
    several: bool = False
    base: ModelRun | None = None
    elsewhere: Sequence[ModelRun] = ()
    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    others: dict[str, Record] = field(default_factory=dict)
    _units: dict[str, list[Unit]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.source.name

    def title(self, unit: Unit) -> str:
        """What messages call a unit, with the model if there are several."""
        return f"{self.name} · {unit.title}" if self.several else unit.title

    @property
    def folder(self) -> Path:
        """Where the records of this model and corpus are."""
        return self.config.output / self.model.source.slug / self.corpus.source.slug

    @property
    def stored_results(self) -> dict[Path, Result]:
        """All results of this model and corpus, of earlier runs too."""
        return joined(self.index.below(self.folder))

    @property
    def evidence(self) -> tuple[str, ...]:
        """Evidence to gather; of random twins what tests need, unless with full evidence."""
        given = self.config.evidence_names
        if self.model.is_twin and self.config.level != "full":
            return tuple(name for name in given if get_measurement(name).of_twins)
        return given

    @property
    def families(self) -> tuple[str, ...]:
        """Probe families to fit; of random twins linear probes alone, unless with full evidence."""
        given = self.config.probes
        if self.model.is_twin and self.config.level != "full" and "linear" in given:
            return ("linear",)
        return given

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each record of scores, by its key."""
        return {unit.key: unit.path for unit in self.units(SCORES)}

    def path_of(self, measurement: str) -> Path:
        """The file of the record of a measurement of the corpus as a whole."""
        (unit,) = self.units(measurement)
        return unit.path

    def units(self, measurement: str, family: str = "") -> list[Unit]:
        """The units of a measurement, whether they are done or not.

        There is one for each task and probe family, or one of the corpus as a whole; comparisons of
        two models only if there is a base.

        Args:
            family: of probes; empty for all.
        """
        if measurement not in self._units:
            self._units[measurement] = list(self._units_of(measurement))
        units = self._units[measurement]
        return [x for x in units if not (family and x.probe) or x.probe.family == family]

    def _units_of(self, measurement: str) -> Iterator[Unit]:
        its, options = get_measurement(measurement), options_of(self.config, measurement)
        source = source_of(plug_ins_of(measurement=measurement))
        inputs = Inputs(
            model=self.model.source.digest,
            corpus=self.corpus.source.digest,
            pooling=self.config.pooling,
            dtype=self.model.dtype,
            windows=window_rule(self.model.source.maybe_causal),
        )

        def unit(task: Task | None, probe: ProbeSpec | None, more: Mapping[str, object]) -> Unit:
            digest, filled = inputs.model_copy(update=more).digest, options
            if measurement == TRANSFER and task and probe:
                behind = self.units_elsewhere(task.name, probe.family)
                trained = {name: each.key for name, (_, each) in behind.items()}
                filled = options.model_copy(update={"trained": trained})
            settings = filled.model_dump(mode="json")
            key = record_key(digest, measurement, its.version, settings, source)
            return Unit(measurement, task, probe, filled, digest, key, self.folder)

        if its.of == "task":
            for task in self.tasks:
                for family in dict.fromkeys(self.families):
                    yield unit(
                        task,
                        PROBES[family],
                        {
                            "corpus": self.corpus.source.digest_for(task.needs),
                            "task": task.name,
                            "task_version": task.version,
                            "kind": task.kind,
                            "probe": PROBES[family],
                            "project": self.config.project,
                            "plug_ins": digests(plug_ins_of(task, family)),
                        },
                    )
        elif its.of_results:
            keys = sorted(each.key for each in self.units(SCORES, self.families[0]))
            yield unit(None, None, {"scores": tuple(keys)})
        elif its.of == "model":
            yield unit(None, None, {})
        elif self.base is not None:
            base = self.base.model
            yield unit(None, None, {"base": f"{base.source.digest} {base.dtype}"})

    @property
    def corpus_measurements(self) -> tuple[str, ...]:
        """The measurements of the corpus to make, those of pairs of models last."""
        named = self.config.about_corpus
        along = [x.name for x in corpus_measurements() if x.of == "pair" and x.after in named]
        return tuple(dict.fromkeys((*named, *along)))

    @property
    def other_measurements(self) -> tuple[str, ...]:
        """What is made beside scores: the evidence behind them, and measurements of the corpus."""
        return (*(self.evidence if self.tasks else ()), *self.corpus_measurements)

    def remaining(self, measurement: str, family: str = "") -> Iterator[tuple[Unit, State]]:
        """The units of a measurement that are still to be computed; the others are read.

        Evidence is looked for only where there are scores.

        Raises:
            UserError: a record cannot be read, or a layer is not one of the model's.
        """
        for unit in self.units(measurement, family):
            record = self.stored(unit)
            if record is None and self.n_layers is None:
                if not unit.its.is_evidence:
                    yield unit, State(None, {})
                continue
            state = self._state(unit, record)
            if state.missing:
                yield unit, state
            elif state.record is not None:
                self.keep(unit, state.record)

    def stored(self, unit: Unit) -> Record | None:
        """The record of a unit; None if there is none, or not all of it.

        Raises:
            UserError: it cannot be read.
        """
        if not unit.path.exists():
            return None
        record = self.index.read(unit.path)
        validated(record, unit.path)
        if record.key != unit.key:
            raise UserError(f"{unit.path}: the record of another key; delete it and run again.")
        return record if is_complete(unit.path, record) else None

    def _state(self, unit: Unit, record: Record | None) -> State:
        """What is stored and missing of a unit; nothing if a plug-in fails to say what it needs."""
        try:
            request = self.request(unit, record)
            if request is None:
                return State(None, {})
            return self.state(unit, record, request)
        except Exception as error:
            if not (why := unit.blamed(error)):
                raise
            self.omissions.fail(self.name, unit.title, why)
            return State(None, {})

    def state(self, unit: Unit, record: Record | None, request: Request) -> State:
        """What is there of a unit, and what has to be measured.

        Args:
            record: what is stored; None for nothing.
        """
        its, wanted = unit.its, unit.its.extent(request)
        if record is None or not wanted:
            return State(record, wanted)
        if its.is_complete(record, request) and self.config.overwrite != "always":
            return State(record, {})
        # With what is stored, so that nothing is lost.
        return State(record, its.united(record.extent, wanted))

    @property
    def n_layers(self) -> int | None:
        """The model's number of blocks; None as long as nothing says it."""
        for record in (*self.results.values(), *self.others.values()):
            return record.model.n_layers
        return self.model.n_layers

    def request(self, unit: Unit, record: Record | None) -> Request | None:
        """What is asked for of a unit; None if it is not to be made at all."""
        n_layers = record.model.n_layers if record else self.n_layers
        assert n_layers is not None
        layers = layers_of(self.config, n_layers, self.name)
        if unit.task and unit.task.site:
            layers = tuple(filter(None, layers))
        if not unit.its.is_evidence:
            return Request(layers, n_layers, self.config.seeds, self.config.level)
        scores = self.scores_behind(unit)
        if scores is None:
            return None
        if why := self.missing(unit, unit.its):
            if unit.measurement in self.config.asked_by_name:
                self.omissions.not_made(unit.title, why)
            return None
        # Evidence stands behind all scores there are, not only those that this run asks for.
        layers = tuple(scores.extent)
        scored = Scored(
            scores.probe,
            layers,
            scores.best_layer,
            scores.examples.typed,
            scores.headline,
        )
        return Request(layers, n_layers, self.config.seeds, self.config.level, scored)

    def expected_request(self, probe: ProbeSpec, *, typed: bool = True) -> Request:
        """What will be asked for of evidence when there are scores, of which any layer may be best.

        Args:
            typed: whether the task has control tasks.
        """
        n_layers = self.n_layers
        assert n_layers is not None
        layers = layers_of(self.config, n_layers, self.name)
        scored = Scored(probe, layers, layers[len(layers) // 2], typed)
        return Request(layers, n_layers, self.config.seeds, self.config.level, scored)

    def find(self, asked: Measure) -> Unit:
        """The unit that another process asks for.

        Raises:
            UserError: this process finds other inputs.
        """
        for unit in self.units(asked.measurement):
            if Measure.of(self.name, unit) == asked:
                return unit
        raise UserError(
            f"{self.name}: files of the model, the corpus or a plug-in have changed since the run "
            "began; run again when nothing writes there."
        )

    def missing(self, unit: Unit, its: Measurement) -> str:
        """Why a measurement is not made for the task and probe of a unit; empty if it is."""
        assert unit.task
        assert unit.probe
        lacking = its.lacking(self.corpus.layers)
        return lacking or its.missing(unit.task, unit.probe, self.config.level)

    def scores_behind(self, unit: Unit) -> Result | None:
        """The scores that a unit of evidence stands behind, if there are any; None for others."""
        return self.results.get(unit.of) if unit.its.is_evidence else None

    def units_behind(self, unit: Unit) -> list[Unit]:
        """The units of the scores that a unit needs: of evidence, those that it stands behind."""
        if unit.its.of_results:
            return self.units(SCORES, self.families[0])
        if not unit.its.is_evidence:
            return []
        return [each for each in self.units(SCORES) if each.of == unit.of]

    def units_elsewhere(self, task: str, family: str) -> dict[str, tuple[ModelRun, Unit]]:
        """The units of a task's scores on the other corpora that have any, by corpus."""
        return {
            run.corpus.source.name: (run, unit)
            for run in self.elsewhere
            for unit in run.units(SCORES)
            if unit.of == (task, family) and unit.path.exists()
        }

    def trained_elsewhere(self, unit: Unit) -> dict[str, Trained]:
        """The probes that the other corpora have trained for the task of a unit, by corpus.

        Raises:
            UserError: their scores cannot be read, or their parameters have been pruned.
        """
        found, cache = {}, self.config.cache_dir
        for name, (run, other) in self.units_elsewhere(*unit.of).items():
            if (record := run.stored(other)) is None:
                continue
            if (parameters := read_parameters(cache, record.key)) is None:
                raise UserError(
                    f"{other.path}: the parameters of its probes are not in {cache} any more; run "
                    "again with --overwrite always."
                )
            found[name] = Trained(as_result(record, other.path), parameters)
        return found

    def read_scores_behind(self, unit: Unit) -> None:
        """Read the scores behind a unit of evidence, unless they are known as they are stored.

        Another process may have made or extended them.

        Raises:
            UserError: they cannot be read.
        """
        for other in self.units_behind(unit):
            known, record = self.results.get(other.of), self.stored(other)
            if record is not None and (known is None or record.extent != known.extent):
                self.keep(other, record)

    def read(self, unit: Unit) -> None:
        """Add the record of a unit that another process has made.

        Raises:
            UserError: it cannot be read.
        """
        self.read_scores_behind(unit)
        if (record := self.stored(unit)) is not None:
            self.keep(unit, record)

    def keep(self, unit: Unit, record: Record) -> None:
        """Add the record of a unit to the results."""
        if unit.its.is_evidence:
            self.results[unit.of] = self.results[unit.of].with_evidence(record)
        elif unit.task:
            result = as_result(record, unit.path)
            found = {**self.results, unit.of: result}
            # In the order of the units, whichever is done first.
            order = list(self.paths)
            self.results = dict(sorted(found.items(), key=lambda each: order.index(each[1].key)))
        else:
            self.others[unit.measurement] = record

    def announce_stored(self) -> None:
        """Read the scores that are stored, and say how many there are."""
        _ = list(self.remaining(SCORES))
        if self.results:
            n = counted(len(self.results), "result exists", "results exist")
            progress.say(f"{self.name}: {n} already", "present", model=self.name)


def model_runs(
    config: RunConfig, source: Source, models: Sequence[LazyModel], command: str = ""
) -> list[ModelRun]:
    """One run for each model; they share the corpus, the tasks and the omissions.

    Raises:
        UserError: the corpus, or a single model, does not serve a task or measurement that is
            asked for; or a model does not have a layer.
    """
    config = for_items(config, source)
    for model in models:
        own = model.in_memory
        n_layers = own.info.n_layers if own else stored_layers(model.source.folder)
        if n_layers is not None:
            layers_of(config, n_layers, model.source.name)
    require_pairs(config, len(models))
    corpus, omissions = LazyCorpus(source), Omissions()
    probing = "probes" in config.measurements
    tasks = choose_tasks(config, corpus, omissions) if probing else []
    require_measurable(config, corpus)
    index, several = Index(), len(models) > 1
    asked = config.corpus_request
    others = [LazyCorpus(find_corpus(name, **asked)) for name in config.trained_elsewhere]
    runs: list[ModelRun] = []
    for each, model in zip(models, for_language(models, config.language, corpus), strict=True):
        model.corpus = corpus
        base = runs[0] if runs else None
        about = config, model, corpus, tasks, omissions, index, command, several, base
        elsewhere = [
            ModelRun(config, each.for_language(x), x, tasks, omissions, index, command)
            for x in others
        ]
        runs.append(ModelRun(*about, elsewhere))
    return runs
