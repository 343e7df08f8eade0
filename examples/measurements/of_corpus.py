"""The mean norm of the vectors of test words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from probes import Frozen, Row, measurement

if TYPE_CHECKING:
    from probes import ModelContext


class Options(Frozen):
    """Each field becomes a flag, here --of-corpus-order, and part of the key."""

    order: float = Field(default=2.0, gt=0, description="order of the norm")


@measurement(
    "of_corpus",
    # Raise it whenever the same input would give other numbers.
    version=1,
    options=Options,
    # Annotation layers without which a corpus is refused: upos, xpos, feats, heads, …
    needs=(),
)
def of_corpus(context: ModelContext):
    """Mean norm of word vectors, by layer."""
    for layer in context.layers:
        vectors = context.words("test", layer)  # (words, dimensions), float32
        norms = np.linalg.norm(vectors, ord=context.options.order, axis=1)
        yield Row("mean_norm", norms.mean(), layer, n=len(norms))
