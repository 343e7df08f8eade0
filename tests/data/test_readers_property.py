"""Whatever bytes a reader is fed, the user sees sentences or our own error, in one line."""

import io
import tarfile
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.common.errors import UserError
from probes.data.conll2000 import read_split
from probes.data.conllu_files import read_conllu
from probes.data.downloads import digest_of
from probes.data.find import find_corpus
from probes.data.propbank import MEMBERS, read_skeletons

CONLLU = (
    b"# sent_id = a\n1\tHi\thi\tINTJ\tUH\tA=b\t0\troot\t_\tChunk=B-NP|Frame=x.01|Args=A:1\n"
    b"1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n2\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\tChunk=O\n\n"
)
JSONL = b'{"tokens": ["a", "b"], "y": ["O", "B-X"]}\n{"tokens": ["c"], "y": ["O"]}\n'
CSV = b'tokens,y\na b,O B-X\n"c, d",O O\n'
CONLL2000 = b"The DT B-NP\ndog NN I-NP\n. . O\n\n"
SKELETON = b"x 0 0 [WORD] NN (TOP(NP*)) break break.01 (V*)\n\n"
TEXT = b"One line.\n\nAnother one.\n"


def tarred(content):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("r/data/google/ewt/a/b.xml.gold_skel")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zipped(content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conll2000/train.txt", content)
    return packed.getvalue()


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


@check(300)
@given(arbitrary(CONLL2000).map(zipped) | arbitrary(zipped(CONLL2000)))
def test_conll2000(content):
    read(content, "a.zip", lambda path: read_split(path, "train"))


def skeletons(path):
    # The content digest would refuse everything before it is parsed.
    read_skeletons(path, replace(MEMBERS, digest=digest_of(MEMBERS._found(path))))
    return []


@check(300)
@given(arbitrary(SKELETON).map(tarred) | arbitrary(tarred(SKELETON)))
def test_propbank(content):
    read(content, "a.tar.gz", skeletons)


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


@pytest.fixture(scope="module")
def sentencizer(tmp_path_factory):
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    folder = tmp_path_factory.mktemp("pipelines") / "sentencizer"
    nlp.to_disk(folder)
    return str(folder)


@check(30)
@given(content=arbitrary(TEXT))
def test_raw_text(sentencizer, content):
    def reader(path):
        return find_corpus(str(path), annotate=sentencizer, split_by="sentence").load()

    read(content, "a.txt", reader)
