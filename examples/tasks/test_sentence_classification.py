"""The task sentence_classification on a hand-written sentence."""

from pathlib import Path

from probes import Example, Sentence, get_task, load_file

load_file(Path(__file__).with_name("sentence_classification.py"))

SENTENCE = Sentence(
    id="1",
    language="en",
    words=("The", "dogs", "bark", "."),
    upos=("DET", "NOUN", "VERB", "PUNCT"),
)

# Replace by what your rule yields for the sentence above.
EXPECTED = [
    Example("none", (0, 4), type="The"),
]


def test_the_examples_of_a_sentence():
    assert get_task("sentence_classification").examples(SENTENCE) == EXPECTED
