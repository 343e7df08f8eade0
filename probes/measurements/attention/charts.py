"""Charts of attention."""

from __future__ import annotations

from collections.abc import Mapping

from probes.measurements.attention.payload import Findings
from probes.records.charts import Chart, Grid, Panel
from probes.records.record import Record

FIGURES = ("heads", "patterns", "relations", "clusters")


def charts(records: Mapping[str, Record[Findings]]) -> list[Chart]:
    """All charts, in the order of `FIGURES`."""
    return []
