"""The settings of a run: checked field by field, frozen."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
)

from probes.common.errors import names_in
from probes.common.files import default_cache, default_data_dir
from probes.compute.devices import DType, available_cores, require_device_name
from probes.data.sources import CorpusRequest
from probes.data.splits import SplitBy
from probes.measurements.measurement import BY_FLAG, EVIDENCE, LEVELS, Level, get_measurement
from probes.records.values import Frozen
from probes.statistics.ranking_metrics import RATES, recall_name
from probes.tasks.columns import text_task
from probes.tasks.positions import Position, positions_in
from probes.tasks.task import ReadSite

_Numbers = Annotated[tuple[int, ...], Tag("numbers")]

Layers = Annotated[
    _Numbers | Annotated[str, Tag("every")],
    Discriminator(lambda value: "every" if isinstance(value, str) else "numbers"),
]

Overwrite = Literal["missing", "always", "never"]

TRANSFORMER_LENS = {
    "resid_pre": "block",
    "resid_mid": "mid",
    "attn_out": "attention",
    "mlp_out": "mlp",
    "resid_post": "block",
}
"""Sites by their names there. The state before a block is the layer below it."""

SiteName = Annotated[
    Literal["block", "mid", "attention", "mlp", "unnormed"],
    BeforeValidator(lambda name: TRANSFORMER_LENS.get(str(name), name)),
]

NO_NAMES = "names nothing; give names separated by commas, such as a,b"
NO_PATH = "not a path; name a file or folder (. for the current one)"


def as_several(value: Any) -> Any:
    """A single name or path as a tuple of one; anything else unchanged."""
    return (value,) if isinstance(value, (str, Path)) else value


def setting(description: str, default: Any = ..., metavar: str = "", **more: Any) -> Any:
    """A field of `RunConfig`.

    Args:
        description: help text.
        metavar: name of the value in help.
        more: see `pydantic.Field`.
    """
    return Field(default, description=description, json_schema_extra={"metavar": metavar}, **more)


class RunConfig(Frozen):
    """One run of `run_probes.py`. Each field is the flag of the same name, with its help."""

    model_config = ConfigDict(defer_build=True)  # help does without

    corpus: tuple[str, ...] = setting(
        "a name from --list-corpora; a folder, files or a pattern (.conllu, .jsonl, .csv, "
        ".parquet, .txt); or a dataset on the hub",
        ("sample",),
        "C",
        min_length=1,
    )
    task_from: tuple[str, ...] = setting(
        "label columns of your own data; each becomes a task", (), "COLUMN,…"
    )
    text: str = setting("column of texts in your own data", "", "COLUMN")
    messages: str = setting("column of chats: lists of {role, content}", "", "COLUMN")
    special_tokens: bool = setting("treat special tokens in the texts as special", False)
    label: tuple[str, ...] = setting(
        "label columns of these texts; each becomes a task", (), "COLUMN,…"
    )
    positions: tuple[str, ...] = setting(
        "where texts are read: mean, max, first, last, last:N, after:STRING, match:REGEX; at every "
        "token: all, all:last:N; in chats also user, assistant, all:user, all:assistant",
        ("mean",),
        "P,…",
        min_length=1,
    )
    metric: Literal["auroc", "recall_at_fpr"] | None = setting(
        "rank texts of two classes, and choose layers by that score (default: accuracy)", None
    )
    fpr: float = setting(
        "false-positive rate for recall and for a threshold set on dev; with --metric", 0.01, "RATE"
    )
    threshold_from: str = setting("corpus of negatives that sets it instead of dev", "", "C")
    group: str = setting(
        "column of what rows share, such as an author; such rows stay together in all splits",
        "",
        "COLUMN",
    )
    field: str = setting("path to the rows within a .json file, such as data.rows", "", "KEY")
    annotate: str = setting("spaCy pipeline to annotate raw text with", "", "PIPELINE")
    split_by: SplitBy | None = setting(
        "make missing splits from those that exist, out of whole documents or sentences", None
    )
    drop_overlap: bool = setting("drop training sentences that occur in dev or test", False)
    include: tuple[Path, ...] = setting(
        "Python files with your own tasks, corpora, probes, metrics or measurements", (), "FILE,…"
    )
    tasks: tuple[str, ...] = setting(
        "tasks from --list-tasks, or groups of them (default: the standard tasks)", (), "T,…"
    )
    probes: tuple[str, ...] = setting(
        "probe families: linear, mlp, mean-difference, sparse, multi-layer, or a plug-in's; for "
        "every token of a text: token-mean, token-max, attention",
        ("linear", "mlp"),
        "P,…",
        min_length=1,
    )
    layers: Layers = setting(
        "layers to measure (default: all); 0: embedding output, -1: last", (), "all|every:N|N,…"
    )
    measurements: tuple[str, ...] = setting(
        "what to measure: scores (with their evidence), or others from --list-measurements",
        ("scores",),
        "M,…",
        min_length=1,
    )
    evidence: tuple[str, ...] = setting(
        "evidence behind scores, from --list-measurements",
        ("standard",),
        "none|standard|full|E,…",
        min_length=1,
    )
    quick: bool = setting("only scores: no evidence, and no twins without --twins", False)
    transfer: bool = setting("score the probes of each corpus on the other corpora", False)
    seeds: int = setting("trainings of each probe, from other seeds", 1, "N", ge=1, le=1000)
    twins: int = setting("copies of each model with random weights", 1, "N", ge=0, le=100)
    project: int | None = setting(
        "project vectors at random to N dimensions", None, "N", ge=1, le=100_000
    )
    output: Path = setting("folder for results", Path("results"), "DIR")
    data_dir: Path | None = setting(
        "folder with corpora (PROBES_DATA_DIR)", metavar="DIR", default_factory=default_data_dir
    )
    cache_dir: Path = setting(
        "folder for vectors and downloads (PROBES_CACHE_DIR)",
        metavar="DIR",
        default_factory=default_cache,
    )
    device: str = setting("auto, cpu, cuda, cuda:N, mps or map", "auto", "DEVICE")
    dtype: Literal["auto", DType] = setting(
        "dtype of the forward pass; auto is float32, or on a CUDA GPU the checkpoint's own", "auto"
    )
    load: Literal["8bit", "4bit"] | None = setting(
        "quantise the weights on loading, with bitsandbytes", None
    )
    batch_tokens: int | None = setting(
        "tokens per forward pass (default: by kind of device)", None, "auto|N", ge=1
    )
    limit: int | None = setting(
        "use only the first N sentences of each split, or N random items of each paradigm",
        None,
        "N",
        ge=1,
    )
    overwrite: Overwrite = setting(
        "compute what is missing, always everything, or never what exists", "missing"
    )
    pooling: Literal["mean", "first", "last"] = setting("how to pool a word's subwords", "mean")
    sites: tuple[SiteName, ...] = setting(
        "where vectors are read: block (the layer), mid (the state between attention and MLP), "
        "attention or mlp (what it adds to the residual stream), or unnormed (the last block "
        "before the final norm); each but the first adds tasks such as pos@mlp",
        ("block",),
        "S,…",
        min_length=1,
    )
    workers: int = setting("parallel processes; on Ray, at most so many", 1, "N", ge=1, le=512)
    engine: Literal["local", "ray"] = setting("run on this machine, or on a Ray cluster", "local")
    address: str | None = setting("address of a running Ray cluster, or auto", None, "A")
    gpus_per_model: int | None = setting(
        "GPUs over which each worker on Ray spreads its model", None, "N", ge=1, le=64
    )
    threads: int | None = setting(
        "CPU threads of each process (default: torch's choice, or cores / workers)",
        None,
        "N",
        ge=1,
        le=512,
    )
    memory: ByteSize | None = setting(
        "memory for training in each process, such as 2GB (default: half of what is free, a "
        "quarter on a GPU, divided by workers)",
        None,
        "SIZE",
        ge=1,
    )
    revision: str | None = setting("branch, tag or commit on the hub", None, "R")
    offline: bool = setting("make no network requests", False)
    trust_remote_code: bool = setting("run Python code in a model's folder", False)
    all_tasks: bool = setting("also print the tasks and probes of earlier runs", False)
    dry_run: bool = setting("only list what would be computed", False)
    options: dict[str, dict[str, Any]] = setting(
        "options of measurements, by measurement", default_factory=dict
    )

    @field_validator("corpus", "include", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return as_several(value)

    @field_validator(
        "tasks", "probes", "task_from", "label", "sites", "measurements", "evidence", mode="before"
    )
    @classmethod
    def _separated(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if not (names := names_in(value)):
            raise ValueError(NO_NAMES)
        return names

    @field_validator("positions", mode="before")
    @classmethod
    def _named_positions(cls, value: object) -> object:
        names = positions_in(value) if isinstance(value, str) else value
        if not isinstance(names, (tuple, list)) or not all(isinstance(x, str) for x in names):
            return names
        if not names:
            raise ValueError(NO_NAMES)
        return tuple(dict.fromkeys(Position.parse(name).name for name in names))

    @field_validator("fpr")
    @classmethod
    def _known_rate(cls, fpr: float) -> float:
        if fpr not in RATES:
            raise ValueError(f"give one of {', '.join(f'{rate:g}' for rate in RATES)}")
        return fpr

    @field_validator("corpus")
    @classmethod
    def _not_blank(cls, corpus: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(str.strip, corpus)):
            raise ValueError("empty; give the name of a corpus, a folder or a file")
        return corpus

    @field_validator("revision")
    @classmethod
    def _some_revision(cls, revision: str | None) -> str | None:
        if revision is not None and not revision.strip():
            raise ValueError("empty; give a branch, tag or commit, or leave it out")
        return revision

    @field_validator("layers", mode="before")
    @classmethod
    def _layer_numbers(cls, value: object) -> object:
        value = getattr(value, "tolist", lambda: value)()  # of numpy's numbers and arrays
        if isinstance(value, int):
            return (value,)
        if not isinstance(value, str):
            return value
        if value == "all":
            return ()
        if re.fullmatch(r"every:[1-9][0-9]{0,3}", value):
            return value
        parts = value.split(",")
        if not all(re.fullmatch(r"\s*-?[0-9]{1,8}\s*", part) for part in parts):
            raise ValueError(
                "give all, every:N, or numbers such as 0,3,-1; layers count from 0, the embedding "
                "output, and -1 is the last"
            )
        return tuple(map(int, parts))

    @field_validator("measurements")
    @classmethod
    def _scores_by_name(cls, measurements: tuple[str, ...]) -> tuple[str, ...]:
        # The word for them in earlier command lines.
        return tuple("scores" if name == "probes" else name for name in measurements)

    @field_validator("batch_tokens", mode="before")
    @classmethod
    def _auto_or_number(cls, value: object) -> object:
        if isinstance(value, str) and not (value.isdecimal() and len(value) < 19):
            if value != "auto":
                raise ValueError("give auto, or a number of tokens")
            return None
        return value

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        require_device_name(device)
        return device

    @field_validator("output", "data_dir", "cache_dir", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise ValueError(NO_PATH)
        if isinstance(value, (str, Path)) and "\0" in str(value):
            raise ValueError("contains a null byte")
        return value

    @field_validator("layers")
    @classmethod
    def _in_order(cls, layers: Layers) -> Layers:
        return layers if isinstance(layers, str) else tuple(sorted(set(layers)))

    @property
    def texts(self) -> str:
        """The column of texts or chats; empty if there is none."""
        return self.text or self.messages

    @property
    def own_tasks(self) -> tuple[str, ...]:
        """Names of the tasks made from label columns."""
        of_texts = (text_task(x, position) for x in self.label for position in self.positions)
        return (*self.task_from, *of_texts)

    @property
    def ranked_by(self) -> tuple[str, ...]:
        """Ranking metrics of two classes, that of the headline first; none without `metric`."""
        names = {"auroc": "auroc", "recall_at_fpr": recall_name(self.fpr)}
        first = names.get(self.metric or "", "")
        return (first, *(x for x in names.values() if x != first), "average_precision") * bool(
            self.metric
        )

    @property
    def task_sites(self) -> list[ReadSite | None]:
        """`Task.site` of each of `sites`."""
        return [None if site == "block" else site for site in dict.fromkeys(self.sites)]

    @property
    def threads_per_process(self) -> int | None:
        """Threads of each process; None for torch's choice."""
        if self.threads is None and self.workers > 1:
            return max(1, available_cores() // self.workers)
        return self.threads

    @property
    def level(self) -> Level:
        """Amount of evidence that each of `evidence_names` gathers."""
        return "full" if "full" in self.evidence else "standard"

    @property
    def about_corpus(self) -> tuple[str, ...]:
        """The measurements of the corpus as a whole that are asked for."""
        return tuple(name for name in self.measurements if get_measurement(name).of != "task")

    @property
    def trains_probes(self) -> bool:
        """Whether scores are asked for, or something that stands on them."""
        return any(x == "scores" or get_measurement(x).after == "scores" for x in self.measurements)

    @property
    def scores_need_head(self) -> bool:
        """Whether scores only serve measurements that need a language-model head."""
        definitions = map(get_measurement, (*self.about_corpus, *self.evidence_names))
        needed = all(x.head == "needed" for x in definitions if x.after == "scores")
        return needed and "scores" not in self.measurements

    @property
    def evidence_names(self) -> tuple[str, ...]:
        """The measurements of evidence, in the order in which they are made."""
        by_level = EVIDENCE if {"standard", "full"} & set(self.evidence) else {}
        return tuple(dict.fromkeys((*by_level, *self.asked_by_name)))

    @property
    def asked_by_name(self) -> tuple[str, ...]:
        """The evidence that is named, whose tables the run prints."""
        evidence_by_name = [name for name in self.evidence if name not in LEVELS]
        of_flags = (name for flag, name in BY_FLAG.items() if getattr(self, flag))
        return tuple(dict.fromkeys((*evidence_by_name, *of_flags)))

    @property
    def tested(self) -> tuple[str, ...]:
        """The corpus of a run, as `corpus` names it; with `transfer` the first of them."""
        return self.corpus[:1] if self.transfer else self.corpus

    @property
    def trained_elsewhere(self) -> tuple[str, ...]:
        """The other corpora, whose probes are scored on that one."""
        return self.corpus[1:] if self.transfer else ()

    @property
    def reads_head(self) -> bool:
        """Whether a measurement needs, or uses, the probabilities of tokens."""
        definitions = map(get_measurement, (*self.about_corpus, *self.evidence_names))
        return any(definition.head for definition in definitions)

    @property
    def corpus_request(self) -> dict[str, Any]:
        """The keyword arguments for `probes.data.find.find_corpus`."""
        shared = {field.name for field in fields(CorpusRequest)} & set(RunConfig.model_fields)
        return {name: getattr(self, name) for name in sorted(shared - {"corpus"})}
