"""The index of records: each is read once, and again only when its file has changed."""

from collections import Counter

import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.records.record import Record
from probes.records.record_files import Index, write_record


@pytest.fixture
def parsed(monkeypatch):
    """How often each record has been parsed, by whomever."""
    counted, parse = Counter(), Record.model_validate_json

    def count(content, **options):
        record = parse(content, **options)
        counted[record.key] += 1
        return record

    monkeypatch.setattr(Record, "model_validate_json", count)
    return counted


@pytest.mark.slow
def test_a_run_parses_every_record_once(tiny_bert, tmp_path, parsed):
    asked = {
        "quick": False,
        "twins": 1,
        "evidence": "selectivity",
        "measurements": "probes,geometry",
    }
    run(tiny_bert, tmp_path, tasks="pos,depth", **asked)
    assert not parsed  # it knows what it has written
    run(tiny_bert, tmp_path, tasks="pos,depth,agreement", **asked)
    # Linear and MLP probes of two tasks with evidence; linear ones of the twin; geometry of both
    # models, and of the pair.
    assert len(parsed) == 4 + 4 + 2 + 3
    assert set(parsed.values()) == {1}


def test_a_record_that_has_changed_is_read_again(tiny_bert, tmp_path, parsed):
    run(tiny_bert, tmp_path, tasks="pos")
    path = next(tmp_path.rglob("pos-linear-*.json"))
    index = Index()
    first = index.read(path)
    assert index.read(path) is first
    write_record(path, first.model_copy(update={"seconds": {"measure": 123.0}}), {})
    assert index.read(path).seconds == {"measure": 123.0}
    index.add(path, first)
    assert index.read(path) is first
    assert parsed[first.key] == 2

    path.write_text("{")
    with pytest.raises(UserError, match="not a readable result"):
        index.read(path)
