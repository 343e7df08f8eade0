"""Sentences and corpora: what the suite reads, and from where."""

if not __name__.startswith("probes."):
    from probes.common.moved import moved

    raise ImportError(moved("data"))
