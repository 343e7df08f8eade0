"""Claims of the literature about models' own answers, with their tests."""

from __future__ import annotations

from functools import partial

from probes.boards.claims.rules import Claim, Reads, greater, somewhere

_filled = partial(Reads, "cloze", "cloze_accuracy", "agreement")
_guessed = partial(_filled, baseline="majority")
_FAR = "1+ attractors"
_negation = partial(Reads, "completion", "sensitivity", threshold=0.0, phenomenon=...)
_PLAIN, _NEGATED = "NEG-136-SIMP, affirmative", "NEG-136-SIMP, negative"

CLAIMS = (
    Claim(
        "agreement-known",
        "The model fills in verbs that agree, even with nouns of the other number in between",
        "Primer 4.1; Goldberg 2019",
        "verbs of real text, compared with the commoner number; the study has no baseline",
        partial(greater, (_filled(), _guessed()), (_filled(group=_FAR), _guessed(group=_FAR))),
    ),
    Claim(
        "negation-ignored",
        "Negation is not understood: the same word is more probable with *not* and without it",
        "Primer 4.1; Ettinger 2020",
        "more than half of NEG-136-SIMP right without *not*, fewer than half with it",
        partial(greater, (_negation(paradigm=_PLAIN), 0.5), (0.5, _negation(paradigm=_NEGATED))),
    ),
    Claim(
        "decodable-not-used",
        "The model need not rely on the syntax that it encodes",
        "Primer 4.1; Ettinger 2020",
        "at some layer a probe knows more hidden verbs than the model; the study changes inputs",
        partial(somewhere, "above 0", Reads("cloze", "decodable_less_used", "agreement")),
    ),
)
