"""The measurement of_probes on predictions written by hand."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from probes import get_measurement, load_file

load_file(Path(__file__).with_name("of_probes.py"))

REPORTED = np.array([[0, 1, 1, 2], [0, 0, 0, 0]])
OTHER = np.array([[0, 1, 1, 2], [0, 0, 0, 3]])


def test_agreement_of_hand_written_predictions():
    measure = get_measurement("of_probes")
    context = SimpleNamespace(
        layers=(0, 2),
        options=measure.options(),
        predicted=lambda layers: REPORTED,
        fits=lambda layers, draws: SimpleNamespace(predicted={"test": OTHER[:, None]}),
    )
    assert {row.layer: row.value for row in measure(context)} == {0: 1.0, 2: 0.75}
