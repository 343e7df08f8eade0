"""Whether probes from another seed predict what the reported ones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from probes import Frozen, Lines, Measurement, Pivot, Row, measurement

if TYPE_CHECKING:
    from probes import Context


class Options(Frozen):
    """Each field becomes a flag, here --of-probes-seed, and part of the key."""

    seed: int = Field(default=1, ge=1, description="seed of the other probes")


@measurement
class OfProbes(Measurement):
    """The share of test examples on which probes from two seeds agree, by layer."""

    name = "of_probes"
    asks = ("scores",)
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "share of test examples on which probes from two seeds agree"
    options = Options
    # Shown by `show --by of_probes`, in layers.md and on the page.
    views = (Pivot(), Lines("of_probes", "agreement"))

    def missing(self, task, probe, level) -> str:
        # Why it is not made for a task and probe family; empty if it is.
        return "predictions are numbers" if task.kind == "regression" else ""

    def extent(self, request):
        # How often which layers are measured; request.scores says which have scores.
        return dict.fromkeys(request.layers, 1)

    def compute(self, context: Context):
        from probes import Draw  # which imports torch: only where something is computed

        reported = context.predicted(context.layers)  # (layers, examples)
        fits = context.fits(context.layers, [Draw(seed=context.options.seed)])
        other = fits.predicted["test"][:, 0]  # (layers, fits, examples)
        for layer, one, two in zip(context.layers, reported, other, strict=True):
            yield Row("agreement", (one == two).mean(), layer, n=len(one))
