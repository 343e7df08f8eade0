"""Fitted parameters on disk, read back with the safetensors library and after damage."""

import json

import numpy as np
import pytest
from results_by_hand import make_result
from safetensors import safe_open

from probes.common.errors import UserError
from probes.records.parameters import (
    of_layer,
    parameters_path,
    read_about,
    read_parameters,
    write_parameters,
)


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
