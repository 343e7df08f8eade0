"""Files of records, arrays and parameters: read back, and named when they are damaged."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from results_by_hand import make_result
from safetensors import safe_open
from tiny_runs import run

from probes.common.errors import UserError
from probes.records.parameters import (
    of_layer,
    parameters_path,
    read_about,
    read_parameters,
    write_parameters,
)
from probes.records.record import Record
from probes.records.record_files import Index, has_arrays, read_arrays, write_record


def archive(array: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("a.npy", array)
    return content.getvalue()


def array(shape: str, kind: str = "<i8") -> bytes:
    text = (
        f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117)
        + b"\n"
    )
    return header(text)


def header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def single() -> bytes:
    content = io.BytesIO()
    np.save(content, np.arange(3))
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        single(),
        pickle.dumps({"a": 1}),
        archive(b"hello"),
        archive(header(b"((((((((")),
        archive(header(b"(" * 8999 + b"\n")),
        archive(array("(10000000000000,)")),
        archive(array("(1" + "0" * 30 + ",)")),
        archive(array("(-1,)")),
        archive(array("(3,)", "O")),
        archive(array("(3,)"))[:-30],
    ],
)
def test_arrays_that_cannot_be_read_are_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.with_suffix(".npz").write_bytes(content)
    with pytest.raises(
        UserError, match=r"record\.npz: not readable \(.*\); delete it and run again"
    ):
        read_arrays(path, ["a"])
    assert has_arrays(path, ["b"]) is False


@pytest.fixture
def parsed(monkeypatch):
    """Counts of how often each record has been parsed."""
    counted, parse = Counter(), Record.model_validate_json

    def count(content, **options):
        record = parse(content, **options)
        counted[record.key] += 1
        return record

    monkeypatch.setattr(Record, "model_validate_json", count)
    return counted


def test_a_record_that_has_changed_is_read_again(tiny_bert, tmp_path, parsed):
    run(tiny_bert, tmp_path, tasks="pos")
    path = next(tmp_path.rglob("pos-linear-*.json"))
    index = Index()
    first = index.read(path)
    assert index.read(path) is first
    write_record(path, first.model_copy(update={"seconds": {"measure": 123.0}}), {})
    assert index.read(path).seconds == {"measure": 123.0}
    index.add(path, first)
    assert index.read(path) is first
    assert parsed[first.key] == 2

    path.write_text("{")
    with pytest.raises(UserError, match="not a readable result"):
        index.read(path)


def arrays_of(*layers):
    return {of_layer(n, "weight"): np.full((2, 3), n + 0.5, np.float32) for n in layers}


@pytest.fixture
def written(tmp_path):
    record = make_result(key="ab" * 32)
    write_parameters(tmp_path, record, arrays_of(0, 12), ("NOUN", "VERB"))
    return tmp_path, record


def test_they_are_a_safetensors_file_that_says_what_they_belong_to(written):
    cache, record = written
    path = cache / "parameters" / ("ab" * 16 + ".safetensors")
    assert path == parameters_path(cache, record.key)
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["about"])
        assert set(file.keys()) == {"layer-00.weight", "layer-12.weight"}
        assert np.array_equal(file.get_tensor("layer-12.weight"), np.full((2, 3), 12.5))
    assert {
        "measurement": "scores",
        "model": "m",
        "corpus": record.corpus.name,
        "task": "pos",
        "probe": "linear",
        "key": record.key,
        "layers": [0, 12],
    }.items() <= about.items()
    assert about["classes"] == ["NOUN", "VERB"]
    found = read_parameters(str(cache), record.key)
    assert {name: array.dtype for name, array in found.items()} == dict.fromkeys(found, np.float32)


def test_the_same_parameters_are_the_same_bytes(written):
    cache, record = written
    before = parameters_path(cache, record.key).read_bytes()
    for _ in range(5):
        write_parameters(cache, record, dict(reversed(arrays_of(0, 12).items())), ("NOUN", "VERB"))
        assert parameters_path(cache, record.key).read_bytes() == before


def test_what_was_pruned_is_none(written):
    cache, record = written
    parameters_path(cache, record.key).unlink()
    assert read_parameters(cache, record.key) is None


def test_layers_that_another_run_has_stored_stay(written):
    cache, record = written
    more = {name: np.zeros((1, 1), np.float32) for name in ("layer-03.weight", "layer-less")}
    write_parameters(cache, record, more)
    found = read_parameters(cache, record.key)
    assert set(found) == {*(f"layer-{n}.weight" for n in ("00", "03", "12")), "layer-less"}
    assert read_about(parameters_path(cache, record.key))["layers"] == [0, 3, 12]


@pytest.mark.parametrize("damage", ["cut short", "a byte", "empty", "another record"])
def test_a_damaged_file_is_refused_in_a_line_and_replaced_by_the_next_run(written, damage):
    cache, record = written
    path, key = parameters_path(cache, record.key), record.key
    content = path.read_bytes()
    if damage == "a byte":
        content = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    elif damage == "another record":
        record = make_result(key="ab" * 16 + "cd" * 16)
        key = record.key
    else:
        content = content[:-5] if damage == "cut short" else b""
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"\.safetensors: not readable \(.*\); delete it and run"):
        read_parameters(cache, key)
    write_parameters(cache, record, arrays_of(1))
    assert set(read_parameters(cache, key)) == {"layer-01.weight"}
