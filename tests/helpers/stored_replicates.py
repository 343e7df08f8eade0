"""Resamples of what a run has stored."""

from probes.measurements.resampled import resampled


def of_all_layers(result, path):
    """As `probes.measurements.resampled.resampled`, of every layer."""
    return resampled(result, path, list(result.extent))
