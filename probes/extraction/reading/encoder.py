"""A frozen pretrained model: texts in, the word vectors of every layer out.

Layer 0 is the input of the first block: embeddings, after position embeddings and norm if the model
has them there. Layer L is `last_hidden_state`, after the final norm if there is one.
docs/architectures.md has a table of architectures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch

from probes.common.errors import NoHeadError, UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.memory import to_device
from probes.extraction.changing.module_calls import Change
from probes.extraction.changing.sites import Site, changed_sites, find_layers, sites_of
from probes.extraction.models.lm_head import Lens, PassWithHead, has_lm_head
from probes.extraction.models.loaded_module import (
    BLOCKS,
    accepted_arguments,
    base_model,
    declared_causal,
    digest_of_loaded,
    first_use,
    input_embeddings,
    language_switch,
    move_to,
    run_base_model,
    runs_remote_code,
    takes_token_types,
    usable_window,
)
from probes.extraction.reading.alignment import Pieces, TokenTypes, WordTokenizer
from probes.extraction.reading.attention_maps import (
    AttentionCollector,
    Way,
    maps_taken,
    way_to_read,
)
from probes.extraction.reading.collectors import (
    Collector,
    ModelProperties,
    WordVectors,
    layer_states,
)
from probes.extraction.reading.padding import (
    PaddedWindows,
    pad_windows,
    plan_batches,
    split_by_tokens,
)
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.views import Text
from probes.extraction.reading.windows import Window, windows_of_text
from probes.records.header import ModelRecord
from probes.tasks.task import ReadSite


class _Around(NamedTuple):
    """Ids of the special tokens around each window, and the token types of all its tokens."""

    prefix: Sequence[int]
    suffix: Sequence[int]
    types: TokenTypes | None


def _n_values(weight: torch.nn.Parameter) -> int:
    """Numbers in a weight; bitsandbytes packs two of 4 bits into a byte."""
    return weight.numel() * (2 if type(weight).__name__ == "Params4bit" else 1)


class Encoder:
    """A model in evaluation mode, with its tokenizer.

    Args:
        model: a transformers encoder, decoder, or encoder–decoder (only the encoder is used). It
            is put into evaluation mode and moved to `device`. Its language-model head is applied
            only for collectors that need it.
        tokenizer: the model's tokenizer, which must be a fast one.
        name: name of the model in tables.
        revision: commit on the hub, or version.
        digest: digest of weights, configuration and tokenizer; computed if empty.
        device: device of the model; "auto" takes CUDA or MPS if there is one. A model that is
            already spread over several devices is not moved.
        random_seed: seed of the initialisation, if weights are random.
        configuration: digest of configuration and tokenizer; see `ModelSource`.
        unused: names of weights in the files that the model does not use.
        language: the language that was chosen for all texts, if any.

    Attributes:
        device: the device of inputs.
        capacity: number of subwords that fit into a window with the special tokens.
        specials: number of special tokens around each window.
        pad_id: the token that pads windows.
        way_to_read_attention: how attention maps are read; None before the first time.
        pieces: True for tokens of the running pass that are pieces of words.
        notes: remarks for records, such as remote code that ran or weights that were not used.

    Raises:
        UserError: the tokenizer does not fit the model, or the model does not give one
            vector per token and layer that is independent of padding.
    """

    reads_text = True
    """False for given vectors; see `probes.extraction.reading.vector_files`."""

    content = ""
    """Digest of given vectors."""

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
        self.device = self._move_to_device(model, device)
        self._pass_tokens: int | None = None
        self.way_to_read_attention: Way | None = None
        self.pieces: torch.Tensor | None = None
        self._checked_lens: Lens | None = None
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
                    f"--model {name}: it reads text in one language at a time, here {default}. "
                    "For another language, set default_language in its configuration, or src_lang "
                    "in that of its tokenizer"
                )
        if self.words.dropout:
            self.notes["dropout of the tokenizer, switched off"] = f"{self.words.dropout:g}"
            progress.warn(
                f"--model {name}: switched off the tokenizer's dropout, which skips "
                f"{100 * self.words.dropout:g} % of merges (model.dropout in tokenizer.json)"
            )
        types = self.words.types
        self._types = types if takes_token_types(self.model, types.highest) else None
        rows = embeddings.weight.shape[0]
        if self.words.highest_id >= rows:
            raise UserError(
                f"--model {name}: its tokenizer yields ids up to {self.words.highest_id}, but the "
                f"model has only {rows} embeddings. Use the model's own tokenizer."
            )
        config = self.model.config.get_text_config()
        # Any token can pad, since the mask hides it. Some configurations name one without a vector.
        pads = (getattr(config, "pad_token_id", None), tokenizer.pad_token_id)
        self.pad_id: int = next((i for i in pads if i is not None and 0 <= i < rows), 0)
        with first_use(name):
            window = usable_window(self.model, tokenizer)
        self.specials = len(self.words.prefix) + len(self.words.suffix)
        self.capacity = window - self.specials
        if self.capacity < 2:
            raise UserError(
                f"--model {name}: its window of {window} tokens leaves no room for text. Check "
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
            parameters=sum(map(_n_values, self.model.parameters())),
            window=window,
            causal=causal,
            random_seed=random_seed,
            configuration=configuration,
        )

    def _move_to_device(self, model: Any, device: str) -> torch.device:
        return move_to(model, self._language_model or self.model, device)

    def _try_out(self, name: str, n_embeddings: int) -> tuple[int, int, bool]:
        """Find the number of layers, the hidden size, and whether the model is causal.

        Reads three texts in one pass. The first two differ only in padding, which must not change
        their vectors. The third differs in the last word; if the vectors before it stay the same,
        the model is causal.
        """
        token = n_embeddings // 2
        inner = [token] * min(self.capacity - 1, 8)
        text = [*self.words.prefix, *inner, *self.words.suffix]
        ids = torch.tensor([[*text, self.pad_id], [*text, token], [*text, token]])
        n_before = len(self.words.prefix) + len(inner) - 1
        ids[2, n_before] = (token + 1) % n_embeddings
        mask = torch.ones_like(ids)
        mask[:, -1] = 0
        BLOCKS.pop(self.model, None)  # an earlier encoder's, which may have been replaced since
        states = self.states({"input_ids": ids, "attention_mask": mask})
        shapes = {tuple(state.shape) for state in states}
        expected = (*ids.shape, states[-1].shape[-1])
        if shapes != {expected}:
            raise UserError(
                f"--model {name}: this architecture is not supported. For {ids.shape[1]} tokens, "
                f"its layers give {sorted(shapes)} instead of one vector per token."
            )
        if len(states) > 1:
            find_layers(self.model, name)
        states = self.states({"input_ids": ids, "attention_mask": mask})
        if len({parameter.device for parameter in self.model.parameters()}) > 1:
            require_varied(name, states)
        first, second = (states[-1][row, :-1].float() for row in (0, 1))
        if (first - second).norm() > 1e-2 * first.norm():
            raise UserError(
                f"--model {name}: this architecture is not supported: padding changes its vectors, "
                "so they would depend on the other texts of a batch."
            )
        causal = declared_causal(self.model)
        if n_before:
            before, changed = (states[-1][row, :n_before].float() for row in (1, 2))
            apart = (before - changed).norm(dim=1)
            # Causal models may round differently, such as mixtures of experts in bfloat16.
            rounding = 2 * torch.finfo(states[-1].dtype).eps if causal else 0
            causal = bool((apart <= max(1e-4, rounding) * before.norm(dim=1)).all())
        return len(states) - 1, expected[-1], causal

    def states(self, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """The states of every layer, each of shape (texts, length, hidden size)."""
        with torch.inference_mode():
            return layer_states(self._forward(inputs, WordVectors.model_arguments))

    def _forward(self, inputs: dict[str, torch.Tensor], arguments: Mapping[str, Any]) -> Any:
        return run_base_model(
            self.model,
            **{name: to_device(tensor, self.device) for name, tensor in inputs.items()},
            **self._arguments,
            **arguments,
        )

    @property
    def has_head(self) -> bool:
        """Whether the model has a language-model head, which gives tokens probabilities."""
        return self._language_model is not None

    def require(self, site: ReadSite) -> None:
        """Check that vectors can be read at a site of the last block.

        Raises:
            UserError: the model lacks this site.
        """
        try:
            sites_of(self.model).require(Site(site, self.info.n_layers))
        except UserError as error:
            raise UserError(f"--sites {site}: {self.info.name}: {error}") from error

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """The subwords of `texts`."""
        return self.words(texts)

    def batches(self, pieces: Sequence[Pieces], batch_tokens: int) -> list[list[int]]:
        """Batches of texts, from `probes.extraction.reading.padding.plan_batches`."""
        return plan_batches(pieces, batch_tokens, capacity=self.capacity, specials=self.specials)

    def encode(
        self, shard: Shard, pieces: Sequence[Pieces], batch_tokens: int, collector: Collector
    ) -> dict[str, torch.Tensor]:
        """Run a shard's texts through the model, and return what `collector` keeps.

        If memory runs out, the shard is restarted with smaller passes. Texts that share a batch
        still do.

        Args:
            pieces: the texts as subwords; see `split`.
            batch_tokens: tokens of a batch, padding included; a longer text takes several passes.

        Raises:
            UserError: there is too little memory for a single window, or the model lacks a
                language-model head or attention maps that the collector needs.
            NotFiniteError, OutOfRangeError: see `WordVectors.finish`.
        """
        batches = self.batches(pieces, batch_tokens)
        around = self._around(collector, shard)
        with ExitStack() as stack:
            if collector.reads_logits:
                self.lens()  # its check would hand maps to the collector
            if isinstance(collector, AttentionCollector):
                # The last text is the shortest: longest batches come first.
                text_windows = self._windows(shard, pieces, batches[-1][-1:], collector, around)
                shortest = self._padded(text_windows[:1], around)
                way = self._way_to_read(shortest)
                stack.enter_context(maps_taken(self.model, way, collector.take))
            if collector.applies_head:
                collector.head = self.lens(of_layers=True)
            if collector.inside:
                changes = [(Site(x[1], x[0]), _hand_over(collector, *x)) for x in collector.inside]
                sites = sites_of(self.model)
                stack.enter_context(changed_sites(self.model, sites, changes, first=False))
            while True:
                collector.start(shard, pieces)
                pass_lengths: list[int] = []
                try:
                    for batch in batches:
                        text_windows = self._windows(shard, pieces, batch, collector, around)
                        windows = collector.copies(text_windows, self._reader(around))
                        lengths = [len(window.ids) for window in windows]
                        tokens = min(batch_tokens, self._pass_tokens or batch_tokens)
                        for part in split_by_tokens(lengths, tokens):
                            pass_lengths = lengths[part]
                            padded = self._padded(windows[part], around)
                            collector.prepare(padded)
                            with collector.around(self.model, padded):
                                # The output has no name: it is freed when memory runs out.
                                collector.add(padded, self._pass(padded, collector))
                        progress.advance(len(batch))
                    return collector.finish()
                except (MemoryError, RuntimeError) as error:
                    if not out_of_memory(error):
                        raise
                    if len(pass_lengths) <= 1:
                        raise UserError(
                            f"--model {self.info.name}: not enough memory on {self.device} for "
                            f"{sum(pass_lengths)} tokens at once. Use --dtype bfloat16 or another "
                            "--device, or free some memory. Finished work is kept: run the same "
                            "command again to continue."
                        ) from error
                # Outside the handler, where the error would keep tensors alive.
                self._read_less_at_once(len(pass_lengths) * max(pass_lengths))

    def lens(self, *, of_layers: bool = False) -> Lens:
        """The language-model head, which is checked on a short text the first time.

        Args:
            of_layers: check that it can be applied to every layer.

        Raises:
            NoHeadError: there is none.
            UserError: it reads more than the last layer, or the layers are not found.
        """
        if self._language_model is None:
            raise NoHeadError.of(self.info.name)
        try:
            if self._checked_lens is None:
                self._checked_lens = Lens.of(self._language_model, self.model)
            if of_layers:
                self._checked_lens.require_layers()
        except UserError as error:
            raise UserError(f"--model {self.info.name}: {error}") from error
        return self._checked_lens

    def _way_to_read(self, windows: PaddedWindows) -> Way:
        """Find out how attention maps can be read; tried once on a window."""
        if self.way_to_read_attention is None:
            try:
                self.way_to_read_attention = way_to_read(
                    self.model, lambda: self.states(windows.inputs)[-1], self.info.n_layers
                )
            except UserError as error:
                raise UserError(f"--model {self.info.name}: {error}") from error
        return self.way_to_read_attention

    def _padded(self, windows: Sequence[Window], around: _Around) -> PaddedWindows:
        sizes = {"n_prefix": len(around.prefix), "n_suffix": len(around.suffix)}
        return pad_windows(windows, self.pad_id, types=around.types, **sizes)

    def _pass(self, windows: PaddedWindows, collector: Collector) -> Any:
        """One forward pass, with the language-model head if the collector reads logits."""
        self.pieces = collector.pieces(windows)
        with torch.inference_mode(not collector.reads_gradients):
            output = self._forward(windows.inputs, collector.model_arguments)
        if collector.reads_logits:
            return PassWithHead(output, self.lens(), collector.positions(windows))
        return output

    def _around(self, collector: Collector, shard: Shard) -> _Around:
        """Tokens to put around the windows of a shard's texts.

        For scores, a decoder's start token is among them. Rendered texts have their own.
        """
        words, causal = self.words, self.info.causal
        if any(text.rendered for text in shard.texts):
            return _Around((), (), None)
        needs_start = collector.after_start and causal and not words.prefix
        start = () if words.start_id is None else (words.start_id,)
        return _Around(start if needs_start else words.prefix, words.suffix, self._types)

    def _reader(self, around: _Around) -> ModelProperties:
        n_prefix, n_suffix = len(around.prefix), len(around.suffix)
        words, causal, pair = self.words, self.info.causal, self.words.pair
        if pair and not takes_token_types(self.model, int(pair.types.max())):
            pair = pair._replace(types=np.zeros_like(pair.types))
        window = self.capacity + self.specials
        return ModelProperties(
            causal, words.mask_id, n_prefix, n_suffix, self.split, words.word_starts, pair, window
        )

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
        self,
        shard: Shard,
        pieces: Sequence[Pieces],
        batch: Sequence[int],
        collector: Collector,
        around: _Around,
    ) -> list[Window]:
        """The windows of some texts of a shard, text by text; a long text has several."""
        n_around = len(around.prefix) + len(around.suffix)
        return [
            window
            for i in batch
            for window in windows_of_text(
                pieces[i],
                shard.texts[i].kept_span,
                collector.pooling,
                capacity=self.capacity + self.specials - n_around,
                prefix=around.prefix,
                suffix=around.suffix,
                causal=self.info.causal,
                text=i,
                first_row=int(shard.starts[i]),
            )
        ]


def _hand_over(collector: Collector, block: int, site: ReadSite) -> Change:
    """Hand the states of a site to a collector, and leave them as they are."""

    def see(states: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        collector.see(block, site, states)
        return states

    return see


def require_varied(name: str, states: Sequence[torch.Tensor]) -> None:
    """Check that copies between devices work: on some machines they give zeros.

    Args:
        states: each layer's vectors of a small pass; shape (texts, length, hidden size).

    Raises:
        UserError: a layer has the same vector for all tokens.
    """
    for layer, state in enumerate(states):
        if bool((state == state[:1, :1]).all()):
            raise UserError(
                f"--model {name}: layer {layer} has the same vector for all tokens, since copies "
                "between devices fail on this machine; use one GPU (CUDA_VISIBLE_DEVICES=0), or "
                "--device cpu."
            )
