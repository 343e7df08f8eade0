"""The guide to measurements: its files are written, its commands run and print what it shows."""

import csv

import numpy as np
import pytest
from guides import Guide
from plugged_in import EXAMPLES, guide_file

from probes.measurements.measurement import measurements
from probes.records.record_files import read_record

GUIDE = Guide("adding-a-measurement.md")

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "short_schedule")]


def test_every_command_runs_and_prints_what_the_guide_shows(
    tmp_path, monkeypatch, tiny_bert, capsys
):
    """One after the other, as a reader would: some need what others have written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    GUIDE.follow(tiny_bert, capsys, lambda: GUIDE.write(tmp_path))
    results = tmp_path / "results"
    found = {path.name.rpartition("-")[0] for path in results.rglob("*-????????.json")}
    assert {"word_norms", "pos-linear-seed_agreement", "pos-mlp-seed_agreement"} <= found
    with (results / "measurements.csv").open(encoding="utf-8") as file:
        rows = [(row["measurement"], row["model"], row["axes"]) for row in csv.DictReader(file)]
    # Norms of two models, and of two tags of both; agreement of two families: twins have none.
    own, twin = "tiny-bert", "random:tiny-bert"
    assert rows.count(("word_norms", twin, "")) == rows.count(("word_norms", own, "")) == 3
    assert rows.count(("tag_norms", own, "tag=NOUN")) == 3
    assert rows.count(("norm_ratio", twin, f"base={own}")) == 3
    assert len(rows) == 2 * 3 + 2 * 2 * 3 + 2 * 3 + 3
    for path in results.rglob("tag_norms-*.json"):
        tags = read_record(path).rows
        assert np.all(np.array(tags.low) < tags.value)
    (text,) = (path.read_text() for path in results.glob("tiny-bert-*/sample/layers.md"))
    assert "## linear probe, seed agreement · agreement of two seeds, %" in text
    report = "python -m probes report results --include seed_agreement.py,tag_norms.py"
    assert GUIDE.run(report, tiny_bert) == 0
    page = (results / "report.html").read_text()
    assert "agreement of two seeds" in page
    assert "tag norms" in page


def test_the_test_that_the_guide_shows_is_that_of_the_template():
    template = (EXAMPLES / "measurements" / "test_of_corpus.py").read_text()
    assert guide_file("in test_word_norms.py", GUIDE.path.name) in template.replace(
        "of_corpus", "word_norms"
    )


def test_the_package_is_found_when_it_is_installed(install, tiny_bert, capsys):
    module = guide_file("word_norms.py", GUIDE.path.name)
    install("word_norms", module, {"word_norms": "word_norms"}, "probes.plug_ins")
    assert GUIDE.run("python run_probes.py --list-measurements --format md", tiny_bert) == 0
    assert "[word\\_norms of dist-word\\_norms 2.1]" in capsys.readouterr().out
    assert "word_norms" in measurements
