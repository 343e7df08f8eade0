"""Blocks below a change of a forward pass are computed once, and not for every change."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from probes.extraction.changing.sites import Sites, sites_of
from probes.extraction.models.loaded_module import base_model, short_states
from probes.extraction.reading.attention_maps import observed_models


class Prefixes:
    """Outputs of a model's blocks, remembered for each pass, such as those over a shard's texts.

    A pass is known by its input, by how attention is computed and by other interventions. Any other
    pass is computed, with the same bits. Outputs stay on their device and take the memory of one
    layer's states per block.

    Args:
        model: a transformers model.

    Attributes:
        works: whether a pass whose lower blocks are remembered is equal to a whole one, tried on
            one text. If not, every pass is computed as a whole.
    """

    def __init__(self, model: Any) -> None:
        self.base = base_model(model)
        self.sites: Sites = sites_of(self.base)
        self._outputs: dict[tuple[str, int], Any] = {}
        self._pass = ""
        self.works = True
        with torch.no_grad():
            expected = short_states(self.base)
            # The first pass remembers what blocks return, and the second one is given it.
            with self.reuse(len(self.sites.blocks) - 1):
                tries = [short_states(self.base), short_states(self.base)]
        self.works = all(
            torch.equal(x, y) for states in tries for x, y in zip(states, expected, strict=True)
        )
        self.clear()

    def clear(self) -> None:
        """Forget all passes."""
        self._outputs.clear()

    @contextmanager
    def reuse(self, n_blocks: int, changes: Callable[[], Sequence[str]] = tuple) -> Iterator[None]:
        """Remember what the first blocks return.

        Args:
            n_blocks: how many.
            changes: gives the fingerprints of interventions that may change them.
        """
        if not self.works:
            yield
            return
        calls: Counter[Any] = Counter()

        def begin(_: Any, args: Any, kwargs: dict[str, Any]) -> None:
            calls.clear()
            if any(self.base is model for model in observed_models):
                return  # each block's maps are wanted
            attention = self.base.config._attn_implementation, kwargs.get("output_attentions")
            key = hashlib.sha256(repr((attention, sorted(changes()))).encode())
            for name, x in [*enumerate(args), *sorted(kwargs.items())]:
                if isinstance(x, torch.Tensor):
                    key.update(repr((name, x.shape, x.dtype)).encode())
                    key.update(x.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
            self._pass = key.hexdigest()

        def end(*_: Any) -> None:
            self._pass = ""

        with ExitStack() as stack:
            stack.callback(self.base.register_forward_pre_hook(begin, with_kwargs=True).remove)
            stack.callback(self.base.register_forward_hook(end, always_call=True).remove)
            for module in dict.fromkeys(block.module for block in self.sites.blocks[:n_blocks]):
                stack.enter_context(self._remembering(module, n_blocks, calls))
            yield

    @contextmanager
    def _remembering(self, module: Any, n_blocks: int, calls: Counter[Any]) -> Iterator[None]:
        instance_forward, forward = vars(module).get("forward"), module.forward
        numbers = {
            x.number: k for k, x in enumerate(self.sites.blocks[:n_blocks]) if x.module is module
        }

        def remembered(*args: Any, **kwargs: Any) -> Any:
            calls[module] += 1
            block = numbers.get(calls[module] - 1)
            if block is None or not self._pass:
                return forward(*args, **kwargs)
            key = self._pass, block
            if key not in self._outputs:
                self._outputs[key] = forward(*args, **kwargs)
            return self._outputs[key]

        module.forward = remembered  # hooks on the module still run
        try:
            yield
        finally:
            del module.forward
            if instance_forward is not None:
                module.forward = instance_forward
