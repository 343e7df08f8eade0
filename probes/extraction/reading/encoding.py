"""From texts to a store: a model reads a view shard by shard.

Any number of processes may do so at once. Each takes a shard that no other one is making. When none
is left, it waits for the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import torch

from probes.common.errors import UserError, listed
from probes.common.files import published, require_writable
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.devices import exact_products
from probes.extraction.changing.interventions import Intervention, active_changes, changed_passes
from probes.extraction.changing.prefixes import Prefixes
from probes.extraction.reading.collectors import (
    Collector,
    CollectorError,
    NotFiniteError,
    OutOfRangeError,
    WordVectors,
)
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.padding import default_batch_tokens
from probes.extraction.reading.shard_files import ShardWriter, drop_shards
from probes.extraction.reading.shards import Shard, shard_numbers, shards_of, single_shard
from probes.extraction.reading.store import (
    MANIFEST,
    REPLACED,
    Store,
    StoreKey,
    replacement,
    require_room,
    shard_folders,
    shard_lock,
    store_folder,
    write_manifest,
)
from probes.extraction.reading.text_vectors import Splitter, TextVectors
from probes.extraction.reading.vectors import StoredVectors, layer_part
from probes.extraction.reading.views import View
from probes.extraction.reading.windows import LEFT_TO_RIGHT_RULE, Pooling
from probes.records.header import ModelRecord
from probes.tasks.positions import Position
from probes.tasks.task import ReadSite, layers_at


@dataclass(frozen=True)
class StoreRequest:
    """A model's reading of a view, with the collector that keeps part of it.

    Attributes:
        cache: the folder of all stores.
        dtype: the type in which the model computes.
        collector: keeps part of the forward passes.
        corpus: name of the corpus, for listings of the cache.
        source: SHA-256 of the collector's source, if it is a plug-in's, or of what a chat template
            has written.
    """

    cache: Path
    model: ModelRecord
    dtype: str
    view: View
    collector: Collector
    corpus: str = ""
    source: str = ""

    @cached_property
    def key(self) -> StoreKey:
        """Key of the store."""
        collector = self.collector
        # The rule is named only where it differs from that of all other stores.
        rule = {"windows": LEFT_TO_RIGHT_RULE} if self.model.causal else {}
        return StoreKey(
            self.model.digest,
            self.view.digest,
            self.dtype,
            f"{collector.name} v{collector.version}",
            {**collector.settings, **rule},
            collector.annotation,
            self.source,
        )

    @cached_property
    def folder(self) -> Path:
        """Folder of the store."""
        return store_folder(self.cache, self.key)

    def stored(self) -> Store | None:
        """The store, which may lack shards; None if it has not been begun."""
        # A run that was killed may have left a folder without a manifest, but not one with shards.
        begun = (self.folder / MANIFEST).exists() or shard_folders(self.folder)
        try:
            return Store(self.cache, self.key) if begun else None
        except UserError:
            if self.folder.exists():
                raise
            return None  # another process has just deleted it

    def missing(self) -> list[Shard]:
        """The shards that lack a part; the whole view if the store has not been begun."""
        return [shard for shard, _ in self._parts_missing()]

    def bytes_missing(self) -> int:
        """Bytes that are still to be written."""
        missing = self._parts_missing()
        return sum(self.collector.only(x).bytes_of(shard, self.model) for shard, x in missing)

    def _parts_missing(self) -> Iterator[tuple[Shard, Sequence[str]]]:
        """The shards that lack a part, each with the parts that it lacks."""
        store, parts = self.stored(), self.collector.parts
        if store is None:
            yield single_shard(self.view), parts
            return
        for shard in store.shards(self.view):
            if missing := store.missing(shard.number, parts):
                yield shard, missing


def word_vectors(
    cache: Path,
    model: ModelRecord,
    dtype: str,
    view: View,
    layers: Sequence[int],
    pooling: Pooling = "mean",
    corpus: str = "",
    sites: Sequence[ReadSite | None] = (None,),
) -> StoreRequest:
    """The request for word vectors, stored in fp16 unless one was beyond its range."""
    parts = [layer_part(*x) for x in _layer_sites(layers, sites, model)]
    collector = WordVectors(layers, pooling, sites=sites).only(parts)
    return _in_range(StoreRequest(cache, model, dtype, view, collector, corpus))


def text_vectors(
    cache: Path,
    model: ModelRecord,
    dtype: str,
    view: View,
    layers: Sequence[int],
    positions: Iterable[Position],
    corpus: str = "",
    source: str = "",
    sites: Sequence[ReadSite | None] = (None,),
    split: Splitter | None = None,
) -> StoreRequest:
    """The request for vectors of whole texts, stored like word vectors.

    Args:
        split: see `TextVectors`.
    """
    pairs = product(_layer_sites(layers, sites, model), positions)
    triples = [(*layer_site, position) for layer_site, position in pairs]
    collector = TextVectors(triples, split=split)
    return _in_range(StoreRequest(cache, model, dtype, view, collector, corpus, source))


def _layer_sites(
    layers: Sequence[int], sites: Sequence[ReadSite | None], model: ModelRecord
) -> list[tuple[int, ReadSite | None]]:
    return [(layer, site) for site in sites for layer in layers_at(site, layers, model.n_layers)]


def _in_range(request: StoreRequest) -> StoreRequest:
    """The request, in float32 if float16 overflowed before."""
    return _in_float32(request) if replacement(request.folder) else request


def as_given(request: StoreRequest, content: str) -> StoreRequest:
    """The request for given vectors: stored in fp32, under a key with their digest."""
    return replace(_in_float32(request), source=content)


def _in_float32(request: StoreRequest) -> StoreRequest:
    """A copy of the request, which stores vectors in fp32."""
    assert isinstance(request.collector, (WordVectors, TextVectors))
    return replace(request, collector=request.collector.in_float32())


def vectors_of(
    request: StoreRequest, encoder: Encoder, batch_tokens: int | None = None
) -> StoredVectors:
    """The vectors of a view's words or texts: from the store, or encoded now and stored.

    Args:
        request: see `word_vectors` and `text_vectors`.
        batch_tokens: see `collect`.
    """
    given_up = False
    try:
        collect(request, encoder, batch_tokens)
    except OutOfRangeError:
        given_up = True
    if given_up:  # not in the handler, where the error would keep tensors alive
        request = _in_float32(request)
        require_room(request.cache, request.bytes_missing())  # twice what was asked for before
        collect(request, encoder, batch_tokens)
    return StoredVectors(request.cache, request.key, request.view)


def full_store(request: StoreRequest, encoder: Encoder, batch_tokens: int | None = None) -> Store:
    """The store of a request, after what is missing has been collected."""
    collect(request, encoder, batch_tokens)
    return Store(request.cache, request.key)


Arrays = Mapping[str, torch.Tensor]
"""Arrays that a collector made of a shard, by part."""


def read(
    view: View, collector: Collector, encoder: Encoder, batch_tokens: int | None = None
) -> Iterator[tuple[Shard, Arrays]]:
    """Arrays that a collector makes of each shard of a view; nothing is stored. See `collect`."""
    tokens = batch_tokens or default_batch_tokens(encoder.device.type)
    numbers = _shard_numbers(view, collector, encoder, tokens)
    with progress.bar(f"reading {encoder.info.name}", total=len(view.texts), unit="text"):
        for shard in shards_of(view, numbers):
            with exact_products():
                arrays = encoder.encode(shard, encoder.split(shard.texts), tokens, collector)
            yield shard, arrays


def _shard_numbers(
    view: View, collector: Collector, encoder: Encoder, batch_tokens: int
) -> list[int]:
    """The shard of each text of a view."""
    n_bytes = collector.bytes_by_text(single_shard(view), encoder.info)
    batches = encoder.batches(encoder.split(view.texts), batch_tokens)
    return shard_numbers(view, batches, n_bytes, encoder.device.type)


def read_changed(
    view: View,
    collector: Collector,
    encoder: Encoder,
    changes: Sequence[Sequence[Intervention]],
    batch_tokens: int | None = None,
) -> Iterator[tuple[int, Arrays]]:
    """Arrays that a collector makes of a view under interventions; nothing is stored.

    Blocks below all that is changed are computed once, unless the collector sees inside blocks.

    Args:
        changes: the interventions of each of several readings, which are numbered from 0.
        batch_tokens: see `collect`.

    Raises:
        NoHeadError: the collector reads logits, and the model has no head.
    """
    tokens = batch_tokens or default_batch_tokens(encoder.device.type)
    shard = single_shard(view)
    pieces = encoder.split(view.texts)
    if collector.reads_logits or collector.applies_head:
        encoder.lens()  # while nothing is changed
    # In blocks that are not computed again, nothing is seen.
    prefixes = None if collector.inside else Prefixes(encoder.model)
    total = len(view.texts) * len(changes)
    with progress.bar(f"reading {encoder.info.name}", total=total, unit="text"):
        for number, interventions in enumerate(changes):
            with exact_products(), changed_passes(encoder, interventions, prefixes):
                arrays = encoder.encode(shard, pieces, tokens, collector)
            yield number, arrays


@exact_products()
def collect(request: StoreRequest, encoder: Encoder, batch_tokens: int | None = None) -> None:
    """Make the shards that are missing, and wait for those that other processes are making.

    Args:
        batch_tokens: tokens of a batch; None for the device's default. A store that was begun with
            another number keeps that one.

    Raises:
        UserError: the disk is full, the folder cannot be written, a vector is not finite, the
            store is damaged, or the encoder's passes are changed.
        OutOfRangeError: a vector is beyond the range of the storage type; its store is given up.
    """
    # Without a lock, so that a read-only cache can be used.
    if not request.missing():
        return
    if encoder.reads_text and active_changes.get(encoder.model):
        raise UserError("What a model reads while it is changed is not stored; use read().")
    store = begin_store(request, encoder, batch_tokens)
    todo = request.missing()
    title = f"encoding {encoder.info.name} · {request.view.name}"
    total = sum(len(shard.texts) for shard in todo)
    with progress.bar(title, total=total, unit="text"):
        while todo:
            try:
                busy = _make_shards(request, store, todo, encoder)
            except NotFiniteError as error:
                raise UserError(f"--model {encoder.info.name}: {error}") from error
            except OutOfRangeError as error:
                _give_up(store, str(error))
                raise
            # After a shard of our own, others may be free by now; otherwise there is only waiting.
            if busy and len(busy) == len(todo):
                waiting = "for another process to encode the same text"
                with locked(shard_lock(store.folder, busy[0].number), waiting=waiting):
                    pass
            store.refresh()
            todo = [x for x in busy if store.missing(x.number, request.collector.parts)]


def begin_store(request: StoreRequest, encoder: Encoder, batch_tokens: int | None = None) -> Store:
    """The store, which is begun if there is none; it may lack shards. See `collect`."""
    folder, view = request.folder, request.view
    batch_tokens = batch_tokens or default_batch_tokens(encoder.device.type)
    require_writable(folder.parent)
    with locked(folder.with_suffix(SUFFIX)):
        if not (folder / MANIFEST).exists():
            numbers = _shard_numbers(view, request.collector, encoder, batch_tokens)
            content = {
                "key": asdict(request.key),
                "model": request.model.model_dump(),
                "view": view.name,
                "corpus": request.corpus,
                "layers": request.model.n_layers + 1,
                "texts": len(view.texts),
                "rows": single_shard(view).n_rows,
                "shards": max(numbers, default=-1) + 1,
                "batch_tokens": batch_tokens,
                "shard_of": numbers,
            }
            write_manifest(folder / MANIFEST, content)
    store = Store(request.cache, request.key)
    all_shards = range(store.n_shards)
    n_complete = sum(not store.missing(number, request.collector.parts) for number in all_shards)
    used = store.manifest["batch_tokens"]
    if 0 < n_complete < store.n_shards or used != batch_tokens:
        progress.say(
            f"encoding continues: {n_complete} of {store.n_shards} shards exist, made with {used} "
            "tokens per batch",
            "resumed",
        )
    return store


def _make_shards(
    request: StoreRequest, store: Store, shards: Sequence[Shard], encoder: Encoder
) -> list[Shard]:
    """Make the shards that no other process is making; return the others."""
    busy = []
    with ShardWriter() as writer:
        for shard in shards:
            if reason := replacement(store.folder):
                raise OutOfRangeError(reason)
            with ExitStack() as claim:
                try:
                    lock = shard_lock(store.folder, shard.number)
                    claim.enter_context(locked(lock, wait=False))
                except BusyError:
                    busy.append(shard)
                    continue
                store.refresh(shard.number)
                if parts := store.missing(shard.number, request.collector.parts):
                    content = _encode_shard(request, store, shard, parts, encoder)
                    writer.write(claim.pop_all(), store.folder, shard, *content)
    return busy


def _encode_shard(
    request: StoreRequest, store: Store, shard: Shard, parts: Sequence[str], encoder: Encoder
) -> tuple[dict[str, torch.Tensor], dict[str, int], list[int]]:
    """Some parts of a shard, counts of subwords, and the texts that take several windows."""
    collector, batch_tokens = request.collector.only(parts), store.manifest["batch_tokens"]
    progress.detail(
        f"encode  {request.view.name} view · shard {shard.number + 1} of {store.n_shards} · "
        f"{len(shard.texts):,} texts in batches of up to {batch_tokens} tokens",
        "encode",
        key=request.key.digest,
        shard=shard.number,
        batch_tokens=batch_tokens,
    )
    pieces = encoder.split(shard.texts)
    try:
        arrays = encoder.encode(shard, pieces, batch_tokens, collector)
    except NotFiniteError as error:
        error.args = (_not_finite_message(error, shard),)
        raise
    if set(arrays) != set(parts):
        raise CollectorError(
            f"The collector {collector.name!r} returned {listed(sorted(arrays))} where "
            f"{listed(parts)} was asked for; correct its finish()."
        )
    counts = {
        "subwords": sum(len(p.ids) for p in pieces),
        "unknown_words": sum(p.unknown for p in pieces),
    }
    room = encoder.capacity
    if any(text.rendered for text in shard.texts):
        room += encoder.specials
    long = [i for i, p in enumerate(pieces) if len(p.ids) > room]
    return arrays, counts, long


def _not_finite_message(error: NotFiniteError, shard: Shard) -> str:
    """Message that names the layer and the word, with the words around it."""
    text_index = int((shard.starts <= error.row).sum()) - 1
    text = shard.texts[text_index]
    where = f"the text {text.words[0][:60]!r}"
    if not text.written:
        word = text.kept_span[0] + error.row - int(shard.starts[text_index])
        context = " ".join(text.words[max(0, word - 5) : word + 6])
        where = f"{text.words[word]!r}, word {word + 1} of {len(text.words)} in '… {context} …'"
    return (
        f"layer {error.layer} gives a vector that is not finite (NaN or infinite) for {where}; the "
        "model is broken, or --dtype is too narrow for it (try --dtype float32)."
    )


def _give_up(store: Store, reason: str) -> None:
    """Mark a store as replaced by another key, and delete its shards."""
    if not replacement(store.folder):
        progress.say(f"{reason}: everything is encoded again and stored in fp32", "stored in fp32")
        with published(store.folder / REPLACED) as temporary:
            temporary.write_text(json.dumps({"why": reason}))
    drop_shards(store.folder)
