"""Mean outputs of heads, and gradients at a gate on each head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from probes.compute.memory import to_device
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector
from probes.extraction.inspection import base_model
from probes.extraction.module_calls import Change
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.sites import Site, changed, sites_of
from probes.records.header import ModelRecord

FOUND = "found"


class HeadOutputs(Collector):
    """Collects the sum of each head's outputs over the pieces of kept words.

    Outputs are what the linear map after the heads reads. Shape (blocks, heads, size of a head +
    1); the last number counts the pieces.
    """

    name = "outputs of heads"

    @property
    def parts(self) -> tuple[str, ...]:
        """The sums."""
        return (FOUND,)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Zero, since nothing is stored."""
        return 0

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin without sums."""
        self._sums: dict[int, torch.Tensor] = {}

    @contextmanager
    def around(self, model: Any, windows: PaddedWindows) -> Iterator[None]:
        """Add up the outputs of heads during a pass."""

        def take(block: int) -> Change:
            def change(heads: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
                own = heads.flatten(0, 1)[to_device(windows.position, heads.device)].float()
                sums = torch.nn.functional.pad(own, (0, 1), value=1.0).sum(0).cpu()
                self._sums[block] = self._sums.get(block, 0) + sums
                return heads

            return change

        sites = sites_of(model)
        changes = [(Site("heads", k + 1), take(k)) for k in range(len(sites.blocks))]
        with changed(model, sites, changes):
            yield

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Keep nothing of the output; `around` has the sums."""

    def finish(self) -> dict[str, torch.Tensor]:
        """The sums of all blocks."""
        return {FOUND: torch.stack([self._sums[block] for block in sorted(self._sums)])}


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
    base = base_model(model)
    sites = sites_of(base)
    n_texts, n_blocks = len(inputs["input_ids"]), len(sites.blocks)
    sites.require(Site("heads", n_blocks))
    weights = next(base.parameters())
    gates = weights.new_ones(n_texts, n_blocks, sites.n_heads, requires_grad=True)

    def gate(block: int) -> Change:
        return lambda heads, _: heads * gates[:, None, block, :, None].to(heads)

    changes = [(Site("heads", k + 1), gate(k)) for k in range(n_blocks)]
    with changed(base, sites, changes), torch.enable_grad():
        found: torch.Tensor = torch.autograd.grad(losses(model(**inputs)).sum(), gates)[0]
    return found
