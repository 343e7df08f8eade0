"""The guide: its files are written, its commands run, and what it shows is what they print."""

import json
import re
import tomllib

import numpy as np
import pytest
import torch
from guides import Guide
from plugged_in import TASK, guide_file
from sklearn.metrics import cohen_kappa_score

from probes.measurements.measurement import EVIDENCE
from probes.measurements.plugins import load_file
from probes.records.probe_spec import PROBES
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.training.batches import Batches, batch_bounds
from probes.training.features import Held
from probes.training.fit import Draw, fit, predict

GUIDE = Guide("adding-a-task.md")
COMMANDS = GUIDE.commands

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the guide, as its reader would have them."""
    GUIDE.write(tmp_path)
    for split in ("dev", "test"):
        (tmp_path / f"{split}.tagged").write_text((tmp_path / "train.tagged").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(folder, tiny_bert):
    """Runs a command of the guide, with a tiny model in the place of the real one."""
    return lambda command: GUIDE.run(command, tiny_bert)


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_every_command_runs_and_prints_what_the_guide_shows(command, shown, run, capsys):
    assert run(command) == 0, capsys.readouterr().err
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in shown:
        assert line in printed


def test_every_file_can_be_included_with_the_others(folder, run, capsys):
    files = [path.name for path in sorted(folder.glob("*.py")) if not path.stem.startswith("test_")]
    listed = "python run_probes.py --list-tasks --format json --include "
    assert run(listed + ",".join(files)) == 0
    rows = json.loads(capsys.readouterr().out)
    marked = [row["name"] for row in rows if row["summary"].endswith(".py]")]
    names = ["article", "dependents", "features", "frequency", "passive", "same_chunk", "tense"]
    assert marked == names


def test_the_package_is_found_when_it_is_installed(folder, install, run, capsys):
    (toml,) = GUIDE.blocks("toml")
    ((group, points),) = tomllib.loads(toml)["project"]["entry-points"].items()
    install("tense", (folder / "tense.py").read_text(), points, group)
    assert run("python run_probes.py --list-tasks --format csv") == 0
    assert "[tense of dist-tense 2.1]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["classification", "regression", "multi-label"])
def test_the_guide_lists_the_metrics_of_each_kind(kind):
    (row,) = re.findall(rf"^\| `{kind}` \|.*\|(.*)\|$", GUIDE.path.read_text(), re.M)
    known = {name for name in metrics if kind in metrics.get(name).kinds}
    assert set(re.findall(r"`(\w+)`", row)) - {"also"} == known


def test_a_plugged_in_metric_is_scikit_learns(write):
    load_file(write(guide_file("kappa.py"), "kappa.py"))
    rng = np.random.default_rng(0)
    labels, given = rng.integers(4, size=(2, 300))
    given = np.where(rng.random(300) < 0.5, labels, given)
    gold = Gold(
        labels, np.sort(rng.integers(40, size=300)), ("a", "b", "c", "d"), np.zeros(300, bool)
    )
    ours = metrics.get("kappa")(gold, np.stack([given, labels]))
    assert ours == pytest.approx([cohen_kappa_score(labels, given), 1.0])
    constant = Gold(labels * 0, gold.sentence, ("a",), gold.punctuation)
    assert np.isnan(metrics.get("kappa")(constant, labels[None] * 0)).all()


def test_a_low_rank_probe_cannot_do_what_a_full_one_can(write):
    load_file(write(guide_file("low_rank.py"), "low_rank.py"))
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
        guide_file("low_rank.py").replace("min_steps=600", "min_steps=24"), "low_rank.py"
    )
    found = run_with(
        write(TASK), family, tasks=("mine",), probes=("low_rank",), evidence=tuple(EVIDENCE)
    )
    (result,) = found
    assert result.evidence.keys() == {"training_variance", "selectivity"}
    assert result.row("selectivity", "control_types").value > 1
    assert result.row("training_variance", "retraining_sd").n > 0
