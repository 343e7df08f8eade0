"""Runs of attention that are interrupted, and corpora and texts that lack something."""

from pathlib import Path

import pytest
from changed_corpus import changed
from head_numbers import attention_run
from killing import small_corpus
from measuring import command_line, measure

from probes.cli.main import main
from probes.frames.frame import load
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.probing.resampled_scores import with_sums
from probes.records.record_files import read_arrays

TREEBANKS = Path(__file__).parents[2] / "treebanks"


@pytest.fixture(scope="module")
def bert(session_runs):
    return session_runs.model("bert")


@pytest.fixture(scope="module")
def usual_run(session_runs, bert):
    return session_runs.measure("attention", bert, session_runs.corpus(120))


def without_heads(row):
    return "\t".join([*row[:6], "_", "_", *row[8:]])


def notes(record):
    return " ".join(
        note
        for table in measurement_tables(get_measurement("attention"), [record])
        for note in table.notes
    )


def test_an_interrupted_run_goes_on_with_what_was_kept(usual_run, tmp_path, monkeypatch):
    def interrupted(sentences, excluded):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("probes.families.attention.attention.annotation_of", interrupted)
        line = command_line("attention", usual_run.model, usual_run.corpus, tmp_path)
        assert main(line) == 130
    # Nothing is collected again.
    monkeypatch.setattr("probes.families.attention.collector.HeadSums.take", None)
    run = measure("attention", usual_run.model, usual_run.corpus, tmp_path)
    assert run.record.rows == usual_run.record.rows


def test_a_treebank_with_few_sentences_and_no_frames(bert, tmp_path):
    run = attention_run(bert, TREEBANKS / "UD_Hebrew-Probe", tmp_path)
    assert run.record.facts["test_texts"] == 2
    assert all(row.interval is row.p is None for row in run.record.rows)
    assert [x.test.metric for x in run.heads.choices] == ["uas", "uuas"]
    assert "Not scored (too rare); words in test: all " in " ".join(run.record.notes)
    assert "Left out for lack of annotation: relations." in notes(run.record)


@pytest.mark.parametrize(
    ("change", "splits"),
    [
        (without_heads, ("train",)),
        (without_heads, ("dev",)),
        (without_heads, ("test",)),
        (lambda row: "\t".join([*row[:6], "0", "root", *row[8:]]), ("dev",)),
    ],
)
def test_relations_and_trees_need_heads_in_every_split(change, splits, session_runs, tmp_path):
    corpus = changed(small_corpus(tmp_path / "small", 60), change, splits)
    run = attention_run(session_runs.model("gpt2"), corpus, tmp_path)
    assert run.heads.choices == []
    assert not {"uas", "uuas"} & set(run.record.rows.metric)
    assert run.heads.of("feature", "nouns") is not None
    assert "Left out for lack of annotation: relations, trees." in notes(run.record)


def test_a_corpus_whose_sentences_are_all_too_long_is_not_measured(bert, tmp_path, capsys):
    corpus = small_corpus(tmp_path / "long")
    path = corpus / "dev.conllu"
    (first, *_) = path.read_text(encoding="utf-8").split("\n\n")
    rows = [line.split("\t") for line in first.split("\n") if line[:1].isdigit()]
    many = ["\t".join([str(i), *rows[0][1:6], "0", "root", *rows[0][8:]]) for i in range(1, 60)]
    path.write_text("# sent_id = a\n" + "\n".join(many) + "\n\n", encoding="utf-8")
    assert main(command_line("attention", bert, corpus, tmp_path)) == 0
    assert not load(tmp_path / "results").records()
    said = capsys.readouterr().err
    assert "left out attention of bert: no text of dev fits into the model's window" in said


def test_sums_of_chosen_heads_may_be_passed_on(usual_run):
    shared, arrays = with_sums({usual_run.path: usual_run.record})[usual_run.path]
    expected = read_arrays(usual_run.path)
    assert set(shared.arrays) == set(expected)
    assert arrays.keys() == expected.keys() >= {"test_sums", "test_counts", "test_clusters"}
    assert all((arrays[name] == expected[name]).all() for name in expected)
