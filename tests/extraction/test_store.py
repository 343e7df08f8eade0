"""What a store keeps in memory for a run."""

from probes.extraction.store import Vectors


def test_what_is_derived_is_made_once_for_each_key_until_it_is_forgotten():
    vectors = object.__new__(Vectors)  # without files
    vectors._derived = {}
    made = []

    def make(name):
        return lambda: made.append(name) or [name]

    first = vectors.derived("a", make("a"))
    assert vectors.derived("b", make("b")) == ["b"]
    assert vectors.derived("a", make("a again")) is first
    assert made == ["a", "b"]
    vectors.forget_derived()
    assert vectors.derived("a", make("a once more")) == ["a once more"]
    assert made == ["a", "b", "a once more"]
