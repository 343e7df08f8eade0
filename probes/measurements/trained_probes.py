"""Probes that another corpus has trained."""

from __future__ import annotations

from typing import NamedTuple

from probes.records.parameters import Parameters
from probes.records.result import Result


class Trained(NamedTuple):
    """Probes trained on another corpus: scores, with thresholds from negatives, and parameters."""

    result: Result
    parameters: Parameters
