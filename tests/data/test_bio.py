"""Validation of BIO tags."""

import pytest

from probes.data.chunk_schemes import WordError, chunks_of, require_bio


def test_chunks_end_before_the_next_word_outside_or_at_the_end():
    tags = ["O", "B-NP", "I-NP", "B-NP", "O", "B-VP", "I-VP"]
    assert list(chunks_of(tags)) == [("NP", 1, 3), ("NP", 3, 4), ("VP", 5, 7)]


@pytest.mark.parametrize(
    ("tags", "word", "message"),
    [
        ("I-NP", 0, "'I-NP' is not allowed at the start of a sentence"),
        ("O I-NP I-NP", 1, "'I-NP' is not allowed after 'O'"),
        ("B-NP I-VP", 1, "'I-VP' is not allowed after 'B-NP'"),
        ("B-NP I-NP I-VP I-VP", 2, "'I-VP' is not allowed after 'I-NP'"),
        ("O E-NP", 1, "'E-NP' is not a BIO tag"),
        ("B-", 0, "'B-' is not a BIO tag"),
    ],
)
def test_the_error_names_the_first_invalid_tag(tags, word, message):
    require_bio(["B-NP", "I-NP", "O", "B-VP"])
    with pytest.raises(WordError, match=message) as caught:
        require_bio(tags.split())
    assert caught.value.word == word
