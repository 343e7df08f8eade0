"""A frozen pretrained model: texts in, the word vectors of every layer out.

Layer 0 is the input of the first block (embeddings, with position embeddings and norm where
the model adds them there); layer L is `last_hidden_state`, which comes after the final norm in
architectures that have one. docs/architectures.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from probes.common.errors import UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.transfers import to_device
from probes.extraction.alignment import Pieces, WordTokenizer
from probes.extraction.batching import Batch, split_by_tokens
from probes.extraction.collectors import Collector, WordVectors, layer_states
from probes.extraction.inspection import (
    accepted_arguments,
    base_model,
    declared_causal,
    digest_of_loaded,
    first_use,
    place,
    runs_remote_code,
    usable_window,
)
from probes.extraction.padding import pad_windows
from probes.extraction.views import Text
from probes.extraction.windows import Pooling, Window, windows_of_text
from probes.records.header import ModelRecord


class Encoder:
    """A model in evaluation mode, with its tokenizer.

    Args:
        model: a transformers encoder, decoder, or encoder–decoder (of which the encoder is used);
            a language-model head is left aside. It is put into evaluation mode and moved to
            `device`, and otherwise not changed.
        tokenizer: the fast tokenizer that belongs to it.
        name: its name in tables.
        revision: its commit on the hub, or version.
        digest: of its weights, configuration and tokenizer; computed if empty.
        device: where it runs; "auto" takes CUDA or MPS if there is one. A model that is
            spread over several devices already is not moved.
        random_seed: the seed of its initialisation, if its weights are random.

    Attributes:
        device: the device of its inputs.
        capacity: subwords that fit into its window with the special tokens.
        specials: number of special tokens around each window.
        pad_id: the token that fills windows up.
        remote_code: whether code from the model's own folder runs in it.

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
        self.model = base_model(model).eval()
        self.device = place(model, self.model, device)
        self.remote_code = runs_remote_code(model, tokenizer)
        self._arguments = accepted_arguments(self.model)
        self.words = WordTokenizer(tokenizer)
        rows = self.model.get_input_embeddings().weight.shape[0]
        if self.words.highest_id >= rows:
            raise UserError(
                f"--model {name}: its tokenizer yields ids up to {self.words.highest_id}, but it "
                f"has only {rows} embeddings; use the tokenizer that belongs to the model."
            )
        config = self.model.config.get_text_config()
        pads = (getattr(config, "pad_token_id", None), tokenizer.pad_token_id)
        self.pad_id: int = next((i for i in pads if i is not None and 0 <= i < rows), 0)
        with first_use(name):
            window = usable_window(self.model, tokenizer)
        self.specials = len(self.words.prefix) + len(self.words.suffix)
        self.capacity = window - self.specials
        if self.capacity < 2:
            raise UserError(
                f"--model {name}: its window of {window} tokens leaves no room for text; check "
                "max_position_embeddings in config.json and model_max_length in "
                "tokenizer_config.json."
            )
        with first_use(name):
            n_layers, hidden_size, causal = self._try_out(name, rows)
        if not n_layers:
            raise UserError(f"--model {name}: config.json gives it no layers.")
        if causal:
            # Some decoders' tokenizers list a mask token that the model never saw in training.
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

    def _try_out(self, name: str, n_embeddings: int) -> tuple[int, int, bool]:
        """Find the number of layers, the hidden size, and whether the model is causal.

        One small pass over three texts. The first two differ in the padding token alone, which
        must not change their vectors. In the third the last word differs: if the vectors before
        it stay the same, the model is causal.
        """
        token = n_embeddings // 2
        inner = [token] * min(self.capacity - 1, 8)
        text = [*self.words.prefix, *inner, *self.words.suffix]
        ids = torch.tensor([[*text, self.pad_id], [*text, token], [*text, token]])
        n_before = len(self.words.prefix) + len(inner) - 1
        ids[2, n_before] = (token + 1) % n_embeddings
        mask = torch.ones_like(ids)
        mask[:, -1] = 0
        states = self.states({"input_ids": ids, "attention_mask": mask})
        shapes = {tuple(state.shape) for state in states}
        expected = (*ids.shape, states[-1].shape[-1])
        if shapes != {expected}:
            raise UserError(
                f"--model {name}: its layers give {sorted(shapes)} for {ids.shape[1]} tokens, not "
                "one vector of one size per token and layer; this architecture is not supported."
            )
        one, other = (states[-1][row, :-1].float() for row in (0, 1))
        if (one - other).norm() > 1e-2 * one.norm():
            raise UserError(
                f"--model {name}: padding changes its vectors, so that they would depend on the "
                "other texts of a batch; this architecture is not supported."
            )
        causal = declared_causal(self.model)
        if n_before:
            before, changed = (states[-1][row, :n_before].float() for row in (1, 2))
            apart = (before - changed).norm(dim=1)
            # Models that declare themselves causal may round differently, as mixtures of experts in
            # bfloat16 do.
            rounding = 2 * torch.finfo(states[-1].dtype).eps if causal else 0
            causal = bool((apart <= max(1e-4, rounding) * before.norm(dim=1)).all())
        return len(states) - 1, expected[-1], causal

    def states(self, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """The states of every layer, each of shape (texts, length, hidden size)."""
        return layer_states(self._forward(inputs, WordVectors.model_arguments))

    def _forward(self, inputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> Any:
        # Without segment ids: every model that has them takes 0 as the default.
        with torch.inference_mode():
            return self.model(
                **{name: to_device(tensor, self.device) for name, tensor in inputs.items()},
                **self._arguments,
                **arguments,
            )

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """The subwords of `texts`."""
        return self.words(texts)

    def encode(
        self,
        batches: Iterable[Batch],
        pooling: Pooling,
        batch_tokens: int,
        collector: Collector,
    ) -> Iterator[int]:
        """Run `batches` of texts through the model and hand its outputs to `collector`.

        If memory runs out, the batch and those after it are read in smaller passes; which texts
        share a batch does not change.

        Args:
            batches: what to encode (see `batching.in_batches`).
            pooling: which pieces make a word's vector.
            batch_tokens: tokens of a forward pass, padding included; a longer text takes several.

        Yields:
            the number of texts of each batch when it is done.

        Raises:
            UserError: there is not enough memory for a single window.
        """
        for batch in batches:
            kept = sum(text.keep[1] - text.keep[0] for text in batch.texts)
            windows = self._windows(batch, pooling)
            lengths = [len(window.ids) for window in windows]
            while True:
                collector.start(batch.index, kept)
                n_windows = n_tokens = 0
                try:
                    for part in split_by_tokens(lengths, batch_tokens):
                        n_windows = len(lengths[part])
                        n_tokens = n_windows * max(lengths[part])
                        given = pad_windows(windows[part], self.pad_id)
                        # The output has no name, so that it is freed when memory runs out.
                        collector.add(given, self._forward(given.inputs, collector.model_arguments))
                    break
                except (MemoryError, RuntimeError) as error:
                    if not out_of_memory(error):
                        raise
                    if n_windows <= 1:
                        raise UserError(
                            f"--model {self.info.name}: not enough memory on {self.device} for "
                            f"{n_tokens} tokens at once; use --dtype bfloat16, another "
                            "--device, or free some memory. What has been encoded is kept: run "
                            "the same command again to continue."
                        ) from error
                # Outside the handler: there the error would keep tensors alive.
                batch_tokens = min(batch_tokens, n_tokens) // 2
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                progress.say(
                    f"not enough memory for {n_tokens} tokens at once; continuing with "
                    f"{batch_tokens}",
                    "smaller passes",
                    tokens=batch_tokens,
                )
            collector.finish()
            yield len(batch.texts)

    def _windows(self, batch: Batch, pooling: Pooling) -> list[Window]:
        """The windows of a batch, text by text; a long text has several."""
        found: list[Window] = []
        n_words = 0
        for text, pieces in zip(batch.texts, batch.pieces, strict=True):
            found += windows_of_text(
                pieces,
                text.keep,
                pooling,
                capacity=self.capacity,
                prefix=self.words.prefix,
                suffix=self.words.suffix,
                first_word=n_words,
            )
            n_words += text.keep[1] - text.keep[0]
        return found
