"""The measurement of_corpus on vectors written by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from probes import get_measurement, load_file

load_file(Path(__file__).with_name("of_corpus.py"))

VECTORS = {0: [[3.0, 4.0], [0.0, 1.0]], 2: [[0.0, 2.0], [2.0, 0.0]]}


def test_mean_norm_of_hand_written_vectors():
    measure = get_measurement("of_corpus")
    context = SimpleNamespace(
        layers=(0, 2),
        words=lambda split, layer: np.array(VECTORS[layer]),
        options=measure.options(),
    )
    assert {row.layer: row.value for row in measure(context)} == {0: 3.0, 2: 2.0}
