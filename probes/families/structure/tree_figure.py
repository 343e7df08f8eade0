"""The figure `tree`: the gold tree and the predicted tree of one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.data.find import find_corpus, require_known
from probes.records.record import Record, corpus_title, model_title
from probes.records.record_files import or_published, read_arrays
from probes.statistics.of_families.spanning_trees import LEFT_OUT

if TYPE_CHECKING:
    from probes.tables.charts import Chart, Style

TREES = "trees"
"""Name of the array with the predicted head of each test word."""

SHORTEST, LONGEST = 8, 15
"""Least and greatest number of words of the sentence to draw by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this figure."""
    parser.add_argument(
        "--sentence", type=int, metavar="N", help="for tree: number of the test sentence, from 1"
    )


def draw(
    records: Mapping[Path, Record], options: argparse.Namespace, style: Style, where: str
) -> Chart:
    """The tree of one sentence of the test split.

    The sentence is the first one of 8 to 15 words with a tree unless the user names another.

    Raises:
        UserError: there is not exactly one record of trees, its corpus cannot be found or is
            another one, or the sentence does not exist or has no tree.
    """
    from probes.tables.charts import arcs

    records = {path: record for path, record in records.items() if TREES in record.arrays}
    if not records:
        raise UserError(
            f"{where}: no predicted trees; run with --measurements structure"
            f"{or_published(*options.folders)}."
        )
    if len(records) > 1:
        subjects = ", ".join(f"{x.model.name} on {x.corpus.name}" for x in records.values())
        raise UserError(f"{where}: trees of {subjects}; name the folder of one model and corpus.")
    ((path, record),) = records.items()
    names = tuple(options.corpus) or (record.corpus.name,)
    require_known(names, ())
    # With another limit, test would have other sentences.
    corpus = find_corpus(
        *names, limit=record.corpus.limit, data_dir=options.data_dir, cache_dir=options.cache_dir
    ).load()
    sentences, trees = corpus.splits["test"], read_arrays(path, (TREES,))[TREES]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    if corpus.fingerprint != record.corpus.fingerprint:
        raise UserError(
            f"--corpus {' '.join(names)}: not the corpus of {path.name} (fingerprint "
            f"{corpus.fingerprint[:8]}, not {record.corpus.fingerprint[:8]}); name the measured "
            "corpus."
        )
    if trees.shape != (ends[-1],):
        raise UserError(
            f"{path.with_suffix('.npz')}: trees of {trees.size:,} words, but the test split has "
            f"{ends[-1]:,}; delete both files and run again."
        )
    index = sentence_to_draw(np.split(trees, ends[:-1]), options.sentence)
    sentence, heads = sentences[index], np.split(trees, ends[:-1])[index]
    edges = edges_of(sentence.heads, heads.tolist())
    n = edges.loc[edges["first"] >= 0, "kind"].value_counts()
    title = f"{model_title(record)}, {corpus_title(record)}, test sentence {index + 1}"
    title += f": {n.get('predicted', 0)} of {n.get('gold', 0)} edges"
    return arcs(sentence.words, edges, style, title=title)


def sentence_to_draw(trees: Sequence[Ints], number: int | None) -> int:
    """The place of a sentence with a tree, counted from 0.

    Args:
        trees: predicted heads of each sentence.
        number: number of the sentence, from 1; None for the first one of usual length.

    Raises:
        UserError: there is no such sentence, or it has no tree.
    """
    if number is None:
        for index, heads in enumerate(trees):
            if SHORTEST <= len(heads) <= LONGEST and (heads != LEFT_OUT).any():
                progress.say(f"sentence {index + 1}; --sentence draws another one")
                return index
        raise UserError(
            f"No test sentence of {SHORTEST} to {LONGEST} words has a predicted tree; give "
            "--sentence."
        )
    if not 1 <= number <= len(trees):
        raise UserError(f"--sentence {number}: the test split has sentences 1 to {len(trees):,}.")
    if (trees[number - 1] == LEFT_OUT).all():
        raise UserError(
            f"--sentence {number}: it was left out: it has no tree, fewer than two words beside "
            "punctuation, or more words than the model's window; choose another."
        )
    return number - 1


def edges_of(gold: Sequence[int], predicted: Sequence[int]) -> pd.DataFrame:
    """The edges of a gold tree and of the predicted tree, for `probes.tables.charts.arcs`.

    Predicted edges are drawn below; they are wrong if they are not in the gold tree, whatever their
    direction. Gold edges of words that the predicted tree leaves out are neither right nor wrong.

    Args:
        gold: index of each word's head, or `ROOT`.
        predicted: index of each word's predicted head, `ROOT` or `LEFT_OUT`.
    """
    true, guesses = (
        {(min(i, head), max(i, head)) for i, head in enumerate(heads) if head != LEFT_OUT}
        for heads in (gold, predicted)
    )
    left_out = {word for word, head in enumerate(predicted) if head == LEFT_OUT}
    rows = [
        (*edge, "gold, of punctuation" if left_out.intersection(edge) else "gold", False)
        for edge in sorted(true)
    ]
    rows += [(*edge, "predicted" if edge in true else "wrong", True) for edge in sorted(guesses)]
    return pd.DataFrame(rows, columns=["first", "last", "kind", "below"])
