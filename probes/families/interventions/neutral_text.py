"""Neutral text: sentences of another corpus, on which the damage of steps is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.errors import UserError

if TYPE_CHECKING:
    from pydantic import ValidationInfo

    from probes.data.sentence import Sentence

N_SENTENCES = 20

_REMEDY = "no corpus of sentences to read; give one from --list-corpora, or a .conllu file"

_sentences: dict[str, Mapping[str, Sequence[Sentence]]] = {}
"""Sentences that were read in this process, by the digest of their corpus."""


class NeutralText(NamedTuple):
    """Sentences of a corpus.

    Attributes:
        name: name or file of the corpus, as it was given.
        digest: SHA-256 of its content.
        splits: up to `N_SENTENCES` sentences of dev and of test; none where a record is read.
    """

    name: str
    digest: str
    splits: Mapping[str, Sequence[Sentence]] = {}

    @classmethod
    def of(cls, corpus: Any, about: ValidationInfo) -> NeutralText:
        """The text of a corpus, read at once, so that a fault is known before a model is loaded.

        Args:
            corpus: its name or file; of a record, name and digest.
            about: has the settings of the run as context.

        Raises:
            ValueError: it cannot be read, or has no words in dev or in test.
        """
        if isinstance(corpus, dict):
            return cls(*next(iter(corpus.items())))
        folders = ("data_dir", "cache_dir", "offline") if about.context else ()
        try:
            return cls._read(str(corpus), {x: getattr(about.context, x) for x in folders})
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"--corpus {corpus}: ").rstrip(".")) from error

    @classmethod
    def _read(cls, name: str, where: Mapping[str, Any]) -> NeutralText:
        from probes.data.find import find_corpus
        from probes.data.registered import corpora

        try:
            source = find_corpus(name, split_by="sentence", **where)
        except UserError as error:
            # That a registered corpus cannot be downloaded has remedies of its own.
            raise error if name in corpora else UserError(_REMEDY) from error
        if source.items:
            raise UserError(_REMEDY)
        if source.digest not in _sentences:
            try:
                read = source.load().splits
            except UserError as error:  # what it says after a semicolon is about --corpus
                reason = str(error).partition(";")[0].rstrip(".")
                raise UserError(f"{reason}; correct it, or give another corpus") from error
            _sentences[source.digest] = {x: _sample(read[x], x) for x in ("dev", "test")}
        splits = _sentences[source.digest]
        for split, part in splits.items():
            if not any(map(str.isalpha, "".join(word for x in part for word in x.words))):
                raise UserError(f"no words in {split}; give another corpus")
        return cls(name, source.digest, splits)


def _sample(sentences: Sequence[Sentence], split: str) -> list[Sentence]:
    """A random sample, from as many documents as there are."""
    from probes.statistics.partition import partition

    order = np.random.default_rng(0).permutation(len(sentences))
    documents = partition([x.document for x in sentences], split).of_sentence[order]
    turn = [int((documents[:i] == x).sum()) for i, x in enumerate(documents)]
    return [sentences[i] for i in np.sort(order[np.argsort(turn, kind="stable")[:N_SENTENCES]])]
