"""What the user sees while a run goes on: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm


class Progress:
    """Messages and bars on standard error.

    Attributes:
        quiet: say nothing but errors.
    """

    def __init__(self) -> None:
        self.quiet = False

    def say(self, message: str) -> None:
        """One line, above any bar."""
        if not self.quiet:
            tqdm.write(message, file=sys.stderr)

    def insist(self, message: str) -> None:
        """One line, said even to those who asked for quiet: terms that they have to know."""
        tqdm.write(message, file=sys.stderr)

    def bar(self, what: str, total: int, unit: str, unit_scale: bool = False) -> Any:
        """A progress bar; invisible when standard error is not a terminal."""
        return tqdm(
            desc=what,
            total=total,
            unit=unit,
            unit_scale=unit_scale,
            leave=False,
            disable=True if self.quiet else None,
            dynamic_ncols=True,
        )


progress = Progress()
