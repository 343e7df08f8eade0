"""Sites where a forward pass can be read and changed, for any architecture.

Sites are found in the module tree and verified on a short text. A site that is not found, or fails
the check, is refused when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch

from probes.common.errors import UserError, out_of_memory
from probes.extraction.changing.module_calls import Call, Change, Event, hooks, trace
from probes.extraction.models.loaded_module import (
    BLOCKS,
    TRANSFORMERS_ERRORS,
    one_line,
    run_base_model,
    short_states,
    short_text,
)
from probes.extraction.reading.attention_maps import Way, maps_changed, way_to_read

Tensor = torch.Tensor

Kind = Literal["layer", "block", "unnormed", "mid", "attention", "mlp", "heads", "maps"]

_NO_READER = "the outputs of its heads cannot be changed (no linear map reads them side by side)"
_REFUSALS: dict[Kind, str] = {
    "maps": "its attention cannot be changed head by head (it is computed in its own way)",
    "heads": _NO_READER,
    "attention": _NO_READER,
    "mlp": "the output of its MLP cannot be changed (no module gives it)",
    "mid": "no state between its attention and its MLP is found (parallel blocks have none: there, "
    "both read the input of the block)",
}
"""Reasons for missing kinds of sites. Without maps, a block has none of the others."""


class Site(NamedTuple):
    """A place in a model.

    Attributes:
        kind: ``layer``: states of a layer (layer L after the final norm). ``block``: output of a
            block. ``unnormed``: output of block L, if there is a norm between it and layer L.
            ``mid``: the state to which the output of the MLP is added. ``attention``, ``mlp``: what
            this part of a block writes, after a norm that it ends with (Gemma 2, OLMo 2), but
            before a factor (Granite).
            ``heads``: each head's input to attention's last linear map, of shape (texts, length,
            heads, size of a head). ``maps``: attention maps (texts, heads, length, length).
        layer: layer 0 to L, or block 1 to L.
        head: head of ``heads`` or ``maps``, counted from 1; None for all.
    """

    kind: Kind
    layer: int
    head: int | None = None


@dataclass(frozen=True, eq=False)
class Sites:
    """The sites of a model without its head.

    Attributes:
        architecture: the name of the model's class.
        blocks: the calls of blocks.
        layers: the calls that return layers 0 to L. None for layer 0 means to change the input of
            block 1; None for another layer means that its call is unknown.
        way: how attention maps are read; None if they cannot be read.
        n_heads: number of heads per block; 0 if maps cannot be changed.
        calls: for each kind of site inside blocks, one call per block. Heads have the linear map
            that reads them; attention and MLP have their last linear map, or another module whose
            output is added, such as a norm; maps have dropouts, or none where our own attention can
            replace the model's. Mids have a call of a norm.
        pre_norm: whether mids are the input of their norms (Llama), not the output (BERT).
    """

    architecture: str
    blocks: tuple[Call, ...]
    layers: tuple[Call | None, ...]
    way: Way | None = None
    n_heads: int = 0
    calls: Mapping[Kind, tuple[Call, ...]] = field(default_factory=dict)
    pre_norm: bool = False

    @property
    def refused(self) -> dict[Kind, str]:
        """Reason for each missing kind of site."""
        if not self.n_heads:
            return dict.fromkeys(_REFUSALS, _REFUSALS["maps"])
        return {k: reason for k, reason in _REFUSALS.items() if k not in self.calls and k != "maps"}

    def require(self, site: Site) -> None:
        """Check that a site exists.

        Raises:
            UserError: it does not.
        """
        kind, layer, head = site
        reason = self.refused.get(kind, "")
        if not (kind != "layer") <= layer <= len(self.blocks):
            reason = f"it has {len(self.blocks)} blocks, and no {kind} {layer}"
        elif kind == "unnormed" and self.layers[-1] == self.blocks[-1]:
            reason = "it has no norm after its last block; read block instead"
        elif kind == "unnormed" and layer < len(self.blocks):
            reason = f"only the output of its last block has a norm after it; read layer {layer}"
        elif kind == "layer" and layer and self.layers[layer] is None:
            reason = f"its layer {layer} cannot be changed (no module returns it)"
        elif not reason and head is not None and not 1 <= head <= self.n_heads:
            reason = f"it has {self.n_heads} heads in each block, and no head {head}"
        if reason:
            raise UserError(f"{self.architecture}: {reason}.")

    @property
    def norm(self) -> Any:
        """The module between the last block and layer L, if any."""
        last = self.layers[-1]
        return None if last is None or last == self.blocks[-1] else last.module


@contextmanager
def changed_sites(
    model: Any, sites: Sites, changes: Sequence[tuple[Site, Change]], *, first: bool = True
) -> Iterator[None]:
    """Make changes in every pass of `model`; those at one site act in the given order.

    To change maps, our own attention replaces the model's where possible.

    Args:
        first: whether to act before changes that are already active at a site; otherwise after.
    """
    for site, _ in changes:
        sites.require(site)
    of_maps = [(x.layer, _for_head(x.head, 1, change)) for x, change in changes if x.kind == "maps"]
    # Not the number that `maps_changed` counts: a remembered block does not call its attention.
    block = 0

    def change_maps(_: int, maps: Tensor, visible: Tensor) -> Tensor:
        for layer, change in of_maps:
            if layer == block:
                maps = change(maps, visible)
        return maps

    with ExitStack() as stack:
        add = stack.enter_context(hooks(model))
        if of_maps and sites.way == "in the model":
            stack.enter_context(maps_changed(model, change_maps))
            for number, call in enumerate(sites.blocks, start=1):

                def begin(states: Tensor, _: Tensor, number: int = number) -> Tensor:
                    nonlocal block
                    block = number
                    return states

                add(call, begin, reads=True)
        # Hooks are put before existing ones, so the first change is added last.
        for (kind, layer, head), change in reversed(changes):
            if kind == "layer":
                layer_call = sites.layers[layer]
                add(layer_call or sites.blocks[0], change, reads=layer_call is None, first=first)
            elif kind in ("block", "unnormed"):
                add(sites.blocks[layer - 1], change, first=first)
            elif calls := sites.calls.get(kind):
                head_change = _for_head(head, 2 if kind == "heads" else 1, change)
                module_change = _for_module(kind, sites.n_heads, head_change)
                reads = kind == "heads" or (kind == "mid" and sites.pre_norm)
                add(calls[layer - 1], module_change, reads=reads, first=first)
        yield


def _for_head(head: int | None, axis: int, change: Change) -> Change:
    """Restrict a change to one head."""
    if head is None:
        return change

    def change_one(states: Tensor, other: Tensor) -> Tensor:
        states = states.clone()
        head_states = states.select(axis, head - 1)
        head_states.copy_(change(head_states, other))
        return states

    return change_one


def _for_module(kind: Kind, n_heads: int, change: Change) -> Change:
    """Apply a change to what a linear map reads, a dropout returns, or a block adds to."""

    def change_states(states: Tensor, other: Tensor) -> Tensor:
        if kind == "heads":
            heads = states.unflatten(-1, (n_heads, -1))
            return change(heads, heads).flatten(-2)
        if kind == "mid":  # in place, since the block adds the MLP's output to the same tensor
            changed = change(states, other)
            return states if changed is states else states.copy_(changed)
        # Maps are positive where a token is visible, unless they underflow.
        return change(states, (states > 0).any(1) if kind == "maps" else other)

    return change_states


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
                _SITES[base] = tree, _find_sites(base)
        except TRANSFORMERS_ERRORS as error:
            if out_of_memory(error):
                raise
            raise UserError(f"{type(base).__name__}: cannot be run ({one_line(error)}).") from error
        finally:
            for module in training:
                module.training = True
    return _SITES[base][1]


def _find_sites(model: Any) -> Sites:
    with trace(model) as events:
        states = short_states(model)
    sites = _trunk(model, events, states)
    # Drop layers whose change does not show in the model's `hidden_states`.
    layers = [k for k, call in enumerate(sites.layers) if call or not k]
    with changed_sites(model, sites, [(Site("layer", k), _zero) for k in layers]):
        changeable = [not state.any() for state in short_states(model)]
    calls = [call if ok else None for call, ok in zip(sites.layers, changeable, strict=True)]
    if not changeable[0]:  # try the output of the embeddings
        calls[0] = next((x.call for x in events if _is_same_state(x.output, states[0])), None)
    sites = replace(sites, layers=tuple(calls))
    try:
        way = way_to_read(model, lambda: short_states(model)[-1], len(sites.blocks))
    except UserError:
        return sites
    sites = _with_heads(model, replace(sites, way=way), events)
    return _with_mlps(model, _with_mids(model, _with_attention(model, sites)))


def _trunk(model: Any, events: Sequence[Event], states: Sequence[Tensor]) -> Sites:
    """Find the blocks, which read layers 0 to L − 1, and the calls that return layers 1 to L.

    Raises:
        UserError: they are not found.
    """
    n, name = len(states) - 1, type(model).__name__
    event_of = {event.call: event for event in events}
    lists = [list(x) for x in model.modules() if isinstance(x, torch.nn.ModuleList)]
    shared = [[x] * n for x in model.modules() if Call(x, n - 1) in event_of]
    # Inner modules first: transformers keeps the states of ALBERT's layers, not of groups.
    for modules in reversed((*shared, *lists)):
        calls = [Call(x, modules[:i].count(x)) for i, x in enumerate(modules)]
        blocks = [event_of[call] for call in calls if call in event_of]
        if not len(calls) == len(blocks) == n:
            continue
        if all(
            x.flat and _is_same_state(x.inputs[0], y) for x, y in zip(blocks, states, strict=False)
        ):
            ends = [*(event.index for event in blocks[1:]), len(events)]
            layers = [
                _call_returning(block, events[block.end : end], state)
                for block, end, state in zip(blocks, ends, states[1:], strict=True)
            ]
            if None not in layers[:-1]:
                return Sites(name, tuple(calls), (None, *layers))
    raise UserError(f"{name}: its blocks are not found; it cannot be changed layer by layer.")


def find_layers(model: Any, name: str) -> None:
    """Compare a model's layers with the input and outputs of its blocks, and take them from there
    if they are shifted, as those of Mamba are.

    Raises:
        UserError: they are others. Where no module is a block (XLM) or a block reads another shape
            (XLNet), there is another number of them, or layer 0 depends on other tokens.
    """
    with torch.no_grad(), trace(model) as events:
        states = short_states(model)
    n, usable = len(states) - 1, True
    with suppress(UserError):
        if n > 1:  # else the norm after the only block looks like one
            _trunk(model, events, states)
            return
    events = [x for x in events if x.inputs and x.output is not None]
    kinds = dict.fromkeys(type(event.call.module) for event in events)
    lists = [set(x) for x in model.modules() if isinstance(x, torch.nn.ModuleList)]
    # Blocks are the members of a list, or the modules of one class.
    rows = [[x for x in events if x.call.module in modules] for modules in lists]
    rows += [[x for x in events if type(x.call.module) is kind] for kind in kinds]
    for row in filter(None, rows):
        inputs, outputs = [x.inputs[0] for x in row], [x.output for x in row]
        if len(row) == n and all(map(_is_same_state, (inputs[0], *outputs), states[:-1])):
            return
        if inputs[0].shape == states[0].shape and all(map(_is_parallel, outputs, inputs[1:])):
            flat = n and len(row) in (n, n + 1) and all(x.flat for x in row)
            if flat and all(map(_is_parallel, outputs, states[:-1])):
                BLOCKS[model] = [x.call for x in row]
                with torch.no_grad():  # blocks may change their input in place
                    block_states = short_states(model)[:-1]  # the last is normed
                if all(map(_is_parallel, (inputs[0], *outputs), block_states)):
                    return
                del BLOCKS[model]
            # Such a chain is the blocks, and the hidden states are not theirs.
            usable = usable and len(row) < 2 <= n
    # Layer 0 of a token must not depend on the tokens before it: here, the first is another one.
    text = short_text(model)
    text["input_ids"][:, 0] += 1 - 2 * (text["input_ids"][:, 0] > 1)
    with torch.no_grad():
        layer_0 = run_base_model(model, **text, output_hidden_states=True).hidden_states[0]
    usable = usable and torch.allclose(layer_0[:, 1:], states[0][:, 1:], rtol=1e-3, atol=1e-4)
    if not usable or n != getattr(model.config.get_text_config(), "num_hidden_layers", n):
        raise UserError(
            f"--model {name}: this architecture is not supported: the hidden states that "
            f"{type(model).__name__} gives are not the input and the outputs of its blocks."
        )


def _is_parallel(output: Tensor | None, state: Tensor) -> bool:
    """Whether two states are equal but for a factor; RWKV halves them after some blocks."""
    if output is None or output.shape != state.shape:
        return False
    pair = output.flatten().double(), state.flatten().to(output.device).double()
    return bool(torch.cosine_similarity(*pair, dim=0) > 1 - 1e-6)


def _call_returning(block: Event, later_events: Sequence[Event], state: Tensor) -> Call | None:
    """The call that returns a layer: the block, or one that reads the block's output."""
    readers = (x for x in later_events if any(_is_same_state(block.output, y) for y in x.inputs))
    return next((x.call for x in (block, *readers) if _is_same_state(x.output, state)), None)


def _run_pass(
    model: Any,
    sites: Sites,
    *changes: tuple[Kind, int | None, Change],
    inputs: Sequence[Tensor] = (),
) -> tuple[list[Tensor], list[Event]]:
    """Run a pass with changes inside each block; return the outputs of blocks and all calls.

    Args:
        inputs: outputs of a pass without changes; each block then reads from there.
    """
    outputs: list[Tensor] = []

    def record_output(states: Tensor, _: Tensor) -> Tensor:
        outputs.append(states)
        return inputs[len(outputs) - 1] if inputs else states

    layers = range(1, len(sites.blocks) + 1)
    site_changes = [(Site(kind, k, head), how) for kind, head, how in changes for k in layers]
    with changed_sites(model, sites, site_changes), hooks(model) as add, trace(model) as events:
        for block in sites.blocks:
            add(block, record_output)
        short_states(model)
    return outputs, events


def _with_heads(model: Any, sites: Sites, events: Sequence[Event]) -> Sites:
    """Add maps, if changing them changes blocks, and the linear maps that read the heads."""
    drops: list[Call] = []
    if sites.way == "returned by the model":
        drops = [x.call for block in sites.blocks for x in _inside(events, block) if _takes_maps(x)]
    heads: list[int] = []

    def count(maps: Tensor, _: Tensor) -> Tensor:
        heads.append(maps.shape[1])
        return maps

    plain_sites = replace(sites, n_heads=1, calls={"maps": tuple(drops)} if drops else {})
    plain, before = _run_pass(model, plain_sites, ("maps", None, count))
    if len(heads) != len(plain) or len(set(heads)) > 1:
        return sites
    map_sites = replace(plain_sites, n_heads=heads[0])
    without, after = _run_pass(model, map_sites, ("maps", 1, _zero), inputs=plain)
    if any(map(torch.equal, plain, without)):  # what we change is not what the block uses
        return sites
    readers = [_reader_of_heads(before, after, block, heads[0]) for block in sites.blocks]
    calls = tuple(x for x in readers if x)
    if len(calls) < len(plain):
        return map_sites
    head_sites = replace(map_sites, calls={**map_sites.calls, "heads": calls})
    # A head whose maps are 0 has the output 0: both changes must do the same.
    same, _ = _run_pass(model, head_sites, ("maps", None, count), ("heads", 1, _zero), inputs=plain)
    return head_sites if all(map(torch.allclose, same, without)) else map_sites


def _with_attention(model: Any, sites: Sites) -> Sites:
    """Add what attention writes: the output of the linear map after the heads, or of a later norm.

    The linear map stands also where no module gives the addend: Granite multiplies the output, and
    parallel blocks add both parts at once.
    """
    if "heads" not in sites.calls:
        return sites
    _, events = _run_pass(model, sites)
    event_of = {event.call: event for event in events}
    calls: list[Call] = []
    for block, linear in zip(sites.blocks, sites.calls["heads"], strict=True):
        later = [x for x in _inside(events, block) if x.index > event_of[linear].index]
        # Before the next linear map: MobileBERT adds the block's input again after its MLP.
        own = takewhile(lambda x: not _is_linear(x.call.module), later)
        state = event_of[block].inputs[0]
        calls.append(_addend(events, block, state, [event_of[linear], *own]) or linear)
    return replace(sites, calls={**sites.calls, "attention": tuple(calls)})


def _with_mlps(model: Any, sites: Sites) -> Sites:
    """Add what the MLP writes, if it changes the block.

    It is the output of the last linear map after attention, or of another module that gives what is
    added to the state between: a norm, or a mixture of experts. Without such a module, the linear
    map must be all that the block adds there.
    """
    plain, events = _run_pass(model, sites)
    event_of = {event.call: event for event in events}
    width = plain[0].shape[-1]
    starts = sites.calls.get("heads", sites.calls.get("maps", ()))
    mids: Sequence[Call | None] = sites.calls.get("mid", [None] * len(plain))
    calls: list[Call] = []
    states: list[Tensor | None] = []
    for start, block, mid in zip(starts, sites.blocks, mids, strict=False):
        later = [x for x in _inside(events, block) if x.index > event_of[start].index]
        linear = [x for x in later if _is_linear(x.call.module) and _width(x) == width][-1:]
        addend = state = None
        if mid:
            state = event_of[mid].inputs[0] if sites.pre_norm else event_of[mid].output
            assert state is not None, "the output of a norm is a tensor"
            own = [x for x in later if x.index > event_of[mid].index]
            addend = _addend(events, block, state, [*linear, *own])
        calls += [addend] if addend else [x.call for x in linear]
        states.append(state if sites.pre_norm and not addend else None)
    if len(calls) < len(plain):
        return sites
    mlp_sites = replace(sites, calls={**sites.calls, "mlp": tuple(calls)})
    without, _ = _run_pass(model, mlp_sites, ("mlp", None, _zero), inputs=plain)
    is_all = (
        state is None or torch.equal(output.flatten(), state.flatten())
        for output, state in zip(without, states, strict=True)
    )
    return sites if any(map(torch.equal, plain, without)) or not all(is_all) else mlp_sites


def _addend(
    events: Sequence[Event], block: Call, state: Tensor, candidates: Sequence[Event]
) -> Call | None:
    """The first candidate in a block whose output is added to a state: a later call reads the exact
    sum, or it is the block's output.
    """
    inside = _inside(events, block)
    block_event = next(event for event in events if event.call == block)
    for event in candidates:
        # Flat, since OPT adds states of shape (tokens, hidden size).
        if not event.flat or event.output is None or event.output.numel() != state.numel():
            continue
        total = (state + event.output.reshape(state.shape)).flatten()
        sums = [x.inputs[0] for x in inside if x.index > event.index and x.inputs]
        sums += [] if block_event.output is None else [block_event.output]
        if any(_is_same_state(x.flatten(), total) for x in sums):
            return event.call
    return None


def _width(event: Event) -> int:
    return 0 if event.output is None else event.output.shape[-1]


def _with_mids(model: Any, sites: Sites) -> Sites:
    """Add the state through which attention acts on the block's output, if there is one.

    Without the output of attention, it is the block's input, or the norm of that.
    """
    if "attention" not in sites.calls:
        return sites
    plain, before = _run_pass(model, sites)
    _, after = _run_pass(model, sites, ("attention", None, _zero), inputs=plain)
    norms = tuple(x for block in sites.blocks if (x := _reader_of_sum(before, after, block)))
    if len(norms) < len(plain):
        return sites
    for pre_norm in (False, True):  # the input of a norm after attention would pass the test, too
        mid_sites = replace(sites, calls={**sites.calls, "mid": norms}, pre_norm=pre_norm)
        without, _ = _run_pass(model, mid_sites, ("mid", None, _zero), inputs=plain)
        neither, _ = _run_pass(
            model, mid_sites, ("attention", None, _zero), ("mid", None, _zero), inputs=plain
        )
        if all(map(torch.equal, without, neither)):
            return mid_sites
    return sites


def _reader_of_sum(before: Sequence[Event], after: Sequence[Event], block: Call) -> Call | None:
    """The first call that reads the sum of a block's input and the output of attention.

    Args:
        before, after: passes as they are, and without the output of attention.
    """
    # Flat, since OPT's norms read (tokens, hidden size).
    state = next(event for event in before if event.call == block).inputs[0].flatten()
    inputs_after = {event.call: event.inputs[0].flatten() for event in after if event.flat}
    reader: Event | None = None
    for event in _inside(before, block):
        if reader and event.index >= reader.end:
            break
        # T5 has the norm in a module that reads the sum, too. Experts may be called in one pass
        # and not in the other.
        if event.flat and _is_same_state(inputs_after.get(event.call), state):
            reader = reader if _is_same_state(event.inputs[0].flatten(), state) else event
    return reader.call if reader else None


def _is_same_state(tensor: Tensor | None, state: Tensor) -> bool:
    if tensor is None or tensor.shape != state.shape:
        return False
    return torch.equal(tensor.to(state.device), state)


def _inside(events: Sequence[Event], block: Call) -> Sequence[Event]:
    block_event = next(event for event in events if event.call == block)
    return events[block_event.index + 1 : block_event.end]


def _is_linear(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


def _takes_maps(event: Event) -> bool:
    """Whether an event is a dropout of square maps whose rows sum to 1."""
    if "dropout" not in type(event.call.module).__name__.lower() or not event.inputs:
        return False
    maps = event.inputs[0]
    square = maps.ndim == 4 and maps.shape[2] == maps.shape[3]
    return square and bool(((maps.float().sum(-1) - 1).abs() < 1e-2).all())


def _reader_of_heads(
    before: Sequence[Event], after: Sequence[Event], block: Call, n_heads: int
) -> Call | None:
    """The first linear map whose input differs, if only the first head's slice does."""
    for event, other in zip(_inside(before, block), _inside(after, block), strict=True):
        if _is_linear(event.call.module) and not torch.equal(event.inputs[0], other.inputs[0]):
            size, odd = divmod(event.inputs[0].shape[-1], n_heads)
            rest_equal = torch.equal(event.inputs[0][..., size:], other.inputs[0][..., size:])
            return event.call if rest_equal and not odd else None
    return None


def _zero(states: Tensor, _: Tensor) -> Tensor:
    return torch.zeros_like(states)
