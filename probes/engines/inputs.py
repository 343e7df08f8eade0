"""What a run is about: a model and a corpus, each read when it is first needed.

No torch here before that: a run that has nothing left to compute does without.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.sentence import Corpus
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.extraction.model_files import RANDOM_NAME, ModelSource, find_model, random_prefix

if TYPE_CHECKING:
    from probes.extraction.encoder import Encoder


@dataclass
class Subject:
    """A model to probe: found, and loaded when it is first needed."""

    source: ModelSource
    config: RunConfig
    loaded: Encoder | None = None

    @cached_property
    def encoder(self) -> Encoder:
        """The model, on its device."""
        if self.loaded is not None:
            return self.loaded
        from probes.extraction.loading import load_encoder

        clock = time.perf_counter()
        from probes.compute.memory import explain_out_of_memory

        advice = "use --dtype bfloat16, another --device, a smaller model, or free some memory."
        with explain_out_of_memory(f"loading {self.source.name}", advice):
            encoder = load_encoder(
                self.source,
                device=self.config.device,
                dtype=self.config.dtype,
                trust_remote_code=self.config.trust_remote_code,
            )
        info = encoder.info
        if encoder.remote_code:
            progress.insist(
                f"--model {info.name} runs code from its own folder; its results say so",
                "remote code",
                folder=str(self.source.folder),
            )
        progress.say(
            f"model   {info.name} · {info.architecture} · {info.n_layers} layers × "
            f"{info.hidden_size} · {info.parameters / 1e6:.1f} M parameters · window {info.window} "
            f"· {encoder.device} · loaded in {time.perf_counter() - clock:.1f} s",
            "model",
            **info.model_dump(),
        )
        return encoder

    def release(self) -> None:
        """Let go of the model, unless it was handed over; asked for again, it is loaded again."""
        if self.__dict__.pop("encoder", None) is not None and self.loaded is None:
            gc.collect()  # what accelerate hooks into refers to itself


@dataclass
class LazyCorpus:
    """A corpus that is read when it is first looked into."""

    source: Source

    @property
    def layers(self) -> frozenset[str]:
        """The annotation layers that it has; reads it only if nothing else can tell."""
        layers = self.source.layers
        return self.value.layers if layers is None else layers

    @cached_property
    def value(self) -> Corpus:
        """The sentences; counts and fingerprint are printed."""
        clock = time.perf_counter()
        corpus = self.source.load()
        sentences, words = corpus_counts(corpus)
        progress.say(
            f"corpus  {' '.join(filter(None, (corpus.name, corpus.version)))} "
            f"({corpus.licence or 'licence not stated'}) · "
            f"{per_split(sentences)} sentences, {per_split(words)} words · fingerprint "
            f"{corpus.fingerprint[:16]} · read in {time.perf_counter() - clock:.1f} s",
            "corpus",
            name=corpus.name,
            version=corpus.version,
            sentences=sentences,
            words=words,
            fingerprint=corpus.fingerprint,
        )
        for what, count in corpus.notes.items():
            progress.say(f"        {what}: {count:,}", "corpus note", what=what, count=count)
        return corpus


def per_split(counts: dict[str, int]) -> str:
    """Counts of train, dev and test as one text: ``12,544 / 2,001 / 2,077``."""
    return " / ".join(f"{count:,}" for count in counts.values())


def corpus_counts(corpus: Corpus) -> tuple[dict[str, int], dict[str, int]]:
    """Sentences and words by split."""
    sentences = {split: len(part) for split, part in corpus.splits.items()}
    words = {split: sum(map(len, part)) for split, part in corpus.splits.items()}
    return sentences, words


def find_models(names: Sequence[str], config: RunConfig) -> list[ModelSource]:
    """Find every model, each once, and its random twins, before anything is computed.

    Raises:
        UserError: one cannot be found, or two different ones would have the same name.
    """
    found: dict[str, ModelSource] = {}
    twins = [
        random_prefix(seed) + name
        for name in names
        for seed in range(config.twins)
        if not RANDOM_NAME.fullmatch(name)
    ]
    for name in dict.fromkeys((*names, *twins)):
        source = find_model(name, revision=config.revision, offline=config.offline)
        if found.setdefault(source.name, source).digest != source.digest:
            raise UserError(
                f"--model {name}: {found[source.name].folder} and {source.folder} are different "
                f"models of the same name; rename a folder, or run them one after the other."
            )
    if not found:
        raise UserError("--model is missing: give a hub id, a folder, or all-MiniLM-L6-v2.")
    return list(found.values())
