"""Word vectors on disk: written once per key, published whole, mapped read-only.

A store is a folder `<cache>/vectors/<key>/` of

- ``layer-00.npy`` …: one array (rows, hidden size) per layer,
- ``starts.npy``: the first row of each text of the view; a text's kept words follow it,
- ``manifest.json``: what it holds, and the size and SHA-256 of each file.

Files are written with ordinary writes into a folder beside it, which is renamed when it is
complete: a store exists whole or not at all. Mapping happens only after size and checksum
have been verified, since a short file under a map kills the process with SIGBUS.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray

from common.errors import UserError
from common.files import sha256, writing
from common.terminal import progress
from probes.alignment import Ints
from probes.collectors import WordVectors
from probes.config import WINDOW_RULE, Pooling
from probes.encoder import Encoder, plan_batches
from probes.views import View

FORMAT = 1
_FP16_MAX = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class StoreKey:
    """Everything that decides a store's content.

    Attributes:
        model: digest of weights, configuration and tokenizer.
        view: digest of the texts and of the words to keep.
        pooling: how a word's pieces make its vector.
        dtype: in which the model computes.
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

    Attributes:
        manifest: what it holds.
        starts: the first row of each text. Shape (texts,).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.manifest: dict[str, Any] = _read_manifest(folder)
        self._verified: set[str] = set()
        self.starts: Ints = np.load(self._verify("starts.npy"), allow_pickle=False)

    @property
    def n_layers(self) -> int:
        """Number of layers, the embedding layer included."""
        return int(self.manifest["layers"])

    def layer(self, index: int) -> NDArray[np.floating[Any]]:
        """The vectors of one layer, mapped read-only. Shape (rows, hidden size).

        Raises:
            UserError: the file is not what was written.
        """
        path = self._verify(layer_name(index))
        array: NDArray[np.floating[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def _verify(self, name: str) -> Path:
        path = self._folder / name
        expected = self.manifest["files"][name]
        if name not in self._verified:
            if not path.is_file() or path.stat().st_size != expected["bytes"]:
                raise UserError(f"{path}: missing or of the wrong size; {_remedy(self._folder)}")
            if sha256(path) != expected["sha256"]:
                raise UserError(f"{path}: its content changed on disk; {_remedy(self._folder)}")
            self._verified.add(name)
        return path


def open_or_encode(
    cache: Path, key: StoreKey, view: View, encoder: Encoder, batch_tokens: int
) -> Vectors:
    """The word vectors of `view`: from the store, or encoded now and stored.

    Two processes that want the same key do the work once: the second waits for the first.

    Raises:
        UserError: no space, a folder that cannot be written, vectors that are not finite,
            a damaged store.
    """
    folder = store_folder(cache, key)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            for leftover in folder.parent.glob(f"{folder.name}.*.partial"):
                shutil.rmtree(leftover)
            try:
                _encode(folder, key, view, encoder, batch_tokens, np.dtype(np.float16))
            except _OutOfRangeError as error:
                progress.say(f"{error}: stored in fp32")
                _encode(folder, key, view, encoder, batch_tokens, np.dtype(np.float32))
    return Vectors(folder)


def store_folder(cache: Path, key: StoreKey) -> Path:
    """Where the store of `key` lies or would lie."""
    return cache / "vectors" / key.digest[:32]


def layer_name(index: int) -> str:
    """The file that holds one layer."""
    return f"layer-{index:02d}.npy"


class _OutOfRangeError(Exception):
    """A value beyond what fp16 can hold."""


def _encode(
    folder: Path,
    key: StoreKey,
    view: View,
    encoder: Encoder,
    batch_tokens: int,
    storage: np.dtype[Any],
) -> None:
    """Run the encoder over `view` and publish the vectors as `folder`."""
    pieces = encoder.split(view.texts)
    batches = plan_batches(pieces, encoder.capacity, encoder.specials, batch_tokens)
    kept = np.array([text.keep[1] - text.keep[0] for text in view.texts], dtype=np.int64)
    n_rows, n_layers = int(kept.sum()), encoder.info.n_layers + 1
    shape = (n_rows, encoder.info.hidden_size)
    _require_space(folder.parent, n_rows * shape[1] * n_layers * storage.itemsize)

    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    partial.mkdir()
    try:
        with writing(partial):
            with _layer_files(partial, n_layers, shape, storage) as files:
                collector = WordVectors()
                done = encoder.encode(
                    view.texts, pieces, batches, key.pooling, batch_tokens, collector
                )
                what = f"encoding {encoder.info.name} · {view.name}"
                with progress.bar(what, total=len(view.texts), unit="text") as bar:
                    for n_texts in done:
                        for layer, vectors in enumerate(collector.vectors):
                            files[layer].write(_to_storage(vectors, layer, storage))
                        bar.update(n_texts)
            order = np.concatenate([np.asarray(batch, dtype=np.int64) for batch in batches])
            starts = np.empty(len(kept), dtype=np.int64)
            starts[order] = np.cumsum(kept[order]) - kept[order]
            np.save(partial / "starts.npy", starts, allow_pickle=False)
            manifest = {
                "format": FORMAT,
                "key": asdict(key),
                "windows": WINDOW_RULE,
                "model": encoder.info.model_dump(),
                "view": view.name,
                "texts": len(view.texts),
                "rows": n_rows,
                "layers": n_layers,
                "storage": storage.name,
                "batch_tokens": batch_tokens,
                "batches": len(batches),
                "subwords": sum(len(p.ids) for p in pieces),
                "unknown_words": sum(p.unknown for p in pieces),
                "texts_in_several_windows": sum(len(p.ids) > encoder.capacity for p in pieces),
                "files": {
                    path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
                    for path in sorted(partial.iterdir())
                },
            }
            (partial / "manifest.json").write_text(json.dumps(manifest, indent=1))
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _layer_files(
    folder: Path, n_layers: int, shape: tuple[int, int], storage: np.dtype[Any]
) -> Iterator[Sequence[Any]]:
    """Open one .npy file per layer, header written, rows to follow."""
    header = {"descr": storage.str, "fortran_order": False, "shape": shape}
    files = [(folder / layer_name(layer)).open("wb") for layer in range(n_layers)]
    try:
        for file in files:
            np.lib.format.write_array_header_1_0(file, header)
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
    finally:
        for file in files:
            file.close()


def _to_storage(vectors: torch.Tensor, layer: int, storage: np.dtype[Any]) -> bytes:
    largest = float(vectors.abs().max()) if vectors.numel() else 0.0
    if not np.isfinite(largest):
        raise UserError(
            f"Layer {layer} gave a vector that is not finite; the model is broken, or --dtype "
            "is too narrow for it (try --dtype float32)."
        )
    if storage == np.float16 and largest > _FP16_MAX:
        raise _OutOfRangeError(f"layer {layer} reaches {largest:.0f}, beyond fp16's range")
    return vectors.cpu().numpy().astype(storage).tobytes()


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the vectors need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "name another --cache-dir, or use --limit."
        )


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']}, expected {FORMAT}")
        names = {"starts.npy", *(layer_name(i) for i in range(manifest["layers"]))}
        if set(manifest["files"]) != names:
            raise ValueError("its list of files is not that of its layers")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{folder}: not a readable store ({error}); {_remedy(folder)}") from error
    return dict(manifest)


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run again."
