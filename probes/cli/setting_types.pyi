# Written by tools/write_setting_types.py from RunConfig.

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

class FitSettings(TypedDict, total=False):
    positions: str | Sequence[str]
    """where texts are read: mean, max, first, last, last:N, after:STRING, match:REGEX, or all
    tokens, all:last:N; of chats also user, assistant, all:user, all:assistant"""
    metric: Literal["auroc", "recall_at_fpr"] | None
    """rank two classes of texts, and choose layers by this (default: accuracy)"""
    fpr: float
    """false-positive rate of recall and of the threshold from dev, with --metric"""
    threshold_from: str
    """corpus of negatives for the threshold, with --metric"""
    annotate: str
    """spaCy pipeline that annotates raw text (silver)"""
    include: str | Path | Sequence[str | Path]
    """Python files with your own tasks, corpora, probes, metrics or measurements"""
    probes: str | Sequence[str]
    """probe families: linear, mlp, mean-difference, sparse, multi-layer, a plug-in's; of all
    tokens: token-mean, token-max, attention"""
    measurements: str | Sequence[str]
    """scores with their evidence, or others from --list-measurements"""
    evidence: str | Sequence[str]
    """evidence behind scores, from --list-measurements"""
    quick: bool
    """--evidence none, and no random twin unless asked for"""
    transfer: bool
    """score the probes of each corpus after --corpus on the others"""
    seeds: int
    """fits of each probe on the whole training split"""
    twins: int
    """random twins of each pretrained model"""
    project: int | None
    """project vectors to N dimensions at random"""
    output: str | Path
    """where results go"""
    data_dir: str | Path | None
    """searched for corpora (PROBES_DATA_DIR)"""
    cache_dir: str | Path
    """where vectors are kept (PROBES_CACHE_DIR)"""
    device: str
    """auto, cpu, cuda, cuda:N, mps or map"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    """dtype of the forward pass; auto is float32, but on a CUDA GPU the checkpoint's own"""
    load: Literal["8bit", "4bit"] | None
    """quantise the weights while they are loaded, with bitsandbytes"""
    batch_tokens: int | str | None
    """tokens per forward pass (default: by kind of device)"""
    overwrite: Literal["missing", "always", "never"]
    """records to compute: those missing, always all, or never any"""
    pooling: Literal["mean", "first", "last"]
    """how to pool a word's subwords"""
    sites: str | Sequence[str]
    """where vectors are read: block (the layer), mid (the state between attention and MLP),
    attention or mlp (what it adds to the residual stream), or unnormed (the last block before the
    final norm); each but the first gives tasks of its own"""
    workers: int
    """processes that measure side by side; on Ray the most there may be"""
    engine: Literal["local", "ray"]
    """where records are made"""
    address: str | None
    """address of a running Ray cluster, or auto"""
    gpus_per_model: int | None
    """GPUs of each worker on Ray, over which its model is spread"""
    threads: int | None
    """CPU threads of each process (default: torch's choice, or cores / workers)"""
    memory: int | str | None
    """memory for training in each process, such as 2GB (default: half of what is free, a quarter on
    a GPU, divided by workers)"""
    revision: str | None
    """branch, tag or commit on the hub"""
    offline: bool
    """never use the network"""
    trust_remote_code: bool
    """run Python code in a model's folder"""
    all_tasks: bool
    """tables also of tasks and probes of earlier runs"""
    dry_run: bool
    """say what would be computed"""
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
    """keep the first N sentences of each split, or draw N items from each paradigm"""
    drop_overlap: bool
    """drop training sentences that occur in dev or test"""
    split_by: Literal["document", "sentence"] | None
    """cut missing splits from those that exist, and keep documents or sentences whole"""
    text: str
    """column of texts in your own data"""
    messages: str
    """column of chats: lists of {role, content}"""
    special_tokens: bool
    """special tokens that occur in texts are meant"""
    label: str | Sequence[str]
    """label columns of these texts; each becomes a task"""
    group: str
    """column that names what rows share, such as an author; splits and resamples keep it whole"""
    field: str
    """where in a .json file the rows lie, e.g. data.rows"""
