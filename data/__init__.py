"""Sentences and corpora: finding, downloading and reading them."""

if not __name__.startswith("probes."):
    from probes.common.moved import moved

    raise ImportError(moved("data"))
