"""Calls of modules in a forward pass: traced, or hooked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Function from the tensor at a place of a pass and a second one to the replacement. The second is
the input of a module, or for attention maps, True where a token may attend to another."""


class Call(NamedTuple):
    """A call of a module in a pass. ALBERT calls one block L times.

    Attributes:
        number: number of earlier calls of the module.
    """

    module: Any
    number: int


@dataclass
class Event:
    """A call; the events from `place + 1` to `end` begin while it runs.

    Attributes:
        inputs, output: copies, since modules may change tensors in place.
        flat: whether `hooks` can change the first of `inputs` and `output`.
    """

    call: Call
    inputs: list[torch.Tensor]
    index: int
    flat: bool
    output: torch.Tensor | None = None
    end: int = 0


@contextmanager
def trace(model: Any) -> Iterator[list[Event]]:
    """Record all calls of modules inside `model`, in the order in which they begin."""
    events: list[Event] = []
    running: list[Event] = []
    numbers: Counter[Any] = Counter()

    def begin(module: Any, args: Any, kwargs: Any) -> None:
        call = Call(module, numbers[module])
        all_tensors, top_tensors = list(_nested((args, kwargs))), _tensors(args, kwargs)
        is_flat = bool(top_tensors) and top_tensors[0] is all_tensors[0]
        running.append(Event(call, [x.clone() for x in all_tensors], len(events), is_flat))
        events.append(running[-1])
        numbers[module] += 1

    def end(module: Any, args: Any, output: Any) -> None:
        event = running.pop()
        first = output[0] if isinstance(output, (tuple, list)) and output else output
        if isinstance(output, dict):
            first, event.flat = next(_nested(output), None), False
        event.output = first.clone() if isinstance(first, torch.Tensor) else None
        event.end = len(events)

    inner = [module for module in model.modules() if module is not model]
    handles = [x.register_forward_pre_hook(begin, with_kwargs=True) for x in inner]
    handles += [x.register_forward_hook(end) for x in inner]
    try:
        yield events
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def hooks(model: Any) -> Iterator[Callable[..., None]]:
    """A function that adds hooks, which act only during passes of `model`, the one without head.

    A hook is called whenever its module is. It acts at one of these calls in each pass.
    """
    running, n_calls = False, Counter[int]()

    def begin(*_: Any) -> None:
        nonlocal running
        running = True
        n_calls.clear()

    def end(*_: Any) -> None:
        nonlocal running
        running = False

    handles = [
        model.register_forward_pre_hook(begin, prepend=True),
        model.register_forward_hook(end, always_call=True),  # a failed pass has ended, too
    ]

    def add(call: Call, change: Change, *, reads: bool = False, first: bool = True) -> None:
        """Replace the output of a call by `change(output, input)`.

        Args:
            reads: replace the input of the call instead, by `change(input, input)`.
            first: whether to act before existing hooks, such as those with which
                transformers keeps the states of layers; otherwise after them.
        """
        # Each hook counts for itself: at its call, another one may have counted already.
        number = len(handles)

        def due() -> bool:
            n_calls[number] += 1
            return running and n_calls[number] == call.number + 1

        def before(_: Any, args: Any, kwargs: dict[str, Any]) -> Any:
            if not due():
                return None
            # Blocks are called with their states first, by position or by keyword.
            first_input = _tensors(args, kwargs)[0]
            states = change(first_input, first_input)
            new_kwargs = {name: states if x is first_input else x for name, x in kwargs.items()}
            return tuple(states if x is first_input else x for x in args), new_kwargs

        def after(_: Any, args: Any, kwargs: Any, output: Any) -> Any:
            if not due():
                return None
            first_input = _tensors(args, kwargs)[0]
            if isinstance(output, torch.Tensor):
                return change(output, first_input)
            return (change(output[0], first_input), *output[1:])

        register = call.module.register_forward_hook
        if reads:
            register = call.module.register_forward_pre_hook
        options = {"prepend": first, "with_kwargs": True}
        handles.append(register(before if reads else after, **options))

    try:
        yield add
    finally:
        for handle in handles:
            handle.remove()


def _nested(values: Any) -> Iterator[torch.Tensor]:
    """All tensors in tuples, lists and dictionaries."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list, dict)):
        for x in values.values() if isinstance(values, dict) else values:
            yield from _nested(x)


def _tensors(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    return [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
