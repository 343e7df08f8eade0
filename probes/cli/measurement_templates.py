"""The files that `new-measurement` writes: a measurement to start from, and its test."""

from __future__ import annotations

from string import Template

OF = ("corpus", "probes")
"""Kinds of measurements."""

CORPUS = Template('''"""The mean norm of the vectors of test words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from probes import CorpusMeasurement, Found, Frozen, Number, Row, Table, measurement

if TYPE_CHECKING:
    from probes import CorpusContext


class Options(Frozen):
    """Each field becomes a flag, here --$flag-order, and part of the key."""

    order: float = Field(default=2.0, gt=0, description="order of the norm")


class Payload(Frozen):
    """What is stored in the record."""

    means: dict[int, float]
    """By layer."""


@measurement
class $cls(CorpusMeasurement[Payload]):
    """The mean norm of the vectors of test words, by layer."""

    name = "$name"
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "mean norm of word vectors, by layer"
    payload = Payload
    options = Options

    def missing(self, layers: frozenset[str]) -> str:
        # The annotation layers of the corpus: upos, xpos, feats, heads, deprels, chunks, frames.
        return ""  # or why the corpus cannot be measured, such as "it has no heads"

    def compute(self, context: CorpusContext) -> Found[Payload]:
        means = {}
        for layer in context.layers:
            vectors = context.words("test", layer)  # (words, dimensions), float32
            norms = np.linalg.norm(vectors, ord=context.options.order, axis=1)
            means[layer] = float(norms.mean())
        return Found(Payload(means=means))

    def numbers(self, record):
        # For measurements.csv.
        for layer, mean in record.payload.means.items():
            yield Number("mean_norm", mean, layer)

    def tables(self, record):
        # Printed at the end of a run.
        rows = (Row.of(str(layer), f"{mean:.3f}") for layer, mean in record.payload.means.items())
        return [Table(f"{record.model.name} · $name", ("layer", "mean norm"), tuple(rows))]
''')

CORPUS_TEST = Template('''"""The measurement $name on vectors written by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from probes import get_measurement, load_file

load_file(Path(__file__).with_name("$name.py"))

VECTORS = {0: [[3.0, 4.0], [0.0, 1.0]], 2: [[0.0, 2.0], [2.0, 0.0]]}


def test_what_is_found_in_hand_written_vectors():
    its = get_measurement("$name")
    context = SimpleNamespace(
        layers=(0, 2),
        words=lambda split, layer: np.array(VECTORS[layer]),
        options=its.options(),
    )
    found = its.compute(context)
    assert found.payload.means == {0: 3.0, 2: 2.0}
''')

PROBES = Template('''"""Whether probes from another seed predict what the reported ones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from probes import Found, Frozen, Number, ProbeMeasurement, Row, Table, measurement

if TYPE_CHECKING:
    from probes import ProbeContext


class Options(Frozen):
    """Each field becomes a flag, here --$flag-seed, and part of the key."""

    seed: int = Field(default=1, ge=1, description="seed of the other probes")


class Payload(Frozen):
    """What is stored in the record."""

    shares: dict[int, float]
    """By layer."""


@measurement
class $cls(ProbeMeasurement[Payload]):
    """The share of test examples on which probes from two seeds agree, by layer."""

    name = "$name"
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "share of test examples on which probes from two seeds agree"
    payload = Payload
    options = Options

    def missing(self, task, probe, level) -> str:
        # Why it is not made for a task and probe family; empty if it is.
        return "predictions are numbers" if task.kind == "regression" else ""

    def extent(self, request):
        # How often which layers are measured; request.scores says which have scores.
        return dict.fromkeys(request.layers, 1)

    def compute(self, context: ProbeContext) -> Found[Payload]:
        from probes import Draw  # which imports torch: only where something is computed

        reported = context.predicted(context.layers)  # (layers, examples)
        fits = context.fits(context.layers, [Draw(seed=context.options.seed)])
        other = fits.predicted["test"][:, 0]  # (layers, fits, examples)
        alike = [float((a == b).mean()) for a, b in zip(reported, other, strict=True)]
        return Found(Payload(shares=dict(zip(context.layers, alike, strict=True))))

    def numbers(self, record):
        # For measurements.csv.
        for layer, share in record.payload.shares.items():
            yield Number("agreement", share, layer)

    def tables(self, results):
        # One column per task; shown by `show --by $name`, in layers.md and on the page.
        found = [result.found(self.name).shares for result in results]
        rows = []
        for layer in sorted({layer for shares in found for layer in shares}):
            cells = (f"{100 * x[layer]:.1f}" if layer in x else "–" for x in found)
            rows.append(Row.of(str(layer), *cells))
        heads = ("layer", *(result.task.name for result in results))
        return [Table("$name, %", heads, tuple(rows))]
''')

PROBES_TEST = Template('''"""The measurement $name on predictions written by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from probes import get_measurement, load_file

load_file(Path(__file__).with_name("$name.py"))

REPORTED = np.array([[0, 1, 1, 2], [0, 0, 0, 0]])
OTHER = np.array([[0, 1, 1, 2], [0, 0, 0, 3]])


def test_what_is_found_in_hand_written_predictions():
    its = get_measurement("$name")
    context = SimpleNamespace(
        layers=(0, 2),
        options=its.options(),
        predicted=lambda layers: REPORTED,
        fits=lambda layers, draws: SimpleNamespace(predicted={"test": OTHER[:, None]}),
    )
    found = its.compute(context)
    assert found.payload.shares == {0: 1.0, 2: 0.75}
''')


def files(name: str, of: str) -> dict[str, str]:
    """The contents of the measurement's file and of its test, by file name.

    Args:
        of: one of `OF`.
    """
    words = {
        "name": name,
        "flag": name.replace("_", "-"),
        "cls": "".join(part.capitalize() for part in name.split("_")),
    }
    file, test = (CORPUS, CORPUS_TEST) if of == "corpus" else (PROBES, PROBES_TEST)
    return {f"{name}.py": file.substitute(words), f"test_{name}.py": test.substitute(words)}
