"""CoNLL-U: the ten columns of Universal Dependencies, and three layers in MISC.

Chunks, frames and mentions have no columns of their own; they are read from MISC:

- ``Chunk=B-NP``: BIO tag of the word's base chunk, on every word of a sentence or on none.
- ``Frame=break.01`` on the first word of a predicate, with ``Pred=3-4`` if the predicate
  has several words, and ``Args=ARG1:1-2,ARGM-TMP:5-6`` if it has arguments.
  Words count from 1, both ends included, as in the ID column.
- ``Entity=(e1-person)`` where ``# global.Entity`` says what it means, see `read_mentions`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import conllu
from conllu.exceptions import ParseException
from conllu.parser import (
    DEFAULT_FIELD_PARSERS,
    DEFAULT_FIELDS,
    parse_comment_line,
    parse_dict_value,
    parse_line,
)

from probes.common.errors import UserError
from probes.common.files import read_text
from probes.data.chunk_schemes import WordError, require_bio
from probes.data.sentence import ROOT, Frame, FrozenDict, Mention, Sentence, Span, interned

Comments = dict[str, str | None]
"""Values of a sentence's comments, by key."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_COLUMNS = 10
_CONLL_2003 = range(2, 6)
"""Numbers of columns that suggest a file as in CoNLL-2003."""

_NO_FEATURES = FrozenDict()


@lru_cache(1 << 12)
def _feats_column(text: str) -> FrozenDict:
    """Parse the FEATS column of a word."""
    if text != "_" and not all(re.fullmatch("[^=]+=.+", part) for part in text.split("|")):
        raise ValueError(f"the features {text!r} are not of the form Name=Value|Name=Value")
    return FrozenDict(parse_dict_value(text) or {})


_PARSERS: dict[str, Any] = {
    **DEFAULT_FIELD_PARSERS,
    "deps": lambda columns, i: columns[i],  # never read
    "feats": lambda columns, i: _feats_column(columns[i]),  # many words share theirs
}


def read_conllu(path: Path, language: str) -> Iterator[Sentence]:
    """Yield the sentences of one CoNLL-U file, in order.

    Multiword-token lines (``12-13``) and empty nodes (``8.1``) are not words. A document's genre is
    the value of ``# meta::genre`` where it begins.

    Args:
        path: a UTF-8 file; a byte-order mark and Windows line ends are allowed.
        language: BCP 47 tag of all sentences.

    Raises:
        UserError: the file cannot be read, contains no sentence or an invalid line, or two
            sentences share an id.
    """
    document = genre = ""
    entity_parts: tuple[str, ...] = ()
    places: dict[str, int] = {}
    for first_line, lines in _sentence_blocks(read_text(path)):
        if all(line.startswith("#") for line in lines):
            continue
        tokens, comments = _parse(lines, path, first_line)
        if "newdoc id" in comments or "newdoc" in comments:
            document = comments.get("newdoc id") or f"{path.stem}-{first_line}"
            genre = comments.get("meta::genre") or ""
        name = str(comments.get("sent_id") or f"{path.stem}-{len(places) + 1}")
        if not any(isinstance(token["id"], int) for token in tokens):
            raise UserError(f"{path}, line {first_line}: a sentence without words; remove it.")
        try:
            if comment := comments.get("global.Entity"):
                entity_parts = part_names(comment)
            sentence = _sentence_of_tokens(tokens, entity_parts)
        except WordError as error:
            rows = [i for i, line in enumerate(lines) if re.match(r"\d+\t", line)]
            line = first_line + (rows[error.word] if error.word < len(rows) else 0)
            raise UserError(f"{path}, line {line}: {error}; fix the file.") from error
        if name in places:
            raise UserError(
                f"{path}, line {first_line}: the sent_id {name!r} is already used in line "
                f"{places[name]}; ids must be unique."
            )
        places[name] = first_line
        yield replace(sentence, id=name, language=language, document=document, genre=genre)
    if not places:
        raise UserError(f"{path}: contains no sentence; is it the right file?")


def _sentence_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of each sentence, with the number of the first."""
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), lines
            lines = []


def _parse(lines: list[str], path: Path, first_line: int) -> tuple[list[conllu.Token], Comments]:
    """The tokens of one sentence, and its comments."""
    tokens: list[conllu.Token] = []
    comments: Comments = {}
    for number, line in enumerate(lines, start=first_line):
        # The parser would treat two spaces as a tab.
        plain = re.sub(" {2,}", " ", line).strip()
        if line.startswith("#"):
            comments.update(parse_comment_line(plain))
            continue
        columns = line.split("\t")
        if len(columns) == 1 and len(line.split()) in _CONLL_2003:
            raise UserError(
                f"{path}, line {number}: words and tags separated by spaces, as in CoNLL-2003, "
                "are not CoNLL-U; write tokens and ner_tags as JSON Lines, and give --task-from."
            )
        if len(columns) != _COLUMNS:
            raise UserError(
                f"{path}, line {number}: not valid CoNLL-U ({len(columns)} columns instead of "
                f"{_COLUMNS}, separated by tabs); fix the file."
            )
        if not all(map(str.strip, columns)):
            empty = [bool(column.strip()) for column in columns].index(False) + 1
            raise UserError(f"{path}, line {number}: column {empty} is empty; write _ for none.")
        try:
            tokens.append(parse_line(plain, DEFAULT_FIELDS, _PARSERS))
            if tokens[-1]["id"] is None:
                raise ValueError("the word has no ID")
        except (ParseException, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{path}, line {number}: not valid CoNLL-U ({reason}); fix the file."
            ) from error
    return tokens, comments


def _sentence_of_tokens(tokens: list[conllu.Token], entity_parts: tuple[str, ...]) -> Sentence:
    """The sentence without id, language, document and genre."""
    words = [token for token in tokens if isinstance(token["id"], int)]
    for i, word in enumerate(words):
        if word["id"] != i + 1:
            raise WordError(i, f"word id {word['id']} instead of {i + 1}")
    misc = [word["misc"] or {} for word in words]
    feats = tuple(word["feats"] or _NO_FEATURES for word in words)
    # ``_`` for a word that has none; empty if no word has any.
    lemmas = interned(str(word.get("lemma") or "_") for word in words)
    return Sentence(
        id="",
        language="",
        words=interned(str(word["form"]) for word in words),
        upos=_annotation_column(words, "upos"),
        xpos=_annotation_column(words, "xpos"),
        feats=feats if any(feats) else (),
        heads=_head_column(words),
        deprels=_annotation_column(words, "deprel"),
        chunks=_chunk_tags(misc),
        lemmas=lemmas if {*lemmas} - {"_"} else (),
        frames=tuple(
            _frame_of_misc(m, i, len(words)) for i, m in enumerate(misc) if m.get("Frame")
        ),
        written=_written_forms(tokens),
        mentions=_mentions(tokens, entity_parts) if entity_parts else (),
    )


def _mentions(tokens: list[conllu.Token], names: tuple[str, ...]) -> tuple[Mention, ...]:
    """The mentions of entities; empty nodes may have some too."""
    values: list[tuple[Span, str]] = []
    n_words = 0
    for token in tokens:
        is_word = isinstance(token["id"], int)
        if "Entity" in (token["misc"] or {}):
            values.append(((n_words, n_words + is_word), token["misc"]["Entity"] or ""))
        n_words += is_word
    return read_mentions(values, names)


def _written_forms(tokens: list[conllu.Token]) -> tuple[str, ...]:
    """`Sentence.written` of a parsed sentence."""
    forms: list[str] = []
    space, range_end = "", 0
    for token in tokens:
        form, number = str(token["form"]), token["id"]
        if isinstance(number, int):
            if number <= range_end:
                continue
            forms.append(space + form)
        elif number[1] == "-":
            range_start, _, range_end = number
            parts = [str(x["form"]) for x in tokens if x["id"] in range(range_start, range_end + 1)]
            # As in French *du*, whose words *de* and *le* are not written.
            if "".join(parts) != form:
                parts = [form, *[""] * (len(parts) - 1)]
            forms += [space + parts[0], *parts[1:]]
        else:
            continue  # an empty node
        space = "" if (token["misc"] or {}).get("SpaceAfter") == "No" else " "
    return interned(forms)


def _annotation_column(words: list[Any], name: str) -> tuple[str, ...]:
    """A column of strings; empty if any word lacks a value (``_``)."""
    values = tuple(word.get(name) for word in words)
    return interned(values) if all(value not in (None, "_") for value in values) else ()


def _head_column(words: list[Any]) -> tuple[int, ...]:
    """Heads, counted from 0, `ROOT` for the root; empty if no word has a head."""
    if all(word.get("head") is None for word in words):
        return ()
    for i, word in enumerate(words):
        if word.get("head") is None:
            raise WordError(i, "the word has no head, but other words of the sentence have one")
        if not 0 <= word["head"] <= len(words):
            raise WordError(
                i, f"the word has head {word['head']}, but there are {len(words)} words"
            )
    heads = tuple(word["head"] - 1 for word in words)
    rooted_words: set[int] = {ROOT}
    for i in range(len(heads)):
        ancestor, path = i, set[int]()
        while ancestor not in rooted_words:
            if ancestor in path:
                raise WordError(i, f"the heads of word {i + 1} form a cycle")
            path.add(ancestor)
            ancestor = heads[ancestor]
        rooted_words.update(path)
    return heads


def _chunk_tags(misc: list[dict[str, str]]) -> tuple[str, ...]:
    if not any("Chunk" in m for m in misc):
        return ()
    for i, m in enumerate(misc):
        if not m.get("Chunk"):
            raise WordError(i, "the word has no Chunk=, but other words of the sentence have one")
    tags = interned(m["Chunk"] for m in misc)
    require_bio(tags)
    return tags


def _frame_of_misc(misc: dict[str, str], word: int, n_words: int) -> Frame:
    arguments = []
    for argument in filter(None, (misc.get("Args") or "").split(",")):
        label, _, word_range = argument.rpartition(":")
        if not label:
            raise WordError(word, f"the argument {argument!r} has no label; write ARG1:3-4")
        arguments.append((label, _word_range(word_range, word, n_words)))
    predicate = _word_range(misc["Pred"], word, n_words) if misc.get("Pred") else (word, word + 1)
    return Frame(misc["Frame"], predicate, tuple(sorted(arguments, key=lambda a: a[1])))


def _word_range(word_range: str, word: int, n_words: int) -> Span:
    match = _RANGE.fullmatch(word_range)
    if match:
        start, end = int(match[1]) - 1, int(match[2] or match[1])
        if 0 <= start < end <= n_words:
            return start, end
    raise WordError(word, f"{word_range!r} is not a range within words 1 to {n_words}")


_BRACKET = re.compile(r"\((?P<opened>[^()]+)(?P<single>\))?|(?P<closed>[^()]+)\)")
_PART = re.compile(r"(.+)\[(\d+/\d+)\]")
_ENTITY, _TYPE = ("eid", "GRP"), ("etype", "entity")
"""Names of the parts that hold an entity and its type: today's, and those of older files."""


def part_names(comment: str) -> tuple[str, ...]:
    """The names of the parts of a bracket, from ``# global.Entity``.

    Empty if neither an entity nor a type is among them: ``Entity=`` is then something else.
    """
    names = tuple(comment.split("-"))
    return names if {*names} & {*_ENTITY, *_TYPE} else ()


def read_mentions(values: Iterable[tuple[Span, str]], names: Sequence[str]) -> tuple[Mention, ...]:
    """The mentions of a sentence, in the order in which they open.

    They are written as in CorefUD (Nedoluzhko et al. 2022). A mention opens at its first word and
    closes at its last, in brackets like those of CoNLL-2012::

        Entity=(e1-person-1      the mention of e1 opens
        Entity=(e2-place)e1)     a mention of one word within it; then it closes

    Mentions may nest and cross, but not leave their sentence. The parts of a discontinuous mention
    are ``e1[1/2]`` and ``e1[2/2]``.

    Args:
        values: values of ``Entity=`` in the order of the lines, each with the word that has it; an
            empty node, which is no word, has the empty span before the next word.
        names: see `part_names`.

    Raises:
        WordError: a value is not made of brackets, or one has parts without a name, lacks the
            entity, closes what is not open, or stays open.
    """
    mentions: list[Mention] = []
    open_mentions: dict[str, list[int]] = defaultdict(list)
    for span, value in values:
        if not value or _BRACKET.sub("", value):
            raise WordError(span[0], f"Entity={value} is not made of brackets such as (e1-person)")
        for bracket in _BRACKET.finditer(value):
            if closed_name := bracket["closed"]:
                if not open_mentions[closed_name]:
                    raise WordError(span[0], f"the mention {closed_name} closes, but is not open")
                index = open_mentions[closed_name].pop()
                begun = mentions[index]
                mentions[index] = replace(begun, span=(begun.span[0], span[1]))
            else:
                entity, mention = _mention(bracket["opened"], names, span)
                if not bracket["single"]:
                    open_mentions[entity].append(len(mentions))
                mentions.append(mention)
    for entity, indices in open_mentions.items():
        for index in indices:
            word = mentions[index].span[0]
            raise WordError(word, f"the mention {entity} does not close in its sentence")
    return tuple(mentions)


def _mention(text: str, names: Sequence[str], span: Span) -> tuple[str, Mention]:
    """The name that closes an opening bracket, and the mention that it opens.

    The closing bracket repeats the entity or, where only types are annotated, the type.
    """
    parts = text.split("-")
    if len(parts) > len(names):
        message = f"the mention ({text} has {len(parts)} parts"
        raise WordError(span[0], f"{message}, but # global.Entity names {len(names)}")
    attributes = FrozenDict(zip(names, interned(parts), strict=False))
    entity, kind = (
        next((attributes[x] for x in keys if x in attributes), "") for keys in (_ENTITY, _TYPE)
    )
    if not entity and {*names} & {*_ENTITY}:
        raise WordError(span[0], f"the mention ({text} names no entity")
    if not entity:
        return kind, Mention("", kind, span, "", attributes)
    part = _PART.fullmatch(entity)
    name, number = part.groups() if part else (entity, "")
    return entity, Mention(name, kind, span, number, attributes)
