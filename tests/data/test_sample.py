"""The embedded corpus: unchanged, and read as it was annotated by hand."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

import probes.data.sample
from probes.data.conllu_files import read_conllu
from probes.data.sentence import ROOT, SPLITS, Frame, Sentence

FOLDER = Path(probes.data.sample.__file__).parent


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return [s for split in SPLITS for s in read_conllu(FOLDER / f"{split}.conllu", "en")]


def test_the_files_are_those_that_the_generator_wrote() -> None:
    digests = {
        split: sha256((FOLDER / f"{split}.conllu").read_bytes()).hexdigest() for split in SPLITS
    }
    assert digests == {
        "train": "861b8665e6a9ef2fd93df1b5c284158fc26f8afd59d478c7e1eccd05617c0850",
        "dev": "0462202d955f8d88f2f3a5a9ad4be93be8f217598e52ee2b012e126f7b3afd09",
        "test": "3632445470c77b499233bfc8a4cdcdf96f1b6222977bfadc22238fce1c40e01f",
    }


BY_HAND = {
    "Nina hands Penny the plants .": (
        "B-NP B-VP B-NP B-NP I-NP O",
        [Frame("hand.01", (1, 2), (("ARG0", (0, 1)), ("ARG2", (2, 3)), ("ARG1", (3, 5))))],
    ),
    "He appeared to melt all snow .": (
        "B-NP B-VP I-VP I-VP B-NP I-NP O",
        [
            Frame("appear.02", (1, 2), (("ARG1", (0, 1)), ("C-ARG1", (2, 6)))),
            Frame("melt.01", (3, 4), (("ARG0", (0, 1)), ("ARG1", (4, 6)))),
        ],
    ),
    "Pick all paper towels up hard .": (
        "B-VP B-NP I-NP I-NP B-PRT B-ADVP O",
        [Frame("pick_up.04", (0, 1), (("ARG1", (1, 4)), ("C-V", (4, 5)), ("ARGM-MNR", (5, 6))))],
    ),
    "Which windows is she guarding ?": (
        "B-NP I-NP O B-NP B-VP O",
        [Frame("guard.01", (4, 5), (("ARG1", (0, 2)), ("ARG0", (3, 4))))],
    ),
    "The water gate still opened .": (
        "B-NP I-NP I-NP B-ADVP B-VP O",
        [Frame("open.01", (4, 5), (("ARG1", (0, 3)), ("ARGM-TMP", (3, 4))))],
    ),
    "Ponies which hunted are under the lights .": (
        "B-NP B-NP B-VP B-VP B-PP B-NP I-NP O",
        [
            Frame("hunt.01", (2, 3), (("ARG0", (0, 1)), ("R-ARG0", (1, 2)))),
            Frame("be.01", (3, 4), (("ARG1", (0, 3)), ("ARG2", (4, 7)))),
        ],
    ),
    "Host few dances which were being run by some nurses !": (
        "B-VP B-NP I-NP B-NP B-VP I-VP I-VP B-PP B-NP I-NP O",
        [
            Frame("host.01", (0, 1), (("ARG1", (1, 10)),)),
            Frame("run.01", (6, 7), (("ARG1", (1, 3)), ("R-ARG1", (3, 4)), ("ARG0", (7, 10)))),
        ],
    ),
    "I was being asked to be quite present .": (
        "B-NP B-VP I-VP I-VP B-VP I-VP B-ADJP I-ADJP O",
        [
            Frame("ask.02", (3, 4), (("ARG2", (0, 1)), ("ARG1", (4, 8)))),
            Frame("be.01", (5, 6), (("ARG1", (0, 1)), ("ARG2", (6, 8)))),
        ],
    ),
    "Every guide rang Grant 's bell .": (
        "B-NP I-NP B-VP B-NP B-NP I-NP O",
        [Frame("ring.01", (2, 3), (("ARG0", (0, 2)), ("ARG1", (3, 6))))],
    ),
    "The light present was not wooden .": (
        "B-NP I-NP I-NP B-VP O B-ADJP O",
        [Frame("be.01", (3, 4), (("ARG1", (0, 3)), ("ARGM-NEG", (4, 5)), ("ARG2", (5, 6))))],
    ),
}


@pytest.mark.parametrize("text", BY_HAND)
def test_annotation_by_hand(sentences: list[Sentence], text: str) -> None:
    (found,) = [s for s in sentences if " ".join(s.words) == text]
    chunks, frames = BY_HAND[text]
    assert " ".join(found.chunks) == chunks
    assert list(found.frames) == frames


def test_tree_by_hand(sentences: list[Sentence]) -> None:
    text = "Which windows is she guarding ?"
    (found,) = [s for s in sentences if " ".join(s.words) == text]
    assert found.heads == (1, 4, 4, 4, ROOT, 4)
    assert found.deprels == ("det", "obj", "aux", "nsubj", "root", "punct")
    assert found.upos == ("DET", "NOUN", "AUX", "PRON", "VERB", "PUNCT")
    assert found.xpos == ("WDT", "NNS", "VBZ", "PRP", "VBG", ".")
    assert found.feats[2] == {
        "Mood": "Ind", "Number": "Sing", "Person": "3", "Tense": "Pres", "VerbForm": "Fin",
    }  # fmt: skip
