"""What is prepared of a model in this process: its device, and the data and vectors of tasks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from probes.common.errors import UserError
from probes.compute.devices import MAP, pick_device
from probes.compute.memory import explain_out_of_memory
from probes.run.announcements import announce_vectors
from probes.run.config import RunConfig
from probes.run.settings import options_of
from probes.run.unit import Place, Unit
from probes.examples.examples import Examples, NotServedError
from probes.examples.scoring import marked_by_pieces
from probes.extraction.collectors import Collector, CollectorError, OutOfRangeError
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import (
    Arrays,
    Reading,
    as_given,
    collect,
    collected,
    read,
    read_changed,
    require_space,
    text_vectors,
    vectors_of,
    word_vectors,
)
from probes.extraction.interventions import Intervention
from probes.extraction.shards import Shard
from probes.extraction.store import Store
from probes.extraction.vectors import Vectors
from probes.extraction.views import View, ViewName, plain_view
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import plug_ins_of, plugin_failure, source_of
from probes.records.header import ModelRecord
from probes.tasks.task import Sublayer, Task, TextPooling, plain_name
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData

if TYPE_CHECKING:
    from probes.run.model_run import ModelRun


def prepare_torch(config: RunConfig) -> None:
    """Set the number of threads, and check the device before anything is computed.

    Raises:
        UserError: there is no such device.
    """
    if config.threads_per_process is not None:
        torch.set_num_threads(config.threads_per_process)
    if config.device != MAP:
        pick_device(config.device)


@dataclass
class Prepared:
    """A model with what its units need, each made when it is first needed.

    What is prepared for a task (examples, stored vectors, features) stays for its later units.

    Attributes:
        base: the same of the model that this one is compared with; None for the first model.
        layers: those that are read, as far as they have been needed.
        speed: words per second, where this process alone has read the whole corpus as it is.
    """

    run: ModelRun
    base: Prepared | None = None
    _tasks: dict[str, ProbingData | None] = field(default_factory=dict)
    _views: dict[Place, View] = field(default_factory=dict)
    _stores: dict[Place, Store] = field(default_factory=dict)
    _collectors: dict[tuple[str, tuple[int, ...]], Collector | None] = field(default_factory=dict)
    layers: tuple[int, ...] = ()
    speed: float | None = None

    # What remains known of a model when its weights have been released.

    @cached_property
    def info(self) -> ModelRecord:
        """Its description."""
        return self.run.model.encoder.info

    @cached_property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.run.model.encoder.device

    @cached_property
    def notes(self) -> dict[str, str]:
        """What its records say of it beside its description."""
        return self.run.model.encoder.notes

    @cached_property
    def hidden_view(self) -> ViewName:
        """The view of examples that hide a word: masked if the model has a mask token."""
        return "cut" if self.run.model.encoder.words.mask_id is None else "masked"

    @cached_property
    def content(self) -> str:
        """Digest of vectors that were given; empty for a model that reads."""
        return self.run.model.encoder.content

    @cached_property
    def sites(self) -> list[Sublayer | None]:
        """Where word vectors are read: at layers, and at those sites asked for that the model has.

        The others are reported.
        """
        found: list[Sublayer | None] = [None]
        for site in self.run.config.task_sites:
            if site is None:
                continue
            try:
                self.run.model.encoder.require(site)
                found.append(site)
            except UserError as error:
                self.run.omissions.not_served(self.run.name, f"probes of {site}", str(error))
        return found

    def release(self) -> None:
        """Free the memory of the model, and of features; what was collected and encoded stays."""
        if self.run.model.is_loaded:
            _ = self.info, self.device, self.notes, self.hidden_view, self.content, self.sites
        self.forget_features()
        self.run.model.release()

    def forget_features(self) -> None:
        """Free the memory of features; they are made again when they are needed."""
        for store in self._stores.values():
            if isinstance(store, Vectors):
                store.forget_derived()

    def task(self, task: Task) -> ProbingData | None:
        """The data of a task; None if it is not served, which is reported."""
        if task.name not in self._tasks:
            self._tasks[task.name] = self._prepare(task)
        return self._tasks[task.name]

    def _prepare(self, task: Task) -> ProbingData | None:
        config, encoder = self.run.config, self.run.model.encoder
        if task.site not in self.sites:
            return None
        try:
            examples = self.run.corpus.examples(task, self.hidden_view)
            if encoder.reads_text:
                examples = marked_by_pieces(examples, encoder.words)
            elif examples.view != "plain":
                raise NotServedError(
                    "it hides or changes words, and given vectors are of whole sentences"
                )
            if task.pooling == "cls" and self.info.causal:
                raise NotServedError(
                    f"Task {task.name!r}: {self.info.name} reads from left to right, so that its "
                    "first token knows nothing of the text; leave cls out of --sentence-pooling."
                )
        except NotServedError as error:
            asked_for = plain_name(task.name) in (*config.tasks, *config.own_tasks)
            if asked_for or error.by_limit:
                self.run.omissions.not_served(self.run.name, task.name, str(error))
            else:
                self.run.omissions.skip(task.name, str(error))
            return None
        except TaskError as error:
            self.run.omissions.fail(self.run.name, task.name, str(error))
            return None
        self.run.corpus.announce(examples)
        place = self.place_of(examples)
        vectors = self.stored(place)
        assert isinstance(vectors, Vectors)
        return ProbingData(
            examples,
            self.view(place),
            vectors.of(task.pooling or task.site),
            self.device,
            project=config.project,
        )

    def need(self, layers: Iterable[int]) -> None:
        """Read these layers too from now on; what was prepared with fewer is prepared again."""
        if not set(layers) <= set(self.layers):
            self.layers = tuple(sorted({*self.layers, *layers}))
            self._tasks.clear()
            self._stores.clear()

    def place(self, unit: Unit) -> Place:
        """What the model has to have read for a unit.

        Raises:
            NotServedError, TaskError: the corpus does not serve its task after all.
        """
        if unit.task is not None:
            return self.place_of(self.run.corpus.examples(unit.task, self.hidden_view))
        return self.corpus_place(unit.measurement)

    def place_of(self, examples: Examples) -> Place:
        """What the model has to have read for a task's examples.

        Texts are read once for all tasks, under the name of the first of them; and so is what a
        task shows for all sites, under its plain name.
        """
        if examples.task.pooling:
            return next(task.name for task in self.run.tasks if task.pooling), ""
        return "" if examples.view == "plain" else plain_name(examples.task.name), ""

    def _poolings(self, name: str) -> list[TextPooling]:
        """How the run's tasks pool texts; in no way if the task called `name` reads words."""
        pooled = {task.name: task.pooling for task in self.run.tasks if task.pooling}
        return list(dict.fromkeys(pooled.values())) if name in pooled else []

    def corpus_place(self, measurement: str) -> Place:
        """What the model has to have read for a measurement of the corpus as a whole."""
        return "", measurement if self._collector(measurement) else ""

    def view(self, place: Place) -> View:
        """The texts that are read for a task or a measurement."""
        if place not in self._views:
            (task, measurement), corpus = place, self.run.corpus
            if task:
                its = next(each for each in self.run.tasks if plain_name(each.name) == task)
                made = corpus.examples(its, self.hidden_view).view_of(corpus.value)
            elif measurement:
                options = options_of(self.run.config, measurement)
                own = get_measurement(measurement).view(corpus.value, options)
                made = own or plain_view(corpus.value)
            else:
                made = plain_view(corpus.value)
            self._views[place] = made
        return self._views[place]

    def read(self, view: View, collector: Collector) -> Iterator[tuple[Shard, Arrays]]:
        """What a collector finds in each shard of a view; nothing is stored."""
        with self._explained(collector) as (encoder, batch_tokens):
            yield from read(view, collector, encoder, batch_tokens)

    def read_changed(
        self, view: View, collector: Collector, changes: Sequence[Sequence[Intervention]]
    ) -> Iterator[tuple[int, Arrays]]:
        """What a collector finds in a view under interventions; nothing is stored."""
        with self._explained(collector) as (encoder, batch_tokens):
            yield from read_changed(view, collector, encoder, changes, batch_tokens)

    def reading(self, place: Place) -> Reading:
        """How the model reads what `place` names: the layers needed so far."""
        measurement, run, view = place[1], self.run, self.view(place)
        cache, name = run.config.cache_dir, run.corpus.source.name
        if measurement:
            collector = self._collector(measurement)
            assert collector is not None
            source = source_of(plug_ins_of(measurement=measurement))
            return Reading(cache, self.info, run.model.dtype, view, collector, name, source)
        about = self.info, run.model.dtype, view, self.layers
        if poolings := self._poolings(place[0]):
            return text_vectors(cache, *about, poolings, name)
        reading = word_vectors(cache, *about, run.config.pooling, name, self.sites)
        # Nothing is known of the range of given vectors, and their place in the files may change.
        return as_given(reading, self.content) if self.content else reading

    def stored(self, place: Place) -> Store:
        """What is kept of a reading, from the store or encoded now."""
        if place not in self._stores:
            reading, clock = self.reading(place), time.perf_counter()
            alone = self.run.config.workers == 1 and reading.stored() is None
            with self._explained(reading.collector) as (encoder, batch_tokens):
                if place[1]:
                    require_space([reading])
                    found = collected(reading, encoder, batch_tokens)
                else:
                    found = vectors_of(reading, encoder, batch_tokens)
                    seconds = time.perf_counter() - clock
                    if place == ("", "") and alone:
                        self.speed = found.manifest["rows"] / seconds
                    name = self.run.name * self.run.several
                    n_layers, given = len(self.layers), bool(self.content)
                    announce_vectors(name, reading.view, found, n_layers, seconds, given=given)
            self._stores[place] = found
        return self._stores[place]

    def encode(self, place: Place, shard: int) -> None:
        """Make one shard of a reading, unless another process is making it."""
        try:
            reading = self.reading(place)
            with self._explained(reading.collector) as (encoder, batch_tokens):
                collect(reading, encoder, batch_tokens, only=shard)
        except (OutOfRangeError, CollectorError):
            pass  # whoever needs the shard makes it in a wider type, or reports what is wrong
        except Exception as error:
            if not (place[1] and plugin_failure(error, place[1], None, "")):
                raise

    @contextmanager
    def _explained(self, collector: Collector) -> Iterator[tuple[Encoder, int | None]]:
        """What reads, with an explanation if memory runs out."""
        model, config = self.run.model, self.run.config
        encoder = (
            model.language_model
            if collector.reads_logits or collector.applies_head
            else model.encoder
        )
        remedy = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", remedy):
            yield encoder, config.batch_tokens

    def _collector(self, measurement: str) -> Collector | None:
        """What a measurement of the corpus as a whole keeps itself; None for word vectors."""
        name = measurement, self.layers
        if name not in self._collectors:
            its, options = get_measurement(measurement), options_of(self.run.config, measurement)
            self._collectors[name] = its.collector(self.run.corpus.value, self.layers, options)
        return self._collectors[name]
