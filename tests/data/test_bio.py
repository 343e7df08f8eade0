"""Validation of BIO tags."""

import pytest

from probes.data.chunk_schemes import WordError, chunks_of, is_bio, require_bio, stray_inside_tags


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["B-NP", "I-NP", "O", "B-VP"], []),
        (["I-NP"], [0]),
        (["O", "I-NP", "I-NP"], [1]),
        (["B-NP", "I-VP"], [1]),
        (["B-NP", "I-NP", "I-VP", "I-VP"], [2]),
    ],
)
def test_stray_inside_tags(tags, expected):
    assert stray_inside_tags(tags) == expected


def test_chunks_end_before_the_next_word_outside_or_at_the_end():
    tags = ["O", "B-NP", "I-NP", "B-NP", "O", "B-VP", "I-VP"]
    assert list(chunks_of(tags)) == [("NP", 1, 3), ("NP", 3, 4), ("VP", 5, 7)]


def test_the_error_names_the_first_invalid_tag():
    require_bio(["O", "B-X"])
    with pytest.raises(WordError, match=r"'I-VP' is not allowed after 'B-NP'") as caught:
        require_bio(["B-NP", "I-VP"])
    assert caught.value.word == 1
    with pytest.raises(WordError, match=r"'E-NP' is not a BIO tag"):
        require_bio(["O", "E-NP"])
    assert not is_bio("B-")
