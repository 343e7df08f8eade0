"""Runs of a measurement of a corpus through the command line."""

from __future__ import annotations

from types import SimpleNamespace

from probes.cli.main import main
from probes.frames.frame import load


def measured(model, corpus, out, *more, measurement="attention"):
    """Runs the measurement; its records that are then there."""
    places = ["--output", str(out / "results"), "--cache-dir", str(out / "cache")]
    line = ["--model", str(model), "--corpus", str(corpus), "--measurements", measurement]
    line += ["--device", "cpu", "--threads", "1", "--twins", "0", *places, *more]
    status = main(line)
    found = {
        path: record
        for path, record in load(out / "results").records().items()
        if record.measurement == measurement
    }
    return SimpleNamespace(status=status, records=found, line=line)
