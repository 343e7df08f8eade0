"""`python -m probes COMMAND`: what each prints and refuses."""

import hashlib

import pytest
from serving import serving

from probes.__main__ import main
from probes.data.downloads import Remote
from probes.data.registered import Registered, corpora
from probes.data.treebank import read_english

LINE = "1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def tiny(monkeypatch):
    """A corpus of three one-word files, registered for one test."""
    contents, files = {}, {}
    for split in ("train", "dev", "test"):
        name, content = f"tiny-{split}.conllu", f"# sent_id = {split}\n{LINE}".encode()
        contents[name] = content
        files[split] = Remote(name, "http://127.0.0.1:9/x", hashlib.sha256(content).hexdigest())
    corpus = Registered("tiny", "1", "CC0", "Tiny.", files, read_english, frozenset(["upos"]))
    corpus.__dict__["citation"] = "@misc{tiny}"
    monkeypatch.setitem(corpora._entries, "tiny", corpus)
    return contents


def test_fetch_then_listed_as_cached(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    places = ["--cache-dir", str(tmp_path)]

    def listed():
        assert main(["corpora", *places]) == 0
        printed = capsys.readouterr()
        (row,) = (r for r in printed.out.splitlines() if r.startswith("tiny"))
        return row, printed.err

    assert listed()[0].split()[:6] == ["tiny", "1", "CC0", "not", "downloaded", "pos,"]
    with serving(tiny) as (url, seen):
        assert main(["fetch", "tiny", "--mirror", url, *places]) == 0
        assert main(["fetch", "tiny", "--mirror", url, *places]) == 0
    assert set(seen.values()) == {1}
    printed = capsys.readouterr()
    assert "1 / 1 / 1 sentences, 1 / 1 / 1 words" in printed.out
    assert "tiny 1: CC0. Please cite:\n@misc{tiny}" in printed.err
    assert listed()[0].split()[:5] == ["tiny", "1", "CC0", "cached", "pos,"]
    # One file is lost, another damaged.
    (tmp_path / "corpora" / "tiny-dev.conllu").unlink()
    (tmp_path / "corpora" / "tiny-test.conllu").write_text("x")
    row, said = listed()
    assert "1 of 3 files" in row
    assert "skipped" in said
