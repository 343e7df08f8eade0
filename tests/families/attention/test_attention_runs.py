"""Runs of attention that are interrupted, and corpora and texts that lack something."""

from pathlib import Path

import pytest
from changed_corpus import changed
from head_numbers import one
from killing import small_corpus
from measuring import measured
from tiny_models import save, save_tokenizer

from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.probing.resampled_scores import with_sums
from probes.records.record_files import read_arrays

TREEBANKS = Path(__file__).parents[2] / "treebanks"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for family in ("bert", "gpt2"):
        save(family, folder / family)
    save("bert", folder / "wide", max_position_embeddings=64)
    save_tokenizer("bert", folder / "wide", model_max_length=64)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return small_corpus(tmp_path_factory.mktemp("corpora") / "small", 90)


@pytest.fixture(scope="module")
def usual(models, small, tmp_path_factory):
    return one(models / "bert", small, tmp_path_factory.mktemp("usual"))


def without_heads(row):
    return "\t".join([*row[:6], "_", "_", *row[8:]])


def notes(record):
    return " ".join(
        note
        for table in measurement_tables(get_measurement("attention"), [record])
        for note in table.notes
    )


def test_an_interrupted_run_goes_on_with_what_was_kept(usual, models, small, tmp_path, monkeypatch):
    def interrupted(sentences, excluded):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("probes.families.attention.attention.annotation_of", interrupted)
        assert measured(models / "bert", small, tmp_path, "-q").status == 130
    # Nothing is collected again.
    monkeypatch.setattr("probes.families.attention.collector.HeadSums.take", None)
    assert one(models / "bert", small, tmp_path).record.rows == usual.record.rows


@pytest.mark.parametrize("language", ["Spanish", "Japanese", "Hebrew"])
def test_treebanks_of_other_languages_with_few_sentences_and_no_frames(language, models, tmp_path):
    found = one(models / "bert", TREEBANKS / f"UD_{language}-Probe", tmp_path)
    assert found.record.facts["test_texts"] == 2
    assert all(row.interval is row.p is None for row in found.record.rows)
    assert [x.test.metric for x in found.heads.choices] == ["uas", "uuas"]
    assert "Not scored (too rare); words in test: all " in " ".join(found.record.notes)
    assert "Left out for lack of annotation: relations." in notes(found.record)


@pytest.mark.parametrize(
    ("change", "splits"),
    [
        (without_heads, ("train", "dev", "test")),
        (without_heads, ("train",)),
        (without_heads, ("dev",)),
        (without_heads, ("test",)),
        (lambda row: "\t".join([*row[:6], "0", "root", *row[8:]]), ("dev",)),
    ],
)
def test_relations_and_trees_need_heads_in_every_split(change, splits, models, tmp_path):
    corpus = changed(small_corpus(tmp_path / "small", 60), change, splits)
    found = one(models / "gpt2", corpus, tmp_path)
    assert found.heads.choices == []
    assert not {"uas", "uuas"} & set(found.record.rows.metric)
    assert found.heads.of("feature", "nouns") is not None
    assert "Left out for lack of annotation: relations, trees." in notes(found.record)


def test_a_corpus_whose_sentences_are_all_too_long_is_not_measured(models, tmp_path, capsys):
    corpus = small_corpus(tmp_path / "long")
    path = corpus / "dev.conllu"
    (first, *_) = path.read_text(encoding="utf-8").split("\n\n")
    rows = [line.split("\t") for line in first.split("\n") if line[:1].isdigit()]
    many = ["\t".join([str(i), *rows[0][1:6], "0", "root", *rows[0][8:]]) for i in range(1, 60)]
    path.write_text("# sent_id = a\n" + "\n".join(many) + "\n\n", encoding="utf-8")
    found = measured(models / "bert", corpus, tmp_path)
    assert (found.status, found.records) == (0, {})
    said = capsys.readouterr().err
    assert "left out attention of bert: no text of dev fits into the model's window" in said


def test_sums_of_chosen_heads_may_be_passed_on(usual, tmp_path):
    shared, arrays = with_sums({usual.path: usual.record})[usual.path]
    expected = read_arrays(usual.path)
    assert set(shared.arrays) == set(expected)
    assert arrays.keys() == expected.keys() >= {"test_sums", "test_counts", "test_clusters"}
    assert all((arrays[name] == expected[name]).all() for name in expected)
