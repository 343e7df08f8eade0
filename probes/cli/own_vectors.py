"""`probes.Vectors`: probes on the user's own arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from probes.cli.results import Results
from probes.cli.run import run_models
from probes.common.arrays import without_torch
from probes.common.errors import UserError, counted, printable
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.data.in_memory import in_memory, plain
from probes.data.label_columns import MOST_CLASSES, STRIPPED, document_of
from probes.data.sentence import LARGEST_LABEL, SPLITS, Corpus, Sentence, bare
from probes.data.sources import LabelColumn, Source
from probes.run.inputs import LazyModel
from probes.run.settings import takes_settings, validate
from probes.tasks.task import Kind

if TYPE_CHECKING:
    from probes.cli.setting_types import FitSettings

TYPES = "types of examples"
"""The annotation layer with the types of examples."""

FROM_VECTORS = (
    *("corpus", "tasks", "task_from", "layers", "limit", "drop_overlap", "split_by"),
    *("text", "messages", "special_tokens", "label", "group", "field"),
)
"""Settings that follow from the vectors."""

_SETS = (set, frozenset, tuple, list)


class Vectors:
    """Examples as arrays: their vectors at one or more layers, and their labels.

    Args:
        layers: vectors by layer. Each (examples, dimensions). Or an array, tensor or list of all
            layers from 0, the embeddings. Shape (layers, examples, dimensions). Sparse matrices of
            scipy, such as codes of a sparse autoencoder, become dense in blocks of examples only.
        labels: label of each example: a class (text or whole number), a number, or a set of
            classes.
        groups: group of each example, such as the document or person. Groups are not divided among
            splits, and are resampled for intervals. With fewer than 20 groups in test, there are
            no intervals and no tests, with a warning. By default each example is a group.
        splits: "train", "dev" or "test" for each example; by default a random tenth of the groups
            each is dev and test.
        types: type of each example, such as the word, which gets a random label in the control
            task; without types there is no control task.
        kind: as in `LayerProbe`, but "multi-label" takes sets of classes.
        name: name of the model in tables.
        task: name of the labels in tables.
        corpus: name of the examples in tables.
        seed: seed for drawing splits.

    Raises:
        UserError: the arrays do not fit together, or a value cannot be used.
    """

    def __init__(
        self,
        layers: Mapping[int, ArrayLike | csr_array] | ArrayLike | Sequence[csr_array],
        labels: Sequence[Any] | NDArray[Any],
        *,
        groups: Sequence[Hashable] | NDArray[Any] | None = None,
        splits: Sequence[str] | NDArray[Any] | None = None,
        types: Sequence[str] | NDArray[Any] | None = None,
        kind: Literal["auto"] | Kind = "auto",
        name: str = "vectors",
        task: str = "label",
        corpus: str = "examples",
        seed: int = 0,
    ) -> None:
        self.name, self.task, self.corpus = name, task, corpus
        self.layers = {
            _layer_number(layer): _array_of_layer(layer, x) for layer, x in _by_number(layers)
        }
        raw_labels = list(without_torch(labels))
        n = len(raw_labels)
        for layer, array in self.layers.items():
            if array.shape[0] != n:
                raise UserError(
                    f"Vectors: {array.shape[0]:,} vectors at layer {layer}, {n:,} labels."
                )
        self.kind, self.labels = _kind_and_labels(raw_labels, kind)
        # The corpus notes how many labels have lost blanks, which may have made two classes one.
        flat_labels = (y for x in raw_labels for y in (x if isinstance(x, _SETS) else (x,)))
        self.stripped = sum(isinstance(y, str) and y != bare(y) for y in flat_labels)
        self.grouped = groups is not None
        self.groups = _names_of_examples("groups", range(n) if groups is None else groups, n)
        self.types = [] if types is None else _names_of_examples("types", types, n)
        self.splits = (
            _random_splits(self.groups, seed) if splits is None else _split_names(splits, n)
        )
        train = {x for x, s in zip(self.labels, self.splits, strict=True) if s == "train"}
        if self.kind == "classification" and len(train) == 1:
            raise UserError(
                f"Vectors: train has only the class {train.pop()!r}; give examples of other "
                "classes, or other splits=."
            )
        if self.grouped:
            _judge_groups(self.groups, self.splits)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.splits.count(split):,} {split}" for split in SPLITS)
        layers = ", ".join(map(str, self.layers))
        return f"<Vectors: {self.kind} of {counts} · layers {layers}>"

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """A text of one word for each example: its number."""
        return [(f"{i}",) for i in range(len(self))]

    def source(self) -> Source:
        """The examples as a corpus of texts of one word."""
        column = LabelColumn(self.task, "word", self.kind, types=TYPES if self.types else "")
        parts: dict[str, list[Sentence]] = {split: [] for split in SPLITS}
        for i, (label, words) in enumerate(zip(self.labels, self.texts, strict=True)):
            columns = {column.layer: (label,)}
            if self.types:
                columns[TYPES] = (self.types[i],)
            group = self.groups[i] if self.grouped else ""
            parts[self.splits[i]].append(
                Sentence(f"{i}", "", words, columns=columns, document=group)
            )
        splits = {split: tuple(part) for split, part in parts.items()}
        notes = {f"{self.task}: {STRIPPED}": self.stripped} if self.stripped else {}
        source = in_memory(Corpus(self.corpus, "", "", splits, notes))
        return replace(source, columns={self.task: column})


@takes_settings(*FROM_VECTORS)
def probe(
    vectors: Vectors,
    *more: object,
    quiet: bool = False,
    verbose: bool = False,
    **settings: Unpack[FitSettings],
) -> Results:
    """Probe given vectors, with the same evidence as for a model.

    Args:
        settings: see `probes.run_probes`, except settings that choose a model or a corpus.

    Raises:
        UserError: something that the caller can correct.
    """
    if more or not isinstance(vectors, Vectors):
        raise UserError("probe(): takes probes.Vectors; write probe(Vectors({0: x}, y)).")
    for name in FROM_VECTORS:
        if name in settings:
            raise UserError(f"{name}=: the vectors determine it; leave it out.")
    config = validate({**settings, "layers": tuple(sorted(vectors.layers))})
    if config.workers > 1 or config.engine == "ray":
        raise UserError("workers= or engine=: vectors are in memory; leave it out.")
    source = vectors.source()
    config = config.model_copy(update={"corpus": (source.name,)})
    from probes.extraction.reading.vector_files import GivenVectors

    model = GivenVectors(printable(vectors.name), vectors.layers, vectors.texts)
    with progress.verbosity(quiet=quiet, verbose=verbose):
        return run_models(config, source, [LazyModel.of(model, config)])


def _by_number(layers: Any) -> list[tuple[Any, Any]]:
    """Numbers of layers with their vectors."""
    if isinstance(layers, Mapping):
        numbered = list(layers.items())
    else:
        in_order = isinstance(layers, (list, tuple)) or getattr(layers, "ndim", 0) == 3
        numbered = list(enumerate(layers)) if in_order else []
    if not numbered:
        raise UserError(
            "Vectors: no layers; give {layer: array}, such as {0: x}, or an array of shape "
            "(layers, examples, dimensions)."
        )
    return numbered


def _layer_number(layer: object) -> int:
    """The number of a layer, from 0."""
    if isinstance(layer, (int, np.integer)) and not isinstance(layer, bool) and layer >= 0:
        return int(layer)
    raise UserError(f"Vectors: layer {layer!r}: give whole numbers from 0, the embeddings.")


def _array_of_layer(layer: object, vectors: Any) -> NDArray[Any] | csr_array:
    """The vectors of a layer; a sparse matrix stays sparse, with sorted indices."""
    try:
        array = csr_array(vectors) if issparse(vectors) else np.asarray(without_torch(vectors))
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:100]
        raise UserError(f"Vectors: layer {layer} is not an array of numbers ({reason}).") from error
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise UserError(
            f"Vectors: layer {layer} is {array.dtype} of shape {array.shape}; give numbers of "
            "shape (examples, dimensions)."
        )
    if isinstance(array, csr_array) and not array.has_canonical_format:
        # Duplicates are added up in place, and the array may be the user's own.
        array = array.copy()
        array.sum_duplicates()
    values = array.data if isinstance(array, csr_array) else array
    with np.errstate(over="ignore"):
        finite = np.isfinite(values.astype(np.float32))
    if not finite.all():
        if isinstance(array, csr_array):
            example = array.indptr.searchsorted(finite.argmin(), "right") - 1
        else:
            example = finite.all(axis=1).argmin()
        raise UserError(
            f"Vectors: layer {layer}, example {example} (from 0): a value is NaN or "
            "infinite, or too large for 32 bits; correct it, or leave the example out."
        )
    return array


def _values_of_examples(argument: str, column: Iterable[Any], n: int) -> list[Any]:
    values = list(without_torch(column))
    if len(values) != n:
        raise UserError(f"Vectors: {len(values):,} {argument}, {n:,} labels.")
    return values


def _names_of_examples(argument: str, column: Iterable[Any], n: int) -> list[str]:
    """The group or type of each example; equal numbers are one."""
    values = _values_of_examples(argument, column, n)
    plain_value = document_of if argument == "groups" else plain  # a type may be the word None
    names = ["" if plain_value(x) in ("", None) else bare(str(x)) for x in values]
    if "" in names:
        i = names.index("")
        raise UserError(
            f"Vectors: {argument}[{i}] is {values[i]!r}; {names.count(''):,} of {n:,} are missing; "
            "give them, or leave these examples out."
        )
    first: dict[Any, str] = {}
    pairs = zip(values, names, strict=True)
    return [first.setdefault(x if isinstance(x, Number) else name, name) for x, name in pairs]


def _split_names(column: Iterable[Any], n: int) -> list[str]:
    splits = [str(x) for x in _values_of_examples("splits", column, n)]
    for i, split in enumerate(splits):
        if split not in SPLITS:
            raise UserError(f"Vectors: splits[{i}] is {split!r}. {did_you_mean(split, SPLITS)}")
    if missing := [split for split in SPLITS if split not in splits]:
        raise UserError(f"Vectors: {missing[0]} has no examples; omit splits= to draw splits.")
    return splits


def _random_splits(groups: Sequence[str], seed: int) -> list[str]:
    """A tenth of the groups each for test and dev."""
    names = list(dict.fromkeys(groups))
    if len(names) < len(SPLITS):
        raise UserError(f"Vectors: {len(names)} groups are too few to draw splits; give splits=.")
    order = np.random.default_rng(seed).permutation(len(names))
    n = max(1, round(len(names) / 10))
    drawn_splits = ["test"] * n + ["dev"] * n + ["train"] * (len(names) - 2 * n)
    of_group = {names[i]: split for i, split in zip(order, drawn_splits, strict=True)}
    return [of_group[group] for group in groups]


def _judge_groups(groups: Sequence[str], splits: Sequence[str]) -> None:
    """Warn of groups divided among splits."""
    places = set(zip(groups, splits, strict=True))
    of_group = Counter(group for group, _ in places)
    if divided := sum(n > 1 for n in of_group.values()):
        progress.warn(
            f"Vectors: {counted(divided, 'group is', 'groups are')} divided among splits, so test "
            "examples are related to training examples; omit splits=, or give each group one split"
        )


def _kind_and_labels(raw_labels: Sequence[Any], kind: str) -> tuple[Kind, list[Any]]:
    """The kind of labels, and the labels in the form of tasks."""
    labels = [x.item() if isinstance(x, np.generic) else without_torch(x) for x in raw_labels]
    sets = [isinstance(x, _SETS) for x in labels]
    if kind not in (known_kinds := ("auto", *get_args(Kind))):
        raise UserError(f"Vectors: kind={kind!r}: {did_you_mean(kind, known_kinds)}")
    if kind == "multi-label" or (kind == "auto" and any(sets)):
        fit = [x and all(map(_is_class, y)) for x, y in zip(sets, labels, strict=True)]
        _require_all("a set of classes", fit, labels)
        for i, label in enumerate(labels):
            if isinstance(label, (list, tuple)) and len(set(map(str, label))) < len(label):
                raise UserError(
                    f"Vectors: labels[{i}] is {label!r:.60}, with a class twice; give the names "
                    "of classes, not a 0 or 1 for each."
                )
        return "multi-label", [tuple(sorted(set(map(_label_name, x)))) for x in labels]
    # NaN is a missing label, and does not mean regression.
    fractions = (isinstance(x, float) and x == x and not x.is_integer() for x in labels)
    if kind == "regression" or (kind == "auto" and any(fractions)):
        fit = [isinstance(x, (int, float)) and abs(x) <= LARGEST_LABEL for x in labels]
        _require_all(f"a number up to {LARGEST_LABEL:g}", fit, labels)
        return "regression", list(map(float, labels))
    _require_all("a class", [not isinstance(x, _SETS) and _is_class(x) for x in labels], labels)
    names = list(map(_label_name, labels))
    if (n := len(set(names))) > MOST_CLASSES and any(isinstance(x, float) for x in labels):
        progress.warn(f"Vectors: {n:,} whole numbers are classes; kind='regression' predicts them")
    return "classification", names


def _is_class(label: object) -> bool:
    """Whether a label is text or a whole number, and not the mark of a missing one."""
    label = plain(label)
    is_whole = isinstance(label, int) or (isinstance(label, float) and label.is_integer())
    return is_whole or (isinstance(label, str) and bare(label).lower() not in ("", "nan"))


def _label_name(label: object) -> str:
    """The name of a class; 1, 1.0 and True are one."""
    label = plain(label)
    return bare(str(int(label) if isinstance(label, (bool, float)) else label))


def _require_all(noun: str, fit: Sequence[bool], labels: Sequence[Any]) -> None:
    if not all(fit):
        i = fit.index(False)
        raise UserError(f"Vectors: labels[{i}] is {labels[i]!r:.60}, not {noun} like the others.")
