"""Probing tasks, one short file each."""

if not __name__.startswith("probes."):
    from probes.common.moved import moved

    raise ImportError(moved("tasks"))
