"""What a corpus or a model does not serve is refused before it costs anything."""

import csv
import json

import pytest
from on_ray import require_ray
from plugged_in import TASK
from tiny_models import save
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from probes.cli.main import main
from probes.data.find import find_corpus
from probes.measurements.plugins import load_file
from probes.run.inputs import LazyCorpus
from probes.tasks.task import tasks

pytestmark = pytest.mark.usefixtures("plug_ins")

NO_HEAD = (
    "--model tiny-bert: its files have no weights of a language-model head, so it cannot score "
    "tokens. Use a checkpoint that has one."
)

MEASUREMENTS = '''
from probes import Row, measurement
from probes.examples.examples import NotServedError

def _alike(context):
    return [Row("norm", 1.0, layer) for layer in context.layers]

@measurement("answers", after="scores", head="needed", missing=lambda task, *_: "odd" * ("pos" not in task.name))
def answers(context):
    """Answers of the model itself."""
    return _alike(context)

@measurement("overall", after="scores", of="model", head="needed")
def overall(context):
    """Of all tasks."""
    return _alike(context)

@measurement("norms", of="model")
def norms(context):
    """Needs no head."""
    return _alike(context)

def _no_texts(corpus, options):
    raise NotServedError("no documents here")

@measurement("documents", of="model", reads=_no_texts)
def documents(context):
    """Reads documents."""
    return _alike(context)
'''


@pytest.fixture
def command(tmp_path, write):
    """A command line, whose results are in `tmp_path`."""
    plug_ins = write(MEASUREMENTS, "measured.py")

    def command(models, corpus, *more):
        folders = ["--output", tmp_path / "results", "--cache-dir", tmp_path / "cache"]
        usual = ["--probes", "linear", "--device", "cpu", "--twins", "0", "--include", plug_ins]
        line = ["--model", *models, "--corpus", corpus, *folders, *usual, *more]
        return [*map(str, line), *([] if "--evidence" in more else ["--evidence", "none"])]

    return command


@pytest.fixture
def unloaded(monkeypatch):
    """Whoever loads a model fails."""

    def loading(source, **options):
        raise AssertionError(f"{source.name} is loaded")

    monkeypatch.setattr("probes.extraction.models.loading.load_encoder", loading)


@pytest.fixture(scope="module")
def with_head(tiny_bert, tmp_path_factory):
    """A model that has a head."""
    folder = tmp_path_factory.mktemp("with_head") / "with-head"
    BertForMaskedLM(BertConfig.from_pretrained(tiny_bert)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny_causal(tmp_path_factory):
    """A model that reads from left to right, without a mask token."""
    folder = tmp_path_factory.mktemp("causal") / "tiny-causal"
    save("gpt2", folder)
    return folder


@pytest.fixture
def tables(tmp_path):
    """Sixty texts, and as many chats, with a label that all have in common and one that varies."""
    rows = [
        {"text": f"the dog sees {i} cats", "same": "a", "varied": "xy"[i % 2]} for i in range(60)
    ]
    with (tmp_path / "texts.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    chats = ({**x, "text": [{"role": "user", "content": x["text"]}]} for x in rows)
    (tmp_path / "chats.jsonl").write_text("".join(f"{json.dumps(chat)}\n" for chat in chats))
    return tmp_path


def lines_of(capsys):
    """The lines of standard error."""
    return capsys.readouterr().err.splitlines()


def made(tmp_path):
    """Names of the records, without their keys, by the folder of the model."""
    paths = sorted((tmp_path / "results").rglob("*-????????.json"))
    return {(path.parts[-3].rsplit("-", 1)[0], path.stem[:-9]) for path in paths}


def test_a_label_that_is_always_the_same_is_refused_before_the_model_is_loaded(
    tiny_bert, tables, command, unloaded, tmp_path, capsys
):
    of_texts, of_chats = ["--text", "text"], ["--messages", "text"]
    for file, column in (("texts.csv", of_texts), ("chats.jsonl", of_chats)):
        line = command([tiny_bert], tables / file, *column, "--label", "same")
        assert main(line) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error == (
            f"error: Task 'same@mean': every training example of '{file.partition('.')[0]}' has "
            "the label 'a', so there is nothing to tell apart; give other --positions or --label."
        )
    assert made(tmp_path) == set()


def test_labels_of_words_that_are_alike_are_refused_before_the_model_is_loaded(
    tiny_bert, command, unloaded, write, capsys
):
    always = write(TASK.replace('"noun" if tag == "NOUN" else "other"', '"noun"'))
    load_file(always)
    assert main(command([tiny_bert], "sample", "--tasks", "mine", "--limit", "20")) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: Task 'mine': every training example of 'sample' has the label 'noun', so there is "
        "nothing to tell apart; leave it out with --tasks."
    )


def test_the_other_label_is_measured(tiny_bert, tables, command, tmp_path, capsys):
    line = command([tiny_bert], tables / "texts.csv", "--text", "text", "--label", "same,varied")
    assert main(line) == 1
    ((_, record),) = made(tmp_path)
    assert record.startswith("varied-mean-")
    lines = capsys.readouterr().err.splitlines()
    (failed,) = [i for i, x in enumerate(lines) if x.startswith("failed  same@mean: Task 'same@")]
    (loaded,) = [i for i, x in enumerate(lines) if x.startswith("model   tiny-bert")]
    assert failed < loaded


def test_a_measurement_that_the_corpus_does_not_serve_is_left_out_before_the_model_is_loaded(
    tiny_bert, command, unloaded, tmp_path, capsys
):
    line = command([tiny_bert], "sample", "--measurements", "documents", "--limit", "20")
    assert main(line) == 0
    assert "left out documents of tiny-bert: no documents here\n" in capsys.readouterr().err
    assert made(tmp_path) == set()


HIDING = TASK.replace("(i, i + 1), ", "(0, 1), hide=0, ").replace(
    "for i, tag in", "for i, tag in list("
).replace("sentence.upos):", "sentence.upos))[:1]:")  # fmt: skip
"""A task that hides the first word, before which nothing is left."""


def test_what_depends_on_the_mask_token_is_refused_when_it_is_known(
    tiny_causal, command, write, tmp_path, capsys
):
    load_file(write(HIDING))
    corpus, task = LazyCorpus(find_corpus("sample", limit=20)), tasks.get("mine")
    assert len(corpus.examples(task, "masked").splits["test"].examples) == 20
    assert main(command([tiny_causal], "sample", "--tasks", "mine", "--limit", "20")) == 2
    lines = lines_of(capsys)
    assert "left out: cue or all text cut away with the hidden word 2,000" in lines[-1]
    assert [x for x in lines if x.startswith("model   tiny-causal")]


def test_examples_that_hide_no_word_are_collected_once_for_all_models(write):
    load_file(write(TASK))
    corpus, task = LazyCorpus(find_corpus("sample", limit=20)), tasks.get("mine")
    assert corpus.examples(task, "masked") is corpus.examples(task, "cut")


# A head of a language model.


@pytest.mark.parametrize("more", [[], ["--workers", "2"], ["--engine", "ray"]])
@pytest.mark.parametrize("name", ["answers", "overall"])
def test_without_a_head_no_probe_is_trained_for_what_needs_one(
    name, more, tiny_bert, small_sample, command, tmp_path, capsys
):
    if "ray" in more:
        require_ray()
    line = command([tiny_bert], small_sample, "--tasks", "pos", "--measurements", name, *more)
    assert main(line) == 2
    lines = lines_of(capsys)
    assert lines[-1] == f"error: {NO_HEAD}"
    title = "pos · linear · answers" if name == "answers" else name
    assert f"failed  {title}: {NO_HEAD}" in lines
    assert made(tmp_path) == set()
    assert not [x for x in lines if x.startswith(("done", "vectors", "model"))]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--workers", "2"], ["--engine", "ray"]])
def test_a_model_without_a_head_costs_another_one_nothing(
    more, tiny_bert, with_head, small_sample, command, tmp_path, capsys
):
    if "ray" in more:
        require_ray()
    asked = ["--tasks", "pos,depth", "--measurements", "answers,overall,norms", *more]
    assert main(command([tiny_bert, with_head], small_sample, *asked)) == 1
    scores = {("with-head", f"{task}-linear-scores") for task in ("pos", "depth")}
    of_head = {("with-head", "pos-linear-answers"), ("with-head", "overall")}
    assert made(tmp_path) == scores | of_head | {("with-head", "norms"), ("tiny-bert", "norms")}
    lines = lines_of(capsys)
    missing = [x for x in lines if x.startswith("missing")]
    titles = ["overall", "pos · linear · answers"]
    assert sorted(missing) == [f"missing tiny-bert · {x}: {NO_HEAD}" for x in titles]


@pytest.mark.parametrize("asked", ["scores,answers", "answers,of_scores"])
def test_scores_that_are_asked_for_are_made_and_it_is_said_before(
    asked, tiny_bert, small_sample, command, write, tmp_path, capsys
):
    of_scores = """
from probes import Row, measurement
@measurement("of_scores", after="scores")
def of_scores(context):
    \"\"\"Needs no head.\"\"\"
    return [Row("norm", 1.0, layer) for layer in context.layers]
"""
    load_file(write(of_scores, "of_scores.py"))
    line = command([tiny_bert], small_sample, "--tasks", "pos,depth", "--measurements", asked)
    assert main(line) == 1
    assert {f"{task}-linear-scores" for task in ("pos", "depth")} <= {x for _, x in made(tmp_path)}
    lines = lines_of(capsys)
    failed = [i for i, x in enumerate(lines) if x.startswith("failed ")]
    done = [i for i, x in enumerate(lines) if " · done in " in x]
    assert [lines[i] for i in failed] == [f"failed  pos · linear · answers: {NO_HEAD}"]
    assert max(failed) < min(done)


def test_a_model_with_a_head_is_loaded_once(with_head, small_sample, command, tmp_path, capsys):
    line = command([with_head], small_sample, "--tasks", "pos", "--measurements", "answers")
    assert main(line) == 0
    assert {x for _, x in made(tmp_path)} == {"pos-linear-scores", "pos-linear-answers"}
    assert len([x for x in lines_of(capsys) if x.startswith("model   with-head")]) == 1


def test_nothing_is_said_of_evidence_behind_scores_that_cannot_be_made(
    tiny_bert, small_sample, command, write, capsys
):
    always = TASK.replace('"noun" if tag == "NOUN" else "other"', '"noun"').replace("mine", "pos2")
    load_file(write(always))
    asked = ["--tasks", "depth,pos2", "--measurements", "scores,answers"]
    assert main(command([tiny_bert], small_sample, *asked)) == 1
    (failed,) = [x for x in lines_of(capsys) if x.startswith("failed ")]
    assert failed.startswith("failed  pos2: Task 'pos2': every training example")
