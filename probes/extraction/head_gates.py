"""Importance of heads: a loss's gradient at a gate on each head's output (Michel et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from probes.extraction.inspection import base_model
from probes.extraction.sites import Change, Site, changed, sites_of


@contextmanager
def gated(model: Any, n_texts: int) -> Iterator[torch.Tensor]:
    """Multiply the output of each head by a gate of its own in each text.

    Args:
        model: of transformers, with or without its head.
        n_texts: how many texts each pass reads.

    Yields:
        the gates, all 1, which a gradient can be taken at. Shape (texts, blocks, heads).

    Raises:
        UserError: the outputs of its heads cannot be changed.
    """
    base = base_model(model)
    sites = sites_of(base)
    n_blocks = len(sites.blocks)
    sites.require(Site("heads", n_blocks))
    weights = next(base.parameters())
    gates = weights.new_ones(n_texts, n_blocks, sites.n_heads, requires_grad=True)

    def gate(block: int) -> Change:
        return lambda heads, _: heads * gates[:, None, block, :, None].to(heads)

    with changed(base, sites, [(Site("heads", k + 1), gate(k)) for k in range(n_blocks)]):
        yield gates


def head_gradients(
    model: Any, inputs: dict[str, torch.Tensor], losses: Callable[[Any], torch.Tensor]
) -> torch.Tensor:
    """The gradient of each text's loss at the gates of all heads, from one pass there and back.

    Args:
        model: see `gated`.
        inputs: of its forward pass, for one or several texts.
        losses: of the output of the pass, the loss of each text. Shape (texts,).

    Returns:
        shape (texts, blocks, heads); Michel et al. take the mean of its absolute values over texts.

    Raises:
        UserError: see `gated`.
    """
    with gated(model, len(inputs["input_ids"])) as gates, torch.enable_grad():
        (found,) = torch.autograd.grad(losses(model(**inputs)).sum(), gates)
    return found
