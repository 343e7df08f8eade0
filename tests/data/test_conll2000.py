"""CoNLL-2000's archive, by hand and real, sound and damaged."""

import zipfile
from collections import Counter

import pytest

from probes.common.errors import UserError
from probes.data.conll2000 import read_split
from probes.data.find import find_corpus
from probes.data.registered import corpora

SOUND = "The DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n. . O\n\nYes UH B-INTJ\n\n"


def archive(tmp_path, train=SOUND, name="conll2000/train.txt"):
    path = tmp_path / "conll2000.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, train)
    return path


def test_words_tags_chunks(tmp_path):
    first, second = read_split(archive(tmp_path), "train")
    assert first.words == ("The", "dog", "barks", ".")
    assert first.xpos == ("DT", "NN", "VBZ", ".")
    assert first.chunks == ("B-NP", "I-NP", "B-VP", "O")
    assert (second.id, second.upos) == ("train-2", ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("The DT B-NP\ndog NN\n", "train.txt, line 2: 2 columns where 3 were expected"),
        (SOUND + "The DT B-NP\ndog NN I-VP\n", "line 9: the BIO tag 'I-VP' is not allowed after"),
        ("dog NN I-NP\n", "line 1: the BIO tag 'I-NP' is not allowed at the start"),
        ("dog NN NP\n", "line 1: 'NP' is not a BIO tag"),
        (b"dog NN O\n\xe9 NN O\n", "line 2: not UTF-8"),
        ("\n\n", "contains no sentence"),
        (b" " * (1 << 26), "is larger than the registered file"),  # it may inflate without end
    ],
)
def test_damaged_lines(tmp_path, content, message):
    assert_refused(archive(tmp_path, content), message)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "damaged archive"),
        (lambda b: b[:-30], "damaged archive"),
        (lambda b: b[:60] + b"\x00\xff\x00" + b[63:], "damaged archive"),
        (lambda b: b.replace(b"train.txt", b"prain.txt"), "does not contain conll2000/train.txt"),
        (lambda b: b"<html>not found</html>", "damaged archive"),
    ],
)
def test_damaged_archives(tmp_path, damage, message):
    path = archive(tmp_path, SOUND * 50)
    path.write_bytes(damage(path.read_bytes()))
    assert_refused(path, message)


def assert_refused(path, message):
    with pytest.raises(UserError) as caught:
        list(read_split(path, "train"))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.real_data
def test_the_real_one(real_data):
    corpus = find_corpus("conll2000", data_dir=real_data).load()
    assert corpus.fingerprint == corpora.get("conll2000").fingerprint
    assert [len(corpus.splits[s]) for s in ("train", "dev", "test")] == [8042, 894, 2012]
    words = {split: sum(map(len, part)) for split, part in corpus.splits.items()}
    # The shared task counts 211,727 words of training and 47,377 of test data.
    assert words["train"] + words["dev"] == 211_727
    assert words["test"] == 47_377
    # It counts 23,852 chunks of test data, 12,422 of them noun phrases.
    begins = Counter(tag for s in corpus.splits["test"] for tag in s.chunks if tag.startswith("B-"))
    assert (begins.total(), begins["B-NP"]) == (23_852, 12_422)
    assert corpus.splits["dev"][0].id == "train-8043"
