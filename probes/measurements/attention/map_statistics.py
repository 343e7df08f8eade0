"""Statistics of attention maps, one number per text and head."""

from __future__ import annotations

import torch

from probes.measurements.attention.layout import Layout
from probes.measurements.head_rows import COLUMNS, OFFSETS, STATISTICS


def statistics(maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
    """All statistics, in the order of `STATISTICS`, NaN where one is not defined.

    Args:
        maps: shape (texts, heads, length, length).
        visible: how many tokens each token may attend to. Shape (texts, length).

    Returns:
        shape (texts, heads, statistics).
    """
    n_tokens = layout.n_tokens[:, None].float()
    columns = received(maps, layout) / n_tokens[..., None]
    found = {
        "entropy": entropy(maps, layout, visible),
        "first": columns[..., 0],
        "separators": to_separators(columns, layout),
        "vertical": in_columns(maps, layout) / n_tokens,
        "block": within_segments(maps, layout),
    }
    for offset in OFFSETS:
        found[f"offset {offset:+d}"] = at_offset(maps, layout, offset) / n_tokens
    found["diagonal"] = torch.stack([found[f"offset {x:+d}"] for x in (-1, 0, 1)]).sum(0)
    return torch.stack([found[name] for name in STATISTICS], dim=-1)


def received(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """What each token is given by all tokens together. Shape (texts, heads, length)."""
    return (layout.real[:, None, None].float() @ maps).squeeze(2)


def entropy(maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
    """Mean entropy of rows, as a share of the greatest that is possible.

    That is the logarithm of the tokens that are visible; rows that see one token are left out.
    Shape (texts, heads).
    """
    counted = (layout.real & (visible > 1)).float()
    weight = counted / visible.clamp(min=2).log()
    sums: torch.Tensor = (torch.special.entr(maps).sum(-1) * weight[:, None]).sum(-1)
    return sums / counted.sum(-1, keepdim=True)


def to_separators(columns: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention to special tokens after the first word; NaN if there are none.

    Args:
        columns: mean attention to each token. Shape (texts, heads, length).
    """
    begun = (layout.word >= 0).cumsum(-1) > 0
    separators = layout.real & (layout.word < 0) & begun
    sums: torch.Tensor = (columns * separators[:, None]).sum(-1)
    return sums.masked_fill(~separators.any(-1)[:, None], torch.nan)


def at_offset(maps: torch.Tensor, layout: Layout, offset: int) -> torch.Tensor:
    """Attention to the token at a distance, summed over rows; +1 is the next. (texts, heads)."""
    length = maps.shape[-1]
    if abs(offset) >= length:
        return maps.new_zeros(maps.shape[:2])
    first = max(0, -offset)
    real = layout.real[:, first : first + length - abs(offset)]
    return (torch.diagonal(maps, offset, -2, -1) * real[:, None]).sum(-1)


def in_columns(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention to the columns that get most of it, summed over rows. Shape (texts, heads).

    Columns are chosen on even rows and measured on odd ones, and the other way round: on the rows
    that they are chosen on, some columns get much in any head, and most in short texts.
    """
    even = torch.arange(maps.shape[-1], device=maps.device) % 2 == 0
    halves = torch.stack([layout.real & even, layout.real & ~even], dim=1)
    given = halves[:, None].float() @ maps  # (texts, heads, 2, length)
    ranked = given.masked_fill(~layout.real[:, None, None], -1).flip(2)
    chosen = ranked.topk(min(COLUMNS, maps.shape[-1])).indices
    return given.gather(-1, chosen).sum((-2, -1))


def within_segments(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention of words' tokens to those of their own segment; NaN if there is one segment.

    Shape (texts, heads).
    """
    if layout.segment is None:
        return maps.new_full(maps.shape[:2], torch.nan)
    of_words = (layout.segment >= 0).sum(-1)[:, None]
    sums = maps.new_zeros(maps.shape[:2])
    for segment in (0, 1):
        members = (layout.segment == segment).float()
        sums += (members[:, None, None] @ maps).squeeze(2).mul(members[:, None]).sum(-1)
    return sums / of_words


def uniform(visible: torch.Tensor) -> torch.Tensor:
    """The map of a head that attends to all visible tokens alike. Shape (texts, 1, length, length).

    Args:
        visible: whether each token may attend to each. Shape (texts, length, length).
    """
    maps = visible.float()
    return (maps / maps.sum(-1, keepdim=True).clamp(min=1))[:, None]
