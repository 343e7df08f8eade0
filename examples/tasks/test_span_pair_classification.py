"""The task span_pair_classification on a hand-written sentence."""

from pathlib import Path

from probes import Example, Frame, Sentence, get_task, load_file

load_file(Path(__file__).with_name("span_pair_classification.py"))

SENTENCE = Sentence(
    id="1",
    language="en",
    words=("The", "dogs", "bark", "."),
    frames=(Frame("bark.01", (2, 3), (("ARG0", (0, 2)),)),),
)

# Replace by what your rule yields for the sentence above.
EXPECTED = [
    Example("ARG0", (2, 3), (0, 2), type="bark.01 The"),
]


def test_the_examples_of_a_sentence():
    assert get_task("span_pair_classification").examples(SENTENCE) == EXPECTED
