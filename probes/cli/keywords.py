"""The settings of a run as keywords; written by tools/write_keywords.py from `RunConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from probes.data.sentence import Corpus, Sentence


class Keywords(TypedDict, total=False):
    """What `probes.run_probes` takes beside a model: the flags of the command."""

    corpus: str | PathLike[str] | Sequence[str] | Corpus | Sequence[Sentence]
    """A registered name; a folder, files or a pattern; or a dataset on the hub."""
    split_by: Literal["document", "sentence"] | None
    """What must not be divided when a missing split is cut from another one; None cuts nothing."""
    drop_overlap: bool
    """Drop training sentences that occur word for word in dev or test."""
    task_from: str | Sequence[str]
    """Label columns of the user's own data; each becomes a task."""
    text: str
    """The column of texts in the user's own data; empty if rows have tokens."""
    label: str | Sequence[str]
    """Label columns of texts; each becomes a task for each of `sentence_pooling`."""
    sentence_pooling: str | Sequence[str]
    """How the vector of a text is made from those of its pieces: mean, cls, last, max."""
    group: str
    """The column that names what rows share, such as an author, which splits and resamples keep
    whole; if empty, `document` is looked for."""
    field: str
    """The key under which the rows of a JSON file lie, dotted where it is further below."""
    annotate: str
    """The spaCy pipeline that annotates raw text."""
    tasks: str | Sequence[str]
    """Names of tasks and groups; if empty: the standard tasks, those of `include` and the columns
    of `task_from`."""
    include: str | PathLike[str] | Sequence[str | PathLike[str]]
    """Python files with tasks, corpora, probe families, metrics or measurements."""
    probes: str | Sequence[str]
    layers: str | int | Sequence[int]
    """Layer numbers, empty for all; or "every:N", see `layers_of`."""
    measurements: str | Sequence[str]
    """"probes" stands for scores with their evidence; the others are those of the registry that
    measure a corpus as a whole."""
    evidence: str | Sequence[str]
    """What stands behind the scores: none; or standard, full or names of measurements, where names
    may follow one of the two."""
    transfer: bool
    """Each name in `corpus` is a corpus of its own, whose probes are scored on the others too."""
    options: dict[str, dict[str, Any]]
    """Options of measurements, by measurement."""
    seeds: int
    """Fits of each layer on the whole training split."""
    twins: int
    """Random twins of each pretrained model, measured too."""
    quick: bool
    """No evidence, and no random twin unless asked for."""
    dry_run: bool
    """Say what would be computed, and compute nothing."""
    project: int | None
    """Dimension of a random projection of every span's vector; None for no projection."""
    output: str | PathLike[str]
    data_dir: str | PathLike[str] | None
    cache_dir: str | PathLike[str]
    device: str
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    """Of the forward pass; for "auto" see `probes.engines.inputs.LazyModel.dtype`."""
    batch_tokens: int | Literal["auto"] | None
    """Tokens per forward pass; None for a fixed number per kind of device."""
    limit: int | None
    """Sentences per split; None for all."""
    overwrite: Literal["missing", "always", "never"]
    pooling: Literal["mean", "first", "last"]
    sites: str | Sequence[str]
    """Where the vectors of words are read that probes are fitted on: the output of a block, which
    is the layer; of its attention; of its MLP. Each but the first gives tasks of their own."""
    engine: Literal["local", "ray"]
    """Where units are computed: on this machine, or on Ray."""
    address: str | None
    """Of a Ray cluster that runs already, or "auto"; None to start Ray on this machine."""
    workers: int
    """Processes that compute the units of the run; with one, it is this process. On Ray, the most
    that there may be; if it is not given, as many as fit."""
    threads: int | None
    """Of each process; None for torch's choice, or for a share of the cores with several."""
    memory: int | str | None
    """Bytes that training may use in each process, as a number or as "2GB"; None for a share of
    what is free."""
    revision: str | None
    offline: bool
    trust_remote_code: bool
