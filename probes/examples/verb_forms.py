"""The singular and plural forms of a hidden verb, read from a treebank's paradigms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.data.sentence import Sentence
from probes.tasks.task import Example

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats, Ints
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.extraction.reading.views import Text

NUMBERS = "Sing", "Plur"

TASK = "agreement"
"""The task that hides such a verb."""


class Question(NamedTuple):
    """A sentence with the right form of its verb, and with the wrong one."""

    right: Text
    wrong: Text


class VerbAnswers(NamedTuple):
    """A model's answers to questions.

    Attributes:
        log_odds: log p of the right form minus log p of the wrong form. Shape (n,).
        n_tokens: number of tokens of the right and of the wrong form. Shape (n, 2).
    """

    log_odds: Floats
    n_tokens: Ints

    @property
    def right(self) -> Floats:
        """1 for a right answer, 0 for a wrong one, ½ for a tie. Shape (n,)."""
        points: Floats = (1 + np.sign(self.log_odds)) / 2
        return points

    @property
    def comparable(self) -> NDArray[np.bool_]:
        """True if both forms have equally many tokens. Shape (n,).

        Length alone makes a form less likely. For a causal model, *watches* is never likelier than
        *watch*, its first token.
        """
        same_length: NDArray[np.bool_] = self.n_tokens[:, 0] == self.n_tokens[:, 1]
        return same_length & self.n_tokens.all(axis=1)


def answers_of(scores: ScoredStretches, questions: Sequence[Question]) -> VerbAnswers:
    """A model's answers to questions, from the scores of a view with all their texts."""
    rows = [[scores.score_index(text) for text in question] for question in questions]
    indices = np.array(rows, dtype=np.int64).reshape(-1, 2)
    right, wrong = scores.within_word[indices].T
    return VerbAnswers(right - wrong, scores.pieces[indices])


@dataclass(frozen=True)
class Forms:
    """The verb forms of a treebank by paradigm.

    Attributes:
        by_number: count of each form with each number, by lemma and other features; contracted
            forms (*'s*, *'re*) have paradigms of their own.
    """

    by_number: Mapping[tuple[Any, ...], Mapping[str, Counter[str]]]

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Forms:
        """Collect the forms of verbs and auxiliaries."""
        by_number: dict[tuple[Any, ...], dict[str, Counter[str]]] = defaultdict(
            lambda: {number: Counter() for number in NUMBERS}
        )
        for sentence in sentences:
            for word, tag in enumerate(sentence.upos):
                number = sentence.feats[word].get("Number") if tag in ("VERB", "AUX") else None
                if number in NUMBERS and sentence.lemmas:
                    key = _paradigm(sentence, word)
                    by_number[key][number][sentence.words[word].lower()] += 1
        return cls(by_number)

    def other_form(self, sentence: Sentence, word: int) -> str:
        """A verb's commonest form in the other number; empty if unknown or the same."""
        number = sentence.feats[word]["Number"]
        (contrary,) = set(NUMBERS) - {number}
        forms = self.by_number.get(_paradigm(sentence, word), {}).get(contrary)
        if not forms:
            return ""
        form = min(forms, key=lambda x: (-forms[x], x))
        verb = sentence.words[word]
        if form == verb.lower():
            return ""
        if verb.isupper() and len(verb) > 1:
            return form.upper()
        return form.capitalize() if verb[0].isupper() else form

    def question(self, sentence: Sentence, example: Example) -> Question | str:
        """The question for an example, or the reason why there is none."""
        from probes.extraction.reading.views import Text

        verb = example.hide
        assert verb is not None
        if not sentence.lemmas:
            return "without lemmas"
        if not (other_form := self.other_form(sentence, verb)):
            return "without a form of the other number in train"
        stretches = sentence.written or spaced(sentence.words)
        form = sentence.words[verb]
        before = stretches[verb].removesuffix(form)
        if before.strip() or not stretches[verb]:
            return "written together with another word"
        changed = [*stretches]
        changed[verb] = before + other_form
        span = verb, verb + 1
        return Question(
            Text(tuple(stretches), span, written=True), Text(tuple(changed), span, written=True)
        )


def spaced(words: Sequence[str]) -> tuple[str, ...]:
    """Words with a space before each but the first."""
    return (*words[:1], *(f" {word}" for word in words[1:]))


def _paradigm(sentence: Sentence, word: int) -> tuple[Any, ...]:
    feats = sentence.feats[word]
    other_feats = tuple(sorted((name, x) for name, x in feats.items() if name != "Number"))
    contracted = sentence.words[word].startswith(("'", "\u2019"))
    return sentence.lemmas[word], sentence.upos[word], other_feats, contracted
