"""The plug-ins among the examples: a probe family and a corpus."""

import pytest
import torch
from plugged_in import TASK, example_file

from probes.__main__ import main
from probes.measurements.measurement import EVIDENCE
from probes.measurements.plugins import load_file
from probes.records.probe_spec import PROBES
from probes.training.batches import Batches, batch_bounds
from probes.training.features import Held
from probes.training.fit import Draw, fit, predict

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


def test_a_low_rank_probe_cannot_do_what_a_full_one_can(write):
    load_file(write(example_file("low_rank.py"), "low_rank.py"))
    torch.manual_seed(0)
    x = torch.randn(1, 600, 16)
    y = x[0, :, :8].argmax(1)[None]
    numbers = torch.arange(600)
    data = Batches(Held(x), y, torch.ones(1, 600), numbers, batch_bounds(numbers))
    shares = {}
    for rank in (1, 8):
        spec = PROBES["low_rank"].model_copy(update={"hidden": rank})
        fitted = fit(data, data, 8, spec, [Draw()])
        shares[rank] = (predict(fitted, Held(x), 8, spec)[0, 0] == y[0]).float().mean().item()
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
    (result,) = found
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
