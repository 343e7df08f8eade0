"""Collectors of heads: their mean outputs, and gradients at a gate on each head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from probes.compute.memory import to_device
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector
from probes.extraction.inspection import base_model
from probes.extraction.module_calls import Change
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.sites import Site, changed, sites_of
from probes.extraction.token_scores import LossOfWords
from probes.extraction.views import Text
from probes.extraction.windows import Pooling
from probes.records.header import ModelRecord

FOUND = "found"


class _OfHeads(Collector):
    """A collector of one part, which is not stored."""

    @property
    def parts(self) -> tuple[str, ...]:
        return (FOUND,)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        return 0


class HeadOutputs(_OfHeads):
    """Collects the sum of each head's outputs over the pieces of kept words.

    Outputs are what the linear map after the heads reads. Shape (blocks, heads, size of a head +
    1); the last number counts the pieces.
    """

    name = "outputs of heads"

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


@contextmanager
def gated(model: Any, n_texts: int) -> Iterator[torch.Tensor]:
    """Multiply each head's output in each text by a gate.

    Args:
        model: a transformers model, with or without its head.
        n_texts: number of texts per pass.

    Yields:
        the gates, all 1, for taking gradients. Shape (texts, blocks, heads).

    Raises:
        UserError: the outputs of the model's heads cannot be changed.
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
    """Gradient of each text's loss at the gates of all heads, from one forward and backward pass.

    Args:
        model: see `gated`.
        inputs: arguments of the forward pass for one or several texts.
        losses: computes the loss of each text (texts,) from the output of the pass.

    Returns:
        shape (texts, blocks, heads). Michel et al. average the absolute values over texts.

    Raises:
        UserError: see `gated`.
    """
    with gated(model, len(inputs["input_ids"])) as gates, torch.enable_grad():
        (found,) = torch.autograd.grad(losses(model(**inputs)).sum(), gates)
    return found


class _Gradients(_OfHeads):
    """Gradients of each text's losses at the gates of `gated`. (texts, losses, blocks, heads)."""

    reads_gradients: ClassVar[bool] = True

    @contextmanager
    def around(self, model: Any, windows: PaddedWindows) -> Iterator[None]:
        with gated(model, len(windows.text)) as self._gates:
            yield

    def _begin(self, n_texts: int, n_losses: int) -> None:
        self._found, self._shape = torch.zeros(0), (n_texts, n_losses)

    def _take(self, windows: PaddedWindows, output: torch.Tensor, errors: torch.Tensor) -> None:
        """Propagate the gradients of losses back from an output of the pass."""
        if not len(self._found):
            self._found = torch.zeros(*self._shape, *self._gates.shape[1:])
        for loss, error in enumerate(errors):
            (found,) = torch.autograd.grad(
                output, self._gates, error.to(output), retain_graph=loss + 1 < len(errors)
            )
            self._found[:, loss].index_add_(0, windows.text, found.float().cpu())

    def finish(self) -> dict[str, torch.Tensor]:
        return {FOUND: self._found}


class ProbeGradients(_Gradients):
    """Collects gradients of the losses of probes on the last layer, with a backward pass for each.

    Args:
        errors: for each text, the gradients of losses at the vectors of kept words (which windows
            may cut in two). Each (losses, words, hidden size).
        pooling: how a word's vector is computed from its pieces.
    """

    name = "gradients of probes"

    def __init__(self, errors: Mapping[Text, torch.Tensor], pooling: Pooling) -> None:
        self._of_text, self.pooling = errors, pooling

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with the errors of these texts."""
        self._errors = torch.cat([self._of_text[text] for text in shard.texts], 1)
        self._begin(len(shard.texts), len(self._errors))

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Propagate the errors back from the words' pieces."""
        states = output.last_hidden_state
        counts = windows.offset.diff(append=torch.tensor([len(windows.position)]))
        words = windows.word.repeat_interleave(counts)
        errors = torch.zeros(len(self._errors), states.shape[:2].numel(), states.shape[-1])
        errors[:, windows.position] = self._errors[:, words] * windows.weight[:, None]
        self._take(windows, states, errors.unflatten(1, states.shape[:2]))


class SurprisalGradients(_Gradients, LossOfWords):
    """Gradients of the mean surprisal of the pieces of some words; see `LossOfWords`."""

    name = "gradients of surprisal"

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without gradients."""
        LossOfWords.start(self, shard, pieces)
        self._begin(len(shard.texts), 1)
        self._text = torch.arange(len(shard.texts)).repeat_interleave(
            torch.tensor([int(counts.sum()) for counts in self._counts])
        )
        self._n = torch.zeros(len(shard.texts))

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Propagate the summed surprisal back."""
        targets = to_device(self._ids[windows.word], output.states.device)
        errors = torch.zeros_like(output.states)
        for rows, logits in output.blocks():
            loss = torch.nn.functional.cross_entropy(logits, targets[rows], reduction="sum")
            errors += torch.autograd.grad(loss, output.states)[0]
        self._take(windows, output.states, errors[None])
        self._n += self._text[windows.word].bincount(minlength=len(self._n))

    def finish(self) -> dict[str, torch.Tensor]:
        """Gradients of the mean surprisal of each text."""
        return {FOUND: self._found / self._n.clamp(min=1)[:, None, None, None]}
