"""Arrays that collectors kept of a model's reading of a view, in shards on disk. No torch here.

The store of a key is a folder `<cache>/vectors/<key>/` of

- ``manifest.json``: what the store holds, and the shard of each text; written when it is begun,
- ``00003-layer-00``, …: a folder for each shard (here the fourth), named by the first of its parts;
  a part that is asked for later gets a folder of its own. In it are an array ``<part>.npy`` for
  each part, and a ``manifest.json`` with the number of texts and rows, which texts are longer than
  the model's window, and the shape, size and CRC-32 of each array,
- ``replaced.json``: only if a vector was beyond fp16's range and the store was given up for the one
  in fp32; says why.

A shard is written under another name and renamed when it is complete, and never changed: it is
there, whole and checked, or it is not. A file is mapped only after its size and checksum have been
verified, since reading past the end of a short mapped file kills the process with SIGBUS. The
checksum protects against damage, not malice; CRC-32 is three times faster than SHA-256. The
folder's modification time is the time of its last use. While a run reads a store it holds a shared
lock on the manifest, so that the store is not deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.common.errors import DiskError, UserError
from probes.common.files import published
from probes.common.locks import SUFFIX, mark_used
from probes.extraction.reading.shards import Shard, shards_of
from probes.extraction.reading.views import View
from probes.extraction.reading.windows import WINDOW_RULE
from probes.records.header import EncodingRecord

FORMAT = 8
"""Part of every key: raise it when stored numbers or the files change."""

MANIFEST, REPLACED = "manifest.json", "replaced.json"

SHARD_NAME = re.compile(r"[0-9]{5,}-[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class StoreKey:
    """Everything that determines a store's content.

    Attributes:
        model: digest of weights, configuration and tokenizer.
        view: digest of the texts and of the words to keep.
        dtype: the type in which the model computes.
        collector: name and version of what keeps a part of the forward passes.
        settings: settings of the collector.
        annotation: fingerprint of the annotation that it reads; empty if it reads none.
        source: SHA-256 of the collector's source, if it is a plug-in's.
    """

    model: str
    view: str
    dtype: str
    collector: str
    settings: Mapping[str, str | int]
    annotation: str = ""
    source: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the key, the window rule and the format."""
        content = {**asdict(self), "windows": WINDOW_RULE, "format": FORMAT}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def store_folder(cache: Path, key: StoreKey) -> Path:
    """The folder of the store of `key`, whether or not it exists."""
    return cache / "vectors" / key.digest[:32]


class Store:
    """The stored arrays of a key; shards may be missing.

    Args:
        cache: the folder of all stores.

    Attributes:
        manifest: the content of ``manifest.json``.

    Raises:
        UserError: there is no store, it is damaged, or it belongs to another key.
    """

    def __init__(self, cache: Path, key: StoreKey) -> None:
        self.folder = folder = store_folder(cache, key)
        with suppress(OSError):  # reading the manifest raises the error
            self._used = mark_used(folder / MANIFEST)
        self.manifest: dict[str, Any] = read_manifest(folder / MANIFEST, STORE_FIELDS)
        if self.manifest["key"] != asdict(key):
            raise UserError(f"{folder}: holds what belongs to another key; {_remedy(folder)}")
        with suppress(OSError):  # a read-only cache
            os.utime(folder)
        self._files: list[dict[str, ShardFile]] = [{} for _ in range(self.n_shards)]
        self._counts: list[dict[str, int]] = [{} for _ in range(self.n_shards)]
        self._long: list[list[int]] = [[] for _ in range(self.n_shards)]
        self._arrays: dict[Path, NDArray[Any]] = {}
        self.refresh()

    @property
    def n_shards(self) -> int:
        """Number of shards of the view."""
        return int(self.manifest["shards"])

    def shards(self, view: View) -> list[Shard]:
        """The shards of the view, whether or not they are there."""
        return shards_of(view, self.manifest["shard_of"])

    def refresh(self, shard: int | None = None) -> None:
        """Look for shards that have been added, or only for parts of one shard."""
        for stored_shard in read_shards(self.folder, self.n_shards, shard):
            self._counts[stored_shard.number] = stored_shard.counts
            self._long[stored_shard.number] = stored_shard.long
            self._files[stored_shard.number].update(stored_shard.files)

    def missing(self, shard: int, parts: Sequence[str]) -> list[str]:
        """The parts that a shard lacks."""
        return [part for part in parts if part not in self._files[shard]]

    def arrays(self, part: str) -> list[NDArray[Any]]:
        """A part of every shard, mapped read-only.

        Raises:
            UserError: a file is damaged.
        """
        arrays = []
        for files in self._files:
            file = files[part]
            if file.path not in self._arrays:
                if not file.path.exists() and (reason := replacement(self.folder)):
                    raise UserError(
                        f"{self.folder}: another run has given it up ({reason}); run again, and "
                        "everything is read in fp32."
                    )
                if damage := file.damage:
                    raise UserError(f"{file.path}: {damage}; {_remedy(file.path.parent)}")
                # A map stays valid if another run gives up the store.
                self._arrays[file.path] = np.load(file.path, mmap_mode="r", allow_pickle=False)
            arrays.append(self._arrays[file.path])
        return arrays

    @property
    def encoding(self) -> EncodingRecord:
        """Provenance of the stored arrays, for records."""
        return EncodingRecord(
            storage=self.manifest["key"]["settings"].get("storage", ""),
            unknown_words=self.count("unknown_words"),
            texts_in_several_windows=sum(map(len, self._long)),
            batch_tokens=self.manifest["batch_tokens"],
        )

    def long_texts(self, shard: int) -> list[int]:
        """The texts of a shard that took several windows, by their places in it."""
        return self._long[shard]

    def count(self, name: str) -> int:
        """A count of all shards, such as ``unknown_words``."""
        return sum(counts[name] for counts in self._counts)


@dataclass(frozen=True)
class ShardFile:
    """An array of a shard.

    Attributes:
        n_bytes, crc32: expected size and checksum.
    """

    path: Path
    n_bytes: int
    crc32: int

    @property
    def damage(self) -> str:
        """Damage to the file; empty if there is none."""
        if not self.path.is_file() or self.path.stat().st_size != self.n_bytes:
            return "missing or of the wrong size"
        if checksum(self.path) != self.crc32:
            return "its content changed on disk"
        return ""


class StoredShard(NamedTuple):
    """A folder of a shard.

    Attributes:
        counts: counts of subwords and unknown words.
        long: positions of the texts that took several windows.
        files: arrays by part.
    """

    number: int
    counts: dict[str, int]
    long: list[int]
    files: dict[str, ShardFile]


def read_shards(folder: Path, n_shards: int, shard: int | None = None) -> Iterator[StoredShard]:
    """The shards, or one, in a store's folder; one whose parts were made at two times comes twice.

    Raises:
        UserError: a manifest is damaged.
    """
    for path in shard_folders(folder, shard):
        try:
            manifest = read_manifest(path / MANIFEST, SHARD_FIELDS)
        except UserError:
            if path.exists():
                raise
            continue  # another process has just given it up
        if not 0 <= manifest["shard"] < n_shards:
            raise UserError(f"{path}: no shard of this store; {_remedy(path)}")
        files = {
            part: ShardFile(path / f"{part}.npy", about["bytes"], about["crc32"])
            for part, about in manifest["files"].items()
        }
        counts, long = manifest["counts"], manifest["long_texts"]
        yield StoredShard(manifest["shard"], counts, long, files)


def shard_folders(folder: Path, shard: int | None = None) -> list[Path]:
    """The folders of shards in a store's folder, in order; or only those of one shard."""
    pattern = "*-*" if shard is None else f"{shard:05d}-*"
    return sorted(path for path in folder.glob(pattern) if SHARD_NAME.fullmatch(path.name))


def shard_lock(folder: Path, shard: int) -> Path:
    """The file whose lock is held by the process that makes a shard of the store in `folder`."""
    return folder.with_name(f"{folder.name}-{shard:05d}{SUFFIX}")


def replacement(folder: Path) -> str:
    """Reason why a store was given up for another key; empty if it was not."""
    try:
        return str(json.loads((folder / REPLACED).read_bytes())["why"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        path = folder / REPLACED
        raise UserError(f"{path}: not readable ({error}); {_remedy(folder)}") from error


def require_room(folder: Path, n_bytes: int) -> None:
    """Check that the disk of a folder has room for vectors.

    Raises:
        UserError: it does not.
    """
    above = (folder, *folder.absolute().parents)  # the folder may not exist yet
    free = shutil.disk_usage(next(path for path in above if path.exists())).free
    if n_bytes > free:
        raise DiskError(
            f"{folder}: the vectors need {n_bytes / 1e6:,.1f} MB, {free / 1e6:,.1f} MB are free; "
            "choose another --cache-dir, or use --layers or --limit."
        )


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


STORE_FIELDS = {
    "key": dict,
    "model": dict,
    "view": str,
    "layers": int,
    "texts": int,
    "rows": int,
    "shards": int,
    "shard_of": list,
    "batch_tokens": int,
}
"""Fields of a store's manifest that are read."""

SHARD_FIELDS = {
    "shard": int,
    "texts": int,
    "rows": int,
    "counts": dict,
    "long_texts": list,
    "files": dict,
}
"""Fields of a shard's manifest that are read."""


def read_manifest(path: Path, fields: Mapping[str, type]) -> dict[str, Any]:
    """The manifest of a store or of a shard.

    Args:
        fields: required fields with their types.

    Raises:
        UserError: it cannot be read, or has another format.
    """
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']}, expected {FORMAT}")
        if manifest.pop("crc32") != _crc32(manifest):
            raise ValueError("it changed on disk")
        for name, kind in fields.items():
            if not isinstance(manifest.get(name), kind):
                raise ValueError(f"it has no {name}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: not readable ({error}); {_remedy(path.parent)}") from error
    return dict(manifest)


def write_manifest(path: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a store or of a shard atomically."""
    content = {"format": FORMAT, **content}
    with published(path) as temporary:
        manifest = {**content, "crc32": _crc32(content)}
        temporary.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _crc32(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run again."
