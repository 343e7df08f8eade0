"""Changes: passes in which a part is disabled, labels are erased, or a state is exchanged.

Each maker returns passes with what they are compared with. `probes.extraction.changing` makes the
changes themselves, at any site of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.families.interventions.experiment import ChangedPass

if TYPE_CHECKING:
    import torch

    from probes.extraction.changing.interventions import How
    from probes.extraction.reading.views import Text
    from probes.families.interventions.erasers import Eraser
    from probes.families.interventions.readouts import ContinuationLogits
    from probes.measurements.context import ModelContext
    from probes.records.row import AxisValue

HEAD, ATTENTION, BLOCK = "head", "attention", "block"
"""Values of ``disabled``: one head, all heads of a layer, or a whole block."""

Head = tuple[int, int]
"""Block and number, from 1."""

N_STEPS = 10
"""Most steps from no head to all heads."""

NOTHING = "nothing"
"""Value of ``less``, the drop subtracted, if it is none."""


def disabled_parts(n_layers: int, n_heads: int, how: How) -> list[ChangedPass]:
    """Two untouched passes, the second with our own attention; then every head, layer and block."""
    from probes.extraction.changing.interventions import (
        DisableAttention,
        DisableHead,
        OwnAttention,
        SkipBlock,
    )

    passes = [ChangedPass(), ChangedPass((OwnAttention(),))]
    base = int(how == "uniform")  # "uniform" needs our own attention function
    for layer in range(1, n_layers + 1):
        for head in range(1, n_heads + 1):
            axes: dict[str, AxisValue] = {"disabled": HEAD, "head": head}
            change = DisableHead(layer, head, how)
            passes.append(ChangedPass((change,), layer, axes, ((base, {}),)))
        all_heads = DisableAttention(layer, how)
        passes.append(ChangedPass((all_heads,), layer, {"disabled": ATTENTION}, ((base, {}),)))
        block = SkipBlock(layer)
        passes.append(ChangedPass((block,), layer, {"disabled": BLOCK}, ((0, {}),)))
    return passes


def without_heads(heads: Sequence[Head], layer: int, axes: Mapping[str, AxisValue]) -> ChangedPass:
    """A pass in which the outputs of some heads are 0, which is compared with pass 0.

    Args:
        layer: the layer of its rows.
    """
    from probes.extraction.changing.interventions import DisableHead

    changes = tuple(DisableHead(*head, "zero") for head in sorted(heads))
    return ChangedPass(changes, layer, axes, ((0, {}),))


def pruned(orders: Mapping[str, Sequence[Sequence[Head]]], layer: int) -> Iterator[ChangedPass]:
    """Passes without the first heads of each order, in up to `N_STEPS` steps.

    Args:
        orders: of the same heads; draws by name (axis ``order``).
        layer: the layer of all rows.
    """
    for name, draws in orders.items():
        for draw, heads in enumerate(draws):
            n, steps = len(heads), min(N_STEPS, len(heads))
            for step in range(steps + 1):
                axes: dict[str, AxisValue] = {"order": name, "draw": draw}
                axes["percent_disabled"] = round(100 * step / steps)
                yield without_heads(heads[: round(n * step / steps)], layer, axes)


def erased(
    erasers: Mapping[str, Sequence[Eraser]],
    layer: int,
    axes: Mapping[str, AxisValue],
    n_passes: int,
) -> Iterator[ChangedPass]:
    """Passes in which a subspace of the pieces of all words is erased at a layer.

    Each is compared with pass 0; that of the first name also with all draws of each other name.

    Args:
        erasers: draws by name (axis ``eraser``).
        n_passes: number of passes before these.
    """
    from probes.extraction.changing.interventions import Erase

    starts = accumulate(map(len, erasers.values()), initial=n_passes)
    first_draw = dict(zip(erasers, starts, strict=False))
    of_first, *controls = erasers
    for name, draws in erasers.items():
        others = controls if name == of_first else []
        against = ((0, {"less": NOTHING}), *((first_draw[x], {"less": x}) for x in others))
        all_axes = {**axes, "eraser": name}
        for eraser in draws:
            erase = (Erase(layer, *eraser, positions="pieces"),)
            yield ChangedPass(erase, layer, all_axes, against, first_draw[name])


Direction = tuple[Floats, Floats]
"""Vectors of the change h ↦ h + ((source − h) · read) write, for all prompts or each of them. Shape
of both: (1 or prompts, hidden size)."""


def projection(vectors: Floats) -> Direction:
    """Orthogonal projection on vectors of any length, on the last axis."""
    rows = np.atleast_2d(vectors)
    unit = rows / np.linalg.norm(rows, axis=-1, keepdims=True).clip(np.finfo(np.float64).tiny)
    return unit, unit


def exchanged(
    prompts: ContinuationLogits,
    layer: int,
    position: int | None,
    source: torch.Tensor,
    direction: Direction | None,
) -> ChangedPass:
    """A pass in which a state of each source stands in the place of the base's.

    Args:
        prompts: reads the bases; knows the texts of the running pass.
        position: number of tokens before the one whose state is exchanged; None for the one at
            which answers are read, the last or the masked token.
        source: states of the sources. Shape (pairs, hidden size).
        direction: the part to exchange; None for the whole vector.
    """
    import torch

    from probes.extraction.changing.interventions import Custom
    from probes.extraction.changing.sites import Site

    def change(states: torch.Tensor) -> torch.Tensor:
        every, states = torch.arange(len(states)), states.clone()
        at = prompts.read_at if position is None else prompts.n_prefix + position
        new, base = source[prompts.rows].to(states.device), states[every, at].float()
        if direction is not None:
            read, write = (
                torch.from_numpy(x).float().expand(source.shape)[prompts.rows].to(states.device)
                for x in direction
            )
            new = base + ((new - base) * read).sum(-1, keepdim=True) * write
        states[every, at] = new.to(states.dtype)
        return states

    return ChangedPass((Custom("interchange", 1, Site("layer", layer), change),), layer)


def exchanged_logits(
    context: ModelContext,
    bases: Iterable[Text],
    prompts: ContinuationLogits,
    exchanges: Iterable[tuple[int, int | None, torch.Tensor, Direction | None]],
) -> list[Floats]:
    """Logits (bases, k) of untouched bases, and after each exchange.

    Untouched bases are read in the same batches, lest differences in rounding count as changes.

    Args:
        exchanges: layer, position, source and direction of each; see `exchanged`.
    """
    passes = [ChangedPass(), *(exchanged(prompts, *exchange) for exchange in exchanges)]
    return prompts.read(context, bases, passes)[0]
