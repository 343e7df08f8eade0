"""`--dry-run`: the units of a run, with estimates."""

from __future__ import annotations

from collections.abc import Sequence

from probes.engines.model_run import ModelRun


def print_plan(runs: Sequence[ModelRun]) -> None:
    """Print the units that remain."""
