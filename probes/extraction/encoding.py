"""From texts to a store: each batch is read by the model once; a stopped encoding is resumed.

An unfinished store is a folder ``<key>.partial``. It is resumed with the batch size that it was
begun with, whatever ``--batch-tokens`` says now.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from probes.common.errors import UserError
from probes.common.files import published, require_writable, sweep_temporaries, writing
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.compute.precision import exact_products
from probes.extraction.batching import Batch, default_batch_tokens, in_batches
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.layer_files import (
    JOURNAL,
    Journal,
    NotFiniteError,
    OutOfRangeError,
    layer_files,
    order_checksum,
    read_journal,
)
from probes.extraction.store import (
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
from probes.extraction.views import Text, View
from probes.extraction.windows import WINDOW_RULE


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

    If two processes ask for the same key, the second waits for the first.

    Args:
        batch_tokens: tokens per forward pass; None for the device's default.
        corpus: its name, for listings of the cache.

    Raises:
        UserError: the disk is full, the folder cannot be written, a vector is not finite, or the
            store is damaged.
    """
    folder = store_folder(cache, key)
    # Without a lock, so that a read-only cache can be used.
    if (found := _stored(cache, key)) is not None:
        return found
    require_writable(folder.parent)
    with locked(folder.with_suffix(SUFFIX), waiting="for another run to encode the same text"):
        # Another process may have encoded it in the meantime.
        if (found := _stored(cache, key)) is not None:
            return found
        partial = folder.with_suffix(PARTIAL)
        try:
            with writing(partial):
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
    """The store of `key`; None if there is none.

    Raises:
        UserError: it is damaged.
    """
    folder = store_folder(cache, key)
    try:
        return Vectors(cache, key) if folder.exists() else None
    except UserError:
        if folder.exists():
            raise
        return None  # another process has just deleted it


def _encode(
    partial: Path, view: View, encoder: Encoder, key: StoreKey, batch_tokens: int | None
) -> dict[str, Any]:
    """Encode the texts of `view` that `partial` lacks, and return the manifest."""
    kept = np.array([text.keep[1] - text.keep[0] for text in view.texts], dtype=np.int64)
    n_layers, shape = encoder.info.n_layers + 1, (int(kept.sum()), encoder.info.hidden_size)
    journal = read_journal(partial, n_layers)
    if journal is None:
        tokens = batch_tokens or default_batch_tokens(encoder.device.type)
        journal = Journal(batch_tokens=tokens)
    encoder.words.require_pieces(view.texts)
    encoding = _Encoding(partial, view, encoder, key, shape, batch_tokens)
    while True:
        try:
            read, crc32 = encoding.run(journal)
            break
        except (OutOfRangeError, OtherOrderError) as error:
            storage = "float32" if isinstance(error, OutOfRangeError) else journal.storage
            progress.say(str(error))
            shutil.rmtree(partial)
        # Outside the handler: there the error would keep tensors alive.
        journal = Journal(batch_tokens=journal.batch_tokens, storage=storage)

    order = np.concatenate([np.asarray(batch, dtype=np.int64) for batch in read.batches])
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
        "batches": len(read.batches),
        "subwords": read.subwords,
        "unknown_words": read.unknown,
        "texts_in_several_windows": read.in_windows,
        "files": {
            name: {"bytes": (partial / name).stat().st_size, "crc32": value}
            for name, value in checksums.items()
        },
    }


class OtherOrderError(Exception):
    """What is on disk was begun by another version or tokenizer: its batches hold other texts."""


@dataclass
class _Read:
    """Counts of what was read of a view.

    Attributes:
        batches: the indices of each batch's texts.
        subwords: subwords of all texts.
        unknown: words that yielded no subword.
        in_windows: texts that did not fit into one window.
    """

    batches: list[list[int]] = field(default_factory=list)
    subwords: int = 0
    unknown: int = 0
    in_windows: int = 0

    def counting(self, batches: Iterable[Batch], capacity: int) -> Iterator[Batch]:
        """Pass the batches on and count them."""
        for batch in batches:
            self.batches.append(batch.index)
            self.subwords += sum(len(p.ids) for p in batch.pieces)
            self.unknown += sum(p.unknown for p in batch.pieces)
            self.in_windows += sum(len(p.ids) > capacity for p in batch.pieces)
            yield batch


@dataclass(frozen=True)
class _Encoding:
    """The encoding of a view into the folder `partial`.

    Attributes:
        shape: (words, hidden size) of each layer.
        batch_tokens: what the user asked for; the journal's number is used.
    """

    partial: Path
    view: View
    encoder: Encoder
    key: StoreKey
    shape: tuple[int, int]
    batch_tokens: int | None

    def run(self, journal: Journal) -> tuple[_Read, list[int]]:
        """Encode what the journal lacks; return counts, and the checksum of each layer's file."""
        encoder, texts = self.encoder, self.view.texts
        read, collector = _Read(), WordVectors()
        with closing(in_batches(encoder, texts, journal.batch_tokens)) as planned:
            batches = read.counting(planned, encoder.capacity)
            order = 0
            for batch in islice(batches, journal.batches):
                order = order_checksum(batch.index, order)
            if order != journal.order:
                raise OtherOrderError("encoding starts again: it was begun with other batches")
            if journal.batches:
                self._say_resumed(journal)
            n_layers, item = encoder.info.n_layers + 1, np.dtype(journal.storage).itemsize
            needed = n_layers * (self.shape[0] * self.shape[1] * item - journal.bytes)
            _require_space(self.partial.parent, needed)
            progress.detail(
                f"encode  {len(texts):,} texts in batches of up to {journal.batch_tokens} tokens, "
                f"{journal.batches} batches done",
                "encode",
                key=self.key.digest,
                done=journal.batches,
                batch_tokens=journal.batch_tokens,
            )
            passes = encoder.encode(batches, self.key.pooling, journal.batch_tokens, collector)
            what = f"encoding {encoder.info.name} · {self.view.name}"
            with (
                layer_files(self.partial, n_layers, self.shape, journal) as files,
                progress.bar(what, total=len(texts), unit="text") as bar,
            ):
                bar.update(sum(map(len, read.batches)))
                try:
                    for n_texts in passes:
                        files.append(collector.vectors, read.batches[-1])
                        bar.update(n_texts)
                    return read, files.finish()
                except NotFiniteError as error:
                    here = [texts[i] for i in read.batches[error.batch]]
                    error.word = word_of_row(here, error.row)
                    raise

    def _say_resumed(self, journal: Journal) -> None:
        usual = self.batch_tokens in (None, journal.batch_tokens)
        progress.say(
            f"encoding resumes after {journal.batches} batches, with {journal.batch_tokens} tokens "
            f"per batch as before{'' if usual else f', not {self.batch_tokens}'}",
            "resumed",
        )


def word_of_row(texts: Sequence[Text], row: int) -> str:
    """The word whose vector is row `row` of a batch, with the words around it."""
    for text in texts:
        start, end = text.keep
        if row < end - start:
            place = start + row
            context = " ".join(text.words[max(0, place - 5) : place + 6])
            return (
                f"{text.words[place]!r}, word {place + 1} of {len(text.words)} in '… {context} …'"
            )
        row -= end - start
    raise AssertionError(f"the batch has no row {row}")


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the vectors need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "choose another --cache-dir, or use --limit."
        )
