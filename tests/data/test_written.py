"""How the words of CoNLL-U files are written, by hand and against the files' own lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from probes.data.conllu_files import read_conllu
from probes.data.sentence import Sentence

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def written(tmp_path: Path, *tokens: str) -> tuple[str, ...]:
    """How the words of a sentence are written.

    Args:
        tokens: of each line ID and form, and a mark if no space comes after it.
    """
    lines = []
    for token in tokens:
        number, form, mark = (*token.split(), "")[:3]
        head, relation = "__"
        if number.isdigit():
            head, relation = ("0", "root") if number == "1" else ("1", "dep")
        misc = "SpaceAfter=No" if mark else "_"
        lines.append("\t".join([number, form, *"____", head, relation, "_", misc]))
    path = tmp_path / "x.conllu"
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (sentence,) = read_conllu(path, "en")
    return sentence.written


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("1 She, 2 ( -, 3 again -, 4 ), 5 ran -, 6 . -", ["She", " (", "again", ")", " ran", "."]),
        # A multiword token that is the sum of its words; of another, the first word has it all.
        ("1 I, 2-3 don't, 2 do, 3 n't, 4 go -, 5 !", ["I", " do", "n't", " go", "!"]),
        ("1-2 du, 1 de, 2 le, 3 pain -, 4 .", ["du", "", " pain", "."]),
        ("1-3 dámelo -, 1 da, 2 me, 3 lo, 4 .", ["dámelo", "", "", "."]),
        # The range says whether a space follows, not its words.
        ("1-2 can't -, 1 ca, 2 n't, 3 no", ["ca", "n't", "no"]),
        ("1-2 can't, 1 ca -, 2 n't -, 3 go", ["ca", "n't", " go"]),
        # Empty nodes, within a multiword token too.
        ("1 A, 1.1 ghost, 2 dog -, 2.1 ghost, 3 .", ["A", " dog", "."]),
        ("1-2 don't -, 1 do, 1.1 ghost, 2 n't, 3 .", ["do", "n't", "."]),
    ],
)
def test_how_words_are_written(tmp_path: Path, tokens: str, expected: list[str]) -> None:
    assert list(written(tmp_path, *tokens.split(", "))) == expected


def texts_of(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# text = "):
            yield line.removeprefix("# text = ")


def differing(path: Path) -> tuple[int, list[tuple[str, str]]]:
    """How many sentences a file has, and those written otherwise than its line says."""
    sentences: Sequence[Sentence] = list(read_conllu(path, "en"))
    texts = list(texts_of(path))
    for sentence in sentences:
        assert len(sentence.written) == len(sentence.words)
    pairs = zip(("".join(x.written) for x in sentences), texts, strict=True)
    return len(texts), [(found, text) for found, text in pairs if found != text]


@pytest.mark.parametrize(("split", "n"), [("train", 2000), ("dev", 400), ("test", 400)])
def test_the_sample_is_written_as_it_says(split: str, n: int) -> None:
    path = SAMPLE / f"{split}.conllu"
    assert differing(path) == (n, [])
    for sentence in read_conllu(path, "en"):
        assert [x.strip() for x in sentence.written] == list(sentence.words)


@pytest.mark.real_data
def test_ewt_is_written_as_it_says(real_data: Path) -> None:
    (path,) = real_data.rglob("en_ewt-ud-test.conllu")
    n, others = differing(path)
    assert n == 2077
    (one,) = others  # with a space that does not break, which SpaceAfter does not tell
    assert one[0] == one[1].replace("\xa0", " ")


@pytest.mark.real_data
def test_gum_is_written_as_it_says_but_for_spaces(real_data: Path) -> None:
    found = next(real_data.rglob("en_gum-ud-test.conllu"), None)
    if found is None:
        pytest.skip("GUM is not there")
    n, others = differing(found)
    assert n > 1000
    assert [(x, y) for x, y in others if re.sub(r"\s", "", x) != re.sub(r"\s", "", y)] == []
    assert len(others) == 0
