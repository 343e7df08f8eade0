"""The task word_regression on a hand-written sentence."""

from pathlib import Path

from probes import ROOT, Example, Frame, Sentence, get_task, load_file

load_file(Path(__file__).with_name("word_regression.py"))

SENTENCE = Sentence(
    id="1",
    language="en",
    words=("The", "dogs", "bark", "."),
    upos=("DET", "NOUN", "VERB", "PUNCT"),
    feats=(
        {"Definite": "Def"},
        {"Number": "Plur"},
        {"Tense": "Pres", "VerbForm": "Fin"},
        {},
    ),
    heads=(1, 2, ROOT, 2),
    deprels=("det", "nsubj", "root", "punct"),
    chunks=("B-NP", "I-NP", "B-VP", "O"),
    frames=(Frame("bark.01", (2, 3), (("ARG0", (0, 2)),)),),
)

# Replace by what your rule yields for the sentence above.
EXPECTED = [
    Example(0.0, (0, 1), type="The"),
    Example(1.0, (1, 2), type="dogs"),
    Example(2.0, (2, 3), type="bark"),
    Example(0.0, (3, 4), type="."),
]


def test_the_examples_of_a_sentence():
    assert get_task("word_regression").examples(SENTENCE) == EXPECTED
