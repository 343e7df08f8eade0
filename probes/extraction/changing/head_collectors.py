"""Gradients at a gate on each head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch

from probes.common.errors import UserError
from probes.compute.memory import to_device
from probes.extraction.changing.module_calls import Change
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.models.loaded_module import base_model
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.token_scores import LossOfWords

BY_HEAD = "by head"


@contextmanager
def head_gates(model: Any, n_texts: int) -> Iterator[torch.Tensor]:
    """Multiply each head's output in each text by a gate of value 1. (texts, blocks, heads)."""
    base = base_model(model)
    sites = sites_of(base)
    n_blocks = len(sites.blocks)
    sites.require(Site("heads", n_blocks))
    weights = next(base.parameters())
    gates = weights.new_ones(n_texts, n_blocks, sites.n_heads, requires_grad=True)

    def gate(block: int) -> Change:
        return lambda heads, _: heads * gates[:, None, block, :, None].to(heads)

    with changed_sites(base, sites, [(Site("heads", k + 1), gate(k)) for k in range(n_blocks)]):
        yield gates


def head_gradients(
    model: Any, inputs: dict[str, torch.Tensor], losses: Callable[[Any], torch.Tensor]
) -> torch.Tensor:
    """Gradient of each text's loss at a gate, of value 1, on the output of each head.

    One forward and one backward pass. The mean of absolute values over texts is the importance of
    heads (Michel et al. 2019).

    Args:
        model: a transformers model, with or without its head.
        inputs: arguments of the forward pass for one or several texts.
        losses: computes the loss of each text (texts,) from the output of the pass.

    Returns:
        shape (texts, blocks, heads).

    Raises:
        UserError: the outputs of the model's heads cannot be changed.
    """
    with head_gates(model, len(inputs["input_ids"])) as gates, torch.enable_grad():
        gradients: torch.Tensor = torch.autograd.grad(losses(model(**inputs)).sum(), gates)[0]
    return gradients


class LossGradients(LossOfWords):
    """Gradients of each text's loss at the gates of `head_gates`. Shape (texts, blocks, heads).

    The loss is the mean surprisal of the pieces of some words, see `LossOfWords`; 0 without any.
    """

    name = "gradients of the loss of words"
    reads_gradients: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The gradients."""
        return (BY_HEAD,)

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without gradients."""
        super().start(shard, pieces)
        self._sums, self._n_scored = torch.zeros(2, len(shard.texts), 1, 1)

    @contextmanager
    def around(self, model: Any, windows: PaddedWindows) -> Iterator[None]:
        """Set the gates."""
        with head_gates(model, len(windows.text)) as self._gates:
            yield

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Propagate the summed surprisal back, through the head for a few positions at once."""
        errors = torch.zeros_like(output.states)
        for rows, logits in output.blocks():
            targets = to_device(self._ids[windows.word[rows]], logits.device)
            loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
            errors += torch.autograd.grad(loss, output.states)[0]
        gradients = torch.autograd.grad(output.states, self._gates, errors)[0].float().cpu()
        sums = torch.zeros(len(self._sums), *gradients.shape[1:])
        self._sums = self._sums + sums.index_add_(0, windows.text, gradients)
        text = np.searchsorted(self._ends, windows.word.numpy(), side="right")
        self._n_scored += torch.from_numpy(np.bincount(text, minlength=len(sums)))[:, None, None]

    def finish(self) -> dict[str, torch.Tensor]:
        """Gradients of the shard.

        Raises:
            UserError: a gradient is not finite.
        """
        if not self._sums.isfinite().all():
            raise UserError("The loss has a gradient that is not a number; try --dtype float32.")
        return {BY_HEAD: self._sums / self._n_scored.clamp(min=1)}
