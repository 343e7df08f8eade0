"""Which stored records this version would compute, and why not the others."""

import re

import pytest
from board_by_hand import put, put_evidence
from corpus_records import corpus_record, store_record

from probes.common.errors import UserError
from probes.common.origin import Origin
from probes.frames.frame import load
from probes.frames.joined_results import read_result
from probes.frames.record_status import why_outdated
from probes.measurements.measurement import get_measurement, measurement, measurements
from probes.measurements.plugins import loading
from probes.records.header import PlugIn
from probes.records.probe_spec import PROBES
from probes.records.record_files import read_record
from probes.records.row import Row

SLOW = PROBES["linear"].model_copy(update={"learning_rate": 0.5})


def plug_in(kind, name, letter):
    return PlugIn(kind=kind, name=name, source="x.py", distribution="", sha256=letter * 64)


@pytest.mark.parametrize(
    ("task", "changes", "reason"),
    [
        ("pos", {}, ""),
        ("srl", {}, ""),
        ("pos", {"task__version": 0}, "the task pos: version 0, now 1"),
        ("pos@mlp", {"task__version": 3}, "the task pos@mlp: version 3, now 1"),
        ("pos", {"measurement_version": 2}, "scores: version 2, now 3"),
        ("pos", {"probe": SLOW}, "another specification of the linear probe"),
        ("pos", {"current": False}, "another way of computing"),
        # What is not loaded counts as unchanged.
        ("mine", {"task__version": 7}, ""),
        ("mine", {"plug_ins": (plug_in("task", "mine", "a"),)}, ""),
        # A task of the suite once was a plug-in's.
        ("pos", {"plug_ins": (plug_in("task", "pos", "a"),)}, "another source of the task pos"),
        ("pos", {"plug_ins": (plug_in("metric", "wug", "a"),)}, ""),
        ("pos", {"plug_ins": (plug_in("no such kind", "pos", "a"),)}, ""),
    ],
)
def test_a_record_is_current_or_there_is_a_reason(tmp_path, task, changes, reason):
    path = put(tmp_path, "m", task, 9, p_best=False, **changes)
    assert why_outdated(read_record(path)) == reason
    assert list(load(tmp_path).headers["measurement"]) == ["scores"] * (not reason)
    if reason:
        with pytest.raises(UserError, match=f"{path}: {re.escape(reason)}; run it again"):
            read_result(path)


def test_records_left_out_are_counted_with_their_reasons(tmp_path, capsys):
    for model, changes in (
        ("a", {"task__version": 0}),
        ("b", {"task__version": 0}),
        ("c", {"probe": SLOW}),
        ("d", {"current": False}),
        ("e", {"measurement_version": 2}),
        ("f", {}),
    ):
        put(tmp_path, model, "pos", 9, p_best=False, **changes)
    assert list(load(tmp_path).headers["model"]) == ["f"]
    assert capsys.readouterr().err == (
        "left out 5 records of another version (the task pos: version 0, now 1; another "
        "specification of the linear probe; another way of computing; …); probe again to compute "
        "them anew, or see them with the version that made them (-v names them)\n"
    )
    load(tmp_path, say=False)
    assert capsys.readouterr().err == ""


def test_evidence_of_another_version_is_left_out_and_its_scores_are_not(tmp_path):
    path = put(tmp_path, "m", "pos", 9, p_best=False)
    version = get_measurement("selectivity").version - 1
    put_evidence(path, "selectivity", [Row("selectivity", 0.1, 0)], version=version)
    assert read_result(path).evidence == {}


@pytest.mark.usefixtures("plug_ins")
def test_the_source_of_a_plug_in_is_that_loaded_now_or_that_written_last(tmp_path):
    def wug(context):
        """Wugs."""

    def register(letter):
        with loading(Origin("wug.py", (), letter * 64)) as plug_ins:
            measurement("wug", of="model")(wug)
        return plug_ins

    for letter, day, model in (("a", 2, "m"), ("b", 1, "n"), ("a", 3, "n")):
        plug_ins = register(letter)
        record = corpus_record("wug", [Row("wug", 1.0)], 2, model=model, digest=model)
        written = {**record.provenance, "written": f"2026-01-0{day}T00:00:00+00:00"}
        store_record(tmp_path, record.model_copy(update={"provenance": written}))
        plug_ins.unregister()
    assert "wug" not in measurements

    def digests():
        return sorted({text.split()[-1] for text in load(tmp_path, say=False).headers["plug_ins"]})

    assert digests() == ["aaaaaaaa"]
    for letter in "ba":
        plug_ins = register(letter)
        assert digests() == [letter * 8]
        plug_ins.unregister()
