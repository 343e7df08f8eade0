"""Passes in which part of a base's state is replaced by that of a source, and its directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch

from probes.common.arrays import Floats, Ints
from probes.common.errors import UserError
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector, ModelProperties, layer_states
from probes.extraction.interventions import Custom
from probes.extraction.lm_head import Lens
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.sites import Site
from probes.extraction.views import Text, view_over
from probes.extraction.windows import Window
from probes.families.interventions.erasers import Moments
from probes.families.interventions.interchange_pairs import Pair
from probes.measurements.context import ModelContext
from probes.records.header import ModelRecord

WHOLE, MEAN, PROBE, LEACE, COMPONENT, RANDOM = DIRECTIONS = (
    "whole",
    "mean difference",
    "probe",
    "LEACE",
    "first component",
    "random",
)
"""The whole vector, and directions along which it is exchanged."""


class Tokens(Collector):
    """Finds the tokens of texts, and reads none of them.

    Attributes:
        found: tokens of each text that fits into the model's window.
    """

    name = "tokens"

    def __init__(self) -> None:
        self.found: dict[Text, Pieces] = {}

    @property
    def parts(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Nothing is stored."""
        return 0

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Keep the tokens of a shard."""
        self._texts = shard.texts
        self.found.update(zip(shard.texts, pieces, strict=True))

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> Sequence[Window]:
        """No windows; texts with several are forgotten."""
        for window in windows:
            if window.first:
                self.found.pop(self._texts[window.text], None)
        return ()

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """There is no pass."""

    def finish(self) -> dict[str, torch.Tensor]:
        """There are no parts."""
        return {}


class Answers(Collector):
    """Logits of some tokens after prompts of one shape, each in a text of its own.

    Args:
        end: number of tokens before the continuation.
        columns: tokens whose logits are kept, by text. Shape (texts, k).

    Attributes:
        rows: number of the text of each row of the running pass.
        n_prefix: number of special tokens before a text.
    """

    name = "answers"
    after_start = True
    applies_head = True

    def __init__(self, end: int, columns: Ints) -> None:
        self._end, self._columns = end, torch.from_numpy(columns)
        self._by_rows: bool | None = None
        self.rows = torch.empty(0, dtype=torch.long)
        self.n_prefix = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The logits."""
        return ("logits",)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Size of the logits."""
        return 4 * self._columns.numel()

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin with no logits."""
        self._logits = torch.full(self._columns.shape, torch.nan)

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """Prompts: texts cut before the continuation, or with a mask in its place.

        Raises:
            UserError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise UserError("This model reads in both directions and has no mask token.")
        self.n_prefix, found = reader.n_prefix, []
        at = reader.n_prefix + self._end
        for window in windows:
            ids = window.ids[:at] if reader.causal else window.ids.copy()
            if not reader.causal:
                ids[at] = reader.mask_id
            place, owner = np.array([at - reader.causal]), np.array([window.text])
            found.append(replace(window, ids=ids, place=place, owner=owner, share=np.ones(1)))
        return found

    def prepare(self, windows: PaddedWindows) -> None:
        """Keep the numbers of the texts that the next pass reads."""
        self.rows = windows.text

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Keep the logits of one pass."""
        states = output.last_hidden_state.flatten(0, 1)
        states = states[windows.position.to(states.device)]
        self._logits[windows.text] = self._of(states, self._columns[windows.text])

    def _of(self, states: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Logits of some tokens. Shape (rows, k).

        If the head is a linear map, only its rows of these tokens are used: all 262,144 of Gemma 3
        take as long as its blocks.

        Args:
            states: shape (rows, hidden size).
            columns: shape (rows, k).
        """
        lens = cast("Lens", self.head)
        with torch.inference_mode():
            columns = columns.to(states.device)
            embeddings = lens.model.get_output_embeddings()
            weight, bias = embeddings.weight, getattr(embeddings, "bias", None)
            if self._by_rows is not False:
                by_rows = torch.zeros(columns.shape, device=states.device)
                if weight.is_floating_point() and weight.shape == (
                    lens.vocabulary,
                    states.shape[1],
                ):
                    own = weight[columns].float()
                    by_rows = (own @ states.float()[:, :, None]).squeeze(-1)
                    by_rows += 0 if bias is None else bias[columns]
                if self._by_rows:
                    return by_rows.cpu()
            whole = [lens.logits(part).float() for part in states.split(64)]
            found = torch.cat(
                [x.gather(1, y) for x, y in zip(whole, columns.split(64), strict=True)]
            )
            if self._by_rows is None:
                room = 0.01 if weight.dtype == torch.float32 else 1.0
                span = float(found.max() - found.min())
                self._by_rows = bool((found - by_rows).abs().max() <= 0.01 * room * max(span, 1))
            return found.cpu()

    def finish(self) -> dict[str, torch.Tensor]:
        """The logits. Shape (texts, k).

        Raises:
            UserError: one is not finite.
        """
        if not self._logits.isfinite().all():
            raise UserError(
                "The language-model head gave a number that is not finite. The model is broken, or "
                "--dtype is too narrow (try --dtype float32)."
            )
        return {"logits": self._logits}


class StatesOfPrompts(Answers):
    """Also the states of some layers. Shape (texts, layers, places, hidden size).

    Args:
        layers: the layers.
        places: numbers of tokens before those whose states are kept.
        end, columns: see `Answers`.
    """

    name = "states of prompts"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self, layers: Sequence[int], places: Sequence[int], end: int, columns: Ints
    ) -> None:
        super().__init__(end, columns)
        self._layers, self._places = layers, torch.tensor(places)
        self._states: dict[int, torch.Tensor] = {}

    @property
    def parts(self) -> tuple[str, ...]:
        """Logits and states."""
        return "logits", "states"

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Keep logits and states of one pass."""
        super().add(windows, output)
        states = layer_states(output)
        kept = [states[k][:, (self._places + self.n_prefix).to(states[k].device)] for k in
                self._layers]  # fmt: skip
        rows = torch.stack([x.float().cpu() for x in kept], dim=1)
        self._states.update(zip(windows.text.tolist(), rows, strict=True))

    def finish(self) -> dict[str, torch.Tensor]:
        """Logits and states."""
        states = [self._states[i] for i in sorted(self._states)]
        return {**super().finish(), "states": torch.stack(states)}


class Direction(NamedTuple):
    """The change h ↦ h + ((source − h) · read) write of each prompt.

    Attributes:
        read, write: shape (1 or prompts, hidden size).
    """

    read: Floats
    write: Floats

    @classmethod
    def along(cls, vector: Floats) -> Direction:
        """Orthogonal projection on vectors of any length; on the last axis."""
        length = np.linalg.norm(np.atleast_2d(vector), axis=-1, keepdims=True)
        unit = np.atleast_2d(vector) / np.where(length > 0, length, 1)
        return cls(unit, unit)


def directions(states: Floats, side: Ints) -> dict[str, Direction]:
    """Directions that are fitted to the states of training pairs at one layer and place.

    Args:
        states: of base and source. Shape (pairs, 2, hidden size).
        side: class of each base, 0 or 1. Shape (pairs,).
    """
    from sklearn.linear_model import LogisticRegression

    x = states.reshape(-1, states.shape[-1]).astype(np.float64)
    z = np.stack([side, 1 - side], axis=1).ravel()
    mean = x[z == 1].mean(0) - x[z == 0].mean(0)
    moments = Moments.of([(x[:, None], z[:, None])])
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    probe = LogisticRegression(C=1.0, max_iter=200).fit((x - x.mean(0)) / scale, z)
    *_, (component, *_) = np.linalg.svd(np.diff(states.astype(np.float64), axis=1)[:, 0])
    # LEACE removes (h · read) write: of two classes, its rank is 1 (Belrose et al. 2023, eq. 1).
    covariance = moments.wide[:, 0]
    read = np.linalg.solve(moments.shrunk, covariance)
    return {
        MEAN: Direction.along(mean),
        PROBE: Direction.along(probe.coef_[0] / scale),
        LEACE: Direction(read[None], covariance[None] / (covariance @ read)),
        COMPONENT: Direction.along(component),
    }


class Interchanged(NamedTuple):
    """Logits of the answers of prompts of one paradigm.

    Attributes:
        base, source: of the untouched prompts. Shape (pairs, k).
        changed: of the base's prompt with the source's state. Shape (layers, places, directions,
            pairs, k).
    """

    base: Floats
    source: Floats
    changed: Floats


def interchanged(
    context: ModelContext,
    train: Sequence[Pair],
    test: Sequence[Pair],
    places: Sequence[int],
    columns: Ints,
) -> Interchanged:
    """Exchange states at every layer and place of test pairs, along directions fitted to train.

    Nothing is computed where the states of base and source are equal.

    Args:
        train, test: pairs of one shape.
        places: number of tokens before each token that is changed.
        columns: tokens whose logits are wanted, by test pair. Shape (pairs, k).
    """
    layers, end = context.layers, test[0].end

    def states(pairs: Sequence[Pair], columns: Ints) -> tuple[torch.Tensor, torch.Tensor]:
        """States (pairs, 2, layers, places, hidden size) and logits (pairs, 2, k)."""
        view = view_over((text for pair in pairs for text in (pair.base, pair.source)), "written")
        collector = StatesOfPrompts(layers, places, end, np.repeat(columns, 2, axis=0))
        ((_, found),) = context.read_changed(view, collector, [()])
        return tuple(found[x].unflatten(0, (-1, 2)) for x in ("states", "logits"))  # type: ignore[return-value]

    fitted, _ = states(train, np.zeros((len(train), 1), dtype=np.int64))
    own, logits = states(test, columns)
    base, source = (np.asarray(x, dtype=np.float64) for x in logits.unbind(1))
    changed = np.tile(base, (len(layers), len(places), len(DIRECTIONS), 1, 1))
    side = np.array([pair.side for pair in train])
    answers = Answers(end, columns)
    cells: list[tuple[int, int, int]] = []
    variants: list[tuple[Custom, ...]] = []
    for i, layer in enumerate(layers):
        for j, place in enumerate(places):
            if torch.equal(own[:, 0, i, j], own[:, 1, i, j]):
                continue
            rng = np.random.default_rng([0, layer, place])
            every = {
                WHOLE: None,
                **directions(fitted[:, :, i, j].numpy(), side),
                RANDOM: Direction.along(rng.standard_normal((len(test), own.shape[-1]))),
            }
            for number, name in enumerate(DIRECTIONS):
                change = _exchange(answers, place, own[:, 1, i, j], every[name])
                at = Site("layer", layer)
                variants.append((Custom(f"interchange {place} {name}", 1, at, change),))
                cells.append((i, j, number))
    view = view_over((pair.base for pair in test), "written")
    for number, arrays in context.read_changed(view, answers, variants):
        changed[cells[number]] = arrays["logits"]
    return Interchanged(base, source, changed)


def _exchange(
    answers: Answers, place: int, source: torch.Tensor, direction: Direction | None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The change of a pass.

    Args:
        answers: knows the rows of the running pass.
        source: states of the sources. Shape (pairs, hidden size).
        direction: None for the whole vector.
    """

    def change(states: torch.Tensor) -> torch.Tensor:
        rows, at = answers.rows, answers.n_prefix + place
        new, states = source[rows].to(states.device), states.clone()
        if direction is not None:
            read, write = (
                torch.from_numpy(x).float().to(states.device).expand(len(source), -1)[rows]
                for x in direction
            )
            own = states[:, at].float()
            new = own + ((new - own) * read).sum(-1, keepdim=True) * write
        states[:, at] = new.to(states.dtype)
        return states

    return change


def tokens_of(context: ModelContext, texts: Iterator[Text]) -> dict[Text, Pieces]:
    """Tokens of texts; without those that are too long for the model."""
    collector = Tokens()
    for _ in context.read(view_over(texts, "written"), collector):
        pass
    return collector.found
