"""What data, tasks and the rooms all need; it imports none of them."""

if not __name__.startswith("probes."):
    from probes.common.moved import moved

    raise ImportError(moved("common"))
