"""The task word_classification on a hand-written sentence."""

from pathlib import Path

from probes import Example, Sentence, get_task, load_file

load_file(Path(__file__).with_name("word_classification.py"))

SENTENCE = Sentence(
    id="1",
    language="en",
    words=("The", "dogs", "bark", "."),
    upos=("DET", "NOUN", "VERB", "PUNCT"),
)

# Replace by what your rule yields for the sentence above.
EXPECTED = [
    Example("other", (0, 1), type="The"),
    Example("noun", (1, 2), type="dogs"),
    Example("other", (2, 3), type="bark"),
    Example("other", (3, 4), type="."),
]


def test_the_examples_of_a_sentence():
    assert get_task("word_classification").examples(SENTENCE) == EXPECTED
