"""From a name, a file or a pattern to a corpus."""

import shutil

import pytest

from probes.common.errors import UserError
from probes.data.find import expand, find_corpus, require_known
from probes.data.registered import corpora


def test_sample_needs_no_data_dir_and_limit_is_part_of_its_identity():
    whole, part = find_corpus("sample"), find_corpus("sample", limit=7)
    assert whole.digest != part.digest
    assert whole.slug == part.slug == "sample"
    corpus = part.load()
    assert {split: len(s) for split, s in corpus.splits.items()} == dict.fromkeys(corpus.splits, 7)
    assert corpus.limited
    assert corpus.splits["dev"] == whole.load().splits["dev"][:7]


@pytest.mark.parametrize("name", ["sample", "numeracy", "generalisation"])
def test_a_board_knows_the_text_of_a_corpus(name):
    assert find_corpus(name).load().fingerprint == corpora.get(name).fingerprint


def test_the_files_of_the_sample_are_those_that_the_generator_wrote():
    assert find_corpus("sample").identity == {
        "train": "861b8665e6a9ef2fd93df1b5c284158fc26f8afd59d478c7e1eccd05617c0850",
        "dev": "0462202d955f8d88f2f3a5a9ad4be93be8f217598e52ee2b012e126f7b3afd09",
        "test": "3632445470c77b499233bfc8a4cdcdf96f1b6222977bfadc22238fce1c40e01f",
    }


def test_a_dataset_on_the_hub_is_known_by_task_from():
    require_known(["org/name"], ["ner_tags"])


def test_a_folder_stands_for_its_treebank_not_for_its_notes(tmp_path):
    for name in ("x-train.conllu", "LICENSE.txt", "README.md"):
        (tmp_path / name).write_text("x")
    assert expand([str(tmp_path)]) == [tmp_path / "x-train.conllu"]
    assert expand([str(tmp_path / "*.conllu")]) == [tmp_path / "x-train.conllu"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="the folder has no"):
        expand([str(tmp_path / "empty")])


def test_every_registered_corpus_has_a_card_and_those_that_are_downloaded_a_citation():
    names = "sample ewt gum conll2000 blimp clams syntaxgym lm-diagnostics numeracy generalisation"
    assert [name for name in corpora if not name.startswith("clams-")] == names.split()
    for name in corpora:
        corpus = corpora.get(name)
        assert corpus.summary
        assert corpus.citation.startswith("@") or not corpus.remotes
    assert corpora.get("ewt").citation.count("@") == 3


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["sample", "ewt", "gum", "conll2000"])
def test_a_registered_corpus_has_the_layers_that_it_declares(real_data, name):
    source = find_corpus(name, data_dir=real_data, limit=200)
    corpus = source.load()
    assert corpus.layers == source.layers
    assert list(corpus.splits) == ["train", "dev", "test"]


def test_sentences_of_several_roots_are_counted(tmp_path):
    def line(i, head):
        return f"{i}\tw{i}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n"

    one, two = line(1, 0) + line(2, 1), line(1, 0) + line(2, 0)
    (tmp_path / "t-train.conllu").write_text(f"{one}\n{two}\n{two}\n")
    for split in ("dev", "test"):
        (tmp_path / f"t-{split}.conllu").write_text(f"{one}\n")
    notes = find_corpus(str(tmp_path)).load().notes
    assert notes["sentences with several roots, read as if one more word were above them"] == 2


@pytest.mark.real_data
def test_overlapping_sentences_leave_train_when_asked(real_data):
    kept = find_corpus("conll2000", data_dir=real_data).load()
    dropped = find_corpus("conll2000", data_dir=real_data, drop_overlap=True).load()
    held_out = {s.words for split in ("dev", "test") for s in kept.splits[split]}
    expected = [s for s in kept.splits["train"] if s.words not in held_out]
    assert list(dropped.splits["train"]) == expected
    gone = len(kept.splits["train"]) - len(expected)
    assert gone > 0
    assert dropped.notes["train sentences dropped, being in dev or test"] == gone
    assert dropped.splits["test"] == kept.splits["test"]


@pytest.mark.real_data
def test_files_are_found_by_name_and_checksum_anywhere_below(real_data, tmp_path):
    source = find_corpus("ewt", data_dir=real_data)
    for role, (path,) in source.files.items():
        (tmp_path / role).mkdir()
        shutil.copy(path, tmp_path / role / path.name)
    # A decoy of the same name is passed over.
    (tmp_path / "aaa").mkdir()
    (tmp_path / "aaa" / "en_ewt-ud-dev.conllu").write_text("decoy")
    assert find_corpus("ewt", data_dir=tmp_path, offline=True).digest == source.digest
