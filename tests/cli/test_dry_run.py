"""What --dry-run says remains."""

import shutil

from tiny_runs import run


def test_what_is_measured_needs_no_vectors(tiny_bert, tmp_path, capsys):
    settings = {"tasks": "pos,agreement", "probes": "linear", "layers": "0"}
    run(tiny_bert, tmp_path, **{**settings, "tasks": "pos"})
    shutil.rmtree(tmp_path / "cache")
    run(tiny_bert, tmp_path, dry_run=True, **{**settings, "tasks": "pos"})
    said = capsys.readouterr()
    assert "nothing remains to be computed; 1 record exists already" in said.err
    run(tiny_bert, tmp_path, dry_run=True, **settings)
    said = capsys.readouterr()
    assert "masked view of agreement" in said.out
    assert "plain view" not in said.out
