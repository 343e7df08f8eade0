"""Corpora of plug-ins: what cannot be used is named, and the reader identifies them."""

import pytest

from probes.__main__ import main
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.measurements.plugins import discover

pytestmark = pytest.mark.usefixtures("plug_ins")

CORPUS = """
from pathlib import Path
from probes.data.registered import Registered, corpora
from probes.data.sentence import SPLITS, Corpus, Sentence

HERE = Path(__file__).parent

def read(source):
    make = lambda split, n: Sentence({sentence})
    splits = {{split: tuple(make(split, n) for n in range(3)) for split in SPLITS}}
    return {corpus}

corpora.add("own", Registered("own", "1", "CC0-1.0", "Mine.", {{"all": HERE / "all.txt"}}, read,
    layers=frozenset({layers})))
"""


SENTENCE = 'f"{split}{n}", "en", ("a", "b"), upos=("X", "Y")'


CORPUS_OF = 'Corpus("own", "1", "CC0-1.0", splits)'


@pytest.mark.parametrize(
    ("sentence", "corpus", "message"),
    [
        (SENTENCE, "1 / 0", "raised ZeroDivisionError: division by zero. Fix {path}, line 11"),
        (SENTENCE, "splits", "which is not a Corpus. Fix {path}"),
        (SENTENCE, CORPUS_OF.replace("splits", "{'train': ()}"), "the splits ['train']"),
        (
            SENTENCE.replace('"Y"', ""),
            CORPUS_OF,
            "a layer upos that is not a tuple with one entry for each of 2 words as sentence 1 of",
        ),
        (SENTENCE.replace("{n}", ""), CORPUS_OF, "the id 'train' again as sentence 2 of train"),
        (SENTENCE + ", heads=(1, 2)", CORPUS_OF, "the head 2, which is neither"),
        (SENTENCE.replace('"b")', '"")'), CORPUS_OF, "a word that is empty or not a string"),
        (SENTENCE + ", genre=3", CORPUS_OF, "the genre 3, which is not a string"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_named(sentence, corpus, message, write, capsys):
    write("text", "all.txt")
    path = write(CORPUS.format(sentence=sentence, corpus=corpus, layers={"upos"}), "own.py")
    assert main(["check", "pos", "--corpus", "own", "--include", str(path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: Corpus 'own': ")
    assert message.format(path=path) in line


def test_an_unknown_layer_is_named(write):
    write("text", "all.txt")
    discover(
        [write(CORPUS.format(sentence=SENTENCE, corpus=CORPUS_OF, layers={"uposs"}), "own.py")]
    )
    with pytest.raises(UserError, match=r"unknown annotation layer 'uposs'\. Did you mean 'upos'"):
        find_corpus("own")


def test_genres_are_told_by_the_names_of_documents(write):
    write("text", "all.txt")
    documents = SENTENCE + ', document=["news-1", "news-2", ""][n]'
    text = CORPUS.format(sentence=documents, corpus=CORPUS_OF, layers={"upos"})
    told = text.replace("layers=", "genre=lambda name: name[:-2], layers=")
    corpora = []
    for each in (text, told):
        discover([write(each, "own.py")])
        corpora.append(find_corpus("own").load())
    plain, with_genres = corpora
    assert [s.genre for s in with_genres.splits["dev"]] == ["news", "news", ""]
    assert (plain.genres, with_genres.genres) == ({}, {"news": (2, 2, 2)})
    # A genre is no annotation.
    assert with_genres.fingerprint == plain.fingerprint
    assert with_genres.splits == plain.splits


def test_the_reader_is_part_of_a_corpus_digest(write):
    write("text", "all.txt")
    text = CORPUS.format(sentence=SENTENCE, corpus=CORPUS_OF, layers={"upos"})
    digests = set()
    for change in ("", "# changed\n"):
        discover([write(text + change, "own.py")])
        source = find_corpus("own")
        digests.add(source.digest)
    assert len(digests) == 2
    assert [s.words for s in source.load().splits["dev"]] == [("a", "b")] * 3
