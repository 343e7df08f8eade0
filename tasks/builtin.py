"""The tasks that ship, in the order of tables; each module of `SHIPPED` registers its own.

Any other file in this folder is found too (see probes/plugins.py). What sets a listed one apart is
that its version identifies it in results; the others are identified by their content.
"""

from __future__ import annotations

import importlib

from tasks.task import tasks

SHIPPED = ("pos", "chunking", "depth", "agreement", "srl")

for _name in SHIPPED:
    importlib.import_module(f"tasks.{_name}")

__all__ = ["SHIPPED", "tasks"]
