"""The settings of a run: checked field by field, frozen, hashable."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Discriminator, Field, Tag, field_validator

from probes.common.files import default_cache, default_data_dir
from probes.common.wording import names_in
from probes.compute.devices import DType, available_cores, require_device_name
from probes.data.sources import CorpusRequest
from probes.data.splits import SplitBy
from probes.extraction.windows import Pooling
from probes.measurements.measurement import EVIDENCE, LEVELS, TRANSFER, Level, get_measurement
from probes.records.values import Frozen
from probes.tasks.columns import text_task
from probes.tasks.task import Sublayer, TextPooling

_Numbers = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Tag("numbers")]

Layers = Annotated[
    _Numbers | Annotated[str, Tag("every")],
    Discriminator(lambda given: "every" if isinstance(given, str) else "numbers"),
]

Overwrite = Literal["missing", "always", "never"]

Site = Literal["block", "attention", "mlp"]

NO_NAMES = "names nothing; give names separated by commas, such as a,b"
NO_PATH = "not a path; name a file or folder (. for the current one)"


def as_several(given: Any) -> Any:
    """A single name or path as a tuple of one; anything else unchanged."""
    return (given,) if isinstance(given, (str, Path)) else given


class RunConfig(Frozen):
    """One run of `run_probes.py`; each field is the flag of the same name."""

    corpus: tuple[str, ...] = Field(default=("sample",), min_length=1)
    """A registered name; a folder, files or a pattern; or a dataset on the hub."""
    split_by: SplitBy | None = None
    """What must not be divided when a missing split is cut from another one; None cuts nothing."""
    drop_overlap: bool = False
    """Drop training sentences that occur word for word in dev or test."""
    task_from: tuple[str, ...] = ()
    """Label columns of the user's own data; each becomes a task."""
    text: str = ""
    """The column of texts in the user's own data; empty if rows have tokens."""
    label: tuple[str, ...] = ()
    """Label columns of texts; each becomes a task for each of `sentence_pooling`."""
    sentence_pooling: tuple[TextPooling, ...] = Field(default=("mean",), min_length=1)
    """How the vector of a text is made from those of its pieces: mean, cls, last, max."""
    group: str = ""
    """The column that names what rows share, such as an author, which splits and resamples keep
    whole; if empty, `document` is looked for."""
    field: str = ""
    """The key under which the rows of a JSON file lie, dotted where it is further below."""
    annotate: str = ""
    """The spaCy pipeline that annotates raw text."""
    tasks: tuple[str, ...] = ()
    """Names of tasks and groups; if empty: the standard tasks, those of `include` and the columns
    of `task_from`."""
    include: tuple[Path, ...] = ()
    """Python files with tasks, corpora, probe families, metrics or measurements."""
    probes: tuple[str, ...] = Field(default=("linear", "mlp"), min_length=1)
    layers: Layers = ()
    """Layer numbers, empty for all; or "every:N", see `layers_of`."""
    measurements: tuple[str, ...] = Field(default=("probes",), min_length=1)
    """"probes" stands for scores with their evidence; the others are those of the registry that
    measure a corpus as a whole."""
    evidence: tuple[str, ...] = Field(default=("standard",), min_length=1)
    """What stands behind the scores: none; or standard, full or names of measurements, where names
    may follow one of the two."""
    transfer: bool = False
    """Each name in `corpus` is a corpus of its own, whose probes are scored on the others too."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of measurements, by measurement."""
    seeds: int = Field(default=1, ge=1, le=1000)
    """Fits of each layer on the whole training split."""
    twins: int = Field(default=1, ge=0, le=100)
    """Random twins of each pretrained model, measured too."""
    quick: bool = False
    """No evidence, and no random twin unless asked for."""
    all_tasks: bool = False
    """Tables at the end show tasks of earlier runs, too."""
    dry_run: bool = False
    """Say what would be computed, and compute nothing."""
    project: int | None = Field(default=None, ge=1, le=100_000)
    """Dimension of a random projection of every span's vector; None for no projection."""
    output: Path = Path("results")
    data_dir: Path | None = Field(default_factory=default_data_dir)
    cache_dir: Path = Field(default_factory=default_cache)
    device: str = "auto"
    dtype: Literal["auto", DType] = "auto"
    """Of the forward pass; for "auto" see `probes.engines.inputs.LazyModel.dtype`."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """Tokens per forward pass; None for a fixed number per kind of device."""
    limit: int | None = Field(default=None, ge=1)
    """Sentences per split; None for all."""
    overwrite: Overwrite = "missing"
    pooling: Pooling = "mean"
    sites: tuple[Site, ...] = Field(default=("block",), min_length=1)
    """Where the vectors of words are read that probes are fitted on: the output of a block, which
    is the layer; of its attention; of its MLP. Each but the first gives tasks of their own."""
    engine: Literal["local", "ray"] = "local"
    """Where units are computed: on this machine, or on Ray."""
    address: str | None = None
    """Of a Ray cluster that runs already, or "auto"; None to start Ray on this machine."""
    workers: int = Field(default=1, ge=1, le=512)
    """Processes that compute the units of the run; with one, it is this process. On Ray, the most
    that there may be; if it is not given, as many as fit."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """Of each process; None for torch's choice, or for a share of the cores with several."""
    memory: ByteSize | None = Field(default=None, ge=1)
    """Bytes that training may use in each process, as a number or as "2GB"; None for a share of
    what is free."""
    language: str = ""
    """The language of all texts, for models that read text in one language at a time; if empty,
    that of the corpus."""
    revision: str | None = None
    offline: bool = False
    trust_remote_code: bool = False

    @field_validator("corpus", "include", mode="before")
    @classmethod
    def _one_or_several(cls, given: object) -> object:
        return as_several(given)

    @field_validator(
        "tasks",
        "probes",
        "task_from",
        "label",
        "sentence_pooling",
        "sites",
        "measurements",
        "evidence",
        mode="before",
    )
    @classmethod
    def _separated(cls, given: object) -> object:
        if not isinstance(given, str):
            return given
        if not (found := names_in(given)):
            raise ValueError(NO_NAMES)
        return found

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
    def _layer_numbers(cls, given: object) -> object:
        if isinstance(given, int):
            return (given,)
        if not isinstance(given, str):
            return given
        if given == "all":
            return ()
        if re.fullmatch(r"every:[1-9][0-9]{0,3}", given):
            return given
        parts = given.split(",")
        if not all(part.strip().isdecimal() and len(part) < 9 for part in parts):
            raise ValueError(
                "give all, every:N, or numbers such as 0,3,6; layers count from 0, the embedding "
                "output"
            )
        return tuple(map(int, parts))

    @field_validator("batch_tokens", mode="before")
    @classmethod
    def _auto_or_number(cls, given: object) -> object:
        if isinstance(given, str) and not (given.isdecimal() and len(given) < 19):
            if given != "auto":
                raise ValueError("give auto, or a number of tokens")
            return None
        return given

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        require_device_name(device)
        return device

    @field_validator("output", "data_dir", "cache_dir", mode="before")
    @classmethod
    def _named(cls, given: object) -> object:
        if isinstance(given, str) and not given.strip():
            raise ValueError(NO_PATH)
        if isinstance(given, (str, Path)) and "\0" in str(given):
            raise ValueError("contains a null byte")
        return given

    @field_validator("layers")
    @classmethod
    def _in_order(cls, layers: Layers) -> Layers:
        return layers if isinstance(layers, str) else tuple(sorted(set(layers)))

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def own_tasks(self) -> tuple[str, ...]:
        """Names of the tasks made from label columns."""
        of_texts = (text_task(x, pooling) for x in self.label for pooling in self.sentence_pooling)
        return (*self.task_from, *of_texts)

    @property
    def task_sites(self) -> list[Sublayer | None]:
        """`Task.site` of each of `sites`."""
        return [None if site == "block" else site for site in dict.fromkeys(self.sites)]

    @property
    def threads_per_process(self) -> int | None:
        """Threads of each process that computes units; None for torch's choice."""
        if self.threads is None and self.workers > 1:
            return max(1, available_cores() // self.workers)
        return self.threads

    @property
    def level(self) -> Level:
        """How much evidence each of `evidence_names` gathers."""
        return "full" if "full" in self.evidence else "standard"

    @property
    def about_corpus(self) -> tuple[str, ...]:
        """The measurements of the corpus as a whole that are asked for."""
        return tuple(name for name in self.measurements if name != "probes")

    @property
    def evidence_names(self) -> tuple[str, ...]:
        """The measurements of evidence, in the order in which they are made."""
        by_level = EVIDENCE if {"standard", "full"} & set(self.evidence) else {}
        return tuple(dict.fromkeys((*by_level, *self.asked_by_name)))

    @property
    def asked_by_name(self) -> tuple[str, ...]:
        """The evidence that is named, whose tables the run prints."""
        named = [name for name in self.evidence if name not in LEVELS]
        return tuple(dict.fromkeys((*named, *[TRANSFER] * self.transfer)))

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
        named = map(get_measurement, (*self.about_corpus, *self.evidence_names))
        return any(its.head for its in named)

    @property
    def corpus_request(self) -> dict[str, Any]:
        """The keyword arguments for `probes.data.find.find_corpus`."""
        shared = {field.name for field in fields(CorpusRequest)} & set(RunConfig.model_fields)
        return {name: getattr(self, name) for name in sorted(shared - {"corpus"})}
