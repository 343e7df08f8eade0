"""A frozen model: texts in, the word vectors of every layer out.

Layer 0 is what enters the first block (embeddings, with position embeddings and norm where
the model adds them there); layer L is `last_hidden_state`, which is after the final norm in
architectures that have one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from common.errors import UserError
from probes.alignment import (
    Ints,
    Pieces,
    WordTokenizer,
    pooled_pieces,
    window_of_pieces,
    windows,
)
from probes.config import DType, Pooling
from probes.models import RANDOM, ModelSource
from probes.views import Text

BATCH_TOKENS = {"cpu": 512, "cuda": 16384, "mps": 8192}
"""Padded tokens per batch where none are asked for; more is slower on a CPU."""


@dataclass(frozen=True)
class ModelInfo:
    """What results say about a model."""

    name: str
    revision: str
    digest: str
    architecture: str
    n_layers: int
    hidden_size: int
    parameters: int
    window: int


@dataclass(frozen=True)
class Rows:
    """One forward pass: windows of texts, right-padded, and whose pieces they hold.

    Attributes:
        ids, mask: shape (rows, length).
        position: index into the flattened (rows × length) positions of each piece that
            counts, grouped by word. Shape (pieces,).
        offset: where each word's pieces start in `position`. Shape (words,).
        weight: share of each piece in its word's vector. Shape (pieces,).
        word: the word's place among the words that the batch keeps. Shape (words,).
    """

    ids: torch.Tensor
    mask: torch.Tensor
    position: torch.Tensor
    offset: torch.Tensor
    weight: torch.Tensor
    word: torch.Tensor


class Collector(Protocol):
    """Takes from forward passes what it is for.

    Attributes:
        model_arguments: what the model is asked to return, e.g. ``output_hidden_states``.
    """

    model_arguments: dict[str, Any]

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """A batch begins: indices of its texts, and how many words they keep."""

    def add(self, rows: Rows, output: Any) -> None:
        """One forward pass of the batch."""

    def finish(self) -> None:
        """The batch is complete."""


class Encoder:
    """A model in evaluation mode on one device, with its tokenizer.

    Args:
        model: a transformers encoder, decoder, or encoder–decoder (its encoder is used).
        tokenizer: the fast tokenizer that belongs to it.
        name: what tables call it.
        device: where it runs; "auto" takes CUDA or MPS if there is one.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        revision: str = "",
        digest: str = "",
        device: str = "auto",
    ) -> None:
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        if getattr(model, "pooler", None) is not None:
            model.pooler = None
        self.device = pick_device(device)
        self.model = model.to(self.device).eval()
        config = model.config.get_text_config()
        self.words = WordTokenizer(tokenizer, pad_id=getattr(config, "pad_token_id", None))
        window = usable_window(model, tokenizer)
        self.capacity = window - len(self.words.prefix) - len(self.words.suffix)
        if self.capacity < 1:
            raise UserError(
                f"--model {name}: its window of {window} tokens leaves no room for text."
            )
        self.info = ModelInfo(
            name=name,
            revision=revision,
            digest=digest or digest_of_loaded(model, tokenizer),
            architecture=type(model).__name__,
            n_layers=config.num_hidden_layers,
            hidden_size=config.hidden_size,
            parameters=sum(p.numel() for p in model.parameters()),
            window=window,
        )

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """Subwords of `texts`."""
        return self.words(texts)

    def encode(
        self,
        texts: Sequence[Text],
        pieces: Sequence[Pieces],
        batches: Sequence[Sequence[int]],
        pooling: Pooling,
        batch_tokens: int,
        collector: Collector,
    ) -> Iterator[int]:
        """Run `batches` of texts through the model, handing what comes out to `collector`.

        Args:
            texts, pieces: what to encode, and the same as subwords.
            batches: indices of the texts of each batch (see `plan_batches`).
            pooling: which pieces make a word's vector.
            batch_tokens: bound on a forward pass; a longer text takes several.

        Yields:
            the number of texts of each batch when it is done.

        Raises:
            UserError: the device ran out of memory.
        """
        for batch in batches:
            kept = [texts[i].keep[1] - texts[i].keep[0] for i in batch]
            collector.start(batch, sum(kept))
            for rows in self._rows(texts, pieces, batch, pooling, batch_tokens):
                with torch.inference_mode():
                    output = self.model(
                        input_ids=rows.ids.to(self.device),
                        attention_mask=rows.mask.to(self.device),
                        **collector.model_arguments,
                    )
                collector.add(rows, output)
            collector.finish()
            yield len(batch)

    def _rows(
        self,
        texts: Sequence[Text],
        pieces: Sequence[Pieces],
        batch: Sequence[int],
        pooling: Pooling,
        batch_tokens: int,
    ) -> Iterator[Rows]:
        """Lay the windows of a batch out in rows, as many at a time as fit."""
        parts: list[tuple[Ints, Ints, Ints, Ints]] = []
        word_base = 0
        for i in batch:
            text, split = texts[i], pieces[i]
            spans = windows(len(split.ids), self.capacity)
            window = window_of_pieces(split.bounds, spans)
            used, owner = pooled_pieces(split.bounds, text.keep, pooling)
            share = 1 / np.bincount(owner)[owner]
            for index, (start, end) in enumerate(spans):
                here = window[used] == index
                ids = np.concatenate([self.words.prefix, split.ids[start:end], self.words.suffix])
                place = used[here] - start + len(self.words.prefix)
                parts.append((ids.astype(np.int64), place, owner[here] + word_base, share[here]))
            word_base += text.keep[1] - text.keep[0]
        room = max(1, batch_tokens // max(len(part[0]) for part in parts))
        for first in range(0, len(parts), room):
            yield self._pad(parts[first : first + room])

    def _pad(self, parts: list[tuple[Ints, Ints, Ints, Ints]]) -> Rows:
        length = max(len(part[0]) for part in parts)
        ids = np.full((len(parts), length), self.words.pad_id, dtype=np.int64)
        mask = np.zeros((len(parts), length), dtype=np.int64)
        for row, (row_ids, *_) in enumerate(parts):
            ids[row, : len(row_ids)] = row_ids
            mask[row, : len(row_ids)] = 1
        position = np.concatenate([row * length + part[1] for row, part in enumerate(parts)])
        owner = np.concatenate([part[2] for part in parts])
        share = np.concatenate([part[3] for part in parts])
        changes = np.flatnonzero(np.diff(owner, prepend=-1))
        return Rows(
            ids=torch.from_numpy(ids),
            mask=torch.from_numpy(mask),
            position=torch.from_numpy(position),
            offset=torch.from_numpy(changes),
            weight=torch.from_numpy(share.astype(np.float32)),
            word=torch.from_numpy(owner[changes]),
        )


class WordVectors:
    """Collects the vectors of every layer, one per kept word.

    After each batch, `vectors` holds one float32 array (words, hidden size) per layer.
    """

    model_arguments = {"output_hidden_states": True}

    def __init__(self) -> None:
        self.vectors: list[torch.Tensor] = []
        self._n_words = 0

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """See `Collector`."""
        self.vectors, self._n_words = [], n_words

    def add(self, rows: Rows, output: Any) -> None:
        """Pool each word's pieces; a word's pieces may come in several passes."""
        for layer, hidden in enumerate(output.hidden_states):
            flat = hidden.reshape(-1, hidden.shape[-1]).float()
            device = flat.device
            pooled = torch.nn.functional.embedding_bag(
                rows.position.to(device),
                flat,
                rows.offset.to(device),
                mode="sum",
                per_sample_weights=rows.weight.to(device),
            )
            if layer == len(self.vectors):
                self.vectors.append(flat.new_zeros(self._n_words, flat.shape[-1]))
            self.vectors[layer].index_add_(0, rows.word.to(device), pooled)

    def finish(self) -> None:
        """See `Collector`."""


def plan_batches(pieces: Sequence[Pieces], capacity: int, batch_tokens: int) -> list[list[int]]:
    """Group texts of near-equal length so that no batch exceeds `batch_tokens`.

    Longest first, so that what does not fit in memory shows at once. A text that is longer
    than `batch_tokens` stands alone.
    """
    lengths = [len(p.ids) for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    for i in order:
        if batches:
            longest = min(capacity, lengths[batches[-1][0]])
            fits = (len(batches[-1]) + 1) * longest <= batch_tokens
            if fits and lengths[batches[-1][0]] <= capacity:
                batches[-1].append(i)
                continue
        batches.append([i])
    return batches


def load_encoder(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "auto",
    trust_remote_code: bool = False,
) -> Encoder:
    """Load the model that `source` points at.

    Raises:
        UserError: transformers cannot load it, or its files lack weights that it needs.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging as hf_logging

    folder = str(source.folder)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    precision = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True, **options)
        if source.random:
            config = AutoConfig.from_pretrained(folder, **options)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(source.seed)
                model = AutoModel.from_config(
                    config, dtype=precision, trust_remote_code=trust_remote_code
                )
        else:
            model, loading = AutoModel.from_pretrained(
                folder,
                dtype=precision,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
            _require_all_weights(source, loading)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"--model {source.name}: transformers cannot load it: {first}") from error
    return Encoder(
        model,
        tokenizer,
        name=source.name,
        revision=source.revision,
        digest=source.digest,
        device=device,
    )


def _require_all_weights(source: ModelSource, loading: dict[str, Any]) -> None:
    missing = sorted(key for key in loading["missing_keys"] if not key.startswith("pooler."))
    missing += sorted(str(key) for key in loading["mismatched_keys"])
    if missing:
        raise UserError(
            f"--model {source.name}: {len(missing)} weights are not in its files and would be drawn "
            f"at random (first: {missing[0]}); ask for a random twin with {RANDOM}{source.name}."
        )


def usable_window(model: Any, tokenizer: Any) -> int:
    """How many tokens, special ones included, the model can read at once.

    RoBERTa's kin count positions from the padding index on: 514 position embeddings hold 512
    tokens. The tokenizer's own limit is heeded where it is smaller.
    """
    limits = []
    configured = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(configured, int) and configured > 0:
        limits.append(configured)
    for name, module in model.named_modules():
        table = name.rpartition(".")[2]
        if table == "position_embeddings" and isinstance(module, torch.nn.Embedding):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - reserved)
    if tokenizer.model_max_length < 10**6:
        limits.append(tokenizer.model_max_length)
    return min(limits, default=512)


def pick_device(device: str) -> torch.device:
    """The torch device called `device`; "auto" prefers CUDA, then MPS, then the CPU.

    Raises:
        UserError: there is no such device here.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.empty(0, device=picked)
    except (RuntimeError, AssertionError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"--device {device}: {first}") from error
    return picked


def digest_of_loaded(model: Any, tokenizer: Any) -> str:
    """SHA-256 over the weights, configuration and tokenizer of a model in memory."""
    digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode())
    digest.update(model.config.to_json_string().encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
