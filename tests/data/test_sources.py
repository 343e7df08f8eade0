"""Finding corpora by name and checksum."""

import shutil

import pytest

from common.errors import UserError
from data.sources import corpora, find_corpus, find_file


def test_an_unknown_corpus_gets_a_suggestion():
    with pytest.raises(UserError, match=r"Unknown corpus 'sampel'\. Did you mean 'sample'\?"):
        find_corpus("sampel", None)


def test_sample_needs_no_data_dir_and_limit_is_part_of_its_identity():
    whole, part = find_corpus("sample", None), find_corpus("sample", None, limit=7)
    assert whole.digest != part.digest
    corpus = part.load()
    assert {split: len(s) for split, s in corpus.splits.items()} == dict.fromkeys(corpus.splits, 7)
    assert corpus.limited
    assert corpus.splits["dev"] == whole.load().splits["dev"][:7]


def test_ewt_without_a_data_dir_says_where_to_get_it():
    with pytest.raises(
        UserError, match=r"needs en_ewt-ud-train.conllu: get it from github.com/Univ"
    ):
        find_corpus("ewt", None)


def test_a_file_of_the_right_name_and_wrong_content_is_refused(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.txt").write_text("other")
    with pytest.raises(UserError, match=r"a\.txt: its sha256 is [0-9a-f]{64}, expected 00"):
        find_file("c", tmp_path, "a.txt", "00", "somewhere")
    with pytest.raises(UserError, match=r"no b\.txt below"):
        find_file("c", tmp_path, "b.txt", "00", "somewhere")
    with pytest.raises(UserError, match="there is no such folder"):
        find_file("c", tmp_path / "nowhere", "b.txt", "00", "somewhere")


@pytest.mark.real_data
def test_ewt_counts(real_data):
    corpus = find_corpus("ewt", real_data).load()
    sentences = {split: len(part) for split, part in corpus.splits.items()}
    words = {split: sum(map(len, part)) for split, part in corpus.splits.items()}
    assert sentences == {"train": 12544, "dev": 2001, "test": 2077}
    assert words == {"train": 204577, "dev": 25147, "test": 25094}
    assert corpus.notes["joined with PropBank"] == 16545
    assert set(corpora) == {"sample", "ewt"}


@pytest.mark.real_data
def test_files_are_found_by_name_and_checksum_anywhere_below(real_data, tmp_path):
    source = find_corpus("ewt", real_data)
    for role, path in source.files.items():
        (tmp_path / role).mkdir()
        shutil.copy(path, tmp_path / role / path.name)
    # A decoy of the same name is passed over.
    (tmp_path / "aaa").mkdir()
    (tmp_path / "aaa" / "en_ewt-ud-dev.conllu").write_text("decoy")
    assert find_corpus("ewt", tmp_path).digest == source.digest
