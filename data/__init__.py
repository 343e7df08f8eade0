"""Sentences and corpora: what the suite reads, and from where."""

if not __name__.startswith("probes."):
    raise ImportError("import probes.data, not data")
