"""Passes in which part of a base's state is replaced by that of a source, and its directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np
import torch

from probes.common.arrays import Floats, Ints
from probes.common.errors import UserError
from probes.extraction.changing.interventions import Custom
from probes.extraction.changing.sites import Site
from probes.extraction.models.lm_head import Lens
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.collectors import Collector, ModelProperties, layer_states
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.views import view_over
from probes.extraction.reading.windows import Window
from probes.families.interventions.erasers import Moments, leace
from probes.families.interventions.interchange_pairs import (
    COMPONENT,
    DIRECTIONS,
    LEACE,
    MEAN,
    PROBE,
    RANDOM,
    SHUFFLED,
    Pair,
)
from probes.measurements.context import ModelContext
from probes.records.header import ModelRecord


class Prompts(Collector):
    """Logits of some tokens after prompts of one shape, and states of some layers.

    Args:
        end: number of tokens before the continuation.
        columns: tokens whose logits are kept, by text. Shape (texts, k).
        layers, places: layers and tokens whose states are kept.

    Attributes:
        rows: number of the text of each row of the running pass.
        n_prefix: number of special tokens before a text.
    """

    name = "prompts"
    parts = "logits", "states"
    after_start = True
    applies_head = True
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self, end: int, columns: Ints, layers: Sequence[int] = (), places: Sequence[int] = ()
    ) -> None:
        self._end, self._columns = end, torch.from_numpy(columns)
        self._layers, self._places = layers, torch.tensor(places, dtype=torch.long)
        self._head_is_linear: bool | None = None
        self.rows, self.n_prefix = torch.empty(0, dtype=torch.long), 0

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Size of logits and states."""
        n_states = len(shard.texts) * len(self._layers) * len(self._places)
        return 4 * (self._columns.numel() + n_states * model.hidden_size)

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin with nothing."""
        self._logits = torch.full(self._columns.shape, torch.nan)
        self._states: torch.Tensor | None = None

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """Texts that are cut before the continuation, or have a mask in its place.

        Raises:
            UserError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise UserError("This model reads in both directions and has no mask token.")
        self.n_prefix, prompts = reader.n_prefix, []
        at = reader.n_prefix + self._end
        for window in windows:
            ids = window.ids[:at] if reader.causal else window.ids.copy()
            if reader.mask_id is not None and not reader.causal:
                ids[at] = reader.mask_id
            position, owner = np.array([at - reader.causal]), np.array([window.text])
            prompts.append(
                replace(window, ids=ids, position=position, owner=owner, share=np.ones(1))
            )
        return prompts

    def prepare(self, windows: PaddedWindows) -> None:
        """Keep the numbers of the texts that the next pass reads."""
        self.rows = windows.text

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Keep the logits and states of one pass."""
        last = output.last_hidden_state.flatten(0, 1)
        last = last[windows.position.to(last.device)]
        self._logits[windows.text] = self._answers(last, self._columns[windows.text]).cpu()
        if self._layers:
            at, by_layer = self._places + self.n_prefix, layer_states(output)
            parts = [by_layer[k][:, at.to(by_layer[k].device)].float().cpu() for k in self._layers]
            states = torch.stack(parts, dim=1)
            if self._states is None:
                self._states = states.new_empty(len(self._columns), *states.shape[1:])
            self._states[windows.text] = states

    def _answers(self, states: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Logits of some tokens. Shape (rows, k).

        If the head is a linear map in float32, only its rows of these tokens are used: all 262,144
        of Gemma 3 take as long as its blocks.

        Args:
            states: shape (rows, hidden size).
            columns: shape (rows, k).
        """
        lens, columns = cast("Lens", self.head), columns.to(states.device)
        head = lens.model.get_output_embeddings()
        with torch.inference_mode():
            if self._head_is_linear:
                products: torch.Tensor = (head.weight[columns] @ states[:, :, None]).squeeze(-1)
                return products if head.bias is None else products + head.bias[columns]
            logits = torch.cat([lens.logits(part).float() for part in states.split(64)])
            if self._head_is_linear is None:
                linear = isinstance(head, torch.nn.Linear) and head.weight.dtype == torch.float32
                linear = linear and head.in_features == states.shape[1]
                room = 1e-5 * float(logits.abs().max())
                self._head_is_linear = linear and torch.allclose(head(states), logits, 1e-4, room)
            return logits.gather(1, columns)

    def finish(self) -> dict[str, torch.Tensor]:
        """Logits (texts, k) and states (texts, layers, places, hidden size).

        Raises:
            UserError: a logit is not finite.
        """
        if not self._logits.isfinite().all():
            raise UserError(
                "The language-model head gave a number that is not finite. The model is broken, or "
                "--dtype is too narrow (try --dtype float32)."
            )
        parts = {"logits": self._logits}
        return parts if self._states is None else {**parts, "states": self._states}


Direction = tuple[Floats, Floats]
"""Vectors of the change h ↦ h + ((source − h) · read) write, for all prompts or each of them. Shape
of both: (1 or prompts, hidden size)."""


def projection(vectors: Floats) -> Direction:
    """Orthogonal projection on vectors of any length, on the last axis."""
    rows = np.atleast_2d(vectors)
    unit = rows / np.linalg.norm(rows, axis=-1, keepdims=True).clip(np.finfo(np.float64).tiny)
    return unit, unit


def directions(
    states: Floats, side: Ints, n: int, rng: np.random.Generator
) -> dict[str, Direction]:
    """Directions that are fitted to the states of training pairs at one layer and place.

    Controls are drawn anew for each prompt, so that means over prompts vary as their draws do. In
    one, classes are shuffled within pairs. The other is random, with steps as long as those along
    the mean difference.

    Args:
        states: of base and source. Shape (pairs, 2, hidden size).
        side: class of each base, 0 or 1. Shape (pairs,).
        n: number of prompts.
    """
    from sklearn.linear_model import LogisticRegression

    x = states.reshape(-1, states.shape[-1])
    z = np.stack([side, 1 - side], axis=1).ravel()
    mean = x[z == 1].mean(0) - x[z == 0].mean(0)
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    probe = LogisticRegression(C=1.0, max_iter=200).fit((x - x.mean(0)) / scale, z)
    apart = states[:, 1] - states[:, 0]
    *_, (component, *_) = np.linalg.svd(apart, full_matrices=False)
    eraser = leace(Moments.of([(x[:, None], z[:, None])]))  # of two classes, its rank is 1
    return {
        MEAN: projection(mean),
        PROBE: projection(probe.coef_[0] / scale),
        LEACE: (eraser.left.T, eraser.right),
        COMPONENT: projection(component),
        SHUFFLED: projection(rng.choice((-1.0, 1.0), (n, len(apart))) @ apart),
        RANDOM: (projection(mean)[0], projection(rng.standard_normal((n, x.shape[1])))[1]),
    }


def exchanged_logits(
    context: ModelContext,
    train: Sequence[Pair],
    test: Sequence[Pair],
    places: Sequence[int],
    columns: Ints,
    seed: int,
) -> tuple[Floats, Floats, Floats]:
    """Exchange states at every layer and place of test pairs, along directions fitted to train.

    Nothing is computed where the states of base and source are equal.

    Args:
        train, test: pairs of one shape.
        places: number of tokens before each token that is changed.
        columns: tokens whose logits are wanted, by test pair. Shape (pairs, k).
        seed: seeds the controls.

    Returns:
        logits of the untouched bases and sources, each (pairs, k), and of bases with the source's
        state (layers, places, directions, pairs, k).
    """
    layers, end = context.layers, test[0].end

    def read(pairs: Sequence[Pair], columns: Ints) -> tuple[torch.Tensor, Floats]:
        """States (pairs, 2, layers, places, hidden size) and logits (pairs, 2, k)."""
        view = view_over((text for pair in pairs for text in (pair.base, pair.source)), "written")
        collector = Prompts(end, np.repeat(columns, 2, axis=0), layers, places)
        ((_, arrays),) = context.read_changed(view, collector, [()])
        states, logits = (arrays[x].unflatten(0, (-1, 2)) for x in ("states", "logits"))
        return states, logits.double().numpy()

    fitted, _ = read(train, np.zeros((len(train), 1), dtype=np.int64))
    states, logits = read(test, columns)
    source = logits[:, 1]
    side, prompts = np.array([pair.side for pair in train]), Prompts(end, columns)
    cells: list[tuple[int, int, int]] = []
    # Untouched bases are read in the same batches, lest differences in rounding count as changes.
    variants: list[tuple[Custom, ...]] = [()]
    for i, j in product(range(len(layers)), range(len(places))):
        base_states, source_states = states[:, :, i, j].unbind(1)
        if torch.equal(base_states, source_states):
            continue
        rng = np.random.default_rng([seed, layers[i], places[j]])
        by_name = directions(fitted[:, :, i, j].double().numpy(), side, len(test), rng)
        for number, name in enumerate(DIRECTIONS):
            change = _exchange(prompts, places[j], source_states, by_name.get(name))
            variants.append((Custom("interchange", 1, Site("layer", layers[i]), change),))
            cells.append((i, j, number))
    view = view_over((pair.base for pair in test), "written")
    (_, untouched), *passes = (
        (number, arrays["logits"].double().numpy())
        for number, arrays in context.read_changed(view, prompts, variants)
    )
    changed = np.tile(untouched, (len(layers), len(places), len(DIRECTIONS), 1, 1))
    for cell, (_, logits) in zip(cells, passes, strict=True):
        changed[cell] = logits
    return untouched, source, changed


def _exchange(
    prompts: Prompts, position: int, source: torch.Tensor, direction: Direction | None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Change of a pass that puts a state of the source in the place of the base's.

    Args:
        prompts: knows the texts of the running pass.
        source: states of the sources. Shape (pairs, hidden size).
        direction: None for the whole vector.
    """

    def change(states: torch.Tensor) -> torch.Tensor:
        at, states = prompts.n_prefix + position, states.clone()
        new, base = source[prompts.rows].to(states.device), states[:, at].float()
        if direction is not None:
            read, write = (
                torch.from_numpy(x).float().expand(source.shape)[prompts.rows].to(states.device)
                for x in direction
            )
            new = base + ((new - base) * read).sum(-1, keepdim=True) * write
        states[:, at] = new.to(states.dtype)
        return states

    return change
