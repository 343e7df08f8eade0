"""Words, phrases and frames as the grammar builds them, and how they are written down.

A phrase is a run of words with one head. Phrases are joined by concatenating their words
and hanging one head on another, so the tree, the chunks and the frames of a sentence are
correct by construction; `check` proves it once more before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class Chunk:
    """One base chunk; the words that point to the same object belong together."""

    def __init__(self, tag: str) -> None:
        self.tag = tag


@dataclass(eq=False)
class Word:
    """One word with its annotation; `frame` is set on the first word of a predicate."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str = "_"
    head: Word | None = None
    deprel: str = "root"
    chunk: Chunk | None = None
    frame: Frame | None = None


Words = list[Word]
Binding = list[tuple[str, Words]]
"""What fills a role, wherever it stands: (``""`` or ``"R-"``, words)."""


@dataclass(eq=False)
class Frame:
    """A predicate and its arguments, as lists of words."""

    roleset: str
    predicate: Words
    arguments: list[tuple[str, Words]] = field(default_factory=list)

    def bind(self, role: str, binding: Binding) -> None:
        """Give `role` to everything in `binding`."""
        self.arguments += [(prefix + role, list(words)) for prefix, words in binding]


@dataclass(eq=False)
class Phrase:
    """A run of words with one head; number and person are what a verb agrees with."""

    words: Words
    head: Word
    number: str = "Sing"
    person: int = 3


@dataclass(eq=False, kw_only=True)
class Clause(Phrase):
    """A clause: its frame, and what bears the role of its subject."""

    frame: Frame
    binding: Binding


def hang(phrase: Phrase, head: Word, deprel: str) -> Words:
    """Make `phrase` a dependent of `head` and return its words for concatenation."""
    phrase.head.head, phrase.head.deprel = head, deprel
    return phrase.words


def chunk(tag: str, words: Iterable[Word]) -> Chunk:
    """Make `words` one base chunk."""
    it = Chunk(tag)
    for word in words:
        word.chunk = it
    return it


def text(words: Words) -> str:
    """The sentence as one writes it."""
    line = ""
    for word in words:
        glued = not line or word.form in (".", ",", "?", "!", "'s", "'")
        line += word.form if glued else " " + word.form
    return line


def to_conllu(words: Words, sent_id: str) -> str:
    """One CoNLL-U block, with chunks and frames in MISC."""
    place = {id(word): i for i, word in enumerate(words, start=1)}

    def span(run: Words) -> str:
        first, last = place[id(run[0])], place[id(run[-1])]
        return str(first) if first == last else f"{first}-{last}"

    lines = [f"# sent_id = {sent_id}", f"# text = {text(words)}"]
    for i, word in enumerate(words):
        misc = [f"Chunk={bio(words, i)}"]
        if word.frame:
            misc.append(f"Frame={word.frame.roleset}")
            if len(word.frame.predicate) > 1:
                misc.append(f"Pred={span(word.frame.predicate)}")
            ordered = sorted(word.frame.arguments, key=lambda a: place[id(a[1][0])])
            if ordered:
                misc.append("Args=" + ",".join(f"{role}:{span(run)}" for role, run in ordered))
        if i + 1 < len(words) and words[i + 1].form in (".", ",", "?", "!", "'s", "'"):
            misc.append("SpaceAfter=No")
        head = place[id(word.head)] if word.head else 0
        columns = (i + 1, word.form, word.lemma, word.upos, word.xpos, word.feats)
        lines.append("\t".join(map(str, (*columns, head, word.deprel, "_", "|".join(misc)))))
    return "\n".join(lines) + "\n\n"


def bio(words: Words, i: int) -> str:
    """The BIO tag of word `i`."""
    here = words[i].chunk
    if here is None:
        return "O"
    return f"{'I' if i and words[i - 1].chunk is here else 'B'}-{here.tag}"


def check(words: Words) -> None:
    """Raise ValueError unless the annotation of the sentence is well formed."""
    place = {id(word): i for i, word in enumerate(words)}
    if len(place) != len(words) or [w.deprel == "root" for w in words].count(True) != 1:
        raise ValueError(f"not one root, or a word twice: {text(words)}")
    for word in words:
        above, steps = word, 0
        while above.head:
            above, steps = above.head, steps + 1
            if id(above) not in place or steps > len(words):
                raise ValueError(f"{word.form!r} hangs outside the tree: {text(words)}")
        if word.frame:
            _check_frame(word.frame, place, text(words))


def _check_frame(frame: Frame, place: dict[int, int], sentence: str) -> None:
    taken: set[int] = set()
    for role, run in [("V", frame.predicate), *frame.arguments]:
        spots = [place.get(id(word), -1) for word in run]
        if not spots or spots != list(range(spots[0], spots[0] + len(spots))) or spots[0] < 0:
            raise ValueError(f"{frame.roleset} {role} is not one span: {sentence}")
        if taken & set(spots):
            raise ValueError(f"{frame.roleset} {role} overlaps another argument: {sentence}")
        taken |= set(spots)
    roles = {role for role, _ in frame.arguments}
    for role in roles:
        if role[:2] in ("R-", "C-") and role[2:] not in roles | {"V"}:
            raise ValueError(f"{frame.roleset} {role} refers to nothing: {sentence}")
