"""The guide: its files are written, its commands run, and what it shows is what they print."""

import re
import tomllib

import numpy as np
import pytest
from guides import Guide
from plugged_in import guide_file

from probes.measurements.plugins import load_file
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics

GUIDE = Guide("adding-a-task.md")

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


def edit_template(folder):
    """Write into the files of the template, as the guide tells its reader."""
    GUIDE.write(folder)
    test, edited = folder / "test_tense.py", (folder / "in test_tense.py").read_text()
    text = re.sub(r"^SENTENCE.*^\]\n", lambda _: edited, test.read_text(), flags=re.M | re.S)
    test.write_text(text)


def test_every_command_runs_and_prints_what_the_guide_shows(
    tmp_path, monkeypatch, tiny_bert, capsys
):
    """One after the other, as a reader would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    GUIDE.follow(tiny_bert, capsys, lambda: edit_template(tmp_path))


def test_the_package_is_found_when_it_is_installed(install, tiny_bert, capsys):
    (toml,) = GUIDE.blocks("toml")
    ((group, points),) = tomllib.loads(toml)["project"]["entry-points"].items()
    install("tense", guide_file("tense.py"), points, group)
    assert GUIDE.run("python run_probes.py --list-tasks --format csv", tiny_bert) == 0
    assert "[tense of dist-tense 2.1]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["classification", "regression", "multi-label"])
def test_the_guide_lists_the_metrics_of_each_kind(kind):
    (row,) = re.findall(rf"^\| `{kind}`.*\|.*\|(.*)\|$", GUIDE.path.read_text(), re.M)
    known = {name for name in metrics if kind in metrics.get(name).kinds}
    assert set(re.findall(r"`([\w.]+)`", row)) - {"also"} == known


def test_a_plugged_in_metric_is_a_share_of_examples(write):
    load_file(write(guide_file("close.py"), "close.py"))
    sentence, no = np.array([0, 0, 0, 2]), np.zeros(4, bool)
    gold = Gold(np.array([1.0, 2.0, 3.0, 4.0]), sentence, (), no)
    predicted = np.array([[1.4, 2.0, 4.0, 3.4], [1.0, 2.0, 3.0, 4.0]])
    assert metrics.get("close")(gold, predicted) == pytest.approx([0.5, 1.0])
