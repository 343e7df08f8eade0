"""Sentences that are written are read back; other bytes give sentences or our own error, in one line."""

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_files import write_rows

from probes.common.errors import UserError
from probes.data.conllu_files import read_conllu
from probes.data.find import find_corpus
from probes.data.sentence import ROOT, Sentence

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
def test_any_conllu_is_read_or_refused(content):
    read(content, "a.conllu", lambda path: read_conllu(path, "en"))


@pytest.mark.parametrize(
    ("ending", "sound"), [("jsonl", JSONL), ("csv", CSV), ("parquet", parquet())]
)
def test_any_table_is_read_or_refused(ending, sound):
    @check(40)
    @given(arbitrary(sound))
    def any_content(content):
        read(content, f"a.{ending}", read_table)

    any_content()


# -- what was written ---------------------------------------------------------------------

WORD = st.text(
    st.characters(categories=["L", "N"], include_characters="\",.'"), min_size=1, max_size=5
)
TAG = st.sampled_from(["A", "B", "C"])


@st.composite
def sentences(draw):
    """A sentence of several layers, of which some may be absent, and whether a space follows words."""
    n = draw(st.integers(1, 6))

    def layer(values):
        return draw(st.just(()) | st.tuples(*[values] * n))

    order, heads = draw(st.permutations(range(n))), [ROOT] * n
    for i in range(1, n):
        heads[order[i]] = order[draw(st.integers(0, i - 1))]
    tree = draw(st.sampled_from([(), tuple(heads)]))
    feats = layer(st.dictionaries(st.sampled_from(["Case", "Number"]), TAG))
    kinds = layer(st.sampled_from(["B-A", "B-B", "I"]))
    chunks = []
    for kind in kinds:  # a chunk goes on, or one begins
        last = chunks[-1][1:] if chunks else "-A"
        chunks.append(kind if kind != "I" else f"{'I' if chunks else 'B'}{last}")
    words, spaces = draw(st.tuples(*[WORD] * n)), draw(st.tuples(*[st.booleans()] * n))
    layers = {"feats": feats if any(feats) else (), "heads": tree, "chunks": tuple(chunks)}
    layers |= {"deprels": layer(TAG) if tree else (), "xpos": layer(TAG)}
    starts = [" " * (i > 0 and spaces[i - 1]) for i in range(n)]
    written = tuple(map("".join, zip(starts, words, strict=True)))
    return Sentence("s", "en", words, layer(TAG), **layers, written=written), spaces


def in_conllu(sentence, spaces, ghosts):
    """The lines of a sentence, with an empty node after some words."""
    columns = [sentence.upos, sentence.xpos, ["|".join(f"{k}={v}" for k, v in sorted(x.items())) for x in sentence.feats],
               [f"{head + 1}" for head in sentence.heads], sentence.deprels]  # fmt: skip
    yield "# sent_id = s"
    for i, word in enumerate(sentence.words):
        cells = [column[i] or "_" if column else "_" for column in columns]
        misc = [f"Chunk={sentence.chunks[i]}"] if sentence.chunks else []
        misc += [] if spaces[i] else ["SpaceAfter=No"]
        yield "\t".join([f"{i + 1}", word, "_", *cells, "_", "|".join(misc) or "_"])
        if i in ghosts:
            yield "\t".join([f"{i + 1}.1", "ghost", *"________"])


@check(100)
@given(sentences(), st.sets(st.integers(0, 5)), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]), st.integers(0, 2))  # fmt: skip
def test_a_sentence_in_conllu_is_read_back(drawn, ghosts, line_end, mark, n_blank):
    sentence, spaces = drawn
    lines = line_end.join(in_conllu(sentence, spaces, ghosts))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.conllu"
        path.write_bytes(f"{mark}{lines}{line_end * n_blank}".encode())
        (found,) = read_conllu(path, "en")
    assert (found, found.written) == (sentence, sentence.written)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_rows_of_a_table_are_read_back(ending):
    @check(15)
    @given(st.lists(st.lists(st.tuples(WORD, TAG), min_size=2, max_size=5), min_size=3, max_size=6))
    def rows_of(pairs):
        rows = [
            dict(zip(("tokens", "y"), map(list, zip(*row, strict=True)), strict=True))
            for row in pairs
        ]
        with tempfile.TemporaryDirectory() as folder:
            corpus = read_table(write_rows(Path(folder) / f"a.{ending}", rows))
            read = [(list(x.words), list(x.layer("column y"))) for x in corpus]
        assert read == [(row["tokens"], row["y"]) for row in rows]

    rows_of()
