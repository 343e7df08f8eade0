"""Odd models and odd data: each has one clear outcome."""

import csv
import json
import re
import shutil
from functools import partial

import pytest
from tiny_models import save
from tiny_runs import run

from probes.__main__ import main
from probes.boards.leaderboard_csv import COLUMNS
from probes.common.errors import UserError
from probes.frames.joined_results import find_results

pytestmark = pytest.mark.usefixtures("short_schedule")


run_linear = partial(run, probes="linear", limit=None)


def rows(folder, **splits):
    """JSON Lines files of (words, labels) pairs; the path of their folder."""
    folder.mkdir()
    for split, pairs in splits.items():
        lines = [json.dumps({"tokens": words, "y": labels}) for words, labels in pairs]
        (folder / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(folder)


ODD = [
    "a,b",
    'say "hi"',
    "=1+1",
    "<b>bold</b>",
    "pi|pe",
    "😀",
    "모델",
    "two\nlines",
    "*star*",
    "&amp;",
]
WORDS = ["the", "old", "dog", "sees", "a", "cat", "near", "some", "books", "sun"]


def test_odd_labels_reach_every_output_as_they_are(tiny_bert, tmp_path):
    corpus = rows(tmp_path / "c", **dict.fromkeys(("train", "dev", "test"), [(WORDS, ODD)] * 12))
    (result,) = run_linear(tiny_bert, tmp_path, corpus=corpus, task_from=("y",)).results
    assert sorted(result.examples.labels) == sorted(ODD)
    with (tmp_path / "results" / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.reader(file))
    assert tuple(table[0]) == COLUMNS
    assert {len(row) for row in table} == {len(COLUMNS)}
    (text,) = [p.read_text("utf-8") for p in (tmp_path / "results").rglob("layers.md")]
    grids = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in grids[:4]}) == 1
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "results"), "-o", str(page)]) == 0
    assert "<b>bold</b>" not in page.read_text("utf-8")
    assert list(find_results(tmp_path / "results").values()) == [result]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (
            {s: [(["the", "dog"], ["X", "X"])] for s in ("train", "dev", "test")},
            "every training example of 'c' has the label 'X', so there is nothing to tell apart",
        ),
        ({"train": [(["the", "dog"], ["X", "Y"])]}, "--corpus c: "),
        ({s: [(["the"], [None])] for s in ("train", "dev", "test")}, "y"),
        ({s: [([], [])] for s in ("train", "dev", "test")}, "no"),
    ],
    ids=["one label only", "one sentence", "no label at all", "no word at all"],
)
def test_data_from_which_nothing_can_be_learnt_are_refused(tiny_bert, tmp_path, splits, message):
    corpus = rows(tmp_path / "c", **splits)
    with pytest.raises(UserError) as caught:
        run_linear(tiny_bert, tmp_path, corpus=corpus, task_from=("y",))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_label_unseen_in_train_is_counted_and_never_predicted(tiny_bert, tmp_path, capsys):
    known, new = (["the", "dog", "cat"], ["D", "N", "N"]), (["the", "sun"], ["D", "Z"])
    corpus = rows(tmp_path / "c", train=[known] * 8, dev=[known] * 4, test=[known, new] * 4)
    (result,) = run_linear(tiny_bert, tmp_path, corpus=corpus, task_from=("y",)).results
    assert "4 test examples have a label that does not occur in train" in capsys.readouterr().err
    assert tuple(result.examples.labels["Z"]) == (0, 0, 4)
    # 4 of 20 test examples cannot be right.
    assert max(result.score(layer) for layer in result.layers) <= 16 / 20


def test_one_sentence_per_split_is_enough(tiny_bert, tmp_path):
    one = [(["the", "dog", "sees", "a", "cat"], ["D", "N", "V", "D", "N"])]
    corpus = rows(tmp_path / "c", **dict.fromkeys(("train", "dev", "test"), one))
    settings = {"task_from": "y", "evidence": "training_variance,selectivity,localisation"}
    (result,) = run_linear(tiny_bert, tmp_path, corpus=corpus, **settings).results
    assert result.examples.n["test"] == 5
    assert result.interval(0) is None


REMOTE = """
from transformers import BertConfig, BertModel

class OddConfig(BertConfig):
    model_type = "odd-bert"

class OddModel(BertModel):
    config_class = OddConfig
"""


def test_remote_code_runs_only_if_asked_and_the_result_says_so(
    tiny_bert, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m"))
    folder = tmp_path / "odd"
    shutil.copytree(tiny_bert, folder)
    (folder / "odd.py").write_text(REMOTE)
    config = json.loads((folder / "config.json").read_text())
    names = {"AutoConfig": "odd.OddConfig", "AutoModel": "odd.OddModel"}
    config |= {"model_type": "odd-bert", "auto_map": names, "architectures": ["OddModel"]}
    (folder / "config.json").write_text(json.dumps(config))
    settings = {"tasks": ("pos",), "limit": 20}
    with pytest.raises(UserError, match=r"--model odd: .*--trust-remote-code"):
        run_linear(folder, tmp_path, **settings)
    (result,) = run_linear(folder, tmp_path, trust_remote_code=True, **settings).results
    assert result.provenance["remote code"] == "ran"
    assert "--model odd runs code from its own folder" in capsys.readouterr().err
    (plain,) = run_linear(tiny_bert, tmp_path, **settings).results
    assert "remote code" not in plain.provenance


def test_a_dry_run_needs_no_weights(tiny_bert, tmp_path, capsys):
    bare = shutil.copytree(tiny_bert, tmp_path / "bare")
    (bare / "model.safetensors").unlink()
    settings = {"tasks": ("pos",), "limit": 20, "dry_run": True}
    tables = []
    for folder in (tiny_bert, bare):
        assert not list(run_linear(folder, tmp_path, **settings).results)
        said = capsys.readouterr()
        weightless = "its weights are not here" in " ".join(said.out.split())
        assert weightless == (folder == bare)
        tables.append([re.split("  +", line)[:3] for line in said.out.splitlines() if "  " in line])
    assert tables[0] == tables[1]
    assert ["encode", "plain view", "60 texts, 0.1 MB"] in tables[0]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_window_of_16_reads_every_word(family, tmp_path):
    save(family, tmp_path / "narrow", max_position_embeddings=16)
    (result,) = run_linear(tmp_path / "narrow", tmp_path, tasks=("pos",), limit=20).results
    assert result.model.window == 16
    assert result.encoding.texts_in_several_windows > 0
    assert result.examples.n == result.corpus.words
