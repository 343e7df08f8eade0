"""Digests of what functions and classes do: they change with whatever is run, and with nothing else."""

import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from probes.common.by_value import UntoldError, digest_by_value

ROOT = Path(__file__).parents[2]


def digest(text, name="f", **names):
    """The digest of what `name` is after a cell was run."""
    space = {"__name__": "__main__", **names}
    exec(text, space)
    return digest_by_value(space[name], "__main__")


CHANGES = {
    "its own code": ("def f(x): return x + 1", "x + 1", "x + 2"),
    "a function that it calls": (
        "def g(x): return x\ndef f(x): return g(x)",
        "): return x\n",
        "): return 2 * x\n",
    ),
    "one that this calls": (
        "def h(x): return x * 2\ndef g(x): return h(x)\ndef f(x): return g(x)",
        "x * 2",
        "x * 3",
    ),
    "a function that is defined later": (
        "def f(x): return g(x)\ndef g(x): return x",
        "g(x): return x",
        "g(x): return -x",
    ),
    "a constant": ("N = 3\ndef f(x): return N", "N = 3", "N = 4"),
    "a constant in a function within": ("N = 3\ndef f(x): return lambda: N", "N = 3", "N = 4"),
    "a constant in a comprehension": ("N = 3\ndef f(x): return [N for _ in x]", "N = 3", "N = 4"),
    "the type of a constant": ("N = 1\ndef f(x): return N", "N = 1", "N = True"),
    "a list": ("N = ['a', 'b']\ndef f(x): return N", "'b'", "'c'"),
    "the order of a dictionary": (
        "N = {1: 2, 3: 4}\ndef f(x): return N",
        "1: 2, 3: 4",
        "3: 4, 1: 2",
    ),
    "a set": ("N = {'a', 'b'}\ndef f(x): return N", "'b'", "'c'"),
    "a pattern": ("import re\nN = re.compile('a+')\ndef f(x): return N", "a+", "a*"),
    "an array": ("import numpy\nN = numpy.arange(9)\ndef f(x): return N", "9", "8"),
    "a default": ("def f(x=1): return x", "x=1", "x=2"),
    "a default by keyword": ("def f(*, x=1): return x", "x=1", "x=2"),
    "a closure": ("def m(n):\n    return lambda x: x + n\nf = m(1)", "m(1)", "m(2)"),
    "a function in a closure": (
        "def g(x): return x\ndef m(n):\n    return lambda x: n(x)\nf = m(g)",
        "g(x): return x",
        "g(x): return -x",
    ),
    "one of two functions on a line": (
        "fs = (lambda x: 1, lambda x: 2)\nf = fs[0]",
        "fs[0]",
        "fs[1]",
    ),
    "a decorator": (
        "def d(g):\n    return lambda x: g(x) + 1\n@d\ndef f(x): return x",
        "g(x) + 1",
        "g(x) + 2",
    ),
    "what is cached": (
        "import functools\n@functools.cache\ndef f(x): return x",
        "return x",
        "return -x",
    ),
    "what a library has wrapped": (
        "import contextlib\n@contextlib.contextmanager\ndef f(x): yield x",
        "yield x",
        "yield -x",
    ),
    "a partial": (
        "import functools\ndef g(x, y): return x\nf = functools.partial(g, 1)",
        "g, 1",
        "g, 2",
    ),
    "the function of a partial": (
        "import functools\ndef g(x, y): return x\nf = functools.partial(g, 1)",
        "return x",
        "return y",
    ),
    "a method": (
        "class C:\n    def m(self): return 1\ndef f(x): return C().m()",
        "return 1",
        "return 2",
    ),
    "a property": (
        "class C:\n    @property\n    def m(self): return 1\ndef f(x): return C().m",
        "return 1",
        "return 2",
    ),
    "a static method": (
        "class C:\n    @staticmethod\n    def m(): return 1\ndef f(x): return C.m()",
        "return 1",
        "return 2",
    ),
    "an attribute of a class": ("class C:\n    n = 1\ndef f(x): return C.n", "n = 1", "n = 2"),
    "a base class": (
        "class B:\n    n = 1\nclass C(B): pass\ndef f(x): return C.n",
        "n = 1",
        "n = 2",
    ),
    "what a method calls": (
        "def g(): return 1\nclass C:\n    def m(self): return g()\ndef f(x): return C().m()",
        "return 1",
        "return 2",
    ),
    "an instance": (
        "class C:\n    def __init__(self, n): self.n = n\nc = C(1)\ndef f(x): return c.n",
        "C(1)",
        "C(2)",
    ),
    "an instance with slots": (
        "class C:\n    __slots__ = ('n',)\n    def __init__(self, n): self.n = n\nc = C(1)\ndef f(x): return c.n",
        "C(1)",
        "C(2)",
    ),
    "a bound method": ("class C:\n    def m(self): return 1\nf = C().m", "return 1", "return 2"),
    "a data class": (
        "from dataclasses import dataclass, field\n@dataclass\nclass f:\n    n: list = field(default_factory=lambda: [1])",
        "[1]",
        "[2]",
    ),
    "an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\ndef f(x): return E.A",
        "A = 1",
        "A = 2",
    ),
    "a named tuple": (
        "from typing import NamedTuple\nclass f(NamedTuple):\n    a: int = 1",
        "int = 1",
        "int = 2",
    ),
    "a field": (
        "from probes import Frozen\nclass f(Frozen):\n    a: int = 1",
        "int = 1",
        "int = 2",
    ),
    "the type of a field": (
        "from probes import Frozen\nclass f(Frozen):\n    a: int = 1",
        "a: int",
        "a: float",
    ),
    "when a validator runs": (
        "from probes import Frozen\nfrom pydantic import field_validator\nclass f(Frozen):\n    a: int = 1\n"
        "    @field_validator('a', mode='before')\n    @classmethod\n    def v(cls, a): return a",
        "before",
        "after",
    ),
    "an imported function": ("from math import sin as g\ndef f(x): return g(x)", "sin", "cos"),
    "what is made of a library's function": (
        "import math\nN = [math.sin]\ndef f(x): return N",
        "sin",
        "cos",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_digest_changes_with(what):
    text, old, new = CHANGES[what]
    assert old in text
    assert digest(text) != digest(text.replace(old, new))


@pytest.mark.parametrize("what", CHANGES)
def test_it_is_the_same_whenever_the_same_is_defined(what):
    text, _, _ = CHANGES[what]
    moved = f"# a comment\n\nunused = object()\n{text}  # another\n"
    assert digest(text) == digest(text) == digest(moved, unrelated=threading.Lock())


def test_attributes_of_the_same_name_are_no_globals():
    text = "def f(x): return x.words"
    assert digest(text) == digest(text, words=threading.Lock())


def test_other_processes_find_the_same():
    texts = [text for text, _, _ in CHANGES.values()]
    code = (
        "from probes.common.by_value import digest_by_value\n"
        f"for text in {texts!r}:\n"
        "    space = {'__name__': '__mp_main__'}\n    exec(text, space)\n"
        "    print(digest_by_value(space['f'], '__mp_main__'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == list(map(digest, texts))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of the user's own, and imports it as it stands."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write(text, name="own_helper"):
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        for each in set(sys.modules) - before:
            del sys.modules[each]
        return importlib.import_module(name)

    yield write
    for each in set(sys.modules) - before:
        del sys.modules[each]


USES = {
    "import": "import own_helper\ndef f(x): return own_helper.g(x)",
    "from": "from own_helper import g\ndef f(x): return g(x)",
    "within": "def f(x):\n    import own_helper\n    return own_helper.g(x)",
    "from, within": "def f(x):\n    from own_helper import g\n    return g(x)",
    "by name": "import own_helper\ndef f(x): return getattr(own_helper, 'g' + '')(x)",
    "in a list": "import own_helper\nN = [own_helper]\ndef f(x): return N[0].g(x)",
    "in a closure": "import own_helper\ndef m(h):\n    return lambda x: h.g(x)\nf = m(own_helper)",
}


@pytest.mark.parametrize("how", USES)
def test_modules_of_the_users_own_are_followed(how, module):
    text = "N = 1\ndef h(x): return N\ndef g(x): return h(x)\n"
    module(text)
    first = digest(USES[how])
    module(f"# moved\n{text}")
    assert digest(USES[how]) == first
    module(text.replace("N = 1", "N = 2"))
    assert digest(USES[how]) != first


def test_what_is_not_used_of_a_module_does_not_count(module):
    module("import threading\nlock = threading.Lock()\ndef g(x): return x\n")
    first = digest(USES["import"])
    module("def g(x): return x\n")
    assert digest(USES["import"]) == first


def test_a_constant_that_is_set_from_outside_counts(module):
    helper = module("N = 1\ndef g(x): return N\n")
    first = digest(USES["import"])
    helper.N = 2
    assert digest(USES["import"]) != first


def test_a_module_that_refers_to_itself_ends(module):
    module("import sys\nme = sys.modules[__name__]\ndef g(x): return me.me.g(x)\n")
    assert digest(USES["import"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "import threading\nN = threading.Lock()\ndef f(x): return N",
            "'N', an object of type lock",
        ),
        (
            "N = iter([1])\nN = (i for i in N)\ndef f(x): return N",
            "'N', an object of type generator",
        ),
        ("def f(x): return eval(x)", "code that calls eval()"),
        ("def f(x): return globals()[x]", "code that calls globals()"),
        (
            "import importlib\ndef f(x): return importlib.import_module(x)",
            "code that calls import_module()",
        ),
        (
            "N = []\nfor _ in range(9999): N = [N]\ndef f(x): return N",
            "an object that is nested too deeply",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(text, why):
    with pytest.raises(UntoldError) as error:
        digest(text)
    assert str(error.value) == why
