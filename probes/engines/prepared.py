"""What is prepared of a model in this process: its device, and the data and vectors of tasks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from probes.compute.devices import MAP, pick_device
from probes.compute.memory import explain_out_of_memory
from probes.compute.precision import fit_dtype_of
from probes.engines.announcements import announce_task, announce_vectors
from probes.engines.config import RunConfig
from probes.examples.breakdowns import marked_by_pieces
from probes.examples.examples import Examples, NotServedError
from probes.extraction.encoding import open_or_encode
from probes.extraction.store import StoreKey, Vectors
from probes.extraction.views import View, ViewName, plain_view
from probes.records.header import ModelRecord
from probes.tasks.task import Task
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData

if TYPE_CHECKING:
    from probes.engines.model_run import ModelRun


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

    Every view is encoded once. What is prepared for a task (examples, stored vectors, features)
    stays for its later units.
    """

    run: ModelRun
    _tasks: dict[str, tuple[ProbingData, Vectors] | None] = field(default_factory=dict)
    _views: dict[str, tuple[View, Vectors]] = field(default_factory=dict)

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
    def runs_own_code(self) -> bool:
        """Whether it runs code from its folder."""
        return self.run.model.encoder.remote_code

    @cached_property
    def hidden_view(self) -> ViewName:
        """The view of examples that hide a word: masked if the model has a mask token."""
        return "cut" if self.run.model.encoder.words.mask_id is None else "masked"

    def release(self) -> None:
        """Free the memory of the model, and of features; what was collected and encoded stays."""
        _ = self.info, self.device, self.runs_own_code, self.hidden_view
        self.forget_features()
        self.run.model.release()

    def forget_features(self) -> None:
        """Free the memory of features; they are made again when they are needed."""
        for _view, vectors in self._views.values():
            vectors.forget_derived()

    def task(self, task: Task) -> tuple[ProbingData, Vectors] | None:
        """Data and stored vectors of a task; None if it is not served, which is reported."""
        if task.name not in self._tasks:
            self._tasks[task.name] = self._prepare(task)
        return self._tasks[task.name]

    def _prepare(self, task: Task) -> tuple[ProbingData, Vectors] | None:
        corpus, config, encoder = self.run.corpus.value, self.run.config, self.run.model.encoder
        try:
            examples = self.run.corpus.examples(task, self.hidden_view)
            examples = marked_by_pieces(examples, encoder.words)
        except NotServedError as error:
            asked_for = task.name in (*config.tasks, *config.task_from)
            if asked_for or corpus.limited:
                self.run.omissions.not_served(self.run.name, task.name, str(error))
            else:
                self.run.omissions.skip(task.name, str(error))
            return None
        except TaskError as error:
            self.run.omissions.fail(self.run.name, task.name, str(error))
            return None
        announce_task(examples)
        view, vectors = self._view_of(examples)
        data = ProbingData(
            examples,
            view,
            vectors,
            self.device,
            project=config.project,
            fit_dtype=fit_dtype_of(config.fit_dtype),
        )
        return data, vectors

    def _view_of(self, examples: Examples) -> tuple[View, Vectors]:
        if examples.view == "plain":
            return self.view("plain", plain_view(self.run.corpus.value))
        return self.view(examples.task.name, examples.view_of(self.run.corpus.value))

    def view(self, name: str, view: View) -> tuple[View, Vectors]:
        """A view and its vectors, encoded unless they are stored already."""
        if name in self._views:
            return self._views[name]
        config, encoder = self.run.config, self.run.model.encoder
        key = StoreKey(self.run.model.source.digest, view.digest, config.pooling, config.dtype)
        clock = time.perf_counter()
        remedy = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", remedy):
            vectors = open_or_encode(
                config.cache_dir,
                key,
                view,
                encoder,
                config.batch_tokens,
                self.run.corpus.source.name,
            )
        announce_vectors(view, vectors, time.perf_counter() - clock)
        self._views[name] = view, vectors
        return view, vectors
