"""The guide to measurements: its files are written, its commands run and print what it shows."""

import csv
import runpy
import shutil
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from corpus_records import corpus_record
from drawn import column, svg, texts
from guides import Guide
from plugged_in import guide_file
from scipy.stats import entropy
from transformers import AutoModel, AutoTokenizer

import probes
from probes import ROOT, Row, Sentence
from probes.data.find import find_corpus
from probes.extraction.alignment import WordTokenizer
from probes.extraction.views import Text
from probes.extraction.windows import window_spans
from probes.measurements.long_frame import Findings
from probes.measurements.measurement import (
    Request,
    ScoresBehind,
    get_measurement,
    measurements,
)
from probes.measurements.plugins import load_file
from probes.records.probe_spec import PROBES
from probes.records.record_files import read_record
from probes.tables.charts import PAPER

GUIDE = Guide("adding-a-measurement.md")

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the guide, as its reader would have them."""
    GUIDE.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def test_every_command_runs_and_prints_what_the_guide_shows(folder, tiny_bert, capsys):
    """One after the other, as a reader would: some need what others have written."""
    for command, shown in GUIDE.commands:
        assert GUIDE.run(command, tiny_bert) == 0, capsys.readouterr().err
        printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        printed = [line.replace("│", " ").strip() for line in printed]
        printed = [" ".join(line.replace("┃", " ").split()) for line in printed]
        for line in shown:
            assert line in printed, command
    found = {path.name.rpartition("-")[0] for path in (folder / "results").rglob("*-????????.json")}
    assert {"word_norms", "pos-linear-seed_agreement", "pos-mlp-seed_agreement"} <= found
    with (folder / "results" / "measurements.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert ",".join(rows[0]) == (folder / "columns.txt").read_text().strip()
    # Two norms and that of roots of two models, the agreement of two families, and flips of one;
    # twins have no evidence. Two models of two blocks with two heads.
    flips = [row for row in rows if row[6] == "flips"]
    assert {"0", "2"} <= {row[7] for row in flips}
    heads = [row for row in rows if row[6] == "head_entropy"]
    assert len(heads) == 2 * 2 * 2
    ratios = [row for row in rows if row[6] == "norm_ratio"]
    assert [(row[0], row[8]) for row in ratios] == [("random:tiny-bert", "base=tiny-bert")] * 3
    assert len(rows) - 1 == (2 + 1) * 2 * 3 + 2 * 3 + len(flips) + len(heads) + 3
    (text,) = (p.read_text() for p in (folder / "results").glob("tiny-bert-*/sample/layers.md"))
    assert "## linear probe, seed agreement · agreement of two seeds, %" in text
    report = "python -m probes report results --include seed_agreement.py"
    assert GUIDE.run(report, tiny_bert) == 0
    assert "agreement of two seeds" in (folder / "results" / "report.html").read_text()


def test_a_view_of_ones_own_draws_its_numbers(folder):
    view = runpy.run_path("norms_of_heads.py")["NormsOfHeads"]()
    rows = [Row("head_norm", 1.5, 1, axes={"head": head}) for head in (1, 2)]
    found = Findings({"bert": corpus_record("geometry", rows, 1)})
    chart = view.draw(found, PAPER)
    assert column(chart, "model") == ["bert"] * 2
    assert column(chart, "value") == [1.5, 1.5]
    assert {"mean norm", "1.5", "layer", "head"} <= set(texts(svg(chart)))


def test_learnt_weights_apply_to_vectors_as_they_are(folder, tiny_bert):
    (result,) = probes.run_probes(
        str(tiny_bert), tasks="pos", probes="linear", limit=20, quick=True, cache_dir="cache",
        device="cpu",
    )  # fmt: skip
    learnt = runpy.run_path("learnt.py")["learnt"]
    weight, bias, classes = learnt("cache", result, 2)
    counts = result.examples.labels
    assert classes == sorted(label for label, (train, *_) in counts.items() if train)
    stored = probes.read_parameters("cache", result.key)
    of = {name: stored[f"layer-02.{name}"] for name in ("weight", "bias", "mean", "scale")}
    x = np.random.default_rng(0).normal(size=weight.shape[1])
    expected = of["weight"] @ ((x - of["mean"]) * of["scale"]) + of["bias"]
    assert weight @ x + bias == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_files_can_be_included_together_and_ask_for_what_the_guide_says(folder):
    for name in ("word_norms.py", "seed_agreement.py", "flips.py", "root_norms.py"):
        load_file(name)
    scored = ScoresBehind(PROBES["linear"], layers=(0, 1, 2, 3, 4), best=3, typed=True)
    request = Request((0, 1, 2, 3, 4), 4, scored=scored)
    assert get_measurement("flips").extent(request) == {0: 1, 3: 1, 4: 1}
    full = request._replace(level="full")
    assert get_measurement("flips").extent(full) == dict.fromkeys(range(5), 1)
    roots = get_measurement("root_norms")
    assert (roots.lacking({"heads"}), roots.lacking({"upos"})) == ("", "it has no heads")


@pytest.mark.parametrize("workers", [1, 2])
def test_entropies_of_heads_are_those_of_the_models_own_maps(folder, tiny_bert, workers):
    """Also of texts that take two windows, whose windows count by their tokens."""
    model = AutoModel.from_pretrained(tiny_bert, attn_implementation="eager").eval()
    with torch.no_grad():
        for block in model.encoder.layer:  # otherwise attention is as good as uniform
            block.attention.self.query.weight.mul_(300)
    sharp = folder / "sharp"
    shutil.copytree(tiny_bert, sharp)
    model.save_pretrained(sharp)
    probes.run_probes(
        str(sharp), measurements="head_entropy", include="head_entropy.py", limit=6, twins=0,
        threads=1, workers=workers, device="cpu", cache_dir="cache", batch_tokens=128,
    )  # fmt: skip
    (path,) = (folder / "results").rglob("head_entropy-*.json")
    found = read_record(path).rows
    words = WordTokenizer(AutoTokenizer.from_pretrained(tiny_bert))
    sentences = [s.words for s in find_corpus("sample", limit=6).load().splits["test"]]
    capacity = model.config.max_position_embeddings - 2
    means = []
    for given in sentences:
        (pieces,) = words([Text(given, (0, len(given)))])
        sums, n_tokens = 0.0, 0
        for start, end in window_spans(len(pieces.ids), capacity):
            ids = [*words.prefix, *pieces.ids[start:end], *words.suffix]
            with torch.no_grad():
                maps = model(torch.tensor([ids]), output_attentions=True).attentions
            each = [entropy(one[0].double().numpy(), axis=-1).sum(-1) for one in maps]
            sums, n_tokens = sums + np.stack(each), n_tokens + len(ids)
        means.append(sums / n_tokens)
    expected = np.mean(means, axis=0)
    assert (found.layer, found.axes["head"]) == ((1, 1, 2, 2), (1, 2, 1, 2))
    assert found.value == pytest.approx(np.ravel(expected), rel=1e-4)
    assert np.ptp(expected) > 0.01
    names = {file.name for file in (folder / "cache").rglob("*.npy")}
    assert names == {"entropy.npy"}


def test_a_collector_is_identified_by_its_source_and_its_faults_cost_its_record(folder, tiny_bert):
    whole = (folder / "head_entropy.py").read_text()

    def run(name, old, new):
        text = whole.replace(old, new).replace('"head_entropy"', f'"{name}"')
        (folder / f"{name}.py").write_text(text)
        found = probes.run_probes(
            str(tiny_bert), include=f"{name}.py", measurements=f"{name},probes", tasks="pos",
            probes="linear", limit=6, quick=True, threads=1, device="cpu",
            cache_dir="cache",
        )  # fmt: skip
        assert len(list(found)) == 1
        return found

    wrong = run("wrong", 'return {"entropy": self', 'return {"entropy": 1000 * self')
    sound = run("sound", "", "")
    means = [np.array(each.others[0].rows.value) for each in (wrong, sound)]
    assert means[0] == pytest.approx(1000 * means[1])
    (why,) = run("other", '{"entropy": self', '{"other": self').failed.values()
    assert why.startswith("The collector 'head entropy' returned other where entropy was asked for")
    (why,) = run("fails", "return 4 *", "return missing *").failed.values()
    assert "NameError" in why
    assert "fails.py, line" in why


def test_norms_of_roots_are_those_of_the_words_whose_head_is_root(folder):
    load_file("root_norms.py")
    sentences = (
        Sentence("1", "en", ("dogs", "bark"), heads=(1, ROOT)),
        Sentence("2", "en", ("go",), heads=(ROOT,)),
    )
    vectors = np.array([[9.0, 9.0], [3.0, 4.0], [0.0, 1.0]])
    corpus = SimpleNamespace(splits={"test": sentences})
    context = SimpleNamespace(layers=(1,), corpus=corpus, words=lambda split, layer: vectors)
    (row,) = get_measurement("root_norms")(context)
    assert (row.layer, row.value) == (1, 3.0)


def test_the_package_is_found_when_it_is_installed(install, tiny_bert, capsys):
    (toml,) = GUIDE.blocks("toml")
    groups = tomllib.loads(toml)["project"]["entry-points"]
    ((group, points),) = groups.items()
    install("word_norms", guide_file("word_norms.py", "adding-a-measurement.md"), points, group)
    assert GUIDE.run("python run_probes.py --list-measurements --format md", tiny_bert) == 0
    assert "[word\\_norms of dist-word\\_norms 2.1]" in capsys.readouterr().out
    assert "word_norms" in measurements
