"""Arrays beside a record that cannot be read are named, whatever is wrong with them."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from probes.common.errors import UserError
from probes.records.record_files import has_arrays, read_arrays


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
