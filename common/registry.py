"""Name registries that answer a misspelt name with the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from probes.common.errors import UserError
from probes.common.origin import Origin, current

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `name` may have been meant to be; None if none is near."""
    lowered = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for a near miss, else the list of what there is."""
    known = list(known)
    near = nearest(name, known)
    return f"There is: {', '.join(known)}." if near is None else f"Did you mean {near!r}?"


class Registry(Generic[T]):
    """Things by name, in the order in which they were added.

    Args:
        noun: what one entry is called in error messages ("task", "corpus").
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._entries: dict[str, T] = {}
        self._origins: dict[str, Origin] = {}

    def add(self, name: str, entry: T, on_removal: Callable[[], object] = lambda: None) -> None:
        """Register `entry`; a second entry of the same name is an error.

        Args:
            on_removal: called when the plug-in that it is of is taken back.
        """
        if not name.isprintable():
            raise UserError(f"{self.noun} {name!r}: not a printable name; give it another.")
        loading = current()
        if name in self._entries:
            first = self._origins.get(name, "the suite")
            second = loading.origin if loading else "the suite"
            raise UserError(
                f"Two {self.noun} definitions share the name {name!r}: one of {first}, one of "
                f"{second}; rename one."
            )
        self._entries[name] = entry
        if loading:
            self._origins[name] = loading.origin
            loading.entries.append((self.noun, name, lambda: self._remove(name, on_removal)))

    def _remove(self, name: str, on_removal: Callable[[], object]) -> None:
        del self._entries[name], self._origins[name]
        on_removal()

    def ship(self) -> None:
        """Declare that all entries so far are the suite's own.

        For the end of a module of the suite that a plug-in may be the first to import.
        """
        self._origins.clear()
        if loading := current():
            loading.entries = [entry for entry in loading.entries if entry[0] != self.noun]

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds what it decorates under `name`."""

        def decorate(entry: T) -> T:
            self.add(name, entry)
            return entry

        return decorate

    def get(self, name: str) -> T:
        """Return the entry called `name`.

        Raises:
            UserError: there is none; the message names the nearest one.
        """
        if name not in self._entries:
            raise UserError(f"Unknown {self.noun} {name!r}. {did_you_mean(name, self._entries)}")
        return self._entries[name]

    def origin(self, name: str) -> Origin | None:
        """Where the entry called `name` comes from; None if it ships, or if there is none."""
        return self._origins.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries
