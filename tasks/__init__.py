"""Probing tasks, one short file each."""

if not __name__.startswith("probes."):
    raise ImportError("this folder is probes.tasks: use `from probes import …`")
