"""How the words of CoNLL-U files are written, by hand and against the files' own lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from probes.data.conllu_files import read_conllu
from probes.data.sentence import Sentence

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def written(tmp_path: Path, *tokens: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a sentence and how they are written.

    Args:
        tokens: of each line ID and form, and a mark if no space comes after it.
    """
    lines = []
    for token in tokens:
        number, form, mark = (*token.split("\t"), "")[:3]
        head, relation = "__"
        if number.isdigit():
            head, relation = ("0", "root") if number == "1" else ("1", "dep")
        misc = "SpaceAfter=No" if mark else "_"
        lines.append("\t".join([number, form, *"____", head, relation, "_", misc]))
    path = tmp_path / "x.conllu"
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (sentence,) = read_conllu(path, "en")
    return sentence.words, sentence.written


def test_a_space_is_before_each_word_unless_the_one_before_says_no(tmp_path: Path) -> None:
    _, found = written(tmp_path, "1\tShe", "2\t(\t-", "3\tagain\t-", "4\t)", "5\tran\t-", "6\t.\t-")
    assert found == ("She", " (", "again", ")", " ran", ".")


def test_a_multiword_token_that_is_the_sum_of_its_words(tmp_path: Path) -> None:
    words, found = written(tmp_path, "1\tI", "2-3\tdon't", "2\tdo", "3\tn't", "4\tgo\t-", "5\t!")
    assert words == ("I", "do", "n't", "go", "!")
    assert found == ("I", " do", "n't", " go", "!")


def test_of_another_multiword_token_the_first_word_has_it_all(tmp_path: Path) -> None:
    lines = (
        "1-2\tdu",
        "1\tde",
        "2\tle",
        "3\tpain\t-",
        "4-6\tdámelo\t-",
        "4\tda",
        "5\tme",
        "6\tlo",
        "7\t.",
    )
    words, found = written(tmp_path, *lines)
    assert words == ("de", "le", "pain", "da", "me", "lo", ".")
    assert found == ("du", "", " pain", "dámelo", "", "", ".")


def test_it_is_the_range_not_its_words_that_says_whether_a_space_follows(tmp_path: Path) -> None:
    _, found = written(tmp_path, "1-2\tcan't\t-", "1\tca", "2\tn't", "3\t,", "4\tno")
    assert found == ("ca", "n't", ",", " no")
    _, found = written(tmp_path, "1-2\tcan't", "1\tca\t-", "2\tn't\t-", "3\tgo")
    assert found == ("ca", "n't", " go")


def test_empty_nodes_are_not_written(tmp_path: Path) -> None:
    words, found = written(tmp_path, "1\tA", "1.1\tghost", "2\tdog\t-", "2.1\tghost", "3\t.")
    assert words == ("A", "dog", ".")
    assert found == ("A", " dog", ".")
    # Within a multiword token, too.
    _, found = written(tmp_path, "1-2\tdon't\t-", "1\tdo", "1.1\tghost", "2\tn't", "3\t.")
    assert found == ("do", "n't", ".")


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
    assert differing(SAMPLE / f"{split}.conllu") == (n, [])


def test_of_the_sample_each_stretch_holds_its_word() -> None:
    for sentence in read_conllu(SAMPLE / "test.conllu", "en"):
        for word, stretch in zip(sentence.words, sentence.written, strict=True):
            assert stretch in (word, f" {word}")


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
