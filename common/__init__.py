"""Small utilities used by data/, tasks/ and every room of probes/; imports none of them."""

if not __name__.startswith("probes."):
    raise ImportError("this folder is probes.common: use `from probes import …`")
