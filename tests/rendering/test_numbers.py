"""The CSV file of a measurement of a corpus, in the folder of model and corpus."""

import pandas as pd
import pytest
from corpus_records import corpus_record

from probes.measurements.plugins import load_file
from probes.rendering.folder import write_numbers

PLUG_IN = """
from probes import CorpusMeasurement, Found, Frozen, Number, measurement

class Payload(Frozen):
    value: float

@measurement
class Mine(CorpusMeasurement[Payload]):
    name = "my_own"
    summary = "two numbers"
    payload = Payload
    csv_name = "heads"

    def compute(self, context):
        return Found(Payload(value=1.0))

    def tables(self, record):
        return []

    def numbers(self, record):
        yield Number("uas", 0.5, 1, 0.4, 0.6, axes={"head": 2}, beside={"n": 7, "baseline": 0.3})
        yield Number("uas", None, 2, axes={"head": 1}, beside={"kind": "offset +1", "n": 9})
"""


@pytest.mark.usefixtures("plug_ins")
def test_what_stands_beside_a_number_has_columns_after_its_interval(write, tmp_path):
    load_file(write(PLUG_IN))
    path = write_numbers(tmp_path, corpus_record("my_own", {"value": 1.0}, 2))
    assert path == tmp_path / "heads.csv"
    table = pd.read_csv(path).astype(object)
    rows = [[None if pd.isna(x) else x for x in row] for row in table.values.tolist()]
    assert list(table) == [
        *("model", "corpus", "layer", "head", "metric", "split", "value", "low", "high"),
        *("n", "baseline", "kind", "key"),
    ]
    assert rows == [
        ["m", "c", 1, 2, "uas", "test", 0.5, 0.4, 0.6, 7, 0.3, None, "sha256:33333333"],
        ["m", "c", 2, 1, "uas", "test", *[None] * 3, 9, None, "offset +1", "sha256:33333333"],
    ]


@pytest.mark.usefixtures("plug_ins")
def test_the_file_has_the_measurements_own_name_unless_it_says_otherwise(write, tmp_path):
    load_file(write(PLUG_IN.replace('csv_name = "heads"', "")))
    record = corpus_record("my_own", {"value": 1.0}, 2)
    assert write_numbers(tmp_path, record) == tmp_path / "my_own.csv"
