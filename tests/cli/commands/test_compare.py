"""Models side by side: literal tables of results written by hand."""

import re

import pytest
from board_by_hand import put
from results_by_hand import evidence_record

from probes.__main__ import main
from probes.measurements.joined_results import read_result
from probes.records.record_files import write_record
from probes.records.row import Row


@pytest.fixture
def folder(tmp_path):
    """A model of two blocks and one of four."""
    put(tmp_path, "small", "pos", 0, wrongs=(200, 40, 100))
    put(tmp_path, "large", "pos", 0, wrongs=(200, 120, 42, 20, 10))
    put(tmp_path, "large", "srl", 0, wrongs=(9, 9, 9, 9, 9))
    put(tmp_path, "other-text", "pos", 0, wrongs=(9, 9, 9), corpus__fingerprint="e" * 64,
        corpus__limited=True)  # fmt: skip
    return tmp_path


def printed(capsys, folder, *arguments):
    assert main(["compare", *arguments, "--results", str(folder), "--format", "md"]) == 0
    text = capsys.readouterr().out
    return [line for line in text.splitlines() if line.startswith(("|", "###"))]


def test_best_layers(folder, capsys):
    lines = printed(capsys, folder, "small", "large")
    # 30 of 400 words differ at the best layers, all one way, with a standard error of 1.32 %; two
    # t with 4 degrees of freedom, times 1 %, are added. By simulation: 2.9, 12.2 and p = .0064.
    assert len(lines) == 5
    assert lines[:4] == [
        "### c 1 · linear probe · best layers",
        "| task | model | layers 0–L | best | score | difference from the first model | p |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
        "| pos (accuracy), n = 9 | small | ▁▇▅ | 1/2 | 90.0 |  |  |",
    ]
    assert re.fullmatch(
        r"\|  \| large \| ▁▄▇██ \| 4/4 \| 97.5 \| \+7.5 \[\+[23].\d, \+1[12].\d\] \| .0[01]\d \|",
        lines[4],
    )


def test_no_table_of_claims_where_none_changes(tmp_path, capsys):
    for model in ("one", "same"):
        put(tmp_path, model, "pos", 0, wrongs=(200, 40, 100))
    assert not any("claims" in line for line in printed(capsys, tmp_path, "one", "same"))


def test_what_is_not_comparable_stands_apart(folder, capsys):
    lines = printed(capsys, folder, "small", "large", "other-text")
    assert lines[-1] == ("| pos | other-text | corpus text sha256:eeeeeeee, not sha256:ffffffff |")


def test_folders_do_as_names(folder, capsys):
    named = printed(capsys, folder, "small", "large")
    assert printed(capsys, folder / "none", f"{folder}/small", f"{folder}/large") == named


def test_expected_layers_and_claims_that_change(tmp_path, capsys):
    for model, wrongs, value in (("early", (40, 200, 200, 200, 200), 0.5), ("mid", (200, 200, 40, 200, 200), 2.0)):  # fmt: skip
        put(tmp_path, model, "chunking", 0, wrongs=wrongs)
        path = put(tmp_path, model, "pos", 0, wrongs=wrongs)
        found = [
            Row("mix_score", 0.5, 0),
            Row("mix_score", 0.5, 0, split="dev"),
            Row("total_gain", None, why="no gain"),
            Row("expected_layer", value, None, value - 0.25, value + 0.25),
            Row("centre_of_gravity", None, why="no gain"),
            Row("kl", None, why="no gain"),
        ]
        record = evidence_record(read_result(path), "localisation", found)
        write_record(path.with_name("pos-linear-localisation-22222222.json"), record, {})
    lines = printed(capsys, tmp_path, "early", "mid")
    assert r"| pos | 0.50 [0.25, 0.75] | 2.00 [1.75, 2.25] |" in lines
    assert lines[lines.index("| claim | early | mid |") :][2:] == [
        "| POS tagging and chunking are performed best at the middle layers | contradicted | supported |"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("small",), "name two or more models"),
        (("small", "smal"), "smal: no results in"),
        (("large", "small", "--probe", "mlp"), "no corpus and task in common"),
        (("large", "small", "--task", "srl"), "no corpus and task in common"),
        (("small", "./"), "./: no results"),
        (("a", "b", "--results", "."), "or name another folder with --results"),
        (("a", "b", "--results", "none"), "name a folder of results with --results"),
    ],
)
def test_what_cannot_be_compared_is_said(
    folder, capsys, monkeypatch, tmp_path_factory, arguments, said
):
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    assert main(["compare", "--results", str(folder), *arguments]) == 2
    assert said in capsys.readouterr().err
