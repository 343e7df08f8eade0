"""Word vectors from a file: one vector for each word of a corpus, or for each word form.

- A ``.npz``, ``.npy`` or ``.safetensors`` file: words of train, dev and test in order.
- A ``.txt`` or ``.vec`` file in the text format of word2vec: one layer of static vectors.

The array of a ``.npy`` file has the shape (layers, words, dimensions), or (words, dimensions) for
layer 0 alone. Other files have an array ``layer_<number>`` of shape (words, dimensions) for each
layer, or one array ``hidden_states`` of shape (layers, words, dimensions).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.sparse import csr_array

from probes.common.errors import UserError
from probes.common.files import folder_name, sha256
from probes.common.terminal import progress
from probes.data.sentence import Corpus, Sentence
from probes.extraction.models.model_files import ModelSource
from probes.extraction.models.model_names import VECTORS
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.collectors import Collector, WordVectors, to_store
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.text_vectors import TextVectors
from probes.extraction.reading.views import Text
from probes.records.header import ModelRecord
from probes.tasks.task import ReadSite

_ARRAYS, _STATIC = (".npz", ".npy", ".safetensors"), (".txt", ".vec")

_LAYER, _MOST_LAYERS = re.compile(r"(?:layer[_-]?)?(\d{1,4})"), 10_000

Layers = dict[int, NDArray[Any]]


def find_vectors(name: str) -> ModelSource:
    """The file of vectors behind a name with the prefix ``vectors:``.

    Raises:
        UserError: there is no such file, or its format is unknown.
    """
    path = Path(name.removeprefix(VECTORS)).expanduser()
    kinds = ", ".join((*_ARRAYS, *_STATIC))
    if path.is_dir():
        raise UserError(
            f"--vectors {path}: is a folder; give one file with the vectors of all words ({kinds})."
        )
    if not path.is_file():
        raise UserError(f"--vectors {path}: there is no such file.")
    if path.suffix not in (*_ARRAYS, *_STATIC):
        raise UserError(f"--vectors {path}: give a file of these: {kinds}.")
    content = json.dumps({path.name: sha256(path)})
    digest = hashlib.sha256(content.encode()).hexdigest()
    slug = f"{folder_name(path.stem)}-{digest[:8]}"
    return ModelSource(path.stem, path, digest[:12], slug, None, digest, files=(path,))


def read_vectors(source: ModelSource, corpus: Corpus) -> GivenVectors:
    """The vectors of a corpus's words.

    Raises:
        UserError: the file cannot be read, or does not fit the corpus.
    """
    sentences = list(corpus)
    notes: dict[str, str] = {}
    if source.folder.suffix in _STATIC:
        layers, without = _static_layers(source.folder, sentences)
        notes["words without a vector, which have zeros"] = f"{without:,}"
        progress.say(f"vectors {source.name}: {without:,} words of the corpus have none, but zeros")
    elif corpus.limited:
        raise UserError(f"--vectors {source.folder}: is of the whole corpus; leave --limit out.")
    else:
        layers = _finite_layers(source.folder, sum(map(len, sentences)))
    texts, word_rows = _distinct_texts(sentences, layers, source.name, notes)
    return GivenVectors(
        source.name,
        {layer: vectors[word_rows] for layer, vectors in layers.items()},
        texts,
        revision=source.revision,
        digest=source.digest,
        notes=notes,
    )


def _distinct_texts(
    sentences: Sequence[Sentence], layers: Layers, name: str, notes: dict[str, str]
) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """The distinct texts, and the rows of their words; a text that occurs again is read once.

    Repetitions with other vectors are counted.
    """
    first: dict[tuple[str, ...], int] = {}
    rows, start, differing = [], 0, 0
    for sentence in sentences:
        end = start + len(sentence)
        if (before := first.setdefault(sentence.words, start)) == start:
            rows.append(np.arange(start, end))
        else:
            again = slice(before, before + len(sentence))
            differing += not all(
                np.allclose(x[again], x[start:end], rtol=1e-2, atol=1e-3) for x in layers.values()
            )
        start = end
    if differing:
        note = "sentences that occur again with other vectors, of which the first are used"
        notes[note] = f"{differing:,}"
        progress.warn(f"vectors {name}: {differing:,} {note}")
    return list(first), np.concatenate(rows)


def _finite_layers(path: Path, n_words: int) -> Layers:
    """The vectors of each layer in a file. Each (words, dimensions)."""
    layers = _by_layer(path, _arrays_of_file(path, n_words), n_words)
    for layer, array in layers.items():
        finite = np.isfinite(array).all(axis=1)
        if not finite.all():
            raise UserError(
                f"{path}: layer {layer}, word {int(np.argmin(finite)) + 1}: a value is NaN or "
                "infinite."
            )
    return layers


def _by_layer(path: Path, arrays: Mapping[str, NDArray[Any]], n_words: int) -> Layers:
    """The arrays of each layer, by their names and shapes alone."""
    layers: Layers = {}
    for name, array in arrays.items():
        if name == "hidden_states":
            if array.ndim != 3 or len(array) > _MOST_LAYERS:
                raise UserError(
                    f"{path}: {name} has the shape {array.shape}; give (layers, words, dimensions)."
                )
            new = dict(enumerate(array))
        elif numbered := _LAYER.fullmatch(name):
            new = {int(numbered[1]): array}
        else:
            raise UserError(f"{path}: an array {name!r}; call arrays layer_0, layer_1, …")
        if twice := layers.keys() & new.keys():
            raise UserError(f"{path}: two arrays are of layer {min(twice)}; remove one.")
        layers |= new
    if not layers:
        raise UserError(f"{path}: has no layers.")
    for layer, array in layers.items():
        if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
            raise UserError(f"{path}: layer {layer} is {array.dtype} of the shape {array.shape}.")
        if len(array) != n_words:
            raise UserError(
                f"{path}: {len(array):,} vectors at layer {layer} for {n_words:,} words; give one "
                "for each word of train, dev and test, in order."
            )
    return layers


def _arrays_of_file(path: Path, n_words: int) -> dict[str, NDArray[Any]]:
    """The arrays of a file. What a compressed one claims is checked before anything is inflated."""
    try:
        if path.suffix == ".safetensors":
            tensors = load_file(path)
            half = torch.bfloat16  # which numpy does not know
            return {k: (x.float() if x.dtype == half else x).numpy() for k, x in tensors.items()}
        if path.suffix == ".npy":
            with path.open("rb") as file:
                _header(file, path.stat().st_size)
            array = np.load(path, allow_pickle=False, mmap_mode="r")
            return {"hidden_states": array} if array.ndim == 3 else {"layer_0": array}
        claimed = {}
        with ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    claimed[member.filename.removesuffix(".npy")] = _header(file, member.file_size)
        _by_layer(path, claimed, n_words)
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except UserError:
        raise
    except Exception as error:  # whatever a damaged file makes readers raise
        reason = " ".join(f"{error}".split())[:120] or type(error).__name__
        raise UserError(f"{path}: cannot be read ({reason}); write it anew.") from error


def _header(file: IO[bytes], size: int) -> NDArray[Any]:
    """An array of the shape and type that a header names, which needs no memory.

    Args:
        size: bytes of header and array.

    Raises:
        ValueError: there is no header, or it tells of more or fewer bytes.
    """
    first = npy.read_magic(file) == (1, 0)
    shape, _, dtype = (npy.read_array_header_1_0 if first else npy.read_array_header_2_0)(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"{dtype} of the shape {shape} does not fit {size:,} bytes")
    return np.broadcast_to(np.zeros((), dtype), shape)


def _static_layers(path: Path, sentences: Iterable[Sentence]) -> tuple[Layers, int]:
    """The vectors of word forms, lower-cased where the form has none, and how many have none."""
    words = [word for sentence in sentences for word in sentence.words]
    forms = {*words, *map(str.lower, words)}
    vectors: dict[str, NDArray[Any]] = {}
    size, claimed, n_words, last = 0, None, 0, ""
    # Some words contain other line breaks.
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            word, _, numbers = line.rstrip().partition(" ")
            # word2vec's header: how many words the file has, and the size of their vectors.
            if number == 1 and word.isdecimal() and numbers.strip().isdecimal():
                claimed, size = int(word), int(numbers)
                continue
            n_words, last = n_words + bool(numbers), numbers or last
            if word not in forms or word in vectors:
                continue
            try:
                vector = np.array(numbers.split(), dtype=np.float32)
            except ValueError as error:
                raise UserError(f"{path}, line {number}: not a word and numbers.") from error
            if not len(vector) or (size and len(vector) != size):
                raise UserError(
                    f"{path}, line {number}: {len(vector)} numbers, not {size or 'some'}."
                )
            if not np.isfinite(vector).all():
                raise UserError(f"{path}, line {number}: a value is NaN or infinite; correct it.")
            vectors[word], size = vector, len(vector)
    if claimed is not None and (claimed != n_words or len(last.split()) != size):
        raise UserError(
            f"{path}: has {n_words:,} words, the last with {len(last.split())} numbers; its first "
            f"line says {claimed:,} with {size}. Get it anew, or correct the line."
        )
    if not vectors:
        raise UserError(f"{path}: has no word of the corpus.")
    zeros = np.zeros(size, dtype=np.float32)
    rows = [vectors.get(word, vectors.get(word.lower())) for word in words]
    without = sum(row is None for row in rows)
    return {0: np.stack([zeros if row is None else row for row in rows])}, without


Words = tuple[str, ...]


class GivenVectors:
    """Word vectors in the place of an `Encoder`: they are looked up by their text.

    Args:
        name: name of the model in tables.
        layers: the vectors of each layer. Each (words, dimensions), text by text. Those of sparse
            arrays become dense when they are read.
        texts: the words of each text, all distinct.
        revision: see `ModelRecord`.
        digest: digest of the files; `content` if empty.
        notes: remarks for records.

    Attributes:
        content: digest of the vectors, text by text.

    Raises:
        UserError: layers differ in shape.
    """

    reads_text = False
    has_head = False
    """No other text can be read, and nothing but word vectors."""

    capacity = 1 << 62
    """No text has several windows."""

    def __init__(
        self,
        name: str,
        layers: Mapping[int, NDArray[Any] | csr_array],
        texts: Sequence[Words],
        *,
        revision: str = "",
        digest: str = "",
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self._layers, self.device = dict(sorted(layers.items())), torch.device("cpu")
        self.words = self
        self.mask_id = None
        self.notes = dict(notes or {})
        starts = np.cumsum([0, *map(len, texts)])
        self._rows = {text: int(start) for text, start in zip(texts, starts[:-1], strict=True)}
        first, *further = self._layers
        shape = self._layers[first].shape
        for layer in (first, *further):
            if self._layers[layer].shape != shape or len(shape) != 2:
                raise UserError(
                    f"{name}: layer {layer} has the shape {self._layers[layer].shape}, layer "
                    f"{first} has {shape}; give one (words, dimensions) for all layers."
                )
        if shape[0] != starts[-1]:
            raise UserError(f"{name}: {shape[0]:,} vectors for {starts[-1]:,} words.")
        self.content = _digest_of_arrays(self._layers)
        self.info = ModelRecord(
            name=name,
            revision=revision,
            digest=digest or self.content,
            architecture="given vectors",
            n_layers=max(self._layers),
            hidden_size=shape[1],
            parameters=0,
            window=0,
            causal=False,
            random_seed=None,
        )

    def require(self, site: ReadSite) -> None:
        """Refuse every site, since given vectors are of layers."""
        raise UserError(f"--sites {site}: {self.info.name} is given vectors, which are of layers.")

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """Texts without subwords, since none are known."""
        none = np.empty(0, dtype=np.int64)
        return [Pieces(none, np.zeros(len(text.words) + 1, dtype=np.int64), 0) for text in texts]

    def batches(self, pieces: Sequence[Pieces], batch_tokens: int) -> list[list[int]]:
        """Groups of 64 texts, so that a shard has up to 1,024. None is read."""
        numbers = range(len(pieces))
        return [list(numbers[first : first + 64]) for first in range(0, len(pieces), 64)]

    def encode(
        self, shard: Shard, pieces: Sequence[Pieces], batch_tokens: int, collector: Collector
    ) -> dict[str, torch.Tensor]:
        """The vectors of a shard's words; see `Encoder.encode`.

        Raises:
            UserError: something else than word vectors is asked for, a text has none, or a layer
                was not given.
        """
        name = self.info.name
        if type(collector) is WordVectors:  # a subclass keeps other vectors
            layers = [layer for layer, _ in collector.pairs]
        elif type(collector) is not TextVectors:
            raise UserError(f"{name}: given vectors have no {collector.name}; leave it out.")
        elif {position.kind for *_, position in collector.triples} == {"mean"}:
            layers = [layer for layer, *_ in collector.triples]
        else:
            raise UserError(f"{name}: is given one vector for each text; leave --positions out.")
        arrays = {}
        rows = np.concatenate([self._rows_of(text) for text in shard.texts])
        for part, layer in zip(collector.parts, layers, strict=True):
            if layer not in self._layers:
                names = ", ".join(map(str, self._layers))
                raise UserError(
                    f"{name}: no vectors of layer {layer}; give --layers {names.replace(' ', '')}."
                )
            array = self._layers[layer][rows]
            array = array.toarray() if isinstance(array, csr_array) else array
            vectors = torch.from_numpy(np.array(array, dtype=np.float32))
            peak = float(vectors.abs().max())
            arrays[part] = to_store(layer, vectors, peak, collector.storage)
        return arrays

    def _rows_of(self, text: Text) -> NDArray[np.int64]:
        start = self._rows.get(text.words)
        if start is None or text.mask is not None:
            raise UserError(f"{self.info.name}: no vectors of {' '.join(text.words)[:80]!r}.")
        return np.arange(start + text.kept_span[0], start + text.kept_span[1])


def _digest_of_arrays(layers: Mapping[int, NDArray[Any] | csr_array]) -> str:
    digest = hashlib.sha256()
    for layer, vectors in layers.items():
        digest.update(f"{layer} {vectors.dtype.str} {vectors.shape}".encode())
        parts = [vectors]
        if isinstance(vectors, csr_array):
            indices = (x.astype(np.int64) for x in (vectors.indices, vectors.indptr))
            parts = [vectors.data, *indices]
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
