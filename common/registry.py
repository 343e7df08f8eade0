"""Registries of named things, with suggestions for misspelt names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from probes.common.errors import UserError
from probes.common.notebook_code import DefinedEntry
from probes.common.origin import Origin, current
from probes.common.terminal import progress

T = TypeVar("T")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The closest match to `name` in `names`; None if nothing is close.

    A name with `name` as a whole word, as *main-tense* has *tense*, is closer than a misspelling.
    """
    lowered = {k.lower(): k for k in names}
    near = [k for k in lowered if name and name.lower() in (k, *re.split(r"[\W_]+", k))]
    near.sort(key=lambda k: k != name.lower())
    near = near or difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[near[0]] if near else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``Did you mean 'x'?`` for a near miss, else the list of known names."""
    names = list(names)
    near = nearest(name, names)
    return f"Known: {', '.join(names)}." if near is None else f"Did you mean {near!r}?"


class Registry(Generic[T]):
    """Entries by name, in order of registration.

    Args:
        noun: word for an entry in error messages ("task", "corpus").
        remedy: advice for an unknown name that has no close match; by default all names.
    """

    def __init__(self, noun: str, remedy: str = "") -> None:
        self.noun, self.remedy = noun, remedy
        self._entries: dict[str, T] = {}
        self._origins: dict[str, Origin] = {}
        self._defined: dict[str, DefinedEntry] = {}

    def add(self, name: str, entry: T, on_removal: Callable[[], object] = lambda: None) -> None:
        """Register `entry`.

        Args:
            on_removal: called when the entry's plug-in is unregistered.

        If a module defines a name again, as notebooks do, the new entry replaces the old one.

        Raises:
            UserError: the name is taken, or is not printable.
        """
        if not name.isprintable():
            raise UserError(f"{self.noun} {name!r}: unprintable characters in the name; rename it.")
        plug_in, new_entry = current(), DefinedEntry.of_caller(entry, on_removal)
        if name in self._entries:
            before = self._defined.get(name)
            if plug_in or not before or not new_entry or before.module != new_entry.module:
                first = self._origins.get(name) or before or "the suite"
                second = plug_in.origin if plug_in else new_entry or "the suite"
                raise UserError(
                    f"The {self.noun} {name!r} is defined twice, in {first} and in {second}; "
                    "rename one."
                )
            if before.file:  # normal in a notebook, but perhaps a mistake in a script
                progress.say(f"the {self.noun} {name!r} of {before} is defined again and replaced")
            before.on_removal()
        self._entries[name] = entry
        if plug_in:
            self._origins[name] = plug_in.origin
            plug_in.entries.append((self.noun, name, lambda: self._remove(name, on_removal)))
        elif new_entry:
            self._defined[name] = new_entry

    def _remove(self, name: str, on_removal: Callable[[], object]) -> None:
        del self._entries[name], self._origins[name]
        on_removal()

    def mark_as_shipped(self) -> None:
        """Declare that all entries so far belong to the suite.

        Modules of the suite call this at their end, since plug-ins may be the first to import them.
        """
        self._origins.clear()
        if loading := current():
            loading.entries = [entry for entry in loading.entries if entry[0] != self.noun]

    def get(self, name: str) -> T:
        """The entry called `name`.

        Raises:
            UserError: the name is unknown; the message suggests the closest one.
        """
        if name not in self._entries:
            known = nearest(name, self._entries) is not None or not self.remedy
            hint = did_you_mean(name, self._entries) if known else self.remedy
            raise UserError(f"Unknown {self.noun} {name!r}. {hint}")
        return self._entries[name]

    def origin(self, name: str) -> Origin | None:
        """The plug-in that registered `name`; None for the suite's entries and unknown names."""
        if defined := self._defined.get(name):
            return defined.origin(f"The {self.noun} {name!r}")
        return self._origins.get(name)

    def is_defined_here(self, name: str) -> bool:
        """Whether `name` was registered by a script, a notebook or a module imported there."""
        return name in self._defined

    def is_shipped(self, name: str) -> bool:
        """Whether `name` was registered by the suite."""
        return name in self._entries and not (name in self._origins or name in self._defined)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries
