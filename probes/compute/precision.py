"""The precision of float32 products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from probes.common.errors import UserError


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute float32 products in full precision, whatever the process has set.

    Raises:
        UserError: the precision was set by torch's newer switches, which cannot be mixed with
            those used here.
    """
    try:
        products = torch.get_float32_matmul_precision()
        convolutions = torch.backends.cudnn.allow_tf32
    except RuntimeError as error:
        raise UserError(
            "The precision of products was set by torch's fp32_precision, which cannot be mixed "
            "with the switches used here; use torch.set_float32_matmul_precision instead."
        ) from error
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions
