"""A frozen pretrained model: texts in, the word vectors of every layer out.

Layer 0 is the input of the first block (embeddings, with position embeddings and norm where
the model adds them there); layer L is `last_hidden_state`, which comes after the final norm in
architectures that have one. docs/architectures.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from probes.common.errors import NoHeadError, UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.memory import to_device
from probes.extraction.alignment import Pieces, WordTokenizer
from probes.extraction.attention_maps import AttentionCollector, Way, maps_taken, way_to_read
from probes.extraction.collectors import Collector, Reader, WordVectors, layer_states
from probes.extraction.inspection import (
    accepted_arguments,
    base_model,
    declared_causal,
    digest_of_loaded,
    first_use,
    input_embeddings,
    language_switch,
    place,
    runs_remote_code,
    takes_token_types,
    usable_window,
)
from probes.extraction.lm_head import Lens, has_lm_head, head_applied_at
from probes.extraction.padding import PaddedWindows, pad_windows, plan_batches, split_by_tokens
from probes.extraction.shards import Shard
from probes.extraction.sites import Site, outputs_seen, sites_of
from probes.extraction.views import Text
from probes.extraction.windows import Window, windows_of_text
from probes.records.header import ModelRecord
from probes.tasks.task import Sublayer


class Encoder:
    """A model in evaluation mode, with its tokenizer.

    Args:
        model: a transformers encoder, decoder, or encoder–decoder (of which the encoder is used);
            a language-model head is applied only for collectors that ask for it. It is put into
            evaluation mode and moved to `device`, and otherwise not changed.
        tokenizer: the fast tokenizer that belongs to it.
        name: its name in tables.
        revision: its commit on the hub, or version.
        digest: of its weights, configuration and tokenizer; computed if empty.
        device: where it runs; "auto" takes CUDA or MPS if there is one. A model that is
            spread over several devices already is not moved.
        random_seed: the seed of its initialisation, if its weights are random.
        configuration: digest of its configuration and tokenizer; see `ModelSource`.
        unused: names of weights of its files that it does not use.
        language: the one that all texts are taken to be in, if it was chosen.

    Attributes:
        device: the device of its inputs.
        capacity: subwords that fit into its window with the special tokens.
        specials: number of special tokens around each window.
        pad_id: the token that fills windows up.
        way_to_read_attention: how its maps are read; None until they are.
        pieces: which tokens of the pass that is running are pieces of words.
        notes: what its records say of it beside its description: that code from its own folder
            ran in it, that weights were not used.

    Raises:
        UserError: the tokenizer does not fit the model, or the model does not give one
            vector per token and layer that is independent of padding.
    """

    reads_text = True
    """Given vectors do not; see `probes.extraction.vector_files`."""

    content = ""
    """Of given vectors, a digest."""

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
        configuration: str = "",
        unused: Sequence[str] = (),
        language: str = "",
    ) -> None:
        self.model = base_model(model).eval()
        self._language_model = model.eval() if has_lm_head(model, self.model) else None
        embeddings = input_embeddings(self.model, name)
        self.device = self._place(model, device)
        self._pass_tokens: int | None = None
        self.way_to_read_attention: Way | None = None
        self.pieces: torch.Tensor | None = None
        self._read_with: Lens | None = None
        self.notes: dict[str, str] = {}
        if runs_remote_code(model, tokenizer):
            self.notes["remote code"] = "ran"
        if unused:
            self.notes["weights not used"] = f"{len(unused)} (first: {unused[0]})"
        self._arguments = accepted_arguments(self.model)
        self.words = WordTokenizer(tokenizer)
        if default := language_switch(self.model, tokenizer):
            self.notes["language of all texts"] = language or default
            if not language:
                progress.warn(
                    f"--model {name}: it reads text in one of several languages at a time, here "
                    f"{default}; for text in another one, give --language CODE (of a model in "
                    "memory, set its config.default_language or its tokenizer's src_lang)"
                )
        if self.words.dropout:
            self.notes["dropout of the tokenizer, switched off"] = f"{self.words.dropout:g}"
            progress.warn(
                f"--model {name}: its tokenizer leaves out {100 * self.words.dropout:g} % of its "
                "merges at random (model.dropout in tokenizer.json); switched off"
            )
        types = self.words.types
        self._types = types if takes_token_types(self.model, types.highest) else None
        rows = embeddings.weight.shape[0]
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
        if (self.words.start_id or 0) >= rows:
            self.words.start_id = None
        self.info = ModelRecord(
            name=name,
            revision=revision,
            digest=digest or digest_of_loaded(self._language_model or self.model, tokenizer),
            architecture=type(self.model).__name__,
            n_layers=n_layers,
            hidden_size=hidden_size,
            parameters=sum(p.numel() for p in self.model.parameters()),
            window=window,
            causal=causal,
            random_seed=random_seed,
            configuration=configuration,
        )

    def _place(self, model: Any, device: str) -> torch.device:
        return place(model, self._language_model or self.model, device)

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
        for layer, state in enumerate(states):
            # On some machines copies between two GPUs give zeros.
            if bool((state == state[:1, :1]).all()):
                raise UserError(
                    f"--model {name}: layer {layer} has the same vector for all tokens. If its "
                    "layers are spread over GPUs, copies between these may fail: use one GPU "
                    "(CUDA_VISIBLE_DEVICES=0), or --device cpu."
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

    def _forward(
        self,
        inputs: dict[str, torch.Tensor],
        arguments: Mapping[str, Any],
        gradients: bool = False,
    ) -> Any:
        with torch.inference_mode(not gradients):
            return self.model(
                **{name: to_device(tensor, self.device) for name, tensor in inputs.items()},
                **self._arguments,
                **arguments,
            )

    @property
    def has_head(self) -> bool:
        """Whether it has a language-model head, so that tokens have probabilities."""
        return self._language_model is not None

    def require(self, site: Sublayer) -> None:
        """Check that word vectors can be read at a site.

        Raises:
            UserError: it is not found in the model.
        """
        try:
            sites_of(self.model).require(Site(site, 1))
        except UserError as error:
            raise UserError(f"--sites {site}: {self.info.name}: {error}") from error

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """The subwords of `texts`."""
        return self.words(texts)

    def encode(
        self, shard: Shard, pieces: Sequence[Pieces], batch_tokens: int, collector: Collector
    ) -> dict[str, torch.Tensor]:
        """Run a shard's texts through the model, and return what `collector` keeps.

        If memory runs out, the shard is begun again with smaller passes; which texts share a batch
        does not change.

        Args:
            pieces: the texts as subwords; see `split`.
            batch_tokens: tokens of a batch, padding included; a longer text takes several passes.

        Raises:
            UserError: there is not enough memory for a single window, or the model does not let
                attention be computed in another way or has no language-model head.
            NotFiniteError, OutOfRangeError: see `WordVectors.finish`.
        """
        batches = plan_batches(pieces, batch_tokens, capacity=self.capacity, specials=self.specials)
        with ExitStack() as stack:
            if isinstance(collector, AttentionCollector):
                shortest = self._padded(
                    self._windows(shard, pieces, batches[-1][-1:], collector)[:1]
                )
                way = self._way_to_read(shortest)
                stack.enter_context(maps_taken(self.model, way, collector.take))
            if collector.applies_head:
                collector.head = self._lens()
            if collector.inside:
                read = self.model, sites_of(self.model), collector.inside, collector.see
                stack.enter_context(outputs_seen(*read))
            while True:
                collector.start(shard, pieces)
                here: list[int] = []
                try:
                    for batch in batches:
                        whole = self._windows(shard, pieces, batch, collector)
                        windows = collector.copies(whole, self._reader(collector))
                        lengths = [len(window.ids) for window in windows]
                        tokens = min(batch_tokens, self._pass_tokens or batch_tokens)
                        for part in split_by_tokens(lengths, tokens):
                            here = lengths[part]
                            given = self._padded(windows[part])
                            collector.prepare(given)
                            with collector.around(self.model, given):
                                # The output has no name: it is freed when memory runs out.
                                collector.add(given, self._pass(given, collector))
                        progress.advance(len(batch))
                    return collector.finish()
                except (MemoryError, RuntimeError) as error:
                    if not out_of_memory(error):
                        raise
                    if len(here) <= 1:
                        raise UserError(
                            f"--model {self.info.name}: not enough memory on {self.device} for "
                            f"{sum(here)} tokens at once; use --dtype bfloat16, another "
                            "--device, or free some memory. What has been encoded is kept: run "
                            "the same command again to continue."
                        ) from error
                # Outside the handler: there the error would keep tensors alive.
                self._read_less_at_once(len(here) * max(here))

    def _lens(self) -> Lens:
        """The language-model head, for the states of any layer.

        Raises:
            UserError: it cannot be found out what comes between the last block and the head.
        """
        if self._language_model is None:
            raise NoHeadError(f"--model {self.info.name}: it has no language-model head.")
        if self._read_with is None:
            try:
                self._read_with = Lens.of(self._language_model, self.model)
            except UserError as error:
                raise UserError(f"--model {self.info.name}: {error}") from error
        return self._read_with

    def _way_to_read(self, windows: PaddedWindows) -> Way:
        """How attention maps can be read; tried once on a window.

        Raises:
            UserError: in no way.
        """
        if self.way_to_read_attention is None:
            try:
                self.way_to_read_attention = way_to_read(
                    self.model, lambda: self.states(windows.inputs)[-1], self.info.n_layers
                )
            except UserError as error:
                raise UserError(f"--model {self.info.name}: {error}") from error
        return self.way_to_read_attention

    def _padded(self, windows: Sequence[Window]) -> PaddedWindows:
        words = self.words
        return pad_windows(
            windows,
            self.pad_id,
            n_prefix=len(words.prefix),
            n_suffix=len(words.suffix),
            n_middle=len(words.between or ()),
            types=self._types,
        )

    def _pass(self, windows: PaddedWindows, collector: Collector) -> Any:
        """One forward pass, as far as the language-model head if the collector reads logits."""
        self.pieces = windows.pieces
        if not collector.reads_logits:
            gradients = collector.reads_gradients
            return self._forward(windows.inputs, collector.model_arguments, gradients)
        if self._language_model is None:
            raise NoHeadError(f"--model {self.info.name}: it has no language-model head.")
        positions = to_device(collector.positions(windows), self.device)
        inference = torch.inference_mode(not collector.reads_gradients)
        with head_applied_at(self.model, positions), inference:
            output = self._language_model(
                **{name: to_device(x, self.device) for name, x in windows.inputs.items()},
                **self._arguments,
                **collector.model_arguments,
            )
        output.logits = output.logits[0]
        return output

    def _prefix(self, collector: Collector) -> Sequence[int]:
        """Ids of the tokens before each window: for scores, a decoder's start token as well."""
        start = () if self.words.start_id is None else (self.words.start_id,)
        needs_start = collector.after_start and self.info.causal and not self.words.prefix
        return start if needs_start else self.words.prefix

    def _reader(self, collector: Collector) -> Reader:
        n_prefix, n_suffix = len(self._prefix(collector)), len(self.words.suffix)
        return Reader(self.info.causal, self.words.mask_id, n_prefix, n_suffix, self.split)

    def _read_less_at_once(self, n_tokens: int) -> None:
        """Halve the tokens of a pass after one of `n_tokens` did not fit in memory."""
        self._pass_tokens = n_tokens // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        progress.say(
            f"not enough memory for {n_tokens} tokens at once; continuing with {self._pass_tokens}",
            "smaller passes",
            tokens=self._pass_tokens,
        )

    def _windows(
        self, shard: Shard, pieces: Sequence[Pieces], batch: Sequence[int], collector: Collector
    ) -> list[Window]:
        """The windows of some texts of a shard, text by text; a long text has several."""
        prefix = self._prefix(collector)
        return [
            window
            for i in batch
            for window in windows_of_text(
                pieces[i],
                shard.texts[i].keep,
                collector.pooling,
                capacity=self.capacity + len(self.words.prefix) - len(prefix),
                prefix=prefix,
                suffix=self.words.suffix,
                causal=self.info.causal,
                text=i,
                first_row=int(shard.starts[i]),
            )
        ]
