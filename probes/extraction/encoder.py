"""A frozen model: texts in, the word vectors of every layer out.

Layer 0 is what enters the first block (embeddings, with position embeddings and norm where
the model adds them there); layer L is `last_hidden_state`, which is after the final norm in
architectures that have one. docs/architectures.md has the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from probes.common.errors import UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.devices import MAP, DType
from probes.compute.transfers import to_device
from probes.extraction.alignment import (
    Pieces,
    Pooling,
    WordTokenizer,
    pooled_pieces,
    window_of_pieces,
    windows,
)
from probes.extraction.batching import Batch
from probes.extraction.collectors import Collector, WordVectors, layer_states
from probes.extraction.loading import (
    accepted_arguments,
    declared_causal,
    digest_of_loaded,
    load_files,
    part_that_reads,
    place,
    runs_remote_code,
    trying,
    usable_window,
)
from probes.extraction.model_files import ModelSource
from probes.extraction.unpadded import leave_padding_out
from probes.extraction.views import Text
from probes.extraction.windows import Layout, Padded, Window, bare, in_passes
from probes.records.header import ModelRecord


class Encoder:
    """A model in evaluation mode, where it lies, with its tokenizer.

    Args:
        model: a transformers encoder, decoder, or encoder–decoder (its encoder is used); a
            head on top of it is left aside. It is put into evaluation mode and moved to
            `device`, otherwise left as it is.
        tokenizer: the fast tokenizer that belongs to it.
        name: what tables call it.
        device: where it runs; "auto" takes CUDA or MPS if there is one. A model that is
            spread over several devices stays there.
        random_seed: of its initialisation, if its weights are drawn at random.

    Attributes:
        device: where its inputs go.
        capacity: subwords that fit into its window beside the special tokens.
        specials: special tokens around each window.
        remote_code: whether code from the model's own folder runs in it.
        layout: how windows become rows of a forward pass.

    Raises:
        UserError: the tokenizer does not fit the model, or the model does not give one
            vector per token and layer that is independent of padding.
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
        random_seed: int | None = None,
    ) -> None:
        self.model = part_that_reads(model).eval()
        self.device = place(model, self.model, device)
        self.remote_code = runs_remote_code(model, tokenizer)
        self._arguments = accepted_arguments(self.model)
        self.words = WordTokenizer(tokenizer)
        rows = self.model.get_input_embeddings().weight.shape[0]
        if self.words.highest_id >= rows:
            raise UserError(
                f"--model {name}: its tokenizer yields ids up to {self.words.highest_id}, but it "
                f"has only {rows} embeddings; they do not belong together."
            )
        config = self.model.config.get_text_config()
        pads = (getattr(config, "pad_token_id", None), tokenizer.pad_token_id)
        pad_id: int = next((i for i in pads if i is not None and 0 <= i < rows), 0)
        self.layout: Layout = Padded(pad_id)
        with trying(name):
            window = usable_window(self.model, tokenizer)
        self.specials = len(self.words.prefix) + len(self.words.suffix)
        self.capacity = window - self.specials
        if self.capacity < 2:
            raise UserError(
                f"--model {name}: its window of {window} tokens leaves no room for text."
            )
        with trying(name):
            n_layers, hidden_size, causal = self._try_out(name, rows)
        if not n_layers:
            raise UserError(f"--model {name}: it has no layers, says its config.json.")
        if causal:
            # Some decoders' tokenizers list a mask token that the model never saw.
            self.words.mask_id = None
        self.info = ModelRecord(
            name=name,
            revision=revision,
            digest=digest or digest_of_loaded(self.model, tokenizer),
            architecture=type(self.model).__name__,
            n_layers=n_layers,
            hidden_size=hidden_size,
            parameters=sum(p.numel() for p in self.model.parameters()),
            window=window,
            causal=causal,
            random_seed=random_seed,
        )

    def _try_out(self, name: str, rows: int) -> tuple[int, int, bool]:
        """Number of layers, hidden size, and whether it is causal, found in one small pass.

        Two equal rows with different fillers: what padding holds must not reach the text. In a
        third one the last word differs: if what stands before it does not, the model is causal.
        """
        inner = [rows // 2] * min(self.capacity - 1, 8)
        text = [*self.words.prefix, *inner, *self.words.suffix]
        ids = torch.tensor([[*text, self.layout.pad_id], [*text, rows // 2], [*text, rows // 2]])
        n_before = len(self.words.prefix) + len(inner) - 1
        ids[2, n_before] = (rows // 2 + 1) % rows
        mask = torch.ones_like(ids)
        mask[:, -1] = 0
        states = self.states({"input_ids": ids, "attention_mask": mask})
        shapes = {tuple(state.shape) for state in states}
        expected = (*ids.shape, states[-1].shape[-1])
        if shapes != {expected}:
            raise UserError(
                f"--model {name}: its layers give {sorted(shapes)} for {ids.shape[1]} tokens, not "
                "one vector of one size per token and layer."
            )
        one, other = (states[-1][row, :-1].float() for row in (0, 1))
        if (one - other).norm() > 1e-2 * one.norm():
            raise UserError(
                f"--model {name}: padding changes its vectors, so that they would depend on which "
                "texts share a batch; this architecture is not supported."
            )
        causal = declared_causal(self.model)
        if n_before:
            before, changed = (states[-1][row, :n_before].float() for row in (1, 2))
            apart = (before - changed).norm(dim=1)
            # What declares itself causal may round differently, as experts in bfloat16 do.
            rounding = 2 * torch.finfo(states[-1].dtype).eps if causal else 0
            causal = bool((apart <= max(1e-4, rounding) * before.norm(dim=1)).all())
        return len(states) - 1, expected[-1], causal

    def states(self, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """The states of every layer, each of shape (rows, length, hidden size)."""
        return layer_states(self._forward(inputs, WordVectors.model_arguments))

    def _forward(self, inputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> Any:
        # Segment ids are left out: every model that has them takes 0 throughout.
        with torch.inference_mode():
            return self.model(
                **{name: to_device(tensor, self.device) for name, tensor in inputs.items()},
                **self._arguments,
                **arguments,
            )

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """Subwords of `texts`."""
        return self.words(texts)

    def seconds(self, rows: int, length: int) -> float:
        """How long a forward pass over so many texts of so many tokens takes, now."""
        inputs = self.layout.rows([bare([self.words.highest_id // 2] * length)] * rows).inputs
        clock = time.perf_counter()
        self.states(inputs)[-1].sum().item()  # waits for a device that works on its own
        return time.perf_counter() - clock

    def encode(
        self,
        batches: Iterable[Batch],
        pooling: Pooling,
        batch_tokens: int,
        collector: Collector,
    ) -> Iterator[int]:
        """Run `batches` of texts through the model, handing what comes out to `collector`.

        A batch for which there is not enough memory is read in smaller passes, and so are those
        after it; which texts share a batch does not change.

        Args:
            batches: what to encode (see `batching.in_batches`).
            pooling: which pieces make a word's vector.
            batch_tokens: bound on a forward pass; a longer text takes several.

        Yields:
            the number of texts of each batch when it is done.

        Raises:
            UserError: there is not enough memory for a single window.
        """
        for batch in batches:
            kept = sum(text.keep[1] - text.keep[0] for text in batch.texts)
            found = self._windows(batch, pooling)
            lengths = [len(window.ids) for window in found]
            while True:
                collector.start(batch.index, kept)
                widest, n_windows = 0, 0
                try:
                    for part in in_passes(lengths, self.layout, batch_tokens):
                        n_windows, widest = len(found[part]), sum(lengths[part])
                        rows = self.layout.rows(found[part])
                        widest = rows.inputs["input_ids"].numel()
                        # Without a name, so that nothing holds on to it when memory runs out.
                        collector.add(rows, self._forward(rows.inputs, collector.model_arguments))
                    break
                except (MemoryError, RuntimeError) as error:
                    if not out_of_memory(error):
                        raise
                    if n_windows <= 1:
                        raise UserError(
                            f"--model {self.info.name}: not enough memory on {self.device} for "
                            f"{widest} tokens at once; use --dtype bfloat16, another "
                            "--device, or free some memory. What was encoded is kept, and the "
                            "same command goes on from there."
                        ) from error
                # Outside the handler, where the error no longer holds on to tensors.
                batch_tokens = min(batch_tokens, widest) // 2
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                progress.say(
                    f"not enough memory for {widest} tokens at once; going on with {batch_tokens}",
                    "smaller passes",
                    tokens=batch_tokens,
                )
            collector.finish()
            yield len(batch.texts)

    def _windows(self, batch: Batch, pooling: Pooling) -> list[Window]:
        """The windows of a batch, text by text; a long text has several."""
        found = []
        word_base = 0
        prefix, suffix = (
            np.array(ids, dtype=np.int64) for ids in (self.words.prefix, self.words.suffix)
        )
        for text, split in zip(batch.texts, batch.pieces, strict=True):
            spans = windows(len(split.ids), self.capacity)
            used, owner = pooled_pieces(split.bounds, text.keep, pooling)
            share = (1 / np.bincount(owner))[owner]
            parts: list[Any] = [slice(None)]
            if len(spans) > 1:
                window = window_of_pieces(split.bounds, spans)[used]
                parts = [np.flatnonzero(window == index) for index in range(len(spans))]
            for (start, end), here in zip(spans, parts, strict=True):
                place = used[here] - start + len(prefix)
                if len(place):
                    ids = np.concatenate([prefix, split.ids[start:end], suffix])
                    found.append(Window(ids, place, owner[here] + word_base, share[here]))
            word_base += text.keep[1] - text.keep[0]
        return found


def load_encoder(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "auto",
    trust_remote_code: bool = False,
) -> Encoder:
    """Load the model that `source` points at.

    Args:
        device: a torch device, "auto", or "map" to spread the layers over all devices.
        dtype: in which it computes; "auto" is float32.

    Raises:
        UserError: transformers cannot load it, its files lack weights that it needs, or it is
            not a model whose word vectors can be taken (see `Encoder`), or its files changed
            since they were digested.
    """
    model, tokenizer = load_files(source, device, dtype, trust_remote_code)
    source.require_unchanged()
    encoder = Encoder(
        model,
        tokenizer,
        name=source.name,
        revision=source.revision,
        digest=source.digest,
        device=device,
        random_seed=source.seed,
    )
    # Kernels are cheap to call on a CPU alone; code that is not transformers' may do anything.
    if encoder.device.type == "cpu" and device != MAP and not encoder.remote_code:
        leave_padding_out(encoder)
    return encoder
