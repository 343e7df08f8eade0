"""Small utilities used by data/, tasks/ and every room of probes/; imports none of them."""

if not __name__.startswith("probes."):
    from probes.common.moved import moved

    raise ImportError(moved("common"))
