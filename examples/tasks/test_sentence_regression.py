"""The task sentence_regression on a hand-written sentence."""

from pathlib import Path

from probes import ROOT, Example, Frame, Sentence, get_task, load_file

load_file(Path(__file__).with_name("sentence_regression.py"))

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
    Example(4.0, (0, 4), type="The"),
]


def test_the_examples_of_a_sentence():
    assert get_task("sentence_regression").examples(SENTENCE) == EXPECTED
