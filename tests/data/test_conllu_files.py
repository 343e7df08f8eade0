"""The CoNLL-U reader on files written by hand, sound and damaged."""

from copy import deepcopy
from pathlib import Path

import pytest

from probes.common.errors import UserError
from probes.data.conllu_files import read_conllu
from probes.data.sentence import ROOT, Frame, Sentence

SAMPLE = Path(__file__).parents[2] / "data" / "sample"

SOUND = """\
# sent_id = a-1
# text = She doesn't give the vase up.
1\tShe\tshe\tPRON\tPRP\tNumber=Sing\t4\tnsubj\t_\tChunk=B-NP
2-3\tdoesn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdoes\tdo\tAUX\tVBZ\tNumber=Sing|VerbForm=Fin\t4\taux\t_\tChunk=B-VP
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\tChunk=I-VP
4\tgive\tgive\tVERB\tVB\t_\t0\troot\t_\tChunk=I-VP|Frame=give_up.07|Pred=4-4|Args=ARG0:1,ARG1:5-6,C-V:7
4.1\tghost\tghost\tNOUN\tNN\t_\t_\t_\t_\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t_\tChunk=B-NP
6\tvase\tvase\tNOUN\tNN\tNumber=Sing\t4\tobj\t_\tChunk=I-NP
7\tup\tup\tADP\tRP\t_\t4\tcompound:prt\t_\tChunk=B-PRT
8\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\tChunk=O

"""


CYCLES = [([1], 1), ([2, 1], 1), ([0, 3, 2], 2), ([2, 3, 4, 2, 0], 1), ([0, 1, 2, 5, 6, 5], 4)]
"""Heads, from 1, and the first word that leads into a cycle."""


def tree(heads):
    """CoNLL-U of one sentence; heads count from 1, 0 is the root."""
    rows = (f"{i}\tw\t_\tX\t_\t_\t{head}\tdep\t_\t_" for i, head in enumerate(heads, start=1))
    return "\n".join(rows) + "\n\n"


def write(tmp_path, text, name="x.conllu"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_are_neither_multiword_tokens_nor_empty_nodes(tmp_path):
    (sentence,) = read_conllu(write(tmp_path, SOUND), "en")
    assert sentence.id == "a-1"
    assert sentence.words == ("She", "does", "n't", "give", "the", "vase", "up", ".")
    assert sentence.upos == ("PRON", "AUX", "PART", "VERB", "DET", "NOUN", "ADP", "PUNCT")
    assert sentence.heads == (3, 3, 3, ROOT, 5, 3, 3, 3)
    assert sentence.deprels[6] == "compound:prt"
    assert sentence.feats[1] == {"Number": "Sing", "VerbForm": "Fin"}
    assert sentence.feats[2] == {}
    assert sentence.chunks == ("B-NP", "B-VP", "I-VP", "I-VP", "B-NP", "I-NP", "B-PRT", "O")
    assert sentence.frames == (
        Frame("give_up.07", (3, 4), (("ARG0", (0, 1)), ("ARG1", (4, 6)), ("C-V", (6, 7)))),
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (SOUND.replace("\t0\troot", "\t6\troot"), "cycle"),
        (SOUND.replace("\t0\troot", "\t40\troot"), "head 40, but there are 8 words"),
        (SOUND.replace("5\tthe", "6\tthe"), "line 9: word id 6 instead of 5"),
        (SOUND.replace("5\tthe", "_\tthe"), "line 9: not valid CoNLL-U .the word has no ID"),
        (SOUND.replace("ARG1:5-6", "ARG1:5-60"), "'5-60' is not a range within words 1 to 8"),
        (SOUND.replace("Chunk=B-NP", "Chunks=B-NP", 1), "Chunk"),
        (SOUND.replace("\tnsubj\t_\tChunk=B-NP", ""), "valid CoNLL-U"),
        (SOUND.replace("\t4\tnsubj", "\t_\tnsubj"), "line 3: the word has no head, but other"),
        (SOUND.replace("Chunk=B-VP", "Chunk=I-VP"), "line 5: the BIO tag 'I-VP' is not allowed after"),
        (SOUND.replace("ARG1:5-6", ":5-6"), "line 7: the argument ':5-6' has no label"),
        (SOUND.replace("\t4\tnsubj", "\tfour\tnsubj"), "line 3: not valid CoNLL-U"),
        (SOUND.replace("Number=Sing\t4\tobj", "Number\t4\tobj"), "line 10: .* 'Number' are not of the form Name="),
        (SOUND.replace("Number=Sing|Verb", "Number=Sing||Verb"), "line 5: .* are not of the form Name=Value"),
        (SOUND + SOUND, "line 14: the sent_id 'a-1' is already used in line 1"),
        ("# only a comment\n\n", "contains no sentence"),
        ("# a\n1-2\tab" + "\t_" * 8 + "\n\n", "line 1: a sentence without words"),
        (SOUND.replace("\tChunk=O", "\t"), "line 12: column 10 is empty; write _ for none"),
        (SOUND.replace("\tghost\tghost", "\t\tghost"), "line 8: column 2 is empty"),
        (" \n\n", "contains no sentence"),
        ("", "contains no sentence"),
        (b"1\t\xff\xfe\tx\n\n", "line 1: not UTF-8"),
        (b"\xef\xbb\xbf" + SOUND.encode()[:40] + b"\xe9" + SOUND.encode()[40:], "line 2: not UTF-8"),
        (SOUND.encode("utf-16"), "it looks like UTF-16"),
        *((tree(heads), f"line {word}: the heads of word {word} form a cycle") for heads, word in CYCLES),
    ],
)  # fmt: skip
def test_damage_is_an_error_that_names_the_file(tmp_path, text, match):
    path = write(tmp_path, text)
    with pytest.raises(UserError, match=match) as caught:
        list(read_conllu(path, "en"))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_spaces_are_no_tabs_and_comments_at_the_end_no_sentence(tmp_path):
    text = SOUND.replace("\tvase\tvase", "\tbig  vase\tvase") + "# the end\n"
    (sentence,) = read_conllu(write(tmp_path, text), "en")
    assert sentence.words[5] == "big vase"
    assert sentence.upos[5] == "NOUN"


def test_enhanced_dependencies_are_not_read_nor_blamed_for_another_line(tmp_path):
    odd = SOUND.replace("\tnsubj\t_", "\tnsubj\t5-3:x")
    assert odd != SOUND
    assert list(read_conllu(write(tmp_path, odd), "en")) == list(
        read_conllu(write(tmp_path, SOUND), "en")
    )
    with pytest.raises(UserError, match="line 7: not valid CoNLL-U"):
        list(read_conllu(write(tmp_path, odd.replace("\t0\troot", "\tnone\troot")), "en"))


def test_documents_and_genres_begin_where_the_file_says(tmp_path):
    second, third, fourth = (SOUND.replace("a-1", name) for name in ("a-2", "b-1", "b-2"))
    begins = "# newdoc id = d\n# meta::genre = news\n"
    text = begins + SOUND + second + "# newdoc\n" + third + fourth
    found = list(read_conllu(write(tmp_path, text), "en"))
    assert [sentence.genre for sentence in found] == ["news", "news", "", ""]
    assert [sentence.document == "d" for sentence in found] == [True, True, False, False]
    assert found[2].document == found[3].document


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"none\.conllu: cannot be read"):
        list(read_conllu(tmp_path / "none.conllu", "en"))


def test_what_a_sentence_holds_stays_as_it_is(tmp_path):
    """Words of equal features share them, in other sentences too."""
    (sentence,) = read_conllu(write(tmp_path, SOUND), "en")
    by_hand = Sentence("s", "en", ("a",), feats=({"Number": "Sing"},), columns={"y": ("b",)})
    assert repr(by_hand.feats) == "({'Number': 'Sing'},)"
    for fixed in (sentence.feats[0], sentence.feats[2], by_hand.feats[0], by_hand.columns):
        before = dict(fixed)
        for method, *values in (
            *(
                ("__setitem__", "Number", "Plur"),
                ("__delitem__", "Number"),
                ("__ior__", {"a": "b"}),
            ),
            *(("update", {"a": "b"}), ("setdefault", "Case", "Nom"), ("pop", "Number")),
            *(("popitem",), ("clear",)),
        ):
            with pytest.raises(TypeError, match="sentences are immutable"):
                getattr(fixed, method)(*values)
        assert fixed == before
        assert deepcopy(fixed) == before


# -- how words are written ----------------------------------------------------------------


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
def test_how_words_are_written(tmp_path, tokens, expected):
    """Of each line: ID and form, and a mark if no space comes after it."""
    text = ""
    for token in tokens.split(", "):
        number, form, mark = (*token.split(), "")[:3]
        misc = "SpaceAfter=No" if mark else "_"
        text += "\t".join([number, form, *"_______", misc]) + "\n"
    (sentence,) = read_conllu(write(tmp_path, text + "\n"), "en")
    assert (sentence.id, list(sentence.written)) == ("x-1", expected)


def written_otherwise(path):
    """How many sentences a file has, and those written otherwise than its line says."""
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    sentences = list(read_conllu(path, "en"))
    assert all(len(x.written) == len(x.words) for x in sentences)
    pairs = zip(("".join(x.written) for x in sentences), texts, strict=True)
    return len(texts), [(found, text) for found, text in pairs if found != text]


@pytest.mark.parametrize(("split", "n"), [("train", 2000), ("dev", 400), ("test", 400)])
def test_the_sample_is_written_as_it_says(split, n):
    assert written_otherwise(SAMPLE / f"{split}.conllu") == (n, [])


@pytest.mark.real_data
def test_ewt_is_written_as_it_says(real_data):
    (path,) = real_data.rglob("en_ewt-ud-test.conllu")
    n, others = written_otherwise(path)
    assert n == 2077
    (one,) = others  # with a space that does not break, which SpaceAfter does not tell
    assert one[0] == one[1].replace("\xa0", " ")


@pytest.mark.real_data
def test_gum_is_written_as_it_says(real_data):
    found = next(real_data.rglob("en_gum-ud-test.conllu"), None)
    if found is None:
        pytest.skip("GUM is not there")
    n, others = written_otherwise(found)
    assert n > 1000
    assert others == []
