"""The type that a checkpoint is stored in, from the headers of its weights."""

import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from probes.extraction.model_files import find_model
from probes.extraction.stored_dtype import stored_dtype

BF16, FP16, FP32, INT = torch.bfloat16, torch.float16, torch.float32, torch.int64


@pytest.fixture
def folder(tiny_bert, tmp_path):
    """A model without weights."""
    copy = tmp_path / "m"
    shutil.copytree(tiny_bert, copy, ignore=shutil.ignore_patterns("*.safetensors"))
    configure(copy, dtype="float32")
    return copy


def configure(folder, **settings):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for name in ("dtype", "torch_dtype"):
        config.pop(name, None)
    path.write_text(json.dumps(config | settings))


def save(path, *tensors):
    """A file of tensors of these types and sizes."""
    named = {
        str(i): torch.zeros(size, dtype=dtype) for i, (dtype, *size) in enumerate(tensors, start=1)
    }
    save_file(named, path)


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ([(BF16, 3, 4)], "bfloat16"),
        ([(FP16, 3, 4)], "float16"),
        ([(FP32, 3, 4)], "float32"),
        ([(torch.float64, 3, 4)], "float32"),
        # Numbers count: neither bytes (24 against 28) nor tensors.
        ([(BF16, 3, 4), (FP32, 7), (FP32, 0)], "bfloat16"),
        ([(FP16, 1), (FP16, 1), (FP16, 1), (FP32, 9)], "float32"),
        ([(BF16, 2, 3), (FP32, 6)], "float32"),
        ([(FP16, 9), (INT, 8)], "float16"),
        ([(FP16, 3), (BF16, 4)], "bfloat16"),
        ([], "float32"),
    ],
)
def test_the_type_of_most_numbers_counts(folder, tensors, expected):
    save(folder / "model.safetensors", *tensors)
    assert stored_dtype(find_model(str(folder))) == expected
    assert stored_dtype(find_model(f"random-3:{folder}")) == expected


def sharded(folder, shards):
    """Write shards, and the index that lists them."""
    weights = {}
    for n, tensors in enumerate(shards, start=1):
        name = f"model-{n:05}-of-{len(shards):05}.safetensors"
        save(folder / name, *tensors)
        weights |= {f"{n}.{i}": name for i in range(len(tensors))}
    index = {"metadata": {}, "weight_map": weights}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_all_shards_of_the_index_count_and_no_other_file(folder):
    sharded(folder, [[(FP32, 2)], [(BF16, 5)], [(FP32, 2)]])
    save(folder / "consolidated.safetensors", (FP32, 99))
    assert stored_dtype(find_model(str(folder))) == "bfloat16"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "float32", "torch_dtype": "float16"}, "float32"),
        ({"dtype": ["bfloat16"]}, "float32"),
        ({"dtype": "float8_e4m3fn"}, "float32"),
        ({}, "float32"),
    ],
)
def test_without_weights_the_configuration_names_it(folder, settings, expected):
    configure(folder, **settings)
    assert stored_dtype(find_model(f"random:{folder}")) == expected


def test_weights_count_and_not_what_the_configuration_names(folder):
    configure(folder, dtype="float16")
    save(folder / "model.safetensors", (BF16, 1))
    assert stored_dtype(find_model(str(folder))) == "bfloat16"


@pytest.mark.parametrize(
    "damaged", [b"", b"\2\0\0\0\0\0\0\0[]", b"\xff" * 8 + b"{}", b"\2\0\0\0\0\0\0\0{"]
)
def test_what_cannot_be_read_is_left_to_whoever_loads_it(folder, damaged):
    (folder / "model.safetensors").write_bytes(damaged)
    configure(folder, dtype="float16")
    for name in (str(folder), f"random:{folder}"):
        assert stored_dtype(find_model(name)) == "float16"
    (folder / "config.json").write_text("[")
    assert stored_dtype(find_model(f"random:{folder}")) == "float32"


def test_a_twin_of_half_a_checkpoint_follows_the_configuration(folder):
    sharded(folder, [[(BF16, 5)], [(BF16, 5)]])
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert stored_dtype(find_model(f"random:{folder}")) == "float32"
