"""`probes.run_probes` as a notebook calls it."""

import inspect
import re

import pytest
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

import probes
from probes.__main__ import main as command
from probes.run.config import RunConfig

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.fixture
def small_results(small_run):
    return small_run.results


def test_help_and_completion_know_the_settings_of_a_run():
    shown = inspect.signature(probes.run_probes).parameters
    assert list(shown) == [
        "model",
        "tokenizer",
        "name",
        "quiet",
        "verbose",
        *RunConfig.model_fields,
    ]
    assert (shown["seeds"].default, shown["seeds"].annotation) == (1, int)
    of_vectors = inspect.signature(probes.probe).parameters
    assert list(of_vectors)[:4] == ["vectors", "more", "quiet", "verbose"]
    assert "seeds" in of_vectors
    assert not {"corpus", "layers", "settings"} & set(of_vectors)


def test_results_are_shown_as_tables_and_say_what_they_are(small_results):
    name = small_results.results[0].model.name
    assert repr(small_results) == (
        f"<Results: {name} and random:{name} on sample · pos, depth · geometry, model_similarity>"
    )
    html = small_results._repr_html_()
    assert (
        f"<caption><span>{name} · sample, limit 60 · linear probe · test</span></caption>" in html
    )
    assert "random twin" in html
    assert "▽ not significantly above the floor" in html
    assert "<caption><span>random:" not in html.split("geometry")[0]
    best = max(small_results.table()["pos"])
    assert f"{100 * best:.1f}" in html


def test_tables_are_of_the_one_pretrained_model(small_results):
    pos = small_results.results[0]
    assert small_results.table()["pos"].to_dict() == pos.headline
    latex = small_results.to_latex()
    assert r"\begin{tabular}{@{}lr@{}lr@{}l@{}}" in latex
    assert r"\begin{table*}" in small_results.to_latex(wide=True)
    assert r"\scriptsize random &" in latex  # twin, in the next line
    with pytest.raises(probes.UserError, match=r"model='x': no results\. Known: "):
        small_results.table(model="x")
    with pytest.raises(probes.UserError, match=r"probe='mpl': no results\. Did you mean 'mlp'"):
        small_results.table("mpl")
    with pytest.raises(probes.UserError, match="corpus='ewt': no results"):
        small_results.to_latex(corpus="ewt")


def test_figures_and_the_page_are_those_of_the_commands(small_results, small_run, tmp_path):
    folder = str(small_run.folder / "results")
    figure = small_results.plot("curves")
    assert figure._repr_svg_().startswith("<svg")
    assert command(["figure", "curves", folder, "--wide", "-o", str(tmp_path / "its.svg")]) == 0
    ours = figure.save(tmp_path / "ours.svg").read_text()
    assert ours == (tmp_path / "its.svg").read_text()
    assert figure.save(tmp_path / "ours.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in small_results.plot("cka").svg
    one = small_results.plot("curves", task="pos").svg
    assert ("pos" in one, "depth" in one, "depth" in figure.svg) == (True, False, True)
    for name in ("task", "model", "corpus"):
        with pytest.raises(probes.UserError, match=f"--{name} nonsense: no results. Known: "):
            small_results.plot("curves", **{name: "nonsense"})
    assert small_results.plot("curves", task=["pos"], model=None).svg == one
    assert small_results.plot("curves", task=("pos", "depth")).svg == figure.svg
    for nothing in (",", []):
        with pytest.raises(probes.UserError, match=r"task=.*: names nothing; give names"):
            small_results.plot("curves", task=nothing)
    with pytest.raises(probes.UserError, match=r"No figure is called 'curve'\. Did you mean"):
        small_results.plot("curve")
    with pytest.raises(probes.UserError, match=r"x\.jpg: the name must end in one of \.pdf"):
        figure.save(tmp_path / "x.jpg")
    page = small_results.report(tmp_path / "page.html").read_text()
    assert small_results.results[0].model.name in page
    with pytest.raises(probes.UserError, match="not written, since there are no results"):
        probes.Results().report(tmp_path / "none.html")


def test_what_is_loaded_is_shown_as_what_was_found(small_results, small_run):
    loaded = probes.load_results(small_run.folder / "results")
    assert loaded.table().equals(small_results.table())
    assert loaded.to_latex() == small_results.to_latex()
    drawn = [re.sub(r"gradient_\d+", "", x.plot("heatmap").svg) for x in (loaded, small_results)]
    assert drawn[0] == drawn[1]


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
    for i in range(n):
        noun = ("dog", "cat", "bird")[i % 3]
        yield probes.Sentence(
            f"s{i}",
            "en",
            ("the", noun, "sleeps"),
            upos=("DET", "NOUN", "VERB"),
            document=f"d{i // 2}",
        )


def test_sentences_are_a_corpus(tiny_bert, tmp_path):
    places = {"output": tmp_path / "results", "cache_dir": tmp_path / "cache", "quick": True}
    found = probes.run_probes(str(tiny_bert), corpus=list(sentences(40)), tasks="pos", **places)
    (corpus,) = {(r.corpus.name, r.corpus.sentences["test"]) for r in found}
    assert corpus == ("in memory", 4)
    notes = found.results[0].corpus.notes
    assert notes["dev sentences cut from all, by document"] == 4

    given = tuple(sentences(30))
    splits = {"train": given[:10], "dev": given[10:20], "test": given[20:]}
    mine = probes.Corpus("mine", "2", "CC0", splits)
    found = probes.run_probes(str(tiny_bert), corpus=mine, tasks="pos", **places)
    assert {(r.corpus.name, r.corpus.licence) for r in found} == {("mine", "CC0")}
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
    model, tokenizer = (
        AutoModel.from_pretrained(tiny_bert),
        AutoTokenizer.from_pretrained(tiny_bert),
    )
    settings = {"corpus": "sample", "limit": 60, "quick": True, "tasks": "pos", "device": "cpu"}
    places = {"cache_dir": tmp_path / "cache"}
    named = run(tiny_bert, tmp_path, tasks="pos")
    for number, given in enumerate([(model, tokenizer), ((model, tokenizer),)]):
        output = tmp_path / f"{number}"
        found = probes.run_probes(*given, name="mine", output=output, **settings, **places)
        assert {r.model.name for r in found} == {"mine"}
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
