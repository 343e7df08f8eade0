"""Measurements of the suite that behave otherwise in a test."""

from __future__ import annotations

from dataclasses import replace

from probes.measurements.measurement import get_measurement, measurements


def change_measurement(monkeypatch, name, **changes):
    """Give a measurement other attributes until the test ends."""
    changed = replace(get_measurement(name), **changes)
    monkeypatch.setitem(measurements._entries, name, changed)
