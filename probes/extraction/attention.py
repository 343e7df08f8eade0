"""Attention computed by a collector in place of the model's own function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from probes.common.errors import UserError
from probes.extraction.inspection import quiet_transformers

_NAME = "probes_collector"


@contextmanager
def attention_computed_by(model: Any, function: Callable[..., Any]) -> Iterator[None]:
    """Let `function` compute attention in every block of `model`, with masks as for "eager".

    Args:
        function: takes and returns what transformers' `AttentionInterface` asks for.

    Raises:
        UserError: the architecture has attention of its own that cannot be replaced. The first
            forward pass raises it, since such models ignore the setting.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    calls = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return function(*args, **kwargs)

    def require_calls(*_: Any) -> None:
        if not calls:
            raise UserError(
                f"{type(model).__name__} computes attention in its own way, which cannot be "
                "observed; this architecture is not supported for measurements of attention."
            )

    before = model.config._attn_implementation
    AttentionInterface.register(_NAME, counted)
    AttentionMaskInterface.register(_NAME, eager_mask)
    hook = model.register_forward_hook(require_calls)
    with quiet_transformers():  # about models that ignore it
        model.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        hook.remove()
        with quiet_transformers():
            model.set_attn_implementation(before)
