"""Base chunks of a constituency tree, by CoNLL-2000's definition.

The definition (Tjong Kim Sang & Buchholz 2000) is operational: CoNLL-2000's chunks are the output
of a program by Buchholz on the trees of the Penn Treebank. docs/corpora.md states its rules in
detail. In short:

1. **Flatten.** A phrase that only modifies the head from the left, or that continues a verb
   group, loses its brackets: its words become words of the phrase above.
2. **Cut.** Each word now belongs to its innermost phrase. The last word there that can head
   such a phrase is its head. A chunk is a head with the words of its phrase before it; words
   after the head, words of a phrase without a head, and brackets and quotes in front of a whole
   chunk, are outside.

In CoNLL-2000, function tags and traces matter too. The trees here have neither; docs/corpora.md
estimates the effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probes.data.sentence import ROOT, Constituent, interned

OUTSIDE = "O"

_HYPHEN = "HYPH"

_CLOSING = {"``": "''", "-LRB-": "-RRB-"}
"""The tag that closes what an opening quote or bracket opens."""

_TRANSPARENT = frozenset({"NAC", "QP", "NX", "X", "NML"})
"""Never phrases of their own. Newer treebanks use NML for brackets inside a noun phrase."""

_MODIFIERS = {"NP": {"ADJP", "UCP"}, "WHNP": {"WHADJP"}, "ADJP": {"ADVP"}}
"""Phrases that lose their brackets in front of the head, by the phrase that contains them."""

_SUBPHRASES = {"NP": {"NP"}, "WHNP": {"WHNP", "NP"}, "ADJP": {"ADJP"}}
"""After one of these the head phrase has begun, so that what follows modifies no head."""

_HEADS = {
    label: re.compile(tags)
    for label, tags in {
        "ADJP": r"JJ|RB|VB|IN|UH|FW|RP|\$|#|DT|NN|AFX|GW",
        "ADVP": r"RB|IN|TO|DT|PDT|JJ|RP|FW|LS|UH|CC|NN|CD|VB|GW",
        "CONJP": r"CC|IN|RB",
        "INTJ": r"UH|RB|NN|VB|FW|JJ",
        "LST": r"LS|JJ|:",
        "NP": r"NN|CD|PRP|JJ|DT|EX|IN|RB|VB|FW|SYM|UH|WP|WDT|ADD|GW|XX|AFX",
        "PP": r"IN|TO|RB|VBG|VBN|JJ|RP|CC|FW",
        "PRT": r"RP|IN|RB|JJ",
        "SBAR": r"IN|WDT",
        "UCP": r"JJ|NN|VB|CD",
        "VP": r"VB|MD|TO|JJ|NN|POS|FW|SYM",
        "WHADJP": r"JJ",
        "WHADVP": r"WRB|IN|RB|WDT",
        "WHNP": r"WDT|WP|CD|DT|IN|NN|JJ|RB",
        "WHPP": r"IN|TO",
    }.items()
}
"""Prefixes of the tags that can head each phrase. Clauses have no head word."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent, the words `[start, end)`.

    Attributes:
        label: its category, e.g. ``NP``.
        start: index of its first word.
        end: index after its last word.
        children: constituents, and indices of words, in order.
    """

    label: str
    start: int
    end: int
    children: tuple[Tree | int, ...]

    def constituents(self) -> tuple[Constituent, ...]:
        """The tree as a list, each constituent before its parts."""
        constituents: list[Constituent] = []

        def add(tree: Tree, parent: int) -> None:
            index = len(constituents)
            constituents.append(Constituent(tree.label, (tree.start, tree.end), parent))
            for child in tree.children:
                if isinstance(child, Tree):
                    add(child, index)

        add(self, ROOT)
        return tuple(constituents)


def chunk(tree: Tree, tags: Sequence[str]) -> tuple[str, ...]:
    """The BIO tag of each word's base chunk (Tjong Kim Sang & Buchholz 2000).

    Args:
        tree: the constituents of the whole sentence, without traces.
        tags: Penn Treebank part-of-speech tag of each word.

    Returns:
        ``B-NP`` for the first word of a noun chunk, ``I-NP`` for its others, ``O`` outside.
    """
    phrase_of: list[tuple[int, str]] = [(0, "")] * len(tags)
    heads: set[int] = set()
    _flatten(tree, tags, phrase_of, heads)
    return interned(_cut(phrase_of, heads, tags))


def _flatten(
    node: Tree, tags: Sequence[str], phrase_of: list[tuple[int, str]], heads: set[int]
) -> None:
    """Give each word of `node` its innermost phrase, and each phrase its head."""
    parts = _flat_constituents(node, tags)
    words = [part for part in parts if isinstance(part, int)]
    phrase = (id(node), node.label)
    for word in words:
        phrase_of[word] = phrase
    if can_head := _HEADS.get(node.label):
        heads.update([word for word in words if can_head.match(tags[word])][-1:])
    for part in parts:
        if isinstance(part, Tree):
            _flatten(part, tags, phrase_of, heads)


def _flat_constituents(node: Tree, tags: Sequence[str]) -> list[Tree | int]:
    """The words and phrases directly below `node` after flattening."""
    parts: list[Tree | int] = []
    waiting = list(reversed(node.children))
    while waiting:
        part = waiting.pop()
        if isinstance(part, int):
            parts.append(part)
        elif node.label in _MODIFIERS and _is_in_compound(part, parts[-1:] + waiting[-1:], tags):
            waiting.extend(reversed(range(part.start, part.end)))
        elif _loses_brackets(part, node.label, parts, tags):
            # Modifiers of a modifier are flattened first: "a very small boat".
            children = _flat_constituents(part, tags) if part.label in _MODIFIERS else part.children
            waiting.extend(reversed(children))
        else:
            parts.append(part)
    if node.label == "VP":
        parts = _with_bare_adverbs(parts, tags)
    return parts


def _is_in_compound(part: Tree, neighbours: Sequence[Tree | int], tags: Sequence[str]) -> bool:
    """Whether a hyphen joins `part` to the rest of a compound, as in *the* New Delhi*-based firm*.

    In CoNLL-2000's treebank, such a compound is a single word.
    """
    return tags[part.start] == _HYPHEN or any(
        isinstance(word, int) and tags[word] == _HYPHEN for word in neighbours
    )


def _loses_brackets(
    part: Tree, above: str, before: Sequence[Tree | int], tags: Sequence[str]
) -> bool:
    """Whether `part` loses its brackets.

    Args:
        above: label of the phrase that contains it.
        before: the parts of that phrase to its left.
    """
    if part.label in _TRANSPARENT:
        return True
    if part.label in _MODIFIERS.get(above, ()):
        return not any(isinstance(p, Tree) and p.label in _SUBPHRASES[above] for p in before)
    if above == "VP" and before and all(_is_verb_or_adverb(p, tags) for p in before):
        return part.label == "VP" or (part.label == "S" and _has_no_subject(part))
    return False


def _is_verb_or_adverb(part: Tree | int, tags: Sequence[str]) -> bool:
    if isinstance(part, Tree):
        return part.label == "ADVP"
    return tags[part].startswith("RB") or _HEADS["VP"].match(tags[part]) is not None


def _has_no_subject(clause: Tree) -> bool:
    """Whether a clause has no visible subject.

    CoNLL-2000 also requires a trace of the subject, no trace of an object in front, and no
    function tag such as -PRP on the clause; without these, a few more clauses join their verb.
    """
    first_child = clause.children[0]
    return isinstance(first_child, Tree) and first_child.label == "VP"


def _with_bare_adverbs(parts: Sequence[Tree | int], tags: Sequence[str]) -> list[Tree | int]:
    """The parts of a VP, with adverb phrases in front of the last verb flattened."""
    verbs = [i for i, p in enumerate(parts) if isinstance(p, int) and _HEADS["VP"].match(tags[p])]
    bare: list[Tree | int] = []
    for i, part in enumerate(parts):
        if isinstance(part, Tree) and part.label == "ADVP" and verbs and i < verbs[-1]:
            bare.extend(part.children)
        else:
            bare.append(part)
    return bare


def _cut(
    phrase_of: Sequence[tuple[int, str]], heads: set[int], tags: Sequence[str]
) -> tuple[str, ...]:
    """BIO tags, assigned from right to left: a head ends its chunk, its phrase extends it."""
    bio: list[str] = []
    chunk_of: list[tuple[int, str] | None] = [None] * (len(tags) + 1)
    head_phrase = None
    for i in reversed(range(len(tags))):
        if i in heads:
            head_phrase = phrase_of[i]
        if phrase_of[i] == head_phrase:
            chunk_of[i] = head_phrase
        elif tags[i] == "POS":
            following = chunk_of[i + 1]
            chunk_of[i] = following if following and _type(following) == "NP" else (-i, "NP")
    for i, tag in enumerate(tags):
        begins = i == 0 or chunk_of[i - 1] != chunk_of[i]
        if tag in _CLOSING and begins and not _closes_within(i, chunk_of, tags):
            chunk_of[i] = None
    for i, key in enumerate(chunk_of[:-1]):
        if key is None:
            bio.append(OUTSIDE)
        else:
            bio.append(("I-" if i and chunk_of[i - 1] == key else "B-") + _type(key))
    return tuple(bio)


def _closes_within(
    opening: int, chunk_of: Sequence[tuple[int, str] | None], tags: Sequence[str]
) -> bool:
    """Whether a quote or bracket that begins a chunk stays in it.

    It does if its partner is in the chunk too, as in *(big) dogs*, and in a list marker. In
    front of the whole chunk, as in *(big dogs)*, it is part of none: in CoNLL-2000's treebank it
    is attached above the phrase, where newer treebanks attach it below.
    """
    phrase = chunk_of[opening]
    if phrase is None or phrase[1] == "LST":
        return True
    depth = 0
    for tag, key in zip(tags[opening:], chunk_of[opening:], strict=False):
        depth += (tag == tags[opening]) - (tag == _CLOSING[tags[opening]])
        if key != phrase or depth == 0:
            return key == phrase
    return False


def _type(phrase: tuple[int, str]) -> str:
    return phrase[1].removeprefix("WH")
