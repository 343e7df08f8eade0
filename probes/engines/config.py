"""What a run is asked to do: validated, frozen, hashable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field, ValidationError, field_validator

from probes.common.errors import UserError
from probes.common.places import default_cache, default_data_dir
from probes.common.registry import did_you_mean
from probes.compute.devices import DType
from probes.data.find import require_known
from probes.data.sources import CorpusRequest
from probes.data.splits import SplitBy
from probes.extraction.windows import Pooling
from probes.measurements.plugins import discover, require_whole
from probes.records.base import Frozen
from probes.records.probe_spec import PROBES
from probes.tasks.builtin import TASK_GROUPS, tasks

Overwrite = Literal["missing", "always", "never"]


def _several(given: Any) -> Any:
    """One name or path as a tuple of it; anything else as it is."""
    return (given,) if isinstance(given, (str, Path)) else given


class RunConfig(Frozen):
    """One run of `run_probes.py`; each field is the flag of the same name."""

    corpus: tuple[str, ...] = Field(default=("sample",), min_length=1)
    """A registered name; a folder, files or a pattern; or a dataset on the hub."""
    split_by: SplitBy | None = None
    """What stays whole where a missing split is cut from another; None: nothing is cut."""
    drop_overlap: bool = False
    """Leave training sentences out that stand word for word in dev or test."""
    task_from: tuple[str, ...] = ()
    """Label columns of the user's own data, each a task."""
    annotate: str = ""
    """spaCy pipeline that annotates raw text."""
    tasks: tuple[str, ...] = ()
    """Names and groups of them; empty for the standard ones, those of `include` and own columns."""
    include: tuple[Path, ...] = ()
    """Python files with tasks, corpora, probe families or metrics."""
    probes: tuple[str, ...] = Field(default=("linear", "mlp"), min_length=1)
    layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Layer numbers; empty for all."""
    seeds: int = Field(default=3, ge=1, le=1000)
    """Seed 0 trains on the whole training set, every other one on a bootstrap sample of it."""
    twins: int = Field(default=1, ge=0, le=100)
    """Random twins that are probed beside each pretrained model."""
    quick: bool = False
    """Scores alone: no controls, description length or localisation; one seed and no random twin
    unless asked for."""
    project: int | None = Field(default=None, ge=1, le=100_000)
    """Dimensions that every span's vector is projected to at random; None for no projection."""
    output: Path = Path("results")
    data_dir: Path | None = Field(default_factory=default_data_dir)
    cache_dir: Path = Field(default_factory=default_cache)
    device: str = "auto"
    dtype: DType = "float32"
    """Of the forward pass; "auto" is float32: narrower types move scores (docs/performance.md)."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """None for what a short measurement finds fastest."""
    limit: int | None = Field(default=None, ge=1)
    """Sentences per split; None for all."""
    overwrite: Overwrite = "missing"
    pooling: Pooling = "mean"
    threads: int | None = Field(default=None, ge=1, le=512)
    memory: ByteSize | None = Field(default=None, ge=1)
    """Bytes that training may take, also as "2GB"; None for a share of what is free."""
    revision: str | None = None
    offline: bool = False
    trust_remote_code: bool = False

    @field_validator("corpus", "include", mode="before")
    @classmethod
    def _one_or_several(cls, given: object) -> object:
        return _several(given)

    @field_validator("output", "data_dir", "cache_dir", mode="before")
    @classmethod
    def _named(cls, given: object) -> object:
        if given == "" or (isinstance(given, Path) and "\0" in str(given)):
            raise ValueError("a folder's name is missing, or holds a zero byte")
        return given

    @field_validator("probes")
    @classmethod
    def _known(cls, probes: tuple[str, ...]) -> tuple[str, ...]:
        require_whole(probes)
        for name in probes:
            if name not in PROBES:
                hint = did_you_mean(name, PROBES)
                raise UserError(f"--probes {name}: no such probe family. {hint}")
        return probes

    @field_validator("layers")
    @classmethod
    def _in_order(cls, layers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(layers)))

    @property
    def corpus_request(self) -> dict[str, Any]:
        """What `probes.data.find.find_corpus` is asked, besides the names."""
        shared = {field.name for field in fields(CorpusRequest)} & set(RunConfig.model_fields)
        return {name: getattr(self, name) for name in sorted(shared - {"corpus"})}

    @field_validator("dtype")
    @classmethod
    def _resolve_auto(cls, dtype: DType) -> DType:
        # Resolved before any key is made, so that both spellings are one thing.
        return "float32" if dtype == "auto" else dtype


def validate(given: Mapping[str, object]) -> RunConfig:
    """Check everything that can be checked before anything is read or downloaded.

    Raises:
        UserError: a value that cannot be used, with its flag, or a plug-in that cannot be loaded.
    """
    include = _several(given.get("include", ()))
    known = isinstance(include, (tuple, list)) and all(isinstance(x, (str, Path)) for x in include)
    # What is no path is refused with the other values below.
    discover(include if known else ())
    if given.get("quick"):
        given = {"seeds": 1, "twins": 0, **given}
    try:
        config = RunConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        flag, value = f"--{field.replace('_', '-')}", first["input"]
        if field not in RunConfig.model_fields:
            hint = did_you_mean(field, RunConfig.model_fields)
            raise UserError(f"unknown setting {field!r}. {hint}") from error
        what = first["msg"].lower().rstrip(".")
        if first["type"].startswith("byte_size"):
            what = "not a number of bytes, as 2000000000 or 2GB is"
        raise UserError(f"{flag} {value}: {what}.") from error
    require_whole((*config.tasks, *config.corpus))
    require_known(config.corpus, config.task_from)
    for name in config.task_from:
        if not name.isprintable():
            raise UserError(f"--task-from {name!r}: not a printable name; rename the column.")
    for name in config.tasks:
        if name not in (*config.task_from, *TASK_GROUPS):
            tasks.get(name)
    return config
