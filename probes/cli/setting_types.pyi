# Written by tools/write_setting_types.py from RunConfig.

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

class FitSettings(TypedDict, total=False):
    positions: str | Sequence[str]
    """where texts are read: mean, max, first, last, last:N, after:STRING, match:REGEX; at every
    token: all, all:last:N; in chats also user, assistant, all:user, all:assistant"""
    metric: Literal["auroc", "recall_at_fpr"] | None
    """rank texts of two classes, and choose layers by that score (default: accuracy)"""
    fpr: float
    """false-positive rate for recall and for a threshold set on dev; with --metric"""
    threshold_from: str
    """corpus of negatives that sets it instead of dev"""
    annotate: str
    """spaCy pipeline to annotate raw text with"""
    include: str | Path | Sequence[str | Path]
    """Python files with your own tasks, corpora, probes, metrics or measurements"""
    probes: str | Sequence[str]
    """probe families: linear, mlp, mean-difference, sparse, multi-layer, or a plug-in's; for every
    token of a text: token-mean, token-max, attention"""
    measurements: str | Sequence[str]
    """what to measure: scores (with their evidence), or others from --list-measurements"""
    evidence: str | Sequence[str]
    """evidence behind scores, from --list-measurements"""
    quick: bool
    """only scores: no evidence, and no twins without --twins"""
    transfer: bool
    """score the probes of each corpus on the other corpora"""
    seeds: int
    """trainings of each probe, from other seeds"""
    twins: int
    """copies of each model with random weights"""
    project: int | None
    """project vectors at random to N dimensions"""
    output: str | Path
    """folder for results"""
    data_dir: str | Path | None
    """folder with corpora (PROBES_DATA_DIR)"""
    cache_dir: str | Path
    """folder for vectors and downloads (PROBES_CACHE_DIR)"""
    device: str
    """auto, cpu, cuda, cuda:N, mps or map"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    """dtype of the forward pass; auto is float32, or on a CUDA GPU the checkpoint's own"""
    load: Literal["8bit", "4bit"] | None
    """quantise the weights on loading, with bitsandbytes"""
    batch_tokens: int | str | None
    """tokens per forward pass (default: by kind of device)"""
    overwrite: Literal["missing", "always", "never"]
    """compute what is missing, always everything, or never what exists"""
    pooling: Literal["mean", "first", "last"]
    """how to pool a word's subwords"""
    sites: str | Sequence[str]
    """where vectors are read: block (the layer), mid (the state between attention and MLP),
    attention or mlp (what it adds to the residual stream), or unnormed (the last block before the
    final norm); each but the first adds tasks such as pos@mlp"""
    workers: int
    """parallel processes; on Ray, at most so many"""
    engine: Literal["local", "ray"]
    """run on this machine, or on a Ray cluster"""
    address: str | None
    """address of a running Ray cluster, or auto"""
    gpus_per_model: int | None
    """GPUs over which each worker on Ray spreads its model"""
    threads: int | None
    """CPU threads of each process (default: torch's choice, or cores / workers)"""
    memory: int | str | None
    """memory for training in each process, such as 2GB (default: half of what is free, a quarter on
    a GPU, divided by workers)"""
    revision: str | None
    """branch, tag or commit on the hub"""
    offline: bool
    """make no network requests"""
    trust_remote_code: bool
    """run Python code in a model's folder"""
    all_tasks: bool
    """also print the tasks and probes of earlier runs"""
    dry_run: bool
    """only list what would be computed"""
    options: dict[str, dict[str, Any]]
    """options of measurements, by measurement"""

class RunSettings(FitSettings, total=False):
    corpus: Any
    """a name from --list-corpora; a folder, files or a pattern (.conllu, .jsonl, .csv, .parquet,
    .txt); or a dataset on the hub"""
    tasks: str | Sequence[str]
    """tasks from --list-tasks, or groups of them (default: the standard tasks)"""
    task_from: str | Sequence[str]
    """label columns of your own data; each becomes a task"""
    layers: int | str | Sequence[int]
    """layers to measure (default: all); 0: embedding output, -1: last"""
    limit: int | None
    """use only the first N sentences of each split, or N random items of each paradigm"""
    drop_overlap: bool
    """drop training sentences that occur in dev or test"""
    split_by: Literal["document", "sentence"] | None
    """make missing splits from those that exist, out of whole documents or sentences"""
    text: str
    """column of texts in your own data"""
    messages: str
    """column of chats: lists of {role, content}"""
    special_tokens: bool
    """treat special tokens in the texts as special"""
    label: str | Sequence[str]
    """label columns of these texts; each becomes a task"""
    group: str
    """column of what rows share, such as an author; such rows stay together in all splits"""
    field: str
    """path to the rows within a .json file, such as data.rows"""
