"""Writes probes/cli/keywords.py: the settings of a run as typed keywords of `probes.run_probes`.

python tools/write_keywords.py          # after a field of `RunConfig` has changed; a test says when
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from probes.engines.config import RunConfig

KEYWORDS = Path(__file__).parents[1] / "probes" / "cli" / "keywords.py"

_HEAD = '''\
"""The settings of a run as keywords; written by tools/write_keywords.py from `RunConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from probes.data.sentence import Corpus, Sentence


class Keywords(TypedDict, total=False):
    """What `probes.run_probes` takes beside a model: the flags of the command."""

'''

_MORE = {
    "corpus": "str | PathLike[str] | Sequence[str] | Corpus | Sequence[Sentence]",
    "layers": "str | int | Sequence[int]",
    "memory": "int | str | None",
    "batch_tokens": 'int | Literal["auto"] | None',
    "sentence_pooling": "str | Sequence[str]",
    "sites": "str | Sequence[str]",
    "split_by": 'Literal["document", "sentence"] | None',
}
"""Settings that take more than their type says, since they are put into it."""


def main() -> None:
    """Write the file."""
    KEYWORDS.write_text(keywords(), encoding="utf-8")


def keywords() -> str:
    """The content of the file."""
    said = dict(_docstrings())
    lines = []
    for name, field in RunConfig.model_fields.items():
        lines.append(f"    {name}: {_MORE.get(name) or _type(field.annotation)}\n")
        if name in said:
            lines.append(f'    """{said[name]}"""\n')
    return _HEAD + "".join(lines)


def _docstrings() -> Iterator[tuple[str, str]]:
    """The text below each field."""
    (its,) = ast.parse(inspect.getsource(RunConfig)).body
    assert isinstance(its, ast.ClassDef)
    for one, following in zip(its.body, its.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(following, ast.Expr):
            assert isinstance(one.target, ast.Name)
            assert isinstance(following.value, ast.Constant)
            yield one.target.id, str(following.value.value)


def _type(annotation: Any) -> str:
    """A type as a user gives its values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_type, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(repr(value).replace(chr(39), chr(34)) for value in arguments)}]"
    if origin is tuple:
        one = _type(arguments[0])
        return f"{one} | Sequence[{one}]"
    if origin is dict:
        return "dict[str, dict[str, Any]]"
    if annotation is Path:
        return "str | PathLike[str]"
    return "None" if annotation is type(None) else str(annotation.__name__)


if __name__ == "__main__":
    main()
