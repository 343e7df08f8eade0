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

from probes import CorpusMeasurement, Frozen, Lines, Pivot, Row, measurement

if TYPE_CHECKING:
    from probes import CorpusContext


class Options(Frozen):
    """Each field becomes a flag, here --$flag-order, and part of the key."""

    order: float = Field(default=2.0, gt=0, description="order of the norm")


@measurement
class $cls(CorpusMeasurement):
    """The mean norm of the vectors of test words, by layer."""

    name = "$name"
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "mean norm of word vectors, by layer"
    options = Options
    # How the rows are shown: a table, and a chart that `figure` draws, too.
    views = (Pivot(), Lines("$name", "mean_norm"))

    def missing(self, layers: frozenset[str]) -> str:
        # The annotation layers of the corpus: upos, xpos, feats, heads, deprels, chunks, frames.
        return ""  # or why the corpus cannot be measured, such as "it has no heads"

    def compute(self, context: CorpusContext):
        for layer in context.layers:
            vectors = context.words("test", layer)  # (words, dimensions), float32
            norms = np.linalg.norm(vectors, ord=context.options.order, axis=1)
            yield Row("mean_norm", norms.mean(), layer, n=len(norms))
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
    assert {row.layer: row.value for row in its.compute(context)} == {0: 3.0, 2: 2.0}
''')

PROBES = Template('''"""Whether probes from another seed predict what the reported ones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from probes import Frozen, Lines, Pivot, ProbeMeasurement, Row, measurement

if TYPE_CHECKING:
    from probes import ProbeContext


class Options(Frozen):
    """Each field becomes a flag, here --$flag-seed, and part of the key."""

    seed: int = Field(default=1, ge=1, description="seed of the other probes")


@measurement
class $cls(ProbeMeasurement):
    """The share of test examples on which probes from two seeds agree, by layer."""

    name = "$name"
    # Raise it whenever the same input would give other numbers.
    version = 1
    summary = "share of test examples on which probes from two seeds agree"
    options = Options
    # Shown by `show --by $name`, in layers.md and on the page.
    views = (Pivot(), Lines("$name", "agreement"))

    def missing(self, task, probe, level) -> str:
        # Why it is not made for a task and probe family; empty if it is.
        return "predictions are numbers" if task.kind == "regression" else ""

    def extent(self, request):
        # How often which layers are measured; request.scores says which have scores.
        return dict.fromkeys(request.layers, 1)

    def compute(self, context: ProbeContext):
        from probes import Draw  # which imports torch: only where something is computed

        reported = context.predicted(context.layers)  # (layers, examples)
        fits = context.fits(context.layers, [Draw(seed=context.options.seed)])
        other = fits.predicted["test"][:, 0]  # (layers, fits, examples)
        for layer, one, two in zip(context.layers, reported, other, strict=True):
            yield Row("agreement", (one == two).mean(), layer, n=len(one))
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
    assert {row.layer: row.value for row in its.compute(context)} == {0: 1.0, 2: 0.75}
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
