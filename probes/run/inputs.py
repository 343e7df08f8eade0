"""The models and the corpus of a run, each loaded when it is first needed.

Nothing here imports torch before that, but to find a GPU for a checkpoint in a narrow type: a run
with nothing left to compute does without it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from probes.common.errors import NoHeadError, UserError
from probes.common.files import folder_name
from probes.compute.devices import DType, uses_cuda
from probes.data.sentence import Corpus
from probes.data.sources import Source
from probes.extraction.models.model_files import ModelSource, find_model, n_configured_layers
from probes.extraction.models.model_names import RANDOM_NAME, VECTORS, random_prefix
from probes.extraction.models.stored_dtype import stored_dtype
from probes.extraction.reading.chat_process import DATE
from probes.run.announcements import (
    announce_corpus,
    announce_given,
    announce_model,
    announce_own_dtype,
    announce_task,
)
from probes.run.config import RunConfig
from probes.statistics.partition import has_few
from probes.tasks.validation import TaskError

if TYPE_CHECKING:
    import torch

    from probes.examples.examples import Examples
    from probes.extraction.reading.alignment import WordTokenizer
    from probes.extraction.reading.encoder import Encoder
    from probes.extraction.reading.vector_files import GivenVectors
    from probes.extraction.reading.views import ViewName
    from probes.records.header import ModelRecord
    from probes.tasks.task import ReadSite, Task


_BEFORE_WEIGHTS = 1 << 26
"""Bytes of a GGUF file that include its chat template; other files with one are shorter."""


@dataclass(frozen=True)
class Description:
    """Facts of a loaded model, which stay when its weights are released.

    Attributes:
        info: the model's part of records.
        device: device of the forward pass.
        notes: notes on the model for records.
        words: the tokenizer; None for given vectors.
        hidden_view: the view of examples that hide a word: masked if there is a mask token.
        content: digest of given vectors; empty for a model that reads.
        unserved_sites: the sites asked for that the model lacks, each with the reason.
    """

    info: ModelRecord
    device: torch.device
    notes: dict[str, str]
    words: WordTokenizer | None
    hidden_view: ViewName
    content: str
    unserved_sites: Mapping[ReadSite | None, str]

    @classmethod
    def of(cls, encoder: Encoder, sites: Iterable[ReadSite | None]) -> Description:
        """Describe an encoder."""
        unserved_sites: dict[ReadSite | None, str] = {}
        for site in sites:
            try:
                if site is not None:
                    encoder.require(site)
            except UserError as error:
                unserved_sites[site] = str(error)
        return cls(
            encoder.info,
            encoder.device,
            encoder.notes,
            encoder.words if encoder.reads_text else None,
            "cut" if encoder.words.mask_id is None else "masked",
            encoder.content,
            unserved_sites,
        )


@dataclass
class LazyModel:
    """A model to probe: its files, and its encoder, which is loaded when it is first needed.

    Attributes:
        source: its files.
        config: how it is loaded.
        corpus: what is read; needed for vectors in files alone.
        in_memory: the model itself, if the user handed it over; it is never released.
        is_twin: whether it is measured only for comparison with the model that it is a twin of.
        name_given: how the user named it; empty for a model in memory.
    """

    source: ModelSource
    config: RunConfig
    corpus: LazyCorpus | None = None
    in_memory: Encoder | None = None
    is_twin: bool = False
    name_given: str = ""
    _head_error: NoHeadError | None = None

    @classmethod
    def of(cls, encoder: Encoder | GivenVectors, config: RunConfig) -> LazyModel:
        """A model, or vectors, that the user has handed over."""
        label, digest = encoder.info.name, encoder.info.digest
        slug = f"{folder_name(label)}-{digest[:8]}"
        causal = encoder.info.causal
        source = ModelSource(label, Path(), digest[:12], slug, None, digest, maybe_causal=causal)
        # Given vectors have all that is asked of an encoder whose texts are known.
        return cls(source, config, in_memory=cast("Encoder", encoder))

    def for_language_of(self, corpus: LazyCorpus) -> LazyModel:
        """The model for text in the language of a corpus, if it reads one language at a time."""
        if self.in_memory is not None or not self.source.languages:
            return self
        return replace(self, source=self.source.in_language(corpus.language) or self.source)

    @cached_property
    def dtype(self) -> DType:
        """The type of the forward pass.

        For `--dtype auto` float32; on a CUDA GPU the checkpoint's own type, if it is narrower.
        """
        if self.name_given.startswith(VECTORS):
            return "float32"
        if self.config.dtype != "auto":
            return self.config.dtype
        checkpoint_dtype = stored_dtype(self.source)
        if checkpoint_dtype == "float32" or not uses_cuda(self.config.device):
            return "float32"
        announce_own_dtype(self.source, checkpoint_dtype)
        return checkpoint_dtype

    @cached_property
    def chats(self) -> str:
        """The value of `EncodingRecord.chats`; known before the model is loaded."""
        if not self.config.messages:
            return ""
        if self.in_memory is not None:
            return self.in_memory.words.chats.digest if self.in_memory.reads_text else ""
        dated = False
        for path in self.source.files:
            if path.suffix != ".safetensors":
                with path.open("rb") as file:
                    dated |= b"strftime_now" in file.read(_BEFORE_WEIGHTS)
        return DATE if dated else ""

    @cached_property
    def encoder(self) -> Encoder:
        """The model, on its device; with its head if one is needed, so that it is loaded once."""
        if self.config.reads_head and not self.config.dry_run and self.head_error is None:
            return self.language_model
        return self.in_memory or self._load(lm_head=False)

    @cached_property
    def head_error(self) -> NoHeadError | None:
        """The reason why it has no language-model head, which loading it shows; None if it has."""
        with suppress(NoHeadError):
            _ = self.language_model
        return self._head_error

    @cached_property
    def description(self) -> Description:
        """Facts of the model, which has to be loaded for them once."""
        return Description.of(self.encoder, self.config.task_sites)

    @cached_property
    def n_layers(self) -> int:
        """Number of blocks; the model is loaded only if its config.json does not say."""
        if self.in_memory is not None:  # it has no folder, and so no config.json
            return self.in_memory.info.n_layers
        return n_configured_layers(self.source.config) or self.description.info.n_layers

    @cached_property
    def language_model(self) -> Encoder:
        """The model with its language-model head.

        Raises:
            NoHeadError: it has none.
        """
        if self._head_error is not None:
            raise self._head_error
        try:
            encoder = self.in_memory or self._load(lm_head=True)
            if not encoder.has_head:
                raise NoHeadError.of(self.source.name)
        except NoHeadError as error:
            # Another one, since the frames of this one hold the weights.
            self._head_error = NoHeadError(str(error))
            raise
        return encoder

    def _load(self, *, lm_head: bool) -> Encoder:
        from probes.compute.memory import explain_out_of_memory
        from probes.extraction.models.loading import load_encoder

        if self.name_given.startswith(VECTORS):
            from probes.extraction.reading.vector_files import read_vectors

            assert self.corpus is not None
            vectors = read_vectors(self.source, self.corpus.value)
            announce_given(vectors.info, self.source)
            # Given vectors have all that is asked of an encoder whose texts are known.
            return cast("Encoder", vectors)
        remedy = "use --dtype bfloat16, another --device, a smaller model, or free some memory."
        with explain_out_of_memory(f"loading {self.source.name}", remedy):
            encoder = load_encoder(
                self.source,
                device=self.config.device,
                dtype=self.dtype,
                trust_remote_code=self.config.trust_remote_code,
                lm_head=lm_head,
                planned=self.config.dry_run,
            )
        if not self.config.dry_run:
            announce_model(encoder, self.source, is_twin=self.is_twin)
        return encoder

    @property
    def is_loaded(self) -> bool:
        """Whether it is in memory."""
        return self.in_memory is not None or "encoder" in self.__dict__

    def release(self) -> None:
        """Free the memory of a model that was loaded here; using it again loads it again."""
        loaded = [self.__dict__.pop(name, None) for name in ("encoder", "language_model")]
        if any(loaded) and self.in_memory is None:
            del loaded
            gc.collect()  # accelerate's hooks form reference cycles

    def close(self) -> None:
        """Release it at the end of a run; what describes vectors in files is of one corpus."""
        self.release()
        self.__dict__.pop("description", None)


@dataclass
class LazyCorpus:
    """A corpus, read when it is first needed."""

    source: Source
    said: set[tuple[str, str]] = field(default_factory=set)
    """Subjects of messages that appear once for all models."""
    _examples: dict[tuple[str, ViewName], Examples | Exception] = field(default_factory=dict)

    def examples(self, task: Task, hiding: ViewName) -> Examples:
        """The examples of a task, collected once for all sites; see `collect_examples`.

        What is wrong with them is found once too.
        """
        from probes.examples.examples import NotServedError, collect_examples

        plain = task.at(None)
        name = plain.name, hiding
        if name not in self._examples:
            try:
                self._examples[name] = collected = collect_examples(plain, self.value, hiding)
                if collected.view != hiding:  # no word is hidden: all models read the same
                    self._examples[plain.name, "cut"] = collected
            except (NotServedError, TaskError) as error:
                self._examples[name] = error
            unserved = self._examples[name]
            if self.value.limited and isinstance(unserved, NotServedError):
                # Raising the limit is no remedy if the whole corpus does not serve the task either.
                try:
                    collect_examples(plain, self._whole, hiding)
                    unserved.by_limit = True
                except NotServedError as of_whole:
                    self._examples[name] = of_whole
        examples = self._examples[name]
        if isinstance(examples, Exception):
            raise examples
        return replace(examples, task=task) if task.site else examples

    def announce(self, examples: Examples) -> None:
        """Describe the examples of a task, once for all models."""
        plain = examples.task.at(None)
        if (about := (plain.name, examples.view)) not in self.said:
            self.said.add(about)
            announce_task(replace(examples, task=plain))

    @cached_property
    def _whole(self) -> Corpus:
        """The corpus without `--limit`."""
        return replace(self.source, limit=None).load()

    @property
    def layers(self) -> frozenset[str]:
        """The annotation layers; reads the corpus only if nothing else says which it has."""
        layers = self.source.layers
        return self.value.layers if layers is None else layers

    @cached_property
    def has_few_documents(self) -> bool:
        """Whether too few documents are named in test; reads a corpus that is not known."""
        if self.source.items or not (self.source.from_user or self.source.limit):
            return False
        return has_few(sentence.document for sentence in self.value.splits["test"])

    @property
    def language(self) -> str:
        """The language of all sentences, which are read; empty if there are several."""
        splits = self.value.splits.values()
        codes = {sentence.language for split in splits for sentence in split}
        return codes.pop() if len(codes) == 1 else ""

    @cached_property
    def value(self) -> Corpus:
        """The sentences; their counts are printed when they are read."""
        corpus = self.source.load()
        announce_corpus(corpus, self.source.group)
        return corpus


def find_models(names: Sequence[str], config: RunConfig) -> list[LazyModel]:
    """Find each model once, and its random twins, before anything is computed.

    A twin is added once for all models that it is the same for. Revisions of a model on the hub
    share their twins, which are made of the first one's files.

    Raises:
        UserError: there is none, one cannot be found, or two different models share a name.
    """
    models: dict[str, LazyModel] = {}
    twins = [
        random_prefix(seed) + name
        for name in names
        for seed in range(config.twins)
        if not (RANDOM_NAME.fullmatch(name) or name.startswith(VECTORS))
    ]
    for name in dict.fromkeys((*names, *twins)):
        if name.startswith(VECTORS):
            from probes.extraction.reading.vector_files import find_vectors

            source = find_vectors(name)
        else:
            how = {"offline": config.offline, "planned": config.dry_run}
            source = find_model(name, revision=config.revision, load=config.load, **how)
        is_twin = name not in names
        if is_twin and any(source.digest == model.source.digest for model in models.values()):
            continue
        model = LazyModel(source, config, is_twin=is_twin, name_given=name)
        namesake = models.setdefault(source.name, model).source
        if namesake.digest != source.digest and not namesake.shares_hub_id(source):
            raise UserError(
                f"--model {name}: {namesake.folder} and {source.folder} are different "
                "models with the same name; rename a folder, or run them one after the other."
            )
    if not models:
        raise UserError("--model is missing: give a hub id, a folder, or all-MiniLM-L6-v2.")
    return list(models.values())
