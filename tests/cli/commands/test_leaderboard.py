"""Ranks, ties, gaps and models side by side: literal tables of results written by hand."""

import io
import re

import pandas as pd
import pytest
from board_by_hand import put, put_evidence

from probes.__main__ import main
from probes.boards.ranking_tables import ranking_frame, table_of_all
from probes.boards.rankings import make_rankings, named_candidates
from probes.frames.joined_results import find_results
from probes.records.row import Row
from probes.tables.printing import TIE


@pytest.fixture
def stored_results(tmp_path):
    """Two tasks; what each model is there for stands in its name."""
    for task in ("pos", "srl"):
        put(tmp_path, "first", task, 40)
        put(tmp_path, "close", task, 42)
        put(tmp_path, "low", task, 200 if task == "pos" else 38)
        put(tmp_path, "random:first", task, 290, random_seed=0)
        put(tmp_path, "causal", task, 4, model__causal=True)
    put(tmp_path, "one-task", "pos", 202)
    put(tmp_path, "part", "pos", 1, corpus__fingerprint="e" * 64, corpus__limited=True,
        corpus__limit=50, corpus__digest="part")  # fmt: skip
    put(tmp_path, "cut", "pos", 1, view="cut")
    put(tmp_path, "narrow", "pos", 1, project=7)
    return tmp_path


def printed(capsys, *arguments):
    assert main(["leaderboard", *map(str, arguments)]) == 0
    return capsys.readouterr().out.replace(TIE, " ")


def rows(text):
    """The lines of the tables and their titles."""
    text = re.sub(r"sha256:\w{8}", "sha256:…", text)
    return [line for line in text.splitlines() if line.startswith(("|", "###"))]


def test_ranks_ties_gaps_and_what_stands_apart(stored_results, capsys):
    text = printed(capsys, stored_results, "--format", "md")
    assert rows(text) == [
        "### c 1 · linear probe · bidirectional encoders · pos v1 · accuracy, n = 9",
        "| rank | model | layer | score | size | flags |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| 1–2 | first | 1/1 | 90.0 ± 3.0 | 1 |  |",
        "| 1–2 | close | 1/1 | 89.5 ± 3.0 | 1 |  |",
        "| 3–4 | low | 1/1 | 50.0 ± 3.0 | 1 |  |",
        "| 3–4 | one-task | 1/1 | 49.5 ± 3.0 | 1 |  |",
        "| – | random:first | 1/1 | 27.5 ± 3.0 | 1 | random twin |",
        "### c 1 · linear probe · bidirectional encoders · srl v2 · accuracy, n = 9",
        "| rank | model | layer | score | size | flags |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| 1–3 | low | 1/1 | 90.5 ± 3.0 | 1 |  |",
        "| 1–3 | first | 1/1 | 90.0 ± 3.0 | 1 |  |",
        "| 1–3 | close | 1/1 | 89.5 ± 3.0 | 1 |  |",
        "| – | random:first | 1/1 | 27.5 ± 3.0 | 1 | random twin |",
        "### c 1 · linear probe · bidirectional encoders · overall, 2 tasks",
        "| mean rank | model | pos | srl |",
        "| --- | --- | ---: | ---: |",
        "| 1.75 | close | 1–2 | 1–3 |",
        "| 1.75 | first | 1–2 | 1–3 |",
        "| 2.50 | low | 3 | 1–3 |",
        "### c 1 · linear probe · bidirectional encoders · listed apart",
        "| task | model | layer | score | flags | why it is not compared |",
        "| --- | --- | --- | --- | --- | --- |",
        "| pos | cut | 1/1 | 99.8 ± 3.0 | cut | view cut, not plain |",
        "| pos | narrow | 1/1 | 99.8 ± 3.0 |  | projection 7, not none |",
        "| pos | part | 1/1 | 99.8 ± 3.0 | limited | limit 50, not none; corpus text sha256:…, not sha256:… |",
        "### c 1 · linear probe · causal encoders · pos v1 · accuracy, n = 9",
        "| rank | model | layer | score | size | flags |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| 1 | causal | 1/1 | 99.0 ± 3.0 | 1 |  |",
        "### c 1 · linear probe · causal encoders · srl v2 · accuracy, n = 9",
        "| rank | model | layer | score | size | flags |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| 1 | causal | 1/1 | 99.0 ± 3.0 | 1 |  |",
        "### c 1 · linear probe · causal encoders · overall, 2 tasks",
        "| mean rank | model | pos | srl |",
        "| --- | --- | ---: | ---: |",
        "| 1.00 | causal | 1 | 1 |",
    ]
    assert "Not ranked: one-task lacks a rank in srl." in text
    assert "predictions are missing" not in text


def test_causal_encoders_are_ranked_with_others_only_if_asked_to(stored_results, capsys):
    text = printed(capsys, stored_results, "--together", "--task", "srl", "--format", "md")
    assert rows(text)[3:5] == [
        "| 1 | causal | 1/1 | 99.0 ± 3.0 | 1 |  |",
        "| 2–4 | low | 1/1 | 90.5 ± 3.0 | 1 |  |",
    ]


def test_without_predictions_only_intervals_that_do_not_overlap_separate(tmp_path, capsys):
    for model, wrong in (("a", 20), ("b", 40), ("c", 100)):
        put(tmp_path, model, "pos", wrong, predictions=model == "a")
    text = printed(capsys, tmp_path, "--format", "md")
    assert [row[:11] for row in rows(text)[3:]] == ["| 1–2 | a |", "| 1–2 | b |", "| 3 | c | 1"]
    assert "Where training variance or predictions are missing" in text


def test_a_score_that_is_not_above_its_floor_has_no_rank(tmp_path, capsys):
    """Layer 0 has .895 and layer 1 .9 ± .03; a twin has .9, and its model .89 ± .03."""
    put(tmp_path, "high", "pos", 20)
    put(tmp_path, "flat", "pos", 40, wrongs=(42, 40))
    put(tmp_path, "untrained", "pos", 44)
    put(tmp_path, "random:untrained", "pos", 40, random_seed=0)
    lines = rows(printed(capsys, tmp_path, "--format", "md"))
    assert lines[3:] == [
        "| 1 | high | 1/1 | 95.0 ± 3.0 | 1 |  |",
        "| – | flat | 1/1 | 90.0 ± 3.0▽ | 1 | not significantly above the floor |",
        "| – | random:untrained | 1/1 | 90.0 ± 3.0 | 1 | random twin |",
        "| – | untrained | 1/1 | 89.0 ± 3.0▽ | 1 | not significantly above the floor |",
    ]
    table = pd.read_csv(io.StringIO(printed(capsys, tmp_path, "--format", "csv")))
    assert table["n"].tolist() == [9] * 4
    assert table["rank"].isna().tolist() == [False, True, True, True]


def test_filters(stored_results, capsys):
    put(stored_results, "huge", "pos", 1, model__parameters=2_000_000)
    small = printed(capsys, stored_results, "--max-parameters", "1.5M", "--task", "pos")
    assert "huge" not in small
    assert "srl" not in small
    assert "huge" in printed(capsys, stored_results, "--max-parameters", "2M")
    for wrong, said in (
        (("--task", "poss"), "--task poss: no results. Did you mean 'pos'?"),
        (("--corpus", "d"), "--corpus d: no results. Known: c."),
        (("--probe", "mlp"), "--probe mlp: no results. Known: linear."),
        (("--max-parameters", "0"), "No result passes all of these filters"),
        (("--max-parameters", "big"), "--max-parameters big: give a number"),
    ):
        assert main(["leaderboard", str(stored_results), *wrong]) == 2
        assert said in capsys.readouterr().err
    assert main(["leaderboard", str(stored_results / "none")]) == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_two_models_of_one_name_are_told_apart(tmp_path, capsys):
    put(tmp_path, "m", "pos", 9, model__revision="1111111111", model__digest="x")
    put(tmp_path, "m", "pos", 99, model__revision="2222222222", model__digest="y")
    put(tmp_path, "m", "pos", 9, model__revision="1111111111", model__digest="x", pooling="last")
    text = printed(capsys, tmp_path, "--format", "md")
    assert [row.split("|")[2].strip() for row in rows(text)[3:]] == [
        "m@11111111",
        "m@11111111 (last pooling)",
        "m@22222222",
    ]


def test_csv_and_latex(tmp_path, capsys):
    put(tmp_path, "=1+1", "pos", 9)
    put(tmp_path, "50%_<b>|x", "pos", 199)
    frame = pd.read_csv(io.StringIO(printed(capsys, tmp_path, "--format", "csv")))
    assert frame[["model", "rank", "score"]].to_numpy().tolist() == [
        ["'=1+1", 1.0, 0.9775],
        ["50%_<b>|x", 2.0, 0.5025],
    ]
    latex = printed(capsys, tmp_path, "--format", "latex")
    for part in (
        r"\begin{tabular}{@{}llrr@{}lrr@{}}",
        r"2 & 50\%\_\textless{}b\textgreater{}\textbar{}x & 1/1 & 50.2 & $_{\pm3.0}$ & 1 &  \\",
    ):
        assert part in latex
    markdown = printed(capsys, tmp_path, "--format", "md")
    assert r"| 2 | 50%\_&lt;b>\|x | 1/1 |" in markdown


@pytest.fixture
def two_models(tmp_path):
    """A model of two blocks and one of four."""
    put(tmp_path, "small", "pos", 0, wrongs=(200, 40, 100))
    put(tmp_path, "large", "pos", 0, wrongs=(200, 120, 42, 20, 10))
    put(tmp_path, "large", "srl", 0, wrongs=(9, 9, 9, 9, 9))
    put(tmp_path, "other-text", "pos", 0, wrongs=(9, 9, 9), corpus__fingerprint="e" * 64,
        corpus__limited=True)  # fmt: skip
    return tmp_path


def compared(capsys, two_models, *arguments):
    assert main(["compare", *arguments, "--results", str(two_models), "--format", "md"]) == 0
    text = capsys.readouterr().out
    return [line for line in text.splitlines() if line.startswith(("|", "###"))]


def test_best_layers(two_models, capsys):
    lines = compared(capsys, two_models, "small", "large")
    # 30 of 400 words differ at the best layers, all one way, with a standard error of 1.32 %; two
    # t with 4 degrees of freedom, times 1 %, are added. By simulation: 2.9, 12.2 and p = .0064.
    assert len(lines) == 5
    assert lines[:4] == [
        "### c 1 · linear probe · best layers",
        "| task | model | layers 0–L | best | score | difference | p |",
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
    assert not any("claims" in line for line in compared(capsys, tmp_path, "one", "same"))


def test_what_is_not_comparable_stands_apart(two_models, capsys):
    lines = compared(capsys, two_models, "small", "large", "other-text")
    assert lines[-1] == ("| pos | other-text | corpus text sha256:eeeeeeee, not sha256:ffffffff |")


def test_folders_do_as_names(two_models, capsys):
    named = compared(capsys, two_models, "small", "large")
    assert (
        compared(capsys, two_models / "none", f"{two_models}/small", f"{two_models}/large") == named
    )


def test_expected_layers_and_claims_that_change(tmp_path, capsys):
    for model, wrongs, value in (("early", (40, 200, 200, 200, 200), 0.5), ("mid", (200, 200, 40, 200, 200), 2.0)):  # fmt: skip
        put(tmp_path, model, "chunking", 0, wrongs=wrongs)
        path = put(tmp_path, model, "pos", 0, wrongs=wrongs)
        found = [Row("mix_score", 0.5, 0), Row("mix_score", 0.5, 0, split="dev")]
        found += [Row(x, None, why="no gain") for x in ("total_gain", "centre_of_gravity", "kl")]
        found += [Row("expected_layer", value, None, value - 0.25, value + 0.25)]
        put_evidence(path, "localisation", found)
    lines = compared(capsys, tmp_path, "early", "mid")
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
    two_models, capsys, monkeypatch, tmp_path_factory, arguments, said
):
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    assert main(["compare", "--results", str(two_models), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_row_for_each_model_has_its_places_and_models_without_one_come_last(stored_results):
    names = ["first", "close", "low", "one-task", "random:first"]

    def table_of(names):
        found = find_results(stored_results)
        some = {path: x for path, x in found.items() if x.model.name in names}
        (ranking,) = make_rankings(named_candidates(some))
        return table_of_all(ranking, ranking_frame(ranking))

    table = table_of(names)
    assert [row.cells[0].text for row in table.rows] == names
    assert table.heads[3:] == ("mean rank", "pos\naccuracy\nn = 9", "srl\naccuracy\nn = 9")
    assert [cell.note for cell in table.rows[0].cells[4:]] == [
        "rank 1–2, layer 1/1",
        "rank 1–3, layer 1/1",
    ]
    # One model alone has no rank that says anything.
    alone = table_of(["first", "random:first"])
    assert [cell.note for cell in alone.rows[0].cells[3:]] == ["layer 1/1", "layer 1/1"]
