"""A model that reads a corpus: views, stores of vectors, and the data of tasks."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.data.chats import has_further_keys
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import Examples, NotServedError, collect_examples
from probes.examples.scoring import marked_by_pieces
from probes.extraction.changing.interventions import Intervention
from probes.extraction.reading.alignment import WordTokenizer
from probes.extraction.reading.collectors import Collector
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import (
    Arrays,
    StoreRequest,
    as_given,
    full_store,
    read,
    read_changed,
    text_vectors,
    vectors_of,
    word_vectors,
)
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.store import Store, require_room
from probes.extraction.reading.text_vectors import pieces_at
from probes.extraction.reading.vectors import StoredVectors
from probes.extraction.reading.views import View, plain_text, plain_view
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import plug_ins_of, source_of
from probes.run.announcements import announce_tokens, announce_vectors
from probes.run.settings import options_of
from probes.run.task_choice import LeftOutError, Omission
from probes.tasks.positions import Position
from probes.tasks.task import Example, Excluded, ReadSite, Rule, Task, plain_name
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData

if TYPE_CHECKING:
    from probes.run.config import RunConfig
    from probes.run.inputs import Description, LazyCorpus, LazyModel
    from probes.run.jobs import Job
    from probes.run.model_run import ModelRun

ReadingKey = tuple[str, str]
"""Key of a store: the view of a task, by its name, or all sentences if it is empty; and the
measurement whose collector keeps something of it, or word vectors if that is empty."""


@dataclass
class CorpusReader:
    """A model and a corpus, with what jobs need of them, each made when it is first needed.

    Examples, stored vectors and features of a task stay for later jobs.

    Attributes:
        tasks: the run's tasks, whose texts are read.
        several: whether the model is one of several, so that messages name it.
        negatives: reads the corpus of `--threshold-from`.
        layers: those that are read, as far as they have been needed.
        speed: words per second, where this process alone has read the whole corpus as it is.
    """

    config: RunConfig
    model: LazyModel
    corpus: LazyCorpus
    tasks: Sequence[Task]
    several: bool
    negatives: CorpusReader | None = None
    _data: dict[str, ProbingData] = field(default_factory=dict)
    _views: dict[ReadingKey, View] = field(default_factory=dict)
    _stores: dict[ReadingKey, Store] = field(default_factory=dict)
    _collectors: dict[tuple[str, tuple[int, ...]], Collector | None] = field(default_factory=dict)
    layers: tuple[int, ...] = ()
    speed: float | None = None
    _shown: set[Position] = field(default_factory=set)

    @classmethod
    def of(cls, run: ModelRun) -> CorpusReader:
        """The reader of a run."""
        about = run.tasks, run.several
        negatives = cls(run.config, run.model, run.negatives, *about) if run.negatives else None
        return cls(run.config, run.model, run.corpus, *about, negatives)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.source.name

    @property
    def description(self) -> Description:
        """Facts of the model, also when its weights have been released."""
        return self.model.description

    @property
    def words(self) -> WordTokenizer | None:
        """The tokenizer; None for given vectors."""
        return self.description.words

    @cached_property
    def memory(self) -> int:
        """Bytes that training may take. Features that are held later do not make it smaller."""
        return self.config.memory or default_budget(self.description.device) // self.config.workers

    @property
    def sites(self) -> list[ReadSite | None]:
        """The sites of tasks that the model has."""
        unserved = self.description.unserved_sites
        return [site for site in self.config.task_sites if site not in unserved]

    def release(self) -> None:
        """Free the memory of the model, and of features; what was collected and encoded stays."""
        if self.model.is_loaded:
            _ = self.description
        self.forget_features()
        self.model.release()

    def forget_features(self) -> None:
        """Free the memory of features; they are made again when they are needed."""
        for store in self._stores.values():
            if isinstance(store, StoredVectors):
                store.forget_derived()

    def data(self, task: Task) -> ProbingData:
        """The data of a task.

        Raises:
            LeftOutError: it is not served.
        """
        if task.name not in self._data:
            self._data[task.name] = self._data_of(task)
        return self._data[task.name]

    def _data_of(self, task: Task) -> ProbingData:
        if task.site and (reason := self.description.unserved_sites.get(task.site)):
            raise LeftOutError(Omission.UNSERVED, self.name, f"probes of {task.site}", reason)
        with self._leaving_out(task):
            examples = self._examples(task)
        self.corpus.announce(examples)
        if task.position:
            self._announce_tokens(task.position, examples)
            self._check_options(examples)
        key = self.key_of_examples(examples)
        vectors = self.stored(key)
        assert isinstance(vectors, StoredVectors)
        return ProbingData(
            examples,
            self.view(key),
            vectors.of(task.position, task.site),
            self.description.device,
            project=self.config.project,
        )

    def require_served(self, task: Task | None, measurement: str) -> None:
        """Raise what `data` or `view` would if the corpus is too small; the model is not needed."""
        if task is None:
            self.view(("", measurement))
            return
        with self._leaving_out(task):
            self.corpus.examples(task, "masked")  # without a mask token there are no more

    @contextmanager
    def _leaving_out(self, task: Task) -> Iterator[None]:
        """Say with a LeftOutError that a task is not served, or at fault."""
        try:
            yield
        except NotServedError as error:
            asked_for = plain_name(task.name) in (*self.config.tasks, *self.config.own_tasks)
            if asked_for or error.by_limit:
                raise LeftOutError(Omission.UNSERVED, self.name, task.name, str(error)) from error
            raise LeftOutError(Omission.SKIPPED, task.name, str(error)) from error
        except TaskError as error:
            raise LeftOutError(Omission.FAILED, self.name, task.name, str(error)) from error

    def _all_examples(self, task: Task) -> Examples:
        """The examples of a task, in the view that this model can read."""
        return self.corpus.examples(task, self.description.hidden_view)

    def _examples(self, task: Task) -> Examples:
        """The examples of a task that this model can read.

        Raises:
            NotServedError, TaskError: there are none.
        """
        examples = self._all_examples(task)
        if self.words is not None:
            examples = marked_by_pieces(examples, self.words)
        elif examples.view != "plain":
            raise NotServedError(
                "it hides or changes words, but given vectors belong to whole sentences"
            )
        position = task.position
        if position and position.kind == "first" and self.description.info.causal:
            raise NotServedError(
                f"Task {task.name!r}: {self.name} reads from left to right, so that its "
                "first token knows nothing of the text; leave first out of --positions."
            )
        if position and self.config.text and not self.config.special_tokens:
            self._require_plain(examples)
        if position and position.name not in ("mean", "max", "first", "last", "all"):
            rule = partial(self._having, task.rule, position)
            corpus = self.corpus.value
            return collect_examples(replace(task, rule=rule), corpus, self.description.hidden_view)
        return examples

    def _require_plain(self, examples: Examples) -> None:
        """Check that texts were not made with the model's chat template."""
        if self.words is not None and self.words.chats.special:
            for split, part in examples.splits.items():
                for text, number in zip(part.texts, part.sentence, strict=True):
                    text_of = f"--text {self.config.text}: text {number + 1} of {split}"
                    self.words.chats.require_plain(text.words[0], text_of)

    def _having(
        self, rule: Rule, position: Position, text: Sentence
    ) -> Iterator[Example | Excluded]:
        """The examples of a rule in texts that have a piece at a position."""
        assert self.words is not None
        text_read = plain_text(text)
        there = bool(pieces_at(position, text_read, *self.words([text_read])))
        for example in rule(text):
            is_plain = there or isinstance(example, Excluded)
            yield example if is_plain else Excluded("text without this position")

    def negatives_of(self, task: Task) -> tuple[Corpus, View, StoredVectors]:
        """The negatives as a task reads them; see `TaskContext.negatives`."""
        reader, key = self.negatives, self.key_of_examples(self._all_examples(task))
        assert reader
        reader.need(self.layers)
        corpus, vectors = reader.corpus.value, reader.stored(key)
        assert isinstance(vectors, StoredVectors)
        return corpus, reader.view(key), vectors.of(task.position, task.site)

    def _announce_tokens(self, position: Position, examples: Examples) -> None:
        """Show the tokens at which the first training text is read, once for each position."""
        if position in self._shown or self.words is None or position.kind in ("mean", "max"):
            return
        self._shown.add(position)
        text = examples.splits["train"].texts[0]
        (pieces,) = self.words([text])
        around = ([], []) if text.rendered else (self.words.prefix, self.words.suffix)
        tokens = self.words.tokens(np.array([*around[0], *pieces.ids, *around[1]], dtype=np.int64))
        before, read = len(around[0]), pieces_at(position, text, pieces)
        first, last = (before + read[0], before + read[-1]) if read else (0, 0)
        announce_tokens(position, tokens, first, last)

    def _check_options(self, examples: Examples) -> None:
        """Check options of measurements that depend on tokens, before anything is encoded."""
        if self.words is not None:
            text = examples.splits["train"].texts[0]
            for name in self.config.about_corpus:
                get_measurement(name).check(self.words, text, options_of(self.config, name))

    def need(self, layers: Iterable[int]) -> None:
        """Read these layers too from now on; what was made with fewer is made again."""
        if not set(layers) <= set(self.layers):
            self.layers = tuple(sorted({*self.layers, *layers}))
            # They were made for fewer layers; views do not depend on layers, and stay.
            self._data.clear()
            self._stores.clear()

    def reading_key(self, job: Job) -> ReadingKey:
        """Text and collector that a job needs."""
        for task in self.tasks:
            if task.name == job.task:
                return self.key_of_examples(self._all_examples(task))
        return self.key_of_corpus(job.measurement)

    def key_of_examples(self, examples: Examples) -> ReadingKey:
        """Text and collector that a task's examples need.

        Texts are read once for all tasks, under the name of the first of them; and so is what a
        task shows for all sites, under its plain name.
        """
        if examples.task.position:
            return next(task.name for task in self.tasks if task.position), ""
        return "" if examples.view == "plain" else plain_name(examples.task.name), ""

    def _positions(self, name: str) -> list[Position]:
        """Positions in texts of the run's tasks; none if the task called `name` reads words."""
        position_by_task = {task.name: task.position for task in self.tasks if task.position}
        return list(dict.fromkeys(position_by_task.values())) if name in position_by_task else []

    def key_of_corpus(self, measurement: str) -> ReadingKey:
        """Text and collector that a measurement of the corpus needs."""
        return "", measurement if self._collector(measurement) else ""

    def view(self, key: ReadingKey) -> View:
        """The texts that are read for a task or a measurement."""
        if key not in self._views:
            (task, measurement), corpus = key, self.corpus
            if task and not self._positions(task):  # the texts of labels are the corpus
                task_of_view = next(x for x in self.tasks if plain_name(x.name) == task)
                view = self._all_examples(task_of_view).view_of(corpus.value)
            elif measurement:
                options = options_of(self.config, measurement)
                own_view = get_measurement(measurement).reads(corpus.value, options)
                view = own_view or self.view(("", ""))
            else:
                view = plain_view(corpus.value)
            self._views[key] = view
        return self._views[key]

    def read(self, view: View, collector: Collector) -> Iterator[tuple[Shard, Arrays]]:
        """Findings of a collector for each shard of a view; nothing is stored."""
        with self._explained(collector) as (encoder, batch_tokens):
            yield from read(view, collector, encoder, batch_tokens)

    def read_changed(
        self, view: View, collector: Collector, changes: Sequence[Sequence[Intervention]]
    ) -> Iterator[tuple[int, Arrays]]:
        """Findings of a collector for a view under interventions; nothing is stored."""
        with self._explained(collector) as (encoder, batch_tokens):
            yield from read_changed(view, collector, encoder, changes, batch_tokens)

    def store_request(self, key: ReadingKey) -> StoreRequest:
        """Reading of a place, with the layers that are needed so far."""
        measurement, view, dtype = key[1], self.view(key), self.model.dtype
        cache, name = self.config.cache_dir, self.corpus.source.name
        if measurement:
            collector = self._collector(measurement)
            assert collector is not None
            source = source_of(plug_ins_of(measurement=measurement))
            return StoreRequest(cache, self.description.info, dtype, view, collector, name, source)
        about = self.description.info, dtype, view, self.layers
        if positions := self._positions(key[0]):
            if self.words is None and any(x.kind != "mean" for x in positions):
                raise UserError(
                    f"{self.name}: is given one vector for each text; leave --positions out."
                )
            written = self._written(view)
            request = text_vectors(cache, *about, positions, name, written, self.sites, self.words)
        else:
            # Measurements of the corpus read layers.
            sites = list(dict.fromkeys((None, *self.sites)))
            request = word_vectors(cache, *about, self.config.pooling, name, sites)
        # Nothing is known of the range of given vectors, and their place in the files may change.
        return as_given(request, self.description.content) if self.description.content else request

    def _written(self, view: View) -> str:
        """Digest of what the chat template writes, where other digests do not tell."""
        chats = [text.words[0] for text in view.texts if text.chat]
        if self.words is None or not (self.model.chats or any(map(has_further_keys, chats))):
            return ""
        rendered = list(map(self.words.chats.render, chats))
        if unwritten := Counter(key for chat in rendered for key in chat.unwritten):
            counts = ", ".join(f"{key} ({n:,})" for key, n in sorted(unwritten.items()))
            self.description.notes["not written by the chat template"] = counts
            if (said := (self.words.chats.digest, counts)) not in self.corpus.said:
                self.corpus.said.add(said)
                progress.warn(f"{self.name}: the chat template does not write {counts}")
        return hashlib.sha256(repr([chat.text for chat in rendered]).encode()).hexdigest()

    def stored(self, key: ReadingKey) -> Store:
        """Store of a reading; what is missing is encoded now."""
        if key not in self._stores:
            self._stores[key] = self._stored(key)
        return self._stores[key]

    def _stored(self, key: ReadingKey) -> Store:
        request, clock = self.store_request(key), time.perf_counter()
        alone = self.config.workers == 1 and request.stored() is None
        store: Store
        if request.missing():
            require_room(request.cache, request.bytes_missing())
            with self._explained(request.collector) as (encoder, batch_tokens):
                make = full_store if key[1] else vectors_of
                store = make(request, encoder, batch_tokens)
        elif key[1]:  # the model need not be loaded again
            store = Store(request.cache, request.key)
        else:
            store = StoredVectors(request.cache, request.key, request.view)
        if isinstance(store, StoredVectors):
            seconds = time.perf_counter() - clock
            if key == ("", "") and alone:
                self.speed = store.manifest["rows"] / seconds
            name = self.name * self.several
            n_layers, untokenized = len(self.layers), bool(self.description.content)
            announce_vectors(name, request.view, store, n_layers, seconds, untokenized=untokenized)
        return store

    @contextmanager
    def _explained(self, collector: Collector) -> Iterator[tuple[Encoder, int | None]]:
        """The encoder and tokens of a batch; errors are explained if memory runs out."""
        reads_head = collector.reads_logits or collector.applies_head
        encoder = self.model.language_model if reads_head else self.model.encoder
        remedy = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", remedy):
            yield encoder, self.config.batch_tokens

    def _collector(self, measurement: str) -> Collector | None:
        """Collector of a measurement of the corpus; None for word vectors."""
        name = measurement, self.layers
        if name not in self._collectors:
            options, corpus = options_of(self.config, measurement), self.corpus.value
            collector = get_measurement(measurement).collector(corpus, self.layers, options)
            self._collectors[name] = collector
        return self._collectors[name]
