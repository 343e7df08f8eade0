"""Small utilities for data/, tasks/ and every room of probes/, none of which it imports."""

if not __name__.startswith("probes."):
    raise ImportError("this folder is probes.common: use `from probes import …`")
