"""What data, tasks and the rooms all need; it imports none of them."""

if not __name__.startswith("probes."):
    raise ImportError("import probes.common, not common")
