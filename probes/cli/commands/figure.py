"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from probes.boards.groups import of_corpora
from probes.cli.arguments import add_folders, add_places, place
from probes.cli.figures import figure, figure_names
from probes.cli.results import FORMATS, records_below
from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.data.find import find_corpus, require_known
from probes.measurements.joined_results import joined
from probes.records.files import or_published, read_arrays
from probes.records.record import Record, corpus_title, model_title
from probes.statistics.spanning_trees import LEFT_OUT

if TYPE_CHECKING:
    from probes.tables.charts import Chart, Look


TREE = "tree"
"""Name of the figure of one sentence's trees."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("kind", metavar="FIGURE", help=", ".join([*figure_names(), TREE]))
    add_folders(parser)
    add(
        "-o",
        "--output",
        type=place,
        required=True,
        metavar="FILE",
        help="a .pdf, .svg or .png file",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--wide", action="store_true", help="6.8 inches wide, for two columns, instead of 3.3"
    )
    size.add_argument("--width", type=inches, metavar="W", help="width in inches")
    add("--no-title", action="store_true", help="leave the title to the paper's caption")
    add("--font", default="", metavar="NAME", help="a font family (default: Liberation Sans)")
    add("--fonts", type=Path, metavar="DIR", help="a folder with more fonts than the system's")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add(
        "--measurement",
        default="",
        metavar="M",
        help="the measurement, if several have such a figure",
    )
    add("--task", default="", metavar="T", help="for evidence: the task")
    add("--sentence", type=int, metavar="N", help=f"for {TREE}: number of the test sentence")
    add("--corpus", nargs="+", default=(), metavar="C", help=f"for {TREE}: the corpus")
    add_places(parser)


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print its path.

    Raises:
        UserError: the format or the figure is unknown, or the folders do not hold exactly one group
            of comparable results or records.
    """
    if options.output.suffix.lower() not in FORMATS:
        raise UserError(f"{options.output}: the name must end in one of {', '.join(FORMATS)}.")
    if options.kind not in (known := [*figure_names(), TREE]):
        raise UserError(
            f"No figure is called {options.kind!r}. {did_you_mean(options.kind, known)}"
        )
    # The drawing library is slow to import.
    from probes.tables import figures
    from probes.tables.charts import COLUMN, INCH, WIDE, Look

    if why := figures.no_room():
        raise UserError(f"{options.output}: not drawn, since {why}; lift the limit.")
    width = options.width or (WIDE if options.wide else COLUMN)
    font = figures.font_of(options.font, options.fonts)
    look = Look(width * INCH, font, titled=not options.no_title)
    if options.kind == TREE:
        chart = predicted_tree(
            look,
            options.folders,
            options.sentence,
            options.corpus,
            options.data_dir,
            options.cache_dir,
        )
    else:
        records = records_below(options.folders)
        chart = figure(
            options.kind,
            joined(records),
            of_corpora(records),
            ", ".join(map(str, options.folders)),
            look,
            options.probe,
            options.measurement,
            options.task,
        )
    figures.save(chart, options.output, look)
    print(options.output)
    return 0


def inches(text: str) -> float:
    """A width of 1 to 40 inches."""
    try:
        width = float(text)
    except ValueError:
        width = 0.0
    if not 1 <= width <= 40:
        raise argparse.ArgumentTypeError(f"{text}: not a number of inches from 1 to 40")
    return width


STRUCTURE, TREES = "structure", "trees"
"""The measurement that predicts trees, and the array with the head of each test word."""

SHORTEST, LONGEST = 8, 15
"""Least and greatest number of words of the sentence to draw by default."""


def predicted_tree(
    look: Look,
    folders: Sequence[Path],
    number: int | None,
    corpus: Sequence[str],
    data_dir: Path | None,
    cache_dir: Path,
) -> Chart:
    """The tree of one sentence of the test split.

    Args:
        folders: folders of one model and corpus.
        number: number of the sentence, from 1; None for the first one of 8 to 15 words with a tree.
        corpus: the corpus as on the command line; empty for the name in the record.

    Raises:
        UserError: there is not exactly one record of trees, its corpus cannot be found or is
            another one, or the sentence does not exist or has no tree.
    """
    from probes.tables.charts import arcs

    path, record = _one_record(folders)
    names = tuple(corpus) or (record.corpus.name,)
    require_known(names, ())
    source = find_corpus(*names, limit=record.corpus.limit, data_dir=data_dir, cache_dir=cache_dir)
    found = source.load()
    if found.fingerprint != record.corpus.fingerprint:
        raise UserError(
            f"--corpus {' '.join(names)}: not the corpus of {path.name} (fingerprint "
            f"{found.fingerprint[:8]}, not {record.corpus.fingerprint[:8]}); name the measured "
            "corpus."
        )
    sentences = found.splits["test"]
    trees = read_arrays(path, (TREES,))[TREES]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    if trees.shape != (ends[-1],):
        raise UserError(
            f"{path.with_suffix('.npz')}: trees of {trees.size:,} words, but the test split has "
            f"{ends[-1]:,}; delete both files and run again."
        )
    by_sentence = np.split(trees, ends[:-1])
    place = _first(by_sentence) if number is None else _named(number, by_sentence)
    title = f"{model_title(record)}, {corpus_title(record)}, test sentence {place + 1}"
    sentence, heads = sentences[place], by_sentence[place]
    edges = edges_of(sentence.heads, heads.tolist())
    n = edges.loc[edges["first"] >= 0, "kind"].value_counts()
    title += f": {n.get('predicted', 0)} of {n.get('gold', 0)} edges"
    return arcs(sentence.words, edges, look, title=title)


def edges_of(gold: Sequence[int], predicted: Sequence[int]) -> pd.DataFrame:
    """The edges of a gold tree and of the predicted tree, for `probes.tables.charts.arcs`.

    Predicted edges are drawn below; they are wrong if they are not in the gold tree, whatever their
    direction. Gold edges of words that the predicted tree leaves out are neither right nor wrong.

    Args:
        gold: index of each word's head, or `ROOT`.
        predicted: index of each word's predicted head, `ROOT` or `LEFT_OUT`.
    """
    true, found = _edges(gold), _edges(predicted)
    left_out = {word for word, head in enumerate(predicted) if head == LEFT_OUT}
    rows = [
        (*edge, "gold, of punctuation" if left_out.intersection(edge) else "gold", False)
        for edge in sorted(true)
    ]
    rows += [(*edge, "predicted" if edge in true else "wrong", True) for edge in sorted(found)]
    return pd.DataFrame(rows, columns=["first", "last", "kind", "below"])


def _edges(heads: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of words and heads, lower index first; `ROOT` is the lowest."""
    pairs = ((word, head) for word, head in enumerate(heads) if head != LEFT_OUT)
    return {(min(pair), max(pair)) for pair in pairs}


def _one_record(folders: Sequence[Path]) -> tuple[Path, Record]:
    records = {
        path: record
        for path, record in records_below(folders, measurements=[STRUCTURE]).items()
        if TREES in record.arrays
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
    for number, heads in enumerate(trees):
        if SHORTEST <= len(heads) <= LONGEST and (heads != LEFT_OUT).any():
            progress.say(f"sentence {number + 1}; --sentence draws another one")
            return number
    raise UserError(
        f"No test sentence of {SHORTEST} to {LONGEST} words has a predicted tree; give --sentence."
    )


def _named(number: int, trees: Sequence[Ints]) -> int:
    if not 1 <= number <= len(trees):
        raise UserError(f"--sentence {number}: the test split has sentences 1 to {len(trees):,}.")
    if (trees[number - 1] == LEFT_OUT).all():
        raise UserError(
            f"--sentence {number}: it was left out: it has no tree, fewer than two words beside "
            "punctuation, or more words than the model's window; choose another."
        )
    return number - 1
