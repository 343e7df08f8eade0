"""What a run returns to its caller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from probes.boards.layer_tables import layer_frame
from probes.boards.leaderboard_csv import tidy
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.measurements.frame import long_frame
from probes.records.record import Record
from probes.records.result import Result


@dataclass(frozen=True)
class Results:
    """The results of a run; iterating gives them one by one.

    Attributes:
        results: scores with their evidence, one per model, corpus, task and probe family.
        skipped: by task, why the corpus does not serve it.
        failed: what is missing because a task or a plug-in failed, or because predictions could
            not be read, each with the reason.
        others: records of measurements of the corpus as a whole.
    """

    results: tuple[Result, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    others: tuple[Record, ...] = ()

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def table(self, probe: str = "linear", model: str | None = None) -> pd.DataFrame:
        """Headline test scores: a row per layer, a column per task.

        Raises:
            UserError: several models were run and none is named, or there are no results of this
                model or probe family.
        """
        names = list(dict.fromkeys(result.model.name for result in self.results))
        if model is None and len(names) > 1:
            raise UserError(f"Several models were run; give model=, one of {', '.join(names)}.")
        if model is not None and model not in names:
            raise UserError(f"model={model!r}: no results. {did_you_mean(model, names)}")
        families = list(dict.fromkeys(result.probe.family for result in self.results))
        if probe not in families:
            raise UserError(f"probe={probe!r}: no results. {did_you_mean(probe, families)}")
        chosen = [r for r in self.results if model is None or r.model.name == model]
        return layer_frame(chosen, probe)

    @property
    def rows(self) -> pd.DataFrame:
        """Every number that was found, with what it is a number of; see `probes.Row`.

        Columns: what headers say (model, corpus, task, probe, measurement, …), the fields of rows,
        and one for each axis.
        """
        of_scores = (r for result in self.results for r in (result, *result.evidence.values()))
        return long_frame([*of_scores, *self.others])

    @property
    def frame(self) -> pd.DataFrame:
        """One row per model, corpus, task, probe and layer, as in `leaderboard.csv`."""
        return tidy(self.results)
