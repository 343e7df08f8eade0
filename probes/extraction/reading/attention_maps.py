"""Attention maps, handed to collectors block by block and not kept.

Most transformers architectures let us replace their attention function (`AttentionInterface`).
Scores are then computed once, and memory holds the maps of one block. Other architectures have
attention of their own; we read the maps that they return, which are those of all blocks at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

from probes.common.errors import UserError, out_of_memory
from probes.extraction.models.loaded_module import TRANSFORMERS_ERRORS, quiet_transformers
from probes.extraction.reading.collectors import Collector

Way = Literal["in the model", "returned by the model"]
"""Ways to read maps: with our own attention function, or as the model returns them."""

Take = Callable[[int, torch.Tensor, torch.Tensor], None]
"""See `AttentionCollector.take`."""

MapChange = Callable[[int, torch.Tensor, torch.Tensor], torch.Tensor]
"""Function of the arguments of `Take` that returns the maps for the block to use."""

_NAME = "probes_attention"

observed_models: list[Any] = []
"""Models whose maps are being read."""

_map_changes: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = []
"""Functions that see and change the maps of the running pass, in turn."""


class AttentionCollector(Collector):
    """A collector that sees the final attention map of every query head, block by block."""

    @abstractmethod
    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Collect from one block's maps.

        Args:
            block: number of the block, from 1.
            maps: attention of each token (row) to each (column), float32; rows of tokens sum to 1,
                and columns of padding are 0. Shape (windows, heads, length, length).
            visible: True where a token may attend to another. Shape (windows, length, length).
        """

    def add(self, windows: Any, output: Any) -> None:
        """Keep nothing of the output; `take` has the maps."""


def way_to_read(model: Any, forward: Callable[[], torch.Tensor], n_blocks: int) -> Way:
    """Find out how the attention maps of a model can be read.

    Args:
        forward: runs a pass over one text without padding; returns the states of the last layer.

    Raises:
        UserError: no way gives each block a map whose rows sum to 1, or attention has an unknown
            argument.
    """
    for way in ("in the model", "returned by the model"):
        sums: list[torch.Tensor] = []

        def take(block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
            sums.append(maps.sum(-1))  # noqa: B023

        try:
            with _implementation(model, "eager"):  # other kernels round 16-bit numbers differently
                expected = forward()
            with maps_taken(model, way, take):
                states = forward()
        except (UserError, *TRANSFORMERS_ERRORS) as error:
            if out_of_memory(error):
                raise
            continue
        # In 16 bits, the same sums in another order differ by some units of the last place.
        tolerance = max(1e-2, 8 * torch.finfo(expected.dtype).eps)
        same = (states.float() - expected.float()).norm() <= tolerance * expected.float().norm()
        if same and len(sums) == n_blocks and all(((x - 1).abs() < 1e-2).all() for x in sums):
            return way
    raise _not_observed(model)


def _not_observed(model: Any) -> UserError:
    return UserError(
        f"{type(model).__name__} computes attention in its own way, which cannot be observed, so "
        "measurements of attention do not support this architecture."
    )


@contextmanager
def maps_taken(model: Any, way: Way, take: Take) -> Iterator[None]:
    """Hand the maps of every forward pass of `model` to `take`.

    Raises:
        UserError: inside the block, if a map lacks a row or column for some token.
    """

    def take_square(block: int, maps: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        if maps.shape[2:] != visible.shape[1:]:
            raise _not_observed(model)
        take(block, maps, visible)
        return maps

    with (maps_changed if way == "in the model" else _maps_returned)(model, take_square):
        observed_models.append(model)
        try:
            yield
        finally:
            observed_models.remove(model)


@contextmanager
def maps_changed(model: Any, change: MapChange) -> Iterator[None]:
    """Compute attention here, with the masks of "eager" and the maps that `change` returns.

    Of nested contexts, the innermost one sees the maps last.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    block = 0  # attention functions are not told their block, so calls are counted

    def see(maps: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        nonlocal block
        block += 1
        return change(block, maps, visible)

    def begin(*_: Any) -> None:
        nonlocal block
        block = 0
        _map_changes.append(see)

    def end(*_: Any) -> None:
        _map_changes.clear()

    AttentionInterface.register(_NAME, observed_attention)
    AttentionMaskInterface.register(_NAME, eager_mask)
    hooks = (
        model.register_forward_pre_hook(begin),
        model.register_forward_hook(end, always_call=True),
    )
    try:
        with _implementation(model, _NAME):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def observed_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention, with one map per query head.

    Args:
        query, key, value: shape (windows, heads, length, size of a head); several query heads may
            share a key head.
        attention_mask: added to scores; the lowest number of the dtype hides a token. Shape
            (windows, 1, length, length).
        softcap: maximum absolute value of a score.
        position_bias: added to scores.

    Returns:
        the output (windows, length, heads, size).
    """
    n_shared = query.shape[1] // key.shape[1]
    if n_shared > 1:
        key, value = (x.repeat_interleave(n_shared, dim=1) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = query @ key.transpose(2, 3) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        scores = scores + position_bias
    n_windows, _n_heads, length, _length = scores.shape
    if attention_mask is None:
        visible = scores.new_ones(n_windows, length, length, dtype=torch.bool)
    else:
        scores = scores + attention_mask
        seen = attention_mask > torch.finfo(attention_mask.dtype).min / 2
        visible = seen[:, 0].expand(n_windows, length, length)
    maps = scores.softmax(-1, dtype=torch.float32)
    for see in _map_changes:
        maps = see(maps, visible)
    return (maps.to(value.dtype) @ value).transpose(1, 2).contiguous(), None


@contextmanager
def _maps_returned(model: Any, take: MapChange) -> Iterator[None]:
    """Ask the model for its maps."""

    def ask(_: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def hand_over(_: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        # These maps come without a mask. In a decoder, no token attends to a later one.
        for block, maps in enumerate(output.attentions or (), start=1):
            mask = kwargs["attention_mask"].bool()
            visible = mask[:, None].expand(-1, mask.shape[1], -1)
            decoder = not maps.triu(1).any()
            take(block, maps.float(), visible.tril() if decoder else visible)

    hooks = (
        model.register_forward_pre_hook(ask, with_kwargs=True),
        model.register_forward_hook(hand_over, with_kwargs=True),
    )
    try:
        with _implementation(model, "eager"):
            yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _implementation(model: Any, name: str) -> Iterator[None]:
    before = model.config._attn_implementation
    with quiet_transformers():  # it warns of models that ignore the setting
        model.set_attn_implementation(name)
    try:
        yield
    finally:
        with quiet_transformers():
            model.set_attn_implementation(before)
