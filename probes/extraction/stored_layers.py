"""How many layers config.json names. No torch here."""

from __future__ import annotations

import json
from pathlib import Path

_NAMES = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def stored_layers(folder: Path) -> int | None:
    """The number of blocks of a model in a folder; None if its configuration names it otherwise."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        found = [
            part[name]
            for part in (config, config.get("text_config", {}))
            for name in _NAMES
            if name in part
        ]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return None  # transformers will say what is wrong with it
    return found[0] if found and type(found[0]) is int and found[0] > 0 else None
