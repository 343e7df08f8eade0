"""`probes.run_probes` as a notebook calls it."""

import ast
import inspect
import re

import pytest
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

import probes
from probes.__main__ import main as command
from probes.run.config import RunConfig
from tools.write_setting_types import FILE, setting_types

pytestmark = pytest.mark.usefixtures("short_schedule")


def test_help_and_completion_know_the_settings_of_a_run():
    shown = inspect.signature(probes.run_probes).parameters
    before = ["model", "tokenizer", "name", "quiet", "verbose"]
    assert list(shown) == [*before, *RunConfig.model_fields]
    assert (shown["seeds"].default, shown["seeds"].annotation) == (1, int)
    of_vectors = inspect.signature(probes.probe).parameters
    assert list(of_vectors)[:4] == ["vectors", "more", "quiet", "verbose"]
    assert "seeds" in of_vectors
    assert not {"corpus", "layers", "settings"} & set(of_vectors)


def test_help_describes_every_setting():
    shown = inspect.getdoc(probes.run_probes)
    described = re.findall(r"^    (\w+) \((.+), default (.+?)\): (.+)$", shown, re.MULTILINE)
    assert [name for name, *_ in described] == list(RunConfig.model_fields)
    assert [about for *_, about in described] == [
        field.description for field in RunConfig.model_fields.values()
    ]
    by_name = {name: (kind, default) for name, kind, default, _ in described}
    assert by_name["seeds"] == ("int", "1")
    assert by_name["tasks"] == ("str | Sequence[str]", "()")
    assert by_name["output"] == ("str | Path", "results")
    assert by_name["load"] == ("Literal['8bit', '4bit'] | None", "None")


def test_type_checkers_know_the_settings_of_a_run():
    assert FILE.read_text("utf-8") == setting_types(), "python tools/write_setting_types.py"
    classes = {x.name: x for x in ast.parse(FILE.read_text("utf-8")).body if hasattr(x, "bases")}
    names = {
        name: [line.target.id for line in x.body if isinstance(line, ast.AnnAssign)]
        for name, x in classes.items()
    }
    of_vectors = list(inspect.signature(probes.probe).parameters)
    assert names["FitSettings"] == of_vectors[4:]
    assert sorted(names["FitSettings"] + names["RunSettings"]) == sorted(RunConfig.model_fields)


def test_quiet_and_verbose_hold_for_the_call(tiny_bert, tmp_path, capsys):
    run(tiny_bert, tmp_path, tasks="pos", probes="linear")
    assert "done" in capsys.readouterr().err
    settings = {"corpus": "sample", "limit": 60, "quick": True, "tasks": "depth"}
    places = {"output": tmp_path / "results", "cache_dir": tmp_path / "cache"}
    probes.run_probes(str(tiny_bert), quiet=True, **settings, **places)
    quiet = capsys.readouterr()
    assert quiet.out == ""
    assert quiet.err.count("\n") == 1  # a warning: many words of this tokenizer are unknown


def sentences(n):
    tags = ("DET", "NOUN", "VERB")
    for i in range(n):
        words = ("the", ("dog", "cat", "bird")[i % 3], "sleeps")
        yield probes.Sentence(f"s{i}", "en", words, upos=tags, document=f"d{i // 2}")


def test_sentences_are_a_corpus(tiny_bert, tmp_path):
    places = {"output": tmp_path / "results", "cache_dir": tmp_path / "cache", "quick": True}
    found = probes.run_probes(str(tiny_bert), corpus=list(sentences(40)), tasks="pos", **places)
    (corpus,) = {(r.corpus.name, r.corpus.sentences["test"]) for r in found.results}
    assert corpus == ("in memory", 4)
    notes = found.results[0].corpus.notes
    assert notes["dev sentences cut from all, by document"] == 4

    given = tuple(sentences(30))
    splits = {"train": given[:10], "dev": given[10:20], "test": given[20:]}
    mine = probes.Corpus("mine", "2", "CC0", splits)
    found = probes.run_probes(str(tiny_bert), corpus=mine, tasks="pos", **places)
    assert {(r.corpus.name, r.corpus.licence) for r in found.results} == {("mine", "CC0")}
    assert len(list((tmp_path / "results").glob("*/mine-*"))) == 1
    assert len(list((tmp_path / "results").glob("*/in-memory-*"))) == 1


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ([1, 2], r"corpus=\[…\]: a int in it; give probes.Sentence objects"),
        (list(sentences(1)), "too few documents to cut"),
        (
            probes.Corpus("mine", "", "", {"train": tuple(sentences(3))}),
            "corpus='mine': no sentences in dev; fill its splits train, dev, test",
        ),
    ],
)
def test_what_is_no_corpus_is_refused(tiny_bert, tmp_path, corpus, says):
    with pytest.raises(probes.UserError, match=says):
        probes.run_probes(str(tiny_bert), corpus=corpus, output=tmp_path)
    with pytest.raises(probes.UserError, match="workers cannot read a corpus in memory"):
        probes.run_probes(str(tiny_bert), corpus=corpus, output=tmp_path, workers=2)


def test_models_of_transformers_come_with_their_tokenizer(tiny_bert, tmp_path):
    model, tokenizer = (x.from_pretrained(tiny_bert) for x in (AutoModel, AutoTokenizer))
    settings = {"corpus": "sample", "limit": 60, "quick": True, "tasks": "pos", "device": "cpu"}
    places = {"cache_dir": tmp_path / "cache"}
    named = run(tiny_bert, tmp_path, tasks="pos")
    for number, given in enumerate([(model, tokenizer), ((model, tokenizer),)]):
        output = tmp_path / f"{number}"
        found = probes.run_probes(*given, name="mine", output=output, **settings, **places)
        assert {r.model.name for r in found.results} == {"mine"}
        assert found.table().equals(named.table())
        assert list(output.glob("mine-*/sample"))
    with pytest.raises(probes.UserError, match="needs its tokenizer; give it as the second"):
        probes.run_probes(model, output=tmp_path)
    with pytest.raises(probes.UserError, match="with its tokenizer, not a int"):
        probes.run_probes(3, output=tmp_path)
    with pytest.raises(probes.UserError, match="tokenizer=…: only for a model in memory"):
        probes.run_probes(str(tiny_bert), tokenizer, output=tmp_path)


def test_probes_run_is_the_command_of_a_run(capsys):
    assert command(["run", "--list-tasks"]) == 0
    assert "agreement" in capsys.readouterr().out
    assert command(["ru"]) == 2
    assert "Did you mean 'run'?" in capsys.readouterr().err
    assert command([]) == 0
    assert "run              Probe a model" in capsys.readouterr().out
