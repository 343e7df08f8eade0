"""Word vectors on disk: written by encoding.py, published whole, mapped read-only. No torch here.

A store is a folder `<cache>/vectors/<key>/` of

- ``layer-00.npy`` …: one array (rows, hidden size) per layer,
- ``starts.npy``: the first row of each text of the view; a text's kept words follow it,
- ``manifest.json``: what it holds, the size and CRC-32 of each file, and a CRC-32 of itself.

Files are written into a folder ``<key>.partial`` next to it, which is renamed when it is
complete: a store exists whole or not at all. A file is mapped only after its size and checksum
have been verified, since reading past the end of a short mapped file kills the process with
SIGBUS. The checksum protects against damage, not malice; CRC-32 is three times faster than SHA-256.
The folder's modification time is the time of its last use. While a run reads a store it holds a
shared lock on the manifest, so that the store is not deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probes.common.errors import UserError
from probes.common.files import published
from probes.common.locks import mark_used
from probes.extraction.windows import WINDOW_RULE, Pooling

T = TypeVar("T")

FORMAT = 4
"""Part of every key: raise it when stored numbers or the files change."""

MANIFEST = "manifest.json"

PARTIAL = ".partial"
"""Suffix of a folder that is being written."""


@dataclass(frozen=True)
class StoreKey:
    """Everything that determines a store's content.

    Attributes:
        model: digest of weights, configuration and tokenizer.
        view: digest of the texts and of the words to keep.
        pooling: how a word's vector is made from its pieces.
        dtype: the type in which the model computes.
    """

    model: str
    view: str
    pooling: Pooling
    dtype: str

    @property
    def digest(self) -> str:
        """SHA-256 of the key, the window rule and the format."""
        content = {**asdict(self), "windows": WINDOW_RULE, "format": FORMAT}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Vectors:
    """A published store.

    Args:
        cache: the folder of all stores.
        key: that of the vectors.

    Attributes:
        manifest: the content of ``manifest.json``.
        starts: the first row of each text. Shape (texts,).

    Raises:
        UserError: it is damaged, or holds the vectors of another key.
    """

    def __init__(self, cache: Path, key: StoreKey) -> None:
        self.folder = folder = store_folder(cache, key)
        with suppress(OSError):  # reading the manifest raises the error
            self._used = mark_used(folder / MANIFEST)
        self.manifest: dict[str, Any] = read_manifest(folder)
        if self.manifest["key"] != asdict(key):
            raise UserError(f"{folder}: holds the vectors of another key; {_remedy(folder)}")
        with suppress(OSError):  # a read-only cache
            os.utime(folder)
        self._verified: set[str] = set()
        self._derived: dict[str, Any] = {}
        self.starts: NDArray[np.int64] = np.load(self._verify("starts.npy"), allow_pickle=False)

    @property
    def n_layers(self) -> int:
        """Number of layers, the embedding layer included."""
        return int(self.manifest["layers"])

    def layer(self, index: int) -> NDArray[np.floating[Any]]:
        """The vectors of one layer, mapped read-only. Shape (rows, hidden size).

        Raises:
            UserError: the file is damaged.
        """
        path = self._verify(layer_name(index))
        array: NDArray[np.floating[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def derived(self, key: str, make: Callable[[], T]) -> T:
        """The result of `make` for `key`, which is kept until `forget_derived`.

        Several measurements, probe families and tasks read the same features.

        Args:
            key: names everything that the result depends on except the vectors.
            make: computes the result.
        """
        if key not in self._derived:
            self._derived[key] = make()
        found: T = self._derived[key]
        return found

    def forget_derived(self) -> None:
        """Forget all results: a probe's code that failed may have changed them."""
        self._derived.clear()

    def _verify(self, name: str) -> Path:
        path = self.folder / name
        if name not in self._verified:
            if (damage := damage_of(path, self.manifest["files"][name])) is not None:
                raise UserError(f"{path}: {damage}; {_remedy(self.folder)}")
            self._verified.add(name)
        return path


def store_folder(cache: Path, key: StoreKey) -> Path:
    """The folder of the store of `key`, whether or not it exists."""
    return cache / "vectors" / key.digest[:32]


def layer_name(index: int) -> str:
    """The name of one layer's file."""
    return f"layer-{index:02d}.npy"


def checksum(path: Path, length: int | None = None) -> int:
    """CRC-32 of a file, or of its first `length` bytes."""
    value, left = 0, path.stat().st_size if length is None else length
    with path.open("rb") as file:
        while block := file.read(min(left, 1 << 20)):
            value, left = zlib.crc32(block, value), left - len(block)
    return value


def damage_of(path: Path, expected: Mapping[str, int], *, thorough: bool = True) -> str | None:
    """What is wrong with a file of a store; None if nothing is.

    Args:
        expected: its entry in the manifest.
        thorough: check the content, not only the size.
    """
    if not path.is_file() or path.stat().st_size != expected["bytes"]:
        return "missing or of the wrong size"
    if thorough and checksum(path) != expected["crc32"]:
        return "its content changed on disk"
    return None


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store.

    Raises:
        UserError: it cannot be read, or has another format.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']}, expected {FORMAT}")
        if manifest.pop("crc32") != _crc32(manifest):
            raise ValueError("its manifest changed on disk")
        _require_known(manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{folder}: not a readable store ({error}); {_remedy(folder)}") from error
    return dict(manifest)


def _require_known(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError unless a manifest has all that is read of it, in the right types."""
    for name, kind in (
        ("key", dict),
        ("model", dict),
        ("files", dict),
        ("layers", int),
        ("rows", int),
    ):
        if not isinstance(manifest.get(name), kind):
            raise ValueError(f"its manifest has no {name}")
    needed = {"starts.npy", *(layer_name(i) for i in range(min(manifest["layers"], 10_000)))}
    for name in needed | manifest["files"].keys():
        if not all(isinstance(manifest["files"][name][x], int) for x in ("bytes", "crc32")):
            raise ValueError(f"its manifest does not list {name}")


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a store's manifest atomically, as the last of its files."""
    with published(folder / MANIFEST) as temporary:
        content = {**manifest, "crc32": _crc32(manifest)}
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _crc32(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run again."
