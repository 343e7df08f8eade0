"""Interventions in a forward pass: disable heads, skip blocks, erase subspaces, add vectors."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch

from probes.common.errors import UserError
from probes.extraction.changing.module_calls import Change
from probes.extraction.changing.prefixes import Prefixes
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.models.loaded_module import base_model
from probes.extraction.reading.encoder import Encoder

How = Literal["uniform", "zero"]
"""`uniform`: attention becomes 1/n over the n visible tokens (Kovaleva et al. 2019). `zero`: the
output of the head becomes 0."""

Positions = Literal["all", "pieces"]
"""All tokens of a text, or only the pieces of words, without special tokens."""


@dataclass(frozen=True, eq=False)
class Intervention(ABC):
    """A change of every forward pass at one site. Equal fingerprints make equal interventions.

    Attributes:
        revision: part of the fingerprint.
        positions: the tokens that are changed.
    """

    revision: ClassVar[int] = 1
    positions = "all"

    @property
    @abstractmethod
    def site(self) -> Site:
        """The site that is changed."""

    @abstractmethod
    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """New value at the site; see `probes.extraction.changing.sites.Change`."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the class, the revision and all settings except functions."""
        settings = {x.name: getattr(self, x.name) for x in fields(self)}
        content = [type(self).__name__, self.revision, settings]
        text = json.dumps(content, sort_keys=True, default=_setting_digest)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervention) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _setting_digest(setting: Any) -> Any:
    if callable(setting):
        return None
    array = np.ascontiguousarray(setting)
    return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]


class _Disable(Intervention):
    layer: int
    head: int | None
    how: How

    def __post_init__(self) -> None:
        if self.how not in ("uniform", "zero"):
            raise UserError(f"{type(self).__name__}: how is 'uniform' or 'zero', not {self.how!r}.")

    @property
    def site(self) -> Site:
        return Site("maps" if self.how == "uniform" else "heads", self.layer, self.head)

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        if self.how == "uniform":  # at maps, `other` is True for the tokens that are visible
            uniform = (other / other.sum(-1, keepdim=True).clamp(min=1)).to(states.dtype)
            uniform = uniform[:, None] if self.head is None else uniform
            return uniform.expand_as(states).contiguous()
        return torch.zeros_like(states)


@dataclass(frozen=True, eq=False)
class DisableHead(_Disable):
    """Disable a head.

    Attributes:
        layer, head: the block and the head, counted from 1.
        how: see `How`. "zero" replaces the input of the linear map after the heads, whose bias
            stays.
    """

    layer: int
    head: int
    how: How = "uniform"


@dataclass(frozen=True, eq=False)
class DisableAttention(_Disable):
    """Disable all heads of a block; see `DisableHead`."""

    layer: int
    how: How = "uniform"
    head: None = field(default=None, init=False)


@dataclass(frozen=True, eq=False)
class OwnAttention(Intervention):
    """Change nothing, but compute attention with our function; a baseline for uniform heads.

    Passes with uniform heads use our function, which rounds differently from torch's.
    """

    site = Site("maps", 1)

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The states, unchanged."""
        return states


@dataclass(frozen=True, eq=False)
class SkipBlock(Intervention):
    """Replace a block, counted from 1, by the identity."""

    layer: int

    @property
    def site(self) -> Site:
        """The block."""
        return Site("block", self.layer)

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The input of the block."""
        return other.to(states.device)


class _AtLayer(Intervention):
    layer: int

    @property
    def site(self) -> Site:
        """The layer."""
        return Site("layer", self.layer)


@dataclass(frozen=True, eq=False)
class Erase(_AtLayer):
    """Remove a subspace from a layer: x − (x − mean) · left · right.

    Attributes:
        layer: 0 to L; L is after the final norm.
        mean: shape (hidden size,).
        left: shape (hidden size, rank).
        right: shape (rank, hidden size).
    """

    layer: int
    mean: np.ndarray
    left: np.ndarray
    right: np.ndarray
    positions: Positions = "all"

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """States without the subspace."""
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        mean, left, right = (
            torch.as_tensor(x).to(wide) for x in (self.mean, self.left, self.right)
        )
        return (wide - (wide - mean) @ left @ right).to(states.dtype)


@dataclass(frozen=True, eq=False)
class Add(_AtLayer):
    """Add a vector to a layer: x + vector.

    Attributes:
        layer: 0 to L; L is after the final norm.
        vector: shape (hidden size,).
    """

    layer: int
    vector: np.ndarray
    positions: Positions = "all"

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """States with the vector added."""
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        return (wide + torch.as_tensor(self.vector).to(wide)).to(states.dtype)


@dataclass(frozen=True, eq=False)
class Custom(Intervention):
    """A user-defined change.

    Attributes:
        label, version: stand for `function` in the fingerprint; raise the version when it changes.
        at: the site.
        function: maps the tensor at the site to its replacement, of the same shape.
    """

    label: str
    version: int
    at: Site
    function: Callable[[torch.Tensor], torch.Tensor]
    positions: Positions = "all"

    @property
    def site(self) -> Site:
        """The given site."""
        return self.at

    def change(self, states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Result of `function`; checks that the shape stays."""
        replacement = self.function(states)
        if replacement.shape != states.shape:
            raise UserError(
                f"Custom {self.label!r}: the function turned {tuple(states.shape)} into "
                f"{tuple(replacement.shape)}; return a tensor of the same shape."
            )
        return replacement


active_changes: WeakKeyDictionary[Any, list[list[str]]] = WeakKeyDictionary()
"""Fingerprints of active interventions, by the model without its head."""


@contextmanager
def changed_passes(
    model: Any, interventions: Sequence[Intervention], prefixes: Prefixes | None = None
) -> Iterator[None]:
    """Change all forward passes of a model inside a ``with`` block.

    Interventions at one site act in the given order. Of nested contexts, the inner one acts first,
    but last on attention maps.

    Args:
        model: an `Encoder`, or a transformers model with or without its head.
        prefixes: see `Prefixes`; blocks below all changes are computed once.

    Raises:
        UserError: the model lacks a site, or cannot tell pieces from special tokens.
    """
    encoder = model if isinstance(model, Encoder) else None
    base = encoder.model if encoder else base_model(model)
    digests = [x.fingerprint for x in interventions]
    with ExitStack() as stack:
        try:
            sites = sites_of(base)
            for change in interventions:
                if change.positions == "pieces" and (encoder is None or change.site.kind == "maps"):
                    raise UserError(
                        f"{sites.architecture}: {type(change).__name__} at the pieces of words "
                        "needs an Encoder, and a site with a vector for each token."
                    )
            changes = [(x.site, _only_at_pieces(x, encoder)) for x in interventions]
            stack.enter_context(changed_sites(base, sites, changes))
        except UserError as error:
            if encoder is None:
                raise
            raise UserError(f"--model {encoder.info.name}: {error}") from error
        if encoder:
            encoder.way_to_read_attention = sites.way  # a changed pass might not show it
        if prefixes:
            after = ("layer", "block", "unnormed")  # these change a block's output
            below = [x.site.layer - (x.site.kind not in after) for x in interventions]
            n_blocks = min([*below, len(sites.blocks)])
            stack.enter_context(prefixes.reuse(n_blocks, lambda: _other_changes(base, digests)))
        active_changes.setdefault(base, []).append(digests)
        try:
            yield
        finally:
            active_changes[base] = [x for x in active_changes[base] if x is not digests]


def _other_changes(base: Any, digests: Sequence[str]) -> list[str]:
    return [x for group in active_changes[base] if group is not digests for x in group]


def _only_at_pieces(intervention: Intervention, encoder: Encoder | None) -> Change:
    if encoder is None or intervention.positions == "all":
        return intervention.change

    def change(states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        assert encoder.pieces is not None, "a pass is running"
        pieces = encoder.pieces.to(states.device)
        if len(states) == pieces.numel():  # OPT's MLP reads (tokens, hidden size)
            pieces = pieces.flatten()
        pieces = pieces.reshape(*pieces.shape, *[1] * (states.ndim - pieces.ndim))
        return torch.where(pieces, intervention.change(states, other), states)

    return change


def intervene(model: Any, *interventions: Intervention) -> AbstractContextManager[None]:
    """Change all forward passes of a transformers model in a ``with`` block.

    ::

        from probes import DisableHead, SkipBlock, intervene

        with intervene(model, DisableHead(3, 9), SkipBlock(5)):
            changed = model(**inputs)

    Interventions are `DisableHead`, `DisableAttention`, `SkipBlock`, `Erase`, `Add` and `Custom`.
    If attention becomes uniform, our own function computes the attention of all blocks and rounds
    differently from torch's. Compare with passes under `OwnAttention`, which changes nothing else.

    Args:
        model: any class, with or without a head; for an encoder–decoder, the encoder is changed.
        *interventions: those at one site act in the given order.

    Raises:
        UserError: the model's architecture lacks a site.
    """
    return changed_passes(model, interventions)
