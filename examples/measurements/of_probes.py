"""Agreement of probes that start from two seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from probes import Frozen, Row, measurement

if TYPE_CHECKING:
    from probes import TaskContext


class Options(Frozen):
    """Each field becomes a flag, here --of-probes-seed, and part of the key."""

    seed: int = Field(default=1, ge=1, description="seed of the other probes")


def missing(task, probe, level) -> str:
    """The reason for not measuring a task and probe family; empty if it is measured."""
    return "predictions are numbers" if task.kind == "regression" else ""


def extent(request):
    """Number of repetitions by layer. `request.layers` are those with scores."""
    return dict.fromkeys(request.layers, 1)


@measurement(
    "of_probes",
    after="scores",
    # Raise it whenever the same input would give other numbers.
    version=1,
    options=Options,
    missing=missing,
    extent=extent,
)
def of_probes(context: TaskContext):
    """Share of test examples on which probes from two seeds agree."""
    from probes import FitSeed  # imports torch, so only here

    reported = context.predicted(context.layers)  # (layers, examples)
    fits = context.fits(context.layers, [FitSeed(seed=context.options.seed)])
    other = fits.predicted["test"][:, 0]  # (layers, fits, examples)
    for layer, one, two in zip(context.layers, reported, other, strict=True):
        yield Row("agreement", (one == two).mean(), layer, n=len(one))
