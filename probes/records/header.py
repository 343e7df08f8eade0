"""The header of a record: its model, corpus, task and vectors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from probes.data.sources import OTHER_TREES
from probes.records.values import Frozen, Name
from probes.tasks.task import Kind, ReadSite

Count = Annotated[int, Field(ge=0)]


class CorpusRecord(Frozen):
    """The corpus that the model was probed on."""

    name: Name
    version: Name
    licence: Name
    citation: str
    """BibTeX; empty for the user's own text."""
    silver: tuple[str, ...]
    """Annotation layers that a machine made."""
    digest: str
    """SHA-256 over the source files, the reader's version and the limit."""
    digest_of_task: str = ""
    """`digest` with the further files that the task reads; empty if there are none."""
    fingerprint: str
    """SHA-256 over every word and annotation."""
    sentences: dict[str, Count]
    words: dict[str, Count]
    notes: dict[str, Count]
    group: str = ""
    """Column of the user's own data that stands for documents; empty if none was named."""
    limit: int | None
    limited: bool
    """Whether the limit left sentences out."""

    @property
    def other_trees(self) -> bool:
        """Whether its trees are of another scheme than UD's."""
        return any(note.startswith(OTHER_TREES) for note in self.notes)


class PlugIn(Frozen):
    """Code of a plug-in that decided the scores, identified by its source."""

    kind: Name
    """"task", "metric", "probe family" or "measurement"."""
    name: Name
    source: Name
    """The file as the user named it, or the module."""
    distribution: str
    """Name and version of the package; empty for a file."""
    sha256: str
    """Digest of the file, or of the package's Python files."""


class TaskRecord(Frozen):
    """The task whose labels were probed."""

    name: Name
    version: int
    needs: tuple[str, ...]
    """Annotation layers that the task reads, or the substitutes for those that the corpus lacks."""
    kind: Kind
    shape: str
    metric: str
    site: ReadSite | None = None
    """The part of block b whose output stands for layer b; None for the layer itself."""
    fpr: float | None = Field(default=None, gt=0, lt=1)
    """Highest false-positive rate on dev of the threshold; None where there is none."""

    @property
    def ranking(self) -> tuple[str, float] | None:
        """Headline metric and false-positive rate; None without a threshold."""
        return None if self.fpr is None else (self.metric, self.fpr)


class ExampleCounts(Frozen):
    """The examples that the task found in the corpus."""

    n: dict[str, Count]
    """Examples by split."""
    labels: dict[str, Annotated[tuple[Count, ...], Field(min_length=3, max_length=3)]]
    """Examples of each label in train, dev and test; empty for regression."""
    excluded: dict[str, dict[str, Count]]
    """Candidates left out, by split and reason."""
    unseen_test_labels: dict[str, Count]
    """Test examples with a label that is not in train; each counts as an error."""
    groups: dict[str, Count]
    """Test examples in each breakdown."""
    typed: bool
    """Whether every example has a type, which control tasks depend on."""
    covered_sentences: Count | None
    """Test sentences that the headline metric covers, where it does not cover all."""
    resampled: Literal["documents", "sentences"]
    """Units that intervals and tests resample."""
    clusters: Count
    """Number of these units with test examples."""
    test_digest: str
    """SHA-256 of the test labels, their sentences, and what is resampled; two results can be paired
    only if it is equal."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of train, sorted, as outputs of probes are; empty for regression."""
        return tuple(sorted(label for label, (train, *_) in self.labels.items() if train))


class EncodingRecord(Frozen):
    """Settings and counts of the computation of vectors."""

    storage: str
    unknown_words: int
    """Words that hold the unknown token, or are replaced by it since they have no subword."""
    texts_in_several_windows: int
    batch_tokens: int
    chats: str = ""
    """The day that the chat template was told, if it asks, or its SHA-256 for a model in memory."""


MOST_LAYERS = 10_000
"""No real model has more."""


class ModelRecord(Frozen):
    """The model that was probed."""

    name: Name
    revision: Name
    digest: str
    """SHA-256 over configuration, tokenizer and weights."""
    architecture: Name
    n_layers: int = Field(ge=0, le=MOST_LAYERS)
    """Blocks; layers are numbered 0 to n_layers, 0 being the embedding output."""
    hidden_size: int = Field(ge=0)
    parameters: int = Field(ge=0, lt=1 << 63)
    window: int = Field(ge=0)
    """Tokens that the model reads at once, special ones included; 0 for given vectors."""
    causal: bool
    """Whether a word's vector knows only the words before it."""
    random_seed: int | None
    """Seed of the initialisation of a random twin; None for pretrained weights."""
    configuration: str = ""
    """SHA-256 over configuration and tokenizer, equal for a model and its random twins; empty for a
    model in memory, and in older records."""

    @property
    def reads_text(self) -> bool:
        """Whether it can read other texts; given vectors cannot."""
        return self.window > 0
