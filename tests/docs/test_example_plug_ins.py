"""The plug-ins among the examples: a probe family, a corpus, a collector and a chart."""

import runpy
import shutil

import numpy as np
import pytest
import torch
from corpus_records import corpus_record
from drawn import column, svg, texts
from plugged_in import EXAMPLES, TASK, example_file
from scipy.stats import entropy
from transformers import AutoModel, AutoTokenizer

import probes
from probes import Row
from probes.__main__ import main
from probes.data.find import find_corpus
from probes.extraction.reading.alignment import WordTokenizer
from probes.extraction.reading.views import Text
from probes.extraction.reading.windows import window_spans
from probes.frames.long_frame import RecordsByModel
from probes.measurements.measurement import EVIDENCE
from probes.measurements.plugins import load_file
from probes.records.probe_spec import PROBES
from probes.records.record_files import read_record
from probes.tables.charts import PAPER
from probes.training.batches import Batches, batch_bounds
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """An empty folder, in which runs write their results."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_low_rank_probe_cannot_do_what_a_full_one_can(write):
    load_file(write(example_file("low_rank.py"), "low_rank.py"))
    torch.manual_seed(0)
    x = torch.randn(1, 600, 16)
    y = x[0, :, :8].argmax(1)[None]
    numbers = torch.arange(600)
    data = Batches(InMemory(x), y, torch.ones(1, 600), numbers, batch_bounds(numbers))
    shares = {}
    for rank in (1, 8):
        spec = PROBES["low_rank"].model_copy(update={"hidden": rank})
        fitted = fit(data, data, 8, spec, [FitSeed()])
        shares[rank] = (predict(fitted, InMemory(x), 8, spec)[0, 0] == y[0]).float().mean().item()
    # One dimension separates few of eight directions; eight separate all.
    assert shares[1] < 0.5
    assert shares[8] > 0.85


def test_a_full_run_has_everything_for_a_plugged_in_task_and_probe(write, run_with):
    family = write(
        example_file("low_rank.py").replace("min_steps=600", "min_steps=24"), "low_rank.py"
    )
    found = run_with(
        write(TASK), family, tasks=("mine",), probes=("low_rank",), evidence=tuple(EVIDENCE)
    )
    (result,) = found.results
    assert result.evidence.keys() == {"training_variance", "selectivity"}
    assert result.row("selectivity", "control_types").value > 1
    assert result.row("training_variance", "retraining_sd").n > 0


def test_a_plugged_in_corpus_is_read(write, tmp_path, capsys):
    path = write(example_file("tagged.py"), "tagged.py")
    for split, dogs in (("train", "dogs"), ("dev", "cats"), ("test", "birds")):
        lines = f"the/DET {dogs}/NOUN bark/VERB\nshe/PRON reads/VERB\n"
        (tmp_path / f"{split}.tagged").write_text(lines)
    assert main(["check", "pos", "--corpus", "tagged", "--include", str(path)]) == 0
    assert "pos on tagged" in capsys.readouterr().out


def test_a_view_of_ones_own_draws_its_numbers():
    view = runpy.run_path(EXAMPLES / "norms_of_heads.py")["NormsOfHeads"]()
    rows = [Row("head_norm", 1.5, 1, axes={"head": head}) for head in (1, 2)]
    found = RecordsByModel({"bert": corpus_record("geometry", rows, 1)})
    chart = view.chart(found, PAPER)
    assert column(chart, "model") == ["bert"] * 2
    assert column(chart, "value") == [1.5, 1.5]
    assert {"mean norm", "1.5", "layer", "head"} <= set(texts(svg(chart)))


@pytest.mark.parametrize("workers", [1, 2])
def test_entropies_of_heads_are_those_of_the_models_own_maps(working_folder, tiny_bert, workers):
    """Also of texts that take two windows, whose windows count by their tokens."""
    model = AutoModel.from_pretrained(tiny_bert, attn_implementation="eager").eval()
    with torch.no_grad():
        for block in model.encoder.layer:  # otherwise attention is as good as uniform
            block.attention.self.query.weight.mul_(300)
    sharp = working_folder / "sharp"
    shutil.copytree(tiny_bert, sharp)
    model.save_pretrained(sharp)
    probes.run_probes(
        str(sharp), measurements="head_entropy", include=EXAMPLES / "head_entropy.py", limit=6, twins=0,
        threads=1, workers=workers, device="cpu", cache_dir="cache", batch_tokens=128,
    )  # fmt: skip
    (path,) = (working_folder / "results").rglob("head_entropy-*.json")
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
    names = {file.name for file in (working_folder / "cache").rglob("*.npy")}
    assert names == {"entropy.npy"}


def test_a_collector_is_identified_by_its_source_and_its_faults_cost_its_record(
    working_folder, tiny_bert
):
    whole = example_file("head_entropy.py")

    def run(name, old, new):
        text = whole.replace(old, new).replace('"head_entropy"', f'"{name}"')
        (working_folder / f"{name}.py").write_text(text)
        found = probes.run_probes(
            str(tiny_bert), include=f"{name}.py", measurements=f"{name},probes", tasks="pos",
            probes="linear", limit=6, quick=True, threads=1, device="cpu",
            cache_dir="cache",
        )  # fmt: skip
        assert len(list(found.results)) == 1
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
