"""BIO tags that cannot be."""

import pytest

from probes.data.bio import WordError, is_bio, misplaced, require_bio


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
def test_misplaced(tags, expected):
    assert misplaced(tags) == expected


def test_the_first_impossible_tag_is_named():
    require_bio(["O", "B-X"])
    with pytest.raises(WordError, match=r"'I-VP' cannot stand after 'B-NP'") as caught:
        require_bio(["B-NP", "I-VP"])
    assert caught.value.word == 1
    with pytest.raises(WordError, match=r"'E-NP' is no BIO tag"):
        require_bio(["O", "E-NP"])
    assert not is_bio("B-")
