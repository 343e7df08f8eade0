"""Whatever bytes a reader is fed, the user sees sentences or our own error, in one line."""

import io
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.common.errors import UserError
from probes.data.conllu_files import read_conllu
from probes.data.find import find_corpus

CONLLU = (
    b"# sent_id = a\n1\tHi\thi\tINTJ\tUH\tA=b\t0\troot\t_\tChunk=B-NP|Frame=x.01|Args=A:1\n"
    b"1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n2\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\tChunk=O\n\n"
)
JSONL = b'{"tokens": ["a", "b"], "y": ["O", "B-X"]}\n{"tokens": ["c"], "y": ["O"]}\n'
CSV = b'tokens,y\na b,O B-X\n"c, d",O O\n'


def parquet():
    from datasets import Dataset

    packed = io.BytesIO()
    Dataset.from_list([{"tokens": ["a", "b"], "y": ["O", "B-X"]}] * 3).to_parquet(packed)
    return packed.getvalue()


@st.composite
def mutated(draw, sound):
    """A sound file with pieces taken out, put in or repeated."""
    content = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 12)))
        content[start:end] = draw(
            st.binary(max_size=6) | st.sampled_from([b"\t", b"\n", b'"', b",", b"\t\t", b"  "])
        )
    return bytes(content)


def arbitrary(sound):
    return st.binary(max_size=200) | mutated(sound)


def read(content, name, reader):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        message = ""
        try:
            for sentence in reader(path):
                assert sentence.words
                assert all(isinstance(word, str) for word in sentence.words)
        except UserError as error:
            message = str(error)
        assert "\n" not in message
        assert not message or str(path) in message or "--corpus a:" in message


def read_table(path):
    return find_corpus(str(path), task_from=("y",), split_by="sentence").load()


def check(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@check(400)
@given(arbitrary(CONLLU))
def test_conllu(content):
    read(content, "a.conllu", lambda path: read_conllu(path, "en"))


@check(40)
@given(arbitrary(JSONL))
def test_json_lines(content):
    read(content, "a.jsonl", read_table)


@check(40)
@given(arbitrary(CSV))
def test_csv(content):
    read(content, "a.csv", read_table)


@check(40)
@given(arbitrary(parquet()))
def test_parquet(content):
    read(content, "a.parquet", read_table)
