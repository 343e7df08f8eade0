"""From texts to a store: each batch through the model once, going on where it was stopped.

While it is unfinished a store lies in ``<key>.partial``; an encoding that was stopped goes on
from there, with the same batches, whatever batch size this machine would choose today.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from common.errors import UserError
from common.files import writing
from common.terminal import progress
from probes.allocator import kept_memory
from probes.batching import measured_batch_tokens, plan_batches
from probes.collectors import WordVectors
from probes.config import WINDOW_RULE
from probes.encoder import Encoder
from probes.layer_files import Journal, NotFiniteError, OutOfRangeError, layer_files, read_journal
from probes.store import FORMAT, PARTIAL, StoreKey, Vectors, checksum, layer_name, store_folder
from probes.views import View


def open_or_encode(
    cache: Path,
    key: StoreKey,
    view: View,
    encoder: Encoder,
    batch_tokens: int | None = None,
    corpus: str = "",
) -> Vectors:
    """The word vectors of `view`: from the store, or encoded now and stored.

    Two processes that want the same key do the work once: the second waits for the first.

    Args:
        batch_tokens: tokens per forward pass; None to measure what is fastest.
        corpus: its name, for whoever lists the cache.

    Raises:
        UserError: no space, a folder that cannot be written, vectors that are not finite,
            a damaged store.
    """
    folder = store_folder(cache, key)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            partial = folder.with_suffix(PARTIAL)
            try:
                with kept_memory(), writing(partial):
                    manifest = _encode(partial, view, encoder, key, batch_tokens)
                    manifest["corpus"] = corpus
                    (partial / "journal.json").unlink()
                    (partial / "manifest.json").write_text(json.dumps(manifest, indent=1))
                    partial.rename(folder)
            except NotFiniteError:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    return Vectors(folder)


def _encode(
    partial: Path, view: View, encoder: Encoder, key: StoreKey, batch_tokens: int | None
) -> dict[str, Any]:
    """Run the encoder over what `partial` lacks of `view`, and return the manifest."""
    pieces = encoder.split(view.texts)
    kept = np.array([text.keep[1] - text.keep[0] for text in view.texts], dtype=np.int64)
    n_layers, shape = encoder.info.n_layers + 1, (int(kept.sum()), encoder.info.hidden_size)
    journal = read_journal(partial, n_layers)
    if journal is None:
        journal = Journal(batch_tokens=batch_tokens or measured_batch_tokens(encoder, pieces))
    batches = plan_batches(pieces, encoder.capacity, encoder.specials, journal.batch_tokens)
    plan = hashlib.sha256(json.dumps(batches).encode()).hexdigest()
    if journal.plan != plan:
        # Begun by another version or tokenizer: nothing on disk is where this plan has it.
        shutil.rmtree(partial, ignore_errors=True)
        journal = Journal(batch_tokens=journal.batch_tokens, plan=plan)

    if journal.batches:
        progress.say(
            f"encoding goes on after {journal.batches} batches that are there already, of "
            f"{journal.batch_tokens} tokens each"
        )

    def run(journal: Journal) -> list[int]:
        """Encode the batches that remain; the checksum of each layer's file."""
        item = np.dtype(journal.storage).itemsize
        _require_space(partial.parent, n_layers * (shape[0] * shape[1] * item - journal.bytes))
        collector = WordVectors()
        left = batches[journal.batches :]
        done = encoder.encode(
            view.texts, pieces, left, key.pooling, journal.batch_tokens, collector
        )
        what = f"encoding {encoder.info.name} · {view.name}"
        with (
            layer_files(partial, n_layers, shape, journal) as files,
            progress.bar(what, total=len(view.texts), unit="text") as bar,
        ):
            bar.update(sum(map(len, batches[: journal.batches])))
            for n_texts in done:
                files.append(collector.vectors)
                bar.update(n_texts)
            return files.finish()

    try:
        crc32 = run(journal)
    except OutOfRangeError as error:
        progress.say(f"{error}: stored in fp32")
        shutil.rmtree(partial)
        journal = Journal(batch_tokens=journal.batch_tokens, plan=plan, storage="float32")
        crc32 = run(journal)

    order = np.concatenate([np.asarray(batch, dtype=np.int64) for batch in batches])
    starts = np.empty(len(kept), dtype=np.int64)
    starts[order] = np.cumsum(kept[order]) - kept[order]
    np.save(partial / "starts.npy", starts, allow_pickle=False)
    checksums = {layer_name(layer): value for layer, value in enumerate(crc32)}
    checksums["starts.npy"] = checksum(partial / "starts.npy")
    return {
        "format": FORMAT,
        "key": asdict(key),
        "windows": WINDOW_RULE,
        "model": encoder.info.model_dump(),
        "view": view.name,
        "texts": len(view.texts),
        "rows": shape[0],
        "layers": n_layers,
        "storage": journal.storage,
        "batch_tokens": journal.batch_tokens,
        "batches": len(batches),
        "subwords": sum(len(p.ids) for p in pieces),
        "unknown_words": sum(p.unknown for p in pieces),
        "texts_in_several_windows": sum(len(p.ids) > encoder.capacity for p in pieces),
        "files": {
            name: {"bytes": (partial / name).stat().st_size, "crc32": value}
            for name, value in checksums.items()
        },
    }


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the vectors need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "name another --cache-dir, or use --limit."
        )
