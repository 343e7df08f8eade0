"""From texts to a store: each batch through the model once, going on where it was stopped.

While it is unfinished a store lies in ``<key>.partial``; an encoding that was stopped goes on
from there, with the same batches, whatever batch size this machine would choose today.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import published, require_writable, sweep_temporaries, writing
from common.locks import SUFFIX, locked
from common.terminal import progress
from probes.allocator import give_back, kept_memory
from probes.batching import measured_batch_tokens, plan_batches
from probes.collectors import WordVectors
from probes.config import WINDOW_RULE
from probes.encoder import Encoder
from probes.layer_files import (
    JOURNAL,
    Journal,
    NotFiniteError,
    OutOfRangeError,
    layer_files,
    read_journal,
)
from probes.precision import exact_products
from probes.store import (
    FORMAT,
    MANIFEST,
    PARTIAL,
    StoreKey,
    Vectors,
    checksum,
    layer_name,
    store_folder,
    write_manifest,
)
from probes.views import Text, View

_KEEP_FOR = 32
"""Batches after which freed memory goes back to the system."""


@exact_products()
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
    # Without a lock, so that a cache which can only be read does.
    if (found := _stored(cache, key)) is not None:
        return found
    require_writable(folder.parent)
    with locked(folder.with_suffix(SUFFIX), waiting="for another run to encode the same text"):
        # It may have been encoded meanwhile.
        if (found := _stored(cache, key)) is not None:
            return found
        partial = folder.with_suffix(PARTIAL)
        try:
            with kept_memory(), writing(partial):
                if not (partial / MANIFEST).exists():
                    manifest = _encode(partial, view, encoder, key, batch_tokens)
                    write_manifest(partial, {**manifest, "corpus": corpus})
                (partial / JOURNAL).unlink(missing_ok=True)
                sweep_temporaries(partial, older_than=0)
                partial.rename(folder)
        except NotFiniteError as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise UserError(f"--model {encoder.info.name}: {error}") from error
        return Vectors(cache, key)


def _stored(cache: Path, key: StoreKey) -> Vectors | None:
    """What is stored for `key`; None if nothing is, or no longer.

    Raises:
        UserError: it is damaged.
    """
    folder = store_folder(cache, key)
    try:
        return Vectors(cache, key) if folder.exists() else None
    except UserError:
        if folder.exists():
            raise
        return None  # another process has just pruned it


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
        other = "" if batch_tokens in (None, journal.batch_tokens) else f", not {batch_tokens}"
        progress.say(
            f"encoding goes on after {journal.batches} batches that are there already, of "
            f"{journal.batch_tokens} tokens each{other}",
            "resumed",
        )

    progress.detail(
        f"encode  {len(view.texts):,} texts in {len(batches):,} batches of up to "
        f"{journal.batch_tokens} tokens, {journal.batches} of them done",
        "encode",
        key=key.digest,
        batches=len(batches),
        done=journal.batches,
        batch_tokens=journal.batch_tokens,
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
            try:
                for n_done, n_texts in enumerate(done, 1):
                    files.append(collector.vectors)
                    bar.update(n_texts)
                    if n_done % _KEEP_FOR == 0:
                        give_back()
                return files.finish()
            except NotFiniteError as error:
                texts = [view.texts[i] for i in batches[error.batch]]
                error.word = word_of_row(texts, error.row)
                raise

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
    with published(partial / "starts.npy") as temporary:
        np.save(temporary, starts, allow_pickle=False)
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


def word_of_row(texts: Sequence[Text], row: int) -> str:
    """The word whose vector is the `row`-th of a batch of texts, and the text it stands in."""
    for text in texts:
        start, end = text.keep
        if row < end - start:
            place = start + row
            around = " ".join(text.words[max(0, place - 5) : place + 6])
            return f"{text.words[place]!r}, word {place + 1} of {len(text.words)} in '… {around} …'"
        row -= end - start
    raise AssertionError("the row is not of this batch")


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the vectors need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "name another --cache-dir, or use --limit."
        )
