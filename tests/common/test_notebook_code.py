"""Digests of what scripts and notebooks define: they change with whatever is run."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import probes
from probes.common import notebook_code
from probes.common.notebook_code import digest_of_object

ROOT = Path(__file__).parents[2]


@pytest.fixture
def digest(monkeypatch):
    """The digest of what `f` is after a cell of a notebook was run."""

    def run(text):
        session = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", session)
        exec(text, vars(session))
        return digest_of_object(session.f, Path.cwd())

    return run


CLASS = "class C:\n    n = 1\n    def m(self): return 1\n"

CHANGES = {
    "its own code": ("def f(x): return x + 1", "x + 1", "x + 2"),
    "what it calls": ("def f(x): return g(x)\ndef g(x): return x", "return x", "return 1"),
    "what that calls": (
        "def h(x): return x * 2\ndef g(x): return h(x)\ndef f(x): return g(x)", "x * 2", "x * 3"
    ),
    "a constant": ("N = 3\ndef f(x): return N", "N = 3", "N = 4"),
    "a constant in a comprehension": ("N = 3\ndef f(x): return [N for _ in x]", "N = 3", "N = 4"),
    "the type of a constant": ("N = 1\ndef f(x): return N", "N = 1", "N = True"),
    "a set": ("N = {'a', 'b'}\ndef f(x): return N", "'b'", "'c'"),
    "an array": ("import numpy\nN = numpy.arange(9)\ndef f(x): return N", "9", "8"),
    "a default": ("def f(*, x=1): return x", "x=1", "x=2"),
    "a closure": ("def m(n):\n    return lambda x: x + n\nf = m(1)", "m(1)", "m(2)"),
    "a decorator": ("def d(g):\n    return lambda x: g(x) + 1\n@d\ndef f(x): return x", "+ 1", "+ 2"),
    "a cached function": (
        "import functools\n@functools.cache\ndef f(x): return x", "return x", "return -x"
    ),
    "the function of a partial": (
        "import functools\ndef g(x, y): return x\nf = functools.partial(g, 1)", "return x", "return y"
    ),
    "a method": (CLASS + "def f(x): return C().m()", "return 1", "return 2"),
    "a base class": (CLASS + "class f(C): pass", "n = 1", "n = 2"),
    "an instance": (CLASS + "c = C()\nc.n = 3\ndef f(x): return c.n", "n = 3", "n = 4"),
    "an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\ndef f(x): return E.A", "A = 1", "A = 2"
    ),
    "a field": ("from probes import Frozen\nclass f(Frozen):\n    a: int = 1", "= 1", "= 2"),
    "an imported function": ("from math import sin as g\ndef f(x): return g(x)", "sin", "cos"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_digest_changes_with(digest, what):
    text, old, new = CHANGES[what]
    assert old in text
    assert digest(text) != digest(text.replace(old, new))


@pytest.mark.parametrize("what", CHANGES)
def test_it_is_the_same_whenever_the_same_is_defined(digest, what):
    text, _, _ = CHANGES[what]
    moved = f"# a comment\n\nunused = object()\n{text}  # another\n"
    assert digest(text) == digest(text) == digest(moved)


def test_what_else_has_been_imported_of_the_suite_does_not_count(digest, monkeypatch):
    text = "import probes\ndef f(x): return probes.Example(x, (0, 1))"
    first = digest(text)
    monkeypatch.setattr(probes, "imported_since", ModuleType("imported_since"), raising=False)
    assert digest(text) == first


def test_other_processes_find_the_same(digest):
    texts = [text for text, _, _ in CHANGES.values()]
    code = (
        "import sys\nfrom pathlib import Path\nfrom probes.common.notebook_code import digest_of_object\n"
        f"for text in {texts!r}:\n"
        "    space = vars(sys.modules['__main__'])\n    space['__name__'] = '__mp_main__'\n"
        "    exec(text, space)\n    print(digest_of_object(space['f'], Path.cwd()))\n"
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
    """Writes a module of the user's own, which is imported as it stands."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(notebook_code, "_STARTED", 2**40)  # all files are older
    before = set(sys.modules)

    def forget():
        for each in set(sys.modules) - before:
            del sys.modules[each]

    def write(text):
        for name in ("own_helper.py", "own_package/inner.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "own_package" / "__init__.py").touch()
        importlib.invalidate_caches()
        forget()

    yield write
    forget()


USES = {
    "import": "import own_helper\ndef f(x): return own_helper.g(x)",
    "from": "from own_helper import g\ndef f(x): return g(x)",
    "within": "def f(x):\n    import own_helper\n    return own_helper.g(x)",
    "package": "from own_package.inner import g\ndef f(x): return g(x)",
    "package, within": "def f(x):\n    from own_package import inner\n    return inner.g(x)",
    "by name": "import importlib\ndef f(x): return importlib.import_module('own_helper').g(x)",
    "a class": "from own_helper import C\nclass f(C): pass",
    "an instance": "from own_helper import C\nc = C()\ndef f(x): return c",
    "registered there": "from own_helper import g as f",
}


@pytest.mark.parametrize("how", USES)
def test_modules_of_the_users_own_count(how, module, digest):
    text = "N = 1\ndef g(x): return N\nclass C: pass\n"
    module(text)
    first = digest(USES[how])
    module(text)
    assert digest(USES[how]) == first
    module(text.replace("N = 1", "N = 2"))
    assert digest(USES[how]) != first


def test_a_module_that_was_written_since_the_session_began_has_a_digest_of_the_session(
    module, digest, monkeypatch
):
    module("def g(x): return 1\n")
    known = digest(USES["import"])
    monkeypatch.setattr(notebook_code, "_STARTED", 0)
    first = digest(USES["import"])
    assert first != known
    assert digest(USES["import"]) == first
    importlib.reload(sys.modules["own_helper"])
    assert digest(USES["import"]) != first


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("N = (i for i in [1])\ndef f(x): return N", "cannot pickle 'generator' object"),
        ("def f(x): return eval(x)", r"it calls eval\(\)"),
        ("def f(x): return globals()[x]", r"it calls globals\(\)"),
        ("N = []\nfor _ in range(9999): N = [N]\ndef f(x): return N", "maximum recursion depth"),
    ],
)
def test_what_has_no_digest_is_refused(digest, text, why):
    with pytest.raises(Exception, match=why):
        digest(text)


def test_a_method_called_eval_is_not_the_function(digest):
    assert digest("def f(model): return model.eval()")
