"""Sentences and corpora: finding, downloading and reading them."""

if not __name__.startswith("probes."):
    raise ImportError("this folder is probes.data: use `from probes import …`")
