"""Digests of functions, classes and other objects by what they do, for what no file identifies.

What is defined in a script or a notebook is described by what runs: the bytecode of its functions,
their defaults, closures and decorators, and whatever their global names refer to, followed through
all code that is the user's own. The standard library, installed packages and the suite are known by
name. Nothing is read from source files, which may have changed since they were run.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache, cached_property
from importlib.util import find_spec
from inspect import getattr_static
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

_PLAIN = (NoneType, bool, int, float, complex, str, bytes, EllipsisType)
_DESCRIPTORS = (
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_DYNAMIC = frozenset(("eval", "exec", "globals", "__import__", "getattr", "vars", "__dict__"))
"""Words of code that may refer to names by other means than by writing them."""

_INSTALLED = tuple(
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class UntoldError(Exception):
    """What an object does cannot be told.

    Attributes:
        what: describes it.
        name: what code calls it; empty if nothing does.
    """

    def __init__(self, what: str, name: str = "") -> None:
        super().__init__(f"{name!r}, {what}" if name else what)
        self.what, self.name = what, name


@cache
def is_own(module: str) -> bool:
    """Whether a module is the user's, not the suite's, installed or of the standard library."""
    top = module.partition(".")[0]
    if top in ("__main__", "__mp_main__"):
        return True
    if top in sys.stdlib_module_names or top == "probes":
        return False
    try:
        spec = getattr(sys.modules.get(top), "__spec__", None) or find_spec(top)
    except ValueError:  # a module without a specification
        spec = None
    if spec is None:
        return True
    places = [spec.origin] if spec.has_location else spec.submodule_search_locations
    return not any(is_installed(Path(place)) for place in places or () if place)


def is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    file = file.resolve()
    packages = {"site-packages", "dist-packages"}
    return bool(packages & set(file.parts)) or any(map(file.is_relative_to, _INSTALLED))


def digest_by_value(value: object, home: str) -> str:
    """SHA-256 of what an object does.

    Args:
        home: the module that has registered it, which counts as the user's own.

    Raises:
        UntoldError: part of it cannot be described.
    """
    walk = _Walk(home.partition(".")[0])
    try:
        walk.visit(value)
    except RecursionError as error:
        raise UntoldError("an object that is nested too deeply") from error
    return walk.hash.hexdigest()


class _Walk:
    """Feeds a description of an object to a hash, each part of it once.

    Args:
        home: the package whose code is followed in any case.
        seen: by identity, the objects that have been described, and their numbers.
    """

    def __init__(self, home: str, seen: Mapping[object, tuple[int, object]] = {}) -> None:
        self.hash = hashlib.sha256()
        self._home, self._seen = home, dict(seen)

    def visit(self, value: Any) -> None:
        """Describe a value."""
        if type(value) in _PLAIN:
            self._say(type(value).__name__, repr(value))
        elif isinstance(value, ModuleType):
            self._module(value)
        elif isinstance(value, (tuple, CodeType)):
            self._new(value)  # which of these are one object is up to the compiler
        elif self._is_new(id(value), value):
            self._new(value)

    def _is_new(self, key: object, value: object) -> bool:
        if key in self._seen:
            self._say("again", str(self._seen[key][0]))
            return False
        # Held, so that no other object gets its identity.
        self._seen[key] = len(self._seen), value
        return True

    def _say(self, *words: str) -> None:
        self.hash.update(repr(words).encode())

    def _all(self, kind: str, *values: object) -> None:
        self._say(kind, str(len(values)))
        for value in values:
            self.visit(value)

    def _new(self, value: Any) -> None:
        if type(value) in (tuple, list):
            self._all(type(value).__name__, *value)
        elif type(value) in (dict, MappingProxyType):
            self._all("dict", *(part for item in value.items() for part in item))
        elif type(value) in (set, frozenset):
            self._say("set", *sorted(map(self._apart, value)))
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, CellType):
            try:
                self._all("cell", value.cell_contents)
            except ValueError:
                self._say("empty cell")
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, MethodType):
            self._all("method", value.__func__, value.__self__)
        elif isinstance(value, BuiltinFunctionType):
            of = value.__self__
            self._say("built-in", str(value.__module__), value.__qualname__)
            if of is not None and not isinstance(of, ModuleType):
                self.visit(of)
        elif isinstance(value, _DESCRIPTORS):
            self._say("descriptor", value.__objclass__.__qualname__, value.__name__)
        elif isinstance(value, (staticmethod, classmethod)):
            self._all(type(value).__name__, value.__func__)
        elif isinstance(value, property):
            self._all("property", value.fget, value.fset, value.fdel)
        elif isinstance(value, cached_property):
            self._all("cached property", value.func)
        else:
            self._instance(value)

    def _apart(self, value: object) -> str:
        """The digest of an element of a set, whose order is no property of it."""
        walk = _Walk(self._home, self._seen)
        walk.visit(value)
        return walk.hash.hexdigest()

    def _is_own(self, module: object) -> bool:
        name = str(module)
        return name.partition(".")[0] == self._home or is_own(name)

    def _function(self, value: FunctionType) -> None:
        module = value.__globals__.get("__name__", "__main__")
        parts = (value.__defaults__, value.__kwdefaults__, value.__closure__, vars(value))
        if self._is_own(module):
            self._all("function", value.__code__, *parts)
            self._globals(value)
        else:
            self._say("function", str(module), value.__qualname__)
            if not _is_at(value, module, value.__qualname__):
                self._all("made", *parts)  # by a decorator, say

    def _code(self, code: CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        handlers = getattr(code, "co_exceptiontable", b"")
        self._all("code", code.co_code, code.co_consts, handlers, *counts, *names)

    def _globals(self, function: FunctionType) -> None:
        """Describe what a function's code, and code nested in it, finds by its name."""
        space, words = function.__globals__, set(_words(function.__code__))
        if "import_module" in words:
            raise UntoldError("code that calls import_module()")
        for name in sorted(set(_global_names(function.__code__))):
            if name in space:
                self._say("global", name)
                self._named(name, space[name], words)
            elif name in ("eval", "exec", "globals", "__import__"):
                raise UntoldError(f"code that calls {name}()")
        for name, names, level in _imports(function.__code__):
            if self._is_own(space.get("__package__") or self._home if level else name):
                self._say("import", name)
                try:
                    self._named(name, __import__(name, space, None, names, level), words)
                except ImportError:
                    self._say("missing")

    def _named(self, name: str, value: object, words: Set[str]) -> None:
        """Describe what code with these words calls by a name."""
        try:
            self._module(value, words) if isinstance(value, ModuleType) else self.visit(value)
        except UntoldError as error:
            raise (error if error.name else UntoldError(error.what, name)) from error

    def _module(self, module: ModuleType, words: Set[str] = _DYNAMIC) -> None:
        """Describe a module as far as it is used.

        Args:
            words: of the code that uses it: what it calls attributes, and its strings.
        """
        self._say("module", "" if self._is_own(module.__name__) else module.__name__)
        if not self._is_own(module.__name__):
            return
        space = {name: each for name, each in vars(module).items() if name[:2] != "__"}
        for name in sorted(space if words & _DYNAMIC else words & set(space)):
            self._say("attribute", name)
            if self._is_new((id(module), name), module):
                self._named(name, space[name], words)

    def _class(self, cls: type) -> None:
        name = cls.__qualname__
        if not self._is_own(cls.__module__) and _is_at(cls, cls.__module__, name):
            self._say("class", cls.__module__, name)
            return
        self._all("class", cls.__name__, *cls.__bases__, type(cls))
        for name, value in sorted(vars(cls).items()):
            if _counts(name, value):
                self._say("member", name)
                self.visit(value)

    def _instance(self, value: Any) -> None:
        """Describe an object as pickle would."""
        cls = type(value)
        if hasattr(value, "__wrapped__"):  # `lru_cache` says no more than a name
            self._all("wrapper", cls, value.__wrapped__)
            return
        reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(cls)
        try:
            reduced = reduce(value) if reduce else value.__reduce_ex__(2)
        except Exception as error:
            raise UntoldError(f"an object of type {cls.__qualname__}") from error
        if isinstance(reduced, str):
            own = getattr(value, "__dict__", None) if self._is_own(cls.__module__) else None
            self._all("named", cls, reduced, own)
            return
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        # Attributes, and those in slots; some classes have a state of another form.
        parts = state if type(state) is tuple else (state,)
        state = [_lasting(cls, part) if type(part) is dict else part for part in parts]
        self._all("object", make, arguments, state, list(items or ()), list(pairs or ()))


def _counts(name: str, value: object) -> bool:
    """Whether a class's attribute is its author's, not made by the machinery of classes."""
    if name[:2] == "__" == name[-2:]:
        kept = name in ("__annotations__", "__pydantic_fields__", "__pydantic_decorators__")
        return kept or isinstance(value, (FunctionType, staticmethod, classmethod, property))
    return name != "_abc_impl"


def _lasting(cls: type, attributes: dict[str, object]) -> dict[str, object]:
    """Attributes without what is only cached, and without pydantic's address of a class."""
    return {
        name: value
        for name, value in attributes.items()
        if name != "cls_ref" and not isinstance(getattr_static(cls, name, None), cached_property)
    }


def _is_at(value: object, module: object, qualified: str) -> bool:
    """Whether a module has the value under its own name."""
    found: Any = sys.modules.get(str(module))
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found is value


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _words(code: CodeType) -> Iterator[str]:
    for each in _nested(code):
        yield from each.co_names
        yield from (const for const in each.co_consts if isinstance(const, str))


def _global_names(code: CodeType) -> Iterator[str]:
    for each in _nested(code):
        for step in dis.get_instructions(each):
            if step.opname in _GLOBAL:
                yield step.argval


def _imports(code: CodeType) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Imports in a function: the module, names from it, and how many packages above."""
    for each in _nested(code):
        steps = list(dis.get_instructions(each))
        for level, names, step in zip(steps, steps[1:], steps[2:], strict=False):
            if step.opname == "IMPORT_NAME":
                yield step.argval, names.argval or (), level.argval
