"""Damaged files of vectors: each is one line with the file, and nothing large is allocated."""

import io
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

import probes
from probes.common.errors import UserError
from probes.extraction.vector_files import find_vectors, read_vectors

SENTENCES = tuple(probes.Sentence(f"s{i}", "en", ("a", f"b{i}")) for i in range(3))


def headed(shape, content=b""):
    """An array that claims a shape."""
    file = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + content


def archive(content, name="layer_0.npy"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as of:
        of.writestr(name, content)
    return file.getvalue()


def flipped():
    content = bytearray(archive(headed((6, 50), np.random.default_rng(0).bytes(1200))))
    content[120] ^= 255
    return bytes(content)


HUGE = headed((10**21, 6))
OPEN = b"\x93NUMPY\x01\x006\x00{" + b" " * 53
DAMAGED = {
    "huge-shape.npy": (HUGE, "does not fit 128 bytes"),
    "zip-named.npy": (archive(b""), "the magic string is not correct"),
    "open.npy": (OPEN, "cannot be read"),
    "short.npy": (headed((6, 2), b"abc"), r"float32 of the shape \(6, 2\) does not fit"),
    "overflow.npz": (archive(HUGE), "does not fit 128 bytes"),
    "open.npz": (archive(OPEN), "cannot be read"),
    "no-array.npz": (archive(b"", "hidden_states.npy"), "cannot be read"),
    "flipped.npz": (flipped(), "cannot be read"),
    "layers.npz": (archive(headed((10**12, 0, 4)), "hidden_states.npy"), r"\(layers, words"),
    "empty.npy": (headed((6, 0)), r"layer 0 is float32 of the shape \(6, 0\)"),
    "inflating.npz": (archive(headed((7, 10**6), bytes(28 * 10**6))), "7 vectors at layer 0 for 6"),
}


def read(path):
    splits = dict(zip(("train", "dev", "test"), zip(SENTENCES), strict=True))
    corpus = probes.Corpus("x", "", "", splits)
    return read_vectors(find_vectors(f"vectors:{path}"), corpus)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_line_before_anything_is_allocated(name, tmp_path):
    path = tmp_path / name
    content, says = DAMAGED[name]
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}: .*{says}"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


def test_bfloat16_is_cast(tmp_path):
    import torch
    from safetensors.torch import save_file

    path = tmp_path / "half.safetensors"
    save_file({"layer_0": torch.full((6, 2), 1.5, dtype=torch.bfloat16)}, path)
    assert (read(path)._layers[0] == np.float32(1.5)).all()
