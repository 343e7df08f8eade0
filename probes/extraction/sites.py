"""Sites where a forward pass can be read and changed, for any architecture.

Sites are found in the module tree and verified on a short text. A site that is not found, or fails
the check, is refused when it is requested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch

from probes.common.errors import UserError, out_of_memory
from probes.extraction.attention_maps import Way, maps_changed, way_to_read
from probes.extraction.collectors import layer_states
from probes.extraction.inspection import TRANSFORMERS_ERRORS, accepted_arguments, one_line
from probes.tasks.task import Sublayer

Tensor = torch.Tensor

Kind = Literal["layer", "block", "attention", "mlp", "heads", "maps"]

Change = Callable[[Tensor, Tensor], Tensor]
"""Function from the tensor at a site and a second one to the replacement. The second is the input
of a block, or for maps, True where a token may attend to another."""


class Site(NamedTuple):
    """A place in a model.

    Attributes:
        kind: ``layer``: states of a layer (layer L after the final norm). ``block``: output of a
            block. ``attention``, ``mlp``: output of the last linear map of this part of a block.
            ``heads``: each head's input to attention's last linear map, of shape (texts, length,
            heads, size of a head). ``maps``: attention maps (texts, heads, length, length).
        layer: layer 0 to L, or block 1 to L.
        head: head of ``heads`` or ``maps``, counted from 1; None for all.
    """

    kind: Kind
    layer: int
    head: int | None = None


class Call(NamedTuple):
    """A call of a module in a pass. ALBERT calls one block L times.

    Attributes:
        number: number of earlier calls of the module.
    """

    module: Any
    number: int


@dataclass(frozen=True, eq=False)
class Sites:
    """The sites of a model without its head.

    Attributes:
        architecture: the name of the model's class.
        blocks: the calls of blocks.
        layers: the calls that return layers 0 to L. None for layer 0 means to change the input of
            block 1; None for another layer means that its call is unknown.
        transposed: whether states are (length, texts, hidden size) between blocks.
        way: how attention maps are read; None if they cannot be read.
        calls: for each kind of site inside blocks, one call per block: linear maps, or the dropouts
            of maps. Maps have none where our own attention can replace the model's.
        refused: reason for each missing kind of site.
        n_heads: number of heads per block.
    """

    architecture: str
    blocks: tuple[Call, ...]
    layers: tuple[Call | None, ...]
    transposed: bool
    way: Way | None = None
    calls: Mapping[Kind, tuple[Call, ...]] = field(default_factory=dict)
    refused: Mapping[Kind, str] = field(default_factory=dict)
    n_heads: int = 0

    def require(self, site: Site) -> None:
        """Check that a site exists.

        Raises:
            UserError: it does not.
        """
        kind, layer, head = site
        why = self.refused.get(kind, "")
        if not (kind != "layer") <= layer <= len(self.blocks):
            why = f"it has {len(self.blocks)} blocks, and no {kind} {layer}"
        elif kind == "layer" and layer and self.layers[layer] is None:
            why = f"its layer {layer} cannot be changed (no module returns it)"
        elif not why and head is not None and not 1 <= head <= self.n_heads:
            why = f"it has {self.n_heads} heads in each block, and no head {head}"
        if why:
            raise UserError(f"{self.architecture}: {why}.")

    @property
    def norm(self) -> Any:
        """The module between the last block and layer L, if any."""
        last = self.layers[-1]
        return None if last is None or last == self.blocks[-1] else last.module


class Hooks:
    """Hooks that act only during passes of a model, and are removed together.

    Args:
        model: the model without its head.
        transposed: see `Sites`; changes always get (texts, length, hidden size).
        first: whether hooks run before existing ones, such as those with which transformers keeps
            the states of layers; otherwise after them.
    """

    def __init__(self, model: Any, transposed: bool = False, *, first: bool = True) -> None:
        self.transposed, self.first, self._running = transposed, first, False
        self._seen: Counter[int] = Counter()
        self._handles = [
            model.register_forward_pre_hook(self._begin, prepend=True),
            model.register_forward_hook(self._end, always_call=True),
        ]

    def __enter__(self) -> Hooks:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _begin(self, *_: Any) -> None:
        self._running = True
        self._seen.clear()

    def _end(self, *_: Any) -> None:
        self._running = False

    def _due(self, hook: int, call: Call) -> bool:
        """Whether a hook has reached its call."""
        self._seen[hook] += 1
        return self._running and self._seen[hook] == call.number + 1

    def _turned(self, states: Tensor) -> Tensor:
        return states.transpose(0, 1) if self.transposed and states.ndim == 3 else states

    def after(self, call: Call, change: Change) -> None:
        """Replace the output of a call by `change(output, input)`."""
        number = len(self._handles)

        def hook(_: Any, args: Any, kwargs: Any, output: Any) -> Any:
            if not self._due(number, call):
                return None
            given = self._turned(_tensors(args, kwargs)[0])
            whole = isinstance(output, Tensor)
            states = self._turned(change(self._turned(output if whole else output[0]), given))
            return states if whole else (states, *output[1:])

        hooked = call.module.register_forward_hook(hook, prepend=self.first, with_kwargs=True)
        self._handles.append(hooked)

    def before(self, call: Call, change: Callable[[Tensor], Tensor]) -> None:
        """Replace the input of a call, its first tensor, by `change(input)`."""
        number = len(self._handles)

        def hook(_: Any, args: Any, kwargs: dict[str, Any]) -> Any:
            if not self._due(number, call):
                return None
            given = _tensors(args, kwargs)[0]
            states = self._turned(change(self._turned(given)))
            named = {name: states if x is given else x for name, x in kwargs.items()}
            return tuple(states if x is given else x for x in args), named

        hooked = call.module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True)
        self._handles.append(hooked)


@contextmanager
def changed(model: Any, sites: Sites, changes: Sequence[tuple[Site, Change]]) -> Iterator[None]:
    """Make changes in every pass of `model`; those at one site act in the given order.

    To change maps, our own attention replaces the model's where possible.

    Raises:
        UserError: a site is missing.
    """
    for site, _ in changes:
        sites.require(site)
    of_maps = [(x.layer, _of_head(x.head, 1, change)) for x, change in changes if x.kind == "maps"]
    block = 0

    def change_maps(_: int, maps: Tensor, visible: Tensor) -> Tensor:
        for layer, change in of_maps:
            if layer == block:
                maps = change(maps, visible)
        return maps

    with ExitStack() as stack:
        hooks = stack.enter_context(Hooks(model, sites.transposed))
        if of_maps and sites.way == "in the model":
            stack.enter_context(maps_changed(model, change_maps))
            for number, call in enumerate(sites.blocks, start=1):

                def begin(states: Tensor, number: int = number) -> Tensor:
                    nonlocal block
                    block = number
                    return states

                hooks.before(call, begin)
        for site, change in reversed(changes):
            _hook(hooks, sites, site, change)
        yield


@contextmanager
def outputs_seen(
    model: Any,
    sites: Sites,
    parts: Sequence[tuple[int, Sublayer]],
    see: Callable[[int, Sublayer, Tensor], None],
) -> Iterator[None]:
    """Hand outputs inside blocks to `see` in every pass of `model`, after any changes.

    Args:
        parts: block numbers and parts.

    Raises:
        UserError: a site is missing.
    """

    def handing_on(block: int, part: Sublayer) -> Change:
        def hand_on(states: Tensor, _: Tensor) -> Tensor:
            see(block, part, states)
            return states

        return hand_on

    for block, part in parts:
        sites.require(Site(part, block))
    with Hooks(model, sites.transposed, first=False) as hooks:
        for block, part in parts:
            _hook(hooks, sites, Site(part, block), handing_on(block, part))
        yield


def _hook(hooks: Hooks, sites: Sites, site: Site, change: Change) -> None:
    kind, layer, head = site

    def change_heads(states: Tensor) -> Tensor:
        heads = states.unflatten(-1, (sites.n_heads, -1))
        return _of_head(head, 2, change)(heads, heads).flatten(-2)

    def change_dropped(maps: Tensor, _: Tensor) -> Tensor:
        # Maps are positive where a token is visible, unless they underflow.
        return _of_head(head, 1, change)(maps, (maps > 0).any(1))

    if kind == "layer" and (call := sites.layers[layer]):
        hooks.after(call, change)
    elif kind == "layer":
        hooks.before(sites.blocks[0], lambda states: change(states, states))
    elif kind == "block":
        hooks.after(sites.blocks[layer - 1], change)
    elif calls := sites.calls.get(kind):
        if kind == "heads":
            hooks.before(calls[layer - 1], change_heads)
        else:
            hooks.after(calls[layer - 1], change_dropped if kind == "maps" else change)


def _of_head(head: int | None, axis: int, change: Change) -> Change:
    """Restrict a change to one head."""
    if head is None:
        return change

    def change_one(states: Tensor, other: Tensor) -> Tensor:
        states = states.clone()
        one = states.select(axis, head - 1)
        one.copy_(change(one, other))
        return states

    return change_one


_SITES: WeakKeyDictionary[Any, tuple[list[int], Sites]] = WeakKeyDictionary()


def sites_of(base: Any) -> Sites:
    """The sites of a model without its head, found by a few passes over a short text and cached.

    Raises:
        UserError: the blocks are not found, or the model cannot be run.
    """
    tree = [id(module) for module in base.modules()]
    if base not in _SITES or _SITES[base][0] != tree:
        training = [module for module in base.modules() if module.training]
        try:
            base.eval()
            with torch.no_grad():
                _SITES[base] = tree, _Finder(base).sites()
        except TRANSFORMERS_ERRORS as error:
            if out_of_memory(error):
                raise
            raise UserError(f"{type(base).__name__}: cannot be run ({one_line(error)}).") from error
        finally:
            for module in training:
                module.training = True
    return _SITES[base][1]


def short_states(base: Any) -> list[Tensor]:
    """States of all layers of a model without its head, for one short text."""
    return layer_states(base(**short_text(base), output_hidden_states=True))


def short_text(base: Any) -> dict[str, Any]:
    """Arguments of a forward pass over one short text."""
    table = base.get_input_embeddings().weight
    rows = getattr(base.config.get_text_config(), "max_position_embeddings", None) or 0
    # The RoBERTa family has two rows for no position, and XLNet has a limit of -1.
    ids = torch.arange(min(8, rows - 2) if rows > 2 else 8, device=table.device)[None]
    ids = (ids + len(table) // 2) % len(table)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **accepted_arguments(base)}


@dataclass
class _Event:
    """A call; `place` and `end` enclose the events that begin while it runs."""

    call: Call
    given: list[Tensor]
    place: int
    output: Tensor | None = None
    end: int = 0


class _Block(NamedTuple):
    given: Tensor
    output: Tensor


_InBlock = tuple[Kind, int | None, Change]


class _Missing(Exception):  # noqa: N818
    """Attention has an unexpected form."""


class _Finder:
    """Finds the sites of a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def sites(self) -> Sites:
        with _traced(self.model) as events:
            states = short_states(self.model)
        sites = self._trunk(events, states)
        try:
            way = way_to_read(self.model, lambda: short_states(self.model)[-1], len(sites.blocks))
            sites = self._with_mlps(self._with_heads(replace(sites, way=way), events))
        except (UserError, _Missing):
            why = "its attention cannot be changed head by head (it is computed in its own way)"
            kinds: tuple[Kind, ...] = ("maps", "heads", "attention", "mlp")
            sites = replace(sites, refused=dict.fromkeys(kinds, why))
        return sites

    def _trunk(self, events: Sequence[_Event], states: Sequence[Tensor]) -> Sites:
        """Find the blocks, which read layers 0 to L − 1, and the calls that return layers 1 to L.

        Raises:
            UserError: they are not found.
        """
        n, name = len(states) - 1, type(self.model).__name__
        of_call = {event.call: event for event in events}
        lists = [list(x) for x in self.model.modules() if isinstance(x, torch.nn.ModuleList)]
        shared = [[x] * n for x in self.model.modules() if Call(x, n - 1) in of_call]
        # Inner modules first: transformers keeps the states of ALBERT's layers, not of groups.
        for modules in reversed((*shared, *lists)):
            calls = [Call(x, modules[:i].count(x)) for i, x in enumerate(modules)]
            seen = [of_call[call] for call in calls if call in of_call]
            if len(calls) != n or len(seen) != n:
                continue
            if all(x.given and _is(x.given[0], y) for x, y in zip(seen, states, strict=False)):
                ends = [*(event.place for event in seen[1:]), len(events)]
                layers = [
                    _giving(event, events[event.end : end], state)
                    for event, end, state in zip(seen, ends, states[1:], strict=True)
                ]
                if None not in layers[:-1]:
                    turned = seen[0].given[0].shape != states[0].shape
                    sites = Sites(name, tuple(calls), (None, *layers), turned)
                    return self._shown(sites, events[: seen[0].place], states[0])
        raise UserError(f"{name}: its blocks are not found; it cannot be changed layer by layer.")

    def _shown(self, sites: Sites, before: Sequence[_Event], embedded: Tensor) -> Sites:
        """Drop layers whose change does not show in the model's `hidden_states`."""
        layers = [k for k, call in enumerate(sites.layers) if call or not k]
        with changed(self.model, sites, [(Site("layer", k), _zero) for k in layers]):
            shown = [not state.any() for state in short_states(self.model)]
        first = None
        if not shown[0]:  # try the output of the embeddings
            first = next((x.call for x in before if _is(x.output, embedded)), None)
        rest = [x if ok else None for x, ok in zip(sites.layers[1:], shown[1:], strict=True)]
        return replace(sites, layers=(first, *rest))

    def _pass(
        self, sites: Sites, changes: Sequence[_InBlock], plain: Sequence[_Block] = ()
    ) -> tuple[list[_Block], list[_Event]]:
        """Run a pass with changes inside each block; return the blocks and all calls.

        Args:
            plain: the blocks of a pass without changes; each block gets its input from there.
        """
        found: list[_Block] = []

        def keep(states: Tensor, given: Tensor) -> Tensor:
            found.append(_Block(given, states))
            return plain[len(found) - 1].output if plain else states

        every = range(1, len(sites.blocks) + 1)
        where = [(Site(kind, k, head), how) for kind, head, how in changes for k in every]
        with (
            changed(self.model, sites, where),
            Hooks(self.model, sites.transposed) as hooks,
            _traced(self.model) as events,
        ):
            for block in sites.blocks:
                hooks.after(block, keep)
            short_states(self.model)
        return found, events

    def _with_heads(self, sites: Sites, events: Sequence[_Event]) -> Sites:
        """Add the calls that change maps, and the linear maps that read the heads.

        Raises:
            _Missing: changed maps do not change the states.
        """
        if sites.way == "returned by the model":
            drops = [x.call for k in sites.blocks for x in _inside(events, k) if _takes_maps(x)]
            sites = replace(sites, calls={"maps": tuple(drops)})
        heads: list[int] = []

        def count(maps: Tensor, _: Tensor) -> Tensor:
            heads.append(maps.shape[1])
            return maps

        plain, before = self._pass(sites, [("maps", None, count)])
        if len(heads) != len(plain) or len(set(heads)) > 1:
            raise _Missing
        sites = replace(sites, n_heads=heads[0])
        without, after = self._pass(sites, [("maps", 1, _zero)], plain)
        if _any_equal(plain, without):
            raise _Missing
        readers = [_reader_of_heads(before, after, block, heads[0]) for block in sites.blocks]
        calls = tuple(x for x in readers if x)
        known = replace(sites, calls={**sites.calls, "heads": calls, "attention": calls})
        if len(calls) == len(plain):
            same, _ = self._pass(known, [("maps", None, count), ("heads", 1, _zero)], plain)
            if all(torch.allclose(x.output, y.output) for x, y in zip(same, without, strict=True)):
                return known
        why = "the outputs of its heads cannot be changed (no linear map reads them side by side)"
        return replace(sites, refused={"heads": why, "attention": why})

    def _with_mlps(self, sites: Sites) -> Sites:
        """Add the last linear map after attention in each block."""
        plain, events = self._pass(sites, [])
        width = plain[0].output.shape[-1]
        place = {event.call: event.place for event in events}
        starts = [place[call] for call in sites.calls.get("heads", sites.calls.get("maps", ()))]

        def last(start: int, block: Call) -> Call | None:
            wide = (x for x in _inside(events, block) if _linear(x.call.module) and x.place > start)
            found = [x.call for x in wide if x.output is not None and x.output.shape[-1] == width]
            return found[-1] if found else None

        calls = tuple(x for x in map(last, starts, sites.blocks) if x)
        more = replace(sites, calls={**sites.calls, "mlp": calls})
        none = len(calls) < len(plain)
        if none or _any_equal(plain, self._pass(more, [("mlp", None, _zero)], plain)[0]):
            why = "the output of its MLP cannot be changed (no linear map gives it)"
            return replace(sites, refused={**sites.refused, "mlp": why})
        return more


@contextmanager
def _traced(model: Any) -> Iterator[list[_Event]]:
    """Record all calls of modules inside `model`, in the order in which they begin."""
    events: list[_Event] = []
    running: list[_Event] = []
    numbers: Counter[Any] = Counter()

    def begin(module: Any, args: Any, kwargs: Any) -> None:
        call = Call(module, numbers[module])
        running.append(_Event(call, _tensors(args, kwargs), len(events)))
        events.append(running[-1])
        numbers[module] += 1

    def end(module: Any, args: Any, output: Any) -> None:
        event = running.pop()
        first = output[0] if isinstance(output, (tuple, list)) and output else output
        event.output = first if isinstance(first, Tensor) else None
        event.end = len(events)

    inner = [module for module in model.modules() if module is not model]
    handles = [x.register_forward_pre_hook(begin, with_kwargs=True) for x in inner]
    handles += [x.register_forward_hook(end) for x in inner]
    try:
        yield events
    finally:
        for handle in handles:
            handle.remove()


def _tensors(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    return [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]


def _is(found: Tensor | None, state: Tensor) -> bool:
    """Whether a tensor equals a state, perhaps with the first two axes swapped."""
    if found is None or found.ndim != 3:
        return False
    found = found.to(state.device)
    return torch.equal(found, state) or torch.equal(found.transpose(0, 1), state)


def _giving(block: _Event, then: Sequence[_Event], state: Tensor) -> Call | None:
    """The call that returns a layer: the block, or one that reads the block's output."""
    if _is(block.output, state):
        return block.call
    for event in then:
        if any(_is(block.output, x) for x in event.given) and _is(event.output, state):
            return event.call
    return None


def _inside(events: Sequence[_Event], block: Call) -> Sequence[_Event]:
    whole = next(event for event in events if event.call == block)
    return events[whole.place + 1 : whole.end]


def _linear(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


def _takes_maps(event: _Event) -> bool:
    """Whether an event is a dropout of square maps whose rows sum to 1."""
    if "dropout" not in type(event.call.module).__name__.lower() or not event.given:
        return False
    maps = event.given[0]
    square = maps.ndim == 4 and maps.shape[2] == maps.shape[3]
    return square and bool(((maps.float().sum(-1) - 1).abs() < 1e-2).all())


def _reader_of_heads(
    before: Sequence[_Event], after: Sequence[_Event], block: Call, n_heads: int
) -> Call | None:
    """The first linear map whose input differs, if only the first head's slice does."""
    for event, then in zip(_inside(before, block), _inside(after, block), strict=True):
        if _linear(event.call.module) and not torch.equal(event.given[0], then.given[0]):
            size, odd = divmod(event.given[0].shape[-1], n_heads)
            others = torch.equal(event.given[0][..., size:], then.given[0][..., size:])
            return event.call if others and not odd else None
    return None


def _zero(states: Tensor, _: Tensor) -> Tensor:
    return torch.zeros_like(states)


def _any_equal(some: Sequence[_Block], others: Sequence[_Block]) -> bool:
    return any(torch.equal(x.output, y.output) for x, y in zip(some, others, strict=True))
