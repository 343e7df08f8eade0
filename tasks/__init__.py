"""Probing tasks: one short file each."""

if not __name__.startswith("probes."):
    raise ImportError("import probes.tasks, not tasks")
