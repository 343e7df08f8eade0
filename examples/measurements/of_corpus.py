"""The mean norm of the vectors of test words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from probes import Frozen, Lines, Measurement, Pivot, Row, measurement

if TYPE_CHECKING:
    from probes import Context


class Options(Frozen):
    """Each field becomes a flag, here --of-corpus-order, and part of the key."""

    order: float = Field(default=2.0, gt=0, description="order of the norm")


@measurement
class OfCorpus(Measurement):
    """The mean norm of the vectors of test words, by layer."""

    name = "of_corpus"
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "mean norm of word vectors, by layer"
    options = Options
    # How the rows are shown: a table, and a chart that `figure` draws, too.
    views = (Pivot(), Lines("of_corpus", "mean_norm"))

    # Annotation layers without which a corpus is refused: upos, xpos, feats, heads, …
    needs = ()

    def compute(self, context: Context):
        for layer in context.layers:
            vectors = context.words("test", layer)  # (words, dimensions), float32
            norms = np.linalg.norm(vectors, ord=context.options.order, axis=1)
            yield Row("mean_norm", norms.mean(), layer, n=len(norms))
