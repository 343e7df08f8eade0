"""One sentence's predicted tree: a record has the tree, and the corpus has the words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from probes.cli.load_results import records_below
from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.find import find_corpus, require_known
from probes.data.sentence import Sentence
from probes.records.charts import LEFT_OUT, PredictedTree
from probes.records.files import or_published, read_arrays
from probes.records.record import Record, corpus_title, model_title

STRUCTURE, TREES = "structure", "trees"
"""The measurement that predicts trees, and its array of them: the head of each test word."""

SHORTEST, LONGEST = 8, 15
"""Words of a sentence that is drawn if none is named."""


def predicted_tree(
    folders: Sequence[Path],
    number: int | None,
    corpus: Sequence[str],
    data_dir: Path | None,
    cache_dir: Path,
) -> PredictedTree:
    """The tree of one sentence of the test split.

    Args:
        folders: of one model and corpus.
        number: of the sentence, from 1; None for the first of 8 to 15 words that has a tree.
        corpus: how the corpus is named; empty if by the name in the record.

    Raises:
        UserError: there is not exactly one record of trees, its corpus cannot be found or is
            another one, or the sentence does not exist or has no tree.
    """
    path, record = _one_record(folders)
    names = tuple(corpus) or (record.corpus.name,)
    require_known(names, ())
    source = find_corpus(*names, limit=record.corpus.limit, data_dir=data_dir, cache_dir=cache_dir)
    found = source.load()
    if found.fingerprint != record.corpus.fingerprint:
        raise UserError(
            f"--corpus {' '.join(names)}: not the text of {path.name} (fingerprint "
            f"{found.fingerprint[:8]}, not {record.corpus.fingerprint[:8]}); name the corpus that "
            "was measured."
        )
    sentences = found.splits["test"]
    trees = read_arrays(path, (TREES,))[TREES]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    if trees.shape != (ends[-1],):
        raise UserError(
            f"{path.with_suffix('.npz')}: trees of {trees.size:,} words, where the test split has "
            f"{ends[-1]:,}; delete both files and run again."
        )
    by_sentence = np.split(trees, ends[:-1])
    place = _first(by_sentence) if number is None else _named(number, by_sentence)
    title = f"{model_title(record)}, {corpus_title(record)}, test sentence {place + 1}"
    return _pair(title, sentences[place], by_sentence[place])


def _one_record(folders: Sequence[Path]) -> tuple[Path, Record]:
    records = {
        path: record
        for path, record in records_below(folders).items()
        if record.measurement == STRUCTURE and TREES in record.arrays
    }
    where = ", ".join(map(str, folders))
    if not records:
        raise UserError(
            f"{where}: no predicted trees; run with --measurements {STRUCTURE}"
            f"{or_published(*folders)}."
        )
    if len(records) > 1:
        names = ", ".join(f"{x.model.name} on {x.corpus.name}" for x in records.values())
        raise UserError(f"{where}: trees of {names}; name the folder of one model and corpus.")
    return next(iter(records.items()))


def _first(trees: Iterable[Ints]) -> int:
    for place, heads in enumerate(trees):
        if SHORTEST <= len(heads) <= LONGEST and (heads != LEFT_OUT).any():
            progress.say(f"sentence {place + 1}; --sentence draws another one")
            return place
    raise UserError(
        f"No test sentence of {SHORTEST} to {LONGEST} words has a predicted tree; give --sentence."
    )


def _named(number: int, trees: Sequence[Ints]) -> int:
    if not 1 <= number <= len(trees):
        raise UserError(f"--sentence {number}: the test split has sentences 1 to {len(trees):,}.")
    if (trees[number - 1] == LEFT_OUT).all():
        raise UserError(
            f"--sentence {number}: it was left out, since it has no tree, fewer than two words "
            "that are not punctuation, or more words than the model reads at once; choose another."
        )
    return number - 1


def _pair(title: str, sentence: Sentence, heads: Ints) -> PredictedTree:
    return PredictedTree(title, sentence.words, sentence.heads, tuple(heads.tolist()))
