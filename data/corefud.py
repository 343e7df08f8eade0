"""Mentions of entities in the format of CorefUD (Nedoluzhko et al. 2022): `Entity=` in MISC.

A mention opens at its first word and closes at its last, in brackets like those of CoNLL-2012::

    Entity=(e1-person-1      the mention of e1 opens
    Entity=(e2-place)e1)     a mention of one word within it; then it closes

What the parts of an opening bracket are says the comment ``# global.Entity``. Mentions may nest and
cross, but not leave their sentence. The parts of a discontinuous mention are ``e1[1/2]`` and
``e1[2/2]``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from probes.data.chunk_schemes import WordError
from probes.data.sentence import FrozenDict, Mention, Span, interned

_BRACKET = re.compile(r"\((?P<opened>[^()]+)(?P<single>\))?|(?P<closed>[^()]+)\)")
_PART = re.compile(r"(.+)\[(\d+/\d+)\]")
_ENTITY, _TYPE = ("eid", "GRP"), ("etype", "entity")
"""What these parts of a bracket are called, today and in older files."""


def part_names(comment: str) -> tuple[str, ...]:
    """The names of the parts of a bracket, from ``# global.Entity``.

    Empty if neither an entity nor a type is among them: ``Entity=`` is then something else.
    """
    names = tuple(comment.split("-"))
    return names if {*names} & {*_ENTITY, *_TYPE} else ()


def read_mentions(marked: Iterable[tuple[Span, str]], names: Sequence[str]) -> tuple[Mention, ...]:
    """The mentions of a sentence, in the order in which they open.

    Args:
        marked: values of ``Entity=`` in the order of the lines, each with the word that has it; an
            empty node, which is no word, has the empty span before the next word.
        names: see `part_names`.

    Raises:
        WordError: a value is not made of brackets, or one has parts without a name, lacks the
            entity, closes what is not open, or stays open.
    """
    mentions: list[Mention] = []
    opened: dict[str, list[int]] = defaultdict(list)
    for span, value in marked:
        if not value or _BRACKET.sub("", value):
            raise WordError(span[0], f"Entity={value} is not made of brackets such as (e1-person)")
        for bracket in _BRACKET.finditer(value):
            if closed := bracket["closed"]:
                if not opened[closed]:
                    raise WordError(span[0], f"the mention {closed} closes, but is not open")
                place = opened[closed].pop()
                begun = mentions[place]
                mentions[place] = replace(begun, span=(begun.span[0], span[1]))
            else:
                entity, mention = _mention(bracket["opened"], names, span)
                if not bracket["single"]:
                    opened[entity].append(len(mentions))
                mentions.append(mention)
    for entity, places in opened.items():
        for place in places:
            word = mentions[place].span[0]
            raise WordError(word, f"the mention {entity} does not close in its sentence")
    return tuple(mentions)


def _mention(text: str, names: Sequence[str], span: Span) -> tuple[str, Mention]:
    """What an opening bracket says: its name in the closing one, and a mention.

    The closing bracket repeats the entity or, where only types are annotated, the type.
    """
    parts = text.split("-")
    if len(parts) > len(names):
        has = f"the mention ({text} has {len(parts)} parts"
        raise WordError(span[0], f"{has}, but # global.Entity names {len(names)}")
    said = FrozenDict(zip(names, interned(parts), strict=False))
    entity, kind = (next((said[x] for x in known if x in said), "") for known in (_ENTITY, _TYPE))
    if not entity and {*names} & {*_ENTITY}:
        raise WordError(span[0], f"the mention ({text} names no entity")
    if not entity:
        return kind, Mention("", kind, span, "", said)
    part = _PART.fullmatch(entity)
    name, number = part.groups() if part else (entity, "")
    return entity, Mention(name, kind, span, number, said)
