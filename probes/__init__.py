"""Which layer of a transformer knows what: layer-wise probing in one command.

From Python::

    import probes

    results = probes.run_probes("all-MiniLM-L6-v2", corpus="sample")
    results.table("linear")
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["Results", "run_probes"]


def __getattr__(name: str) -> Any:
    """Import the engine on first use, so that `import probes` stays light."""
    if name in __all__:
        import probes.run as engine

        return getattr(engine, name)
    raise AttributeError(f"module 'probes' has no attribute {name!r}")
