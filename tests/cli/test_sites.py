"""Runs whose probes read inside blocks: names, keys, tables, and what is refused."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from places import OTHERS
from tiny_models import build, save, save_tokenizer
from tiny_runs import files_of, run
from transformers import AutoModel, AutoTokenizer, GraniteMoeConfig

import probes
from probes.__main__ import main
from probes.boards.leaderboard_csv import COLUMNS
from probes.boards.ranking_tables import csv_rows, ranking_frame
from probes.boards.rankings import make_rankings, named_candidates
from probes.boards.shown_together import all_groups
from probes.boards.transferability import complete_tasks, ranks
from probes.common.errors import UserError
from probes.frames.joined_results import find_results
from probes.frames.record_status import why_outdated
from probes.run.settings import validate
from probes.tasks.task import plain_name

EVERY = "block,attention,mlp"


@pytest.fixture(scope="module")
def site_runs(tiny_bert, tmp_path_factory):
    """Results of layers `alone`, then `results` of all sites; and the files after each."""
    folder = tmp_path_factory.mktemp("sites")
    about = {"tasks": "pos,agreement", "probes": "linear"}
    alone = run(tiny_bert, folder, **about)
    before = files_of(folder)
    results = run(tiny_bert, folder, sites=EVERY, **about)
    after = files_of(folder)
    return SimpleNamespace(folder=folder, alone=alone, before=before, results=results, after=after)


def test_a_dry_run_counts_what_the_model_has(tiny_bert, tmp_path, capsys):
    about = {"tasks": "pos", "probes": "linear", "sites": "mlp,unnormed", "dry_run": True}
    run(tiny_bert, tmp_path, **about, measurements="scores,selectivity", layers="1,2")
    said = capsys.readouterr()
    assert "unnormed ·" not in said.out
    assert "BertModel: it has no norm after its last block; read block instead." in said.err
    assert "on disk (twice that if float16 overflows)" in " ".join(said.out.split())
    save("gpt2", tmp_path / "gpt2")
    run(tmp_path / "gpt2", tmp_path, **about, measurements="scores,selectivity")
    rows = [re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    sizes = {tuple(row[:2]): row[2] for row in rows if len(row) == 3}
    assert sizes["selectivity", "pos@mlp · linear"] == "2 layers, 6 fits"
    assert sizes["selectivity", "pos@unnormed · linear"] == "1 layer, 3 fits"


def test_each_site_has_results_of_its_own(site_runs):
    before, after = site_runs.before, site_runs.after
    by_name = {result.task.name: result for result in site_runs.results.results}
    assert list(by_name) == [
        *("pos", "pos@attention", "pos@mlp"),
        *("agreement", "agreement@attention", "agreement@mlp"),
    ]
    for name, result in by_name.items():
        site = name.partition("@")[2] or None
        assert result.task.site == site
        assert result.layers == ((1, 2) if site else (0, 1, 2))
        assert result.examples == by_name[plain_name(name)].examples
        assert not why_outdated(result)
        assert result.plug_ins == ()
    for path, content in before.items():  # neither keys nor files of layers change
        assert after[path] == content
    assert len(after) == 3 * len(before)
    assert {x.key for x in site_runs.alone.results} < {x.key for x in site_runs.results.results}
    scores = {tuple(result.headline.values())[-2:] for result in site_runs.results.results}
    assert len(scores) > 3


def test_a_site_is_fitted_on_its_own_vectors(tmp_path, monkeypatch):
    """MLPs without weights say the same of all words; with their probe, the commonest label."""
    model, tokenizer = build("bert", "BertModel")
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.output.dense.weight.zero_()
            layer.output.dense.bias.copy_(torch.arange(16))
    settings = {"sites": "mlp,block", "tasks": "pos", "probes": "linear", "name": "still"}
    settings |= {"evidence": "malformed", "twins": 0, "device": "cpu", "limit": 60}
    places = {"cache_dir": tmp_path / "cache", "output": tmp_path / "results"}
    results = probes.run_probes(model, tokenizer, **settings, **places)
    layers, mlp = sorted(results.results, key=lambda r: r.task.name)
    majority = mlp.baselines["majority"]["accuracy"]
    assert list(mlp.headline.values()) == [pytest.approx(majority)] * 2
    assert min(layers.headline.values()) > majority
    drops = {
        r.task.name: [x.value for x in r.evidence_rows("malformed") if x.metric == "malformed_drop"]
        for r in results.results
    }
    assert not any(drops["pos@mlp"])
    assert any(drops["pos"])


def test_tables_and_boards(site_runs):
    results, output = site_runs.results, site_runs.folder / "results"
    lines = pd.read_csv(output / "leaderboard.csv")
    assert tuple(lines.columns) == COLUMNS
    assert set(lines["task"]) == {result.task.name for result in results.results}
    assert not ((lines["task"] == "pos@mlp") & (lines["layer"] == 0)).any()
    (table,) = output.rglob("layers.csv")
    assert "pos@mlp" in table.read_text()
    stored = find_results(output)
    rankings = make_rankings(named_candidates(stored))
    assert [ranking.site for ranking in rankings] == ["", "attention", "mlp"]
    for ranking in rankings:
        sites = {c.result.task.site or "" for x in ranking.tasks.values() for c in x}
        assert sites == {ranking.site}
        assert len(ranking.tasks) == 2
        assert not ranking.apart
        assert ranking.setting.endswith(f"output of {ranking.site}") is bool(ranking.site)
    overall = [
        row["task"] for ranking in rankings for row in csv_rows(ranking, ranking_frame(ranking))
    ][2::3]
    assert overall == ["overall", "overall attention", "overall mlp"]
    ((its,), left_out) = all_groups(stored)
    assert [unit.title.split(" ")[0] for unit in its.units] == [
        r.task.name for r in results.results
    ]
    assert not left_out


def test_nothing_is_done_twice(site_runs, tiny_bert):
    folder = site_runs.folder
    run(tiny_bert, folder, sites="mlp,block", tasks="pos,agreement", probes="linear")
    assert files_of(folder) == site_runs.after


def test_models_without_the_site_are_left_out_by_name(tiny_bert, tmp_path, capsys):
    other = tmp_path / "experts"
    save_tokenizer("bert", other)
    n = len(AutoTokenizer.from_pretrained(other))
    config = GraniteMoeConfig(vocab_size=n, **OTHERS["GraniteMoe"], pad_token_id=0)
    AutoModel.from_config(config).save_pretrained(other)
    about = {"tasks": "pos", "probes": "linear", "sites": EVERY}
    results = run(tiny_bert, tmp_path, beside=[other], **about)
    served = {(result.model.name, result.task.name) for result in results.results}
    names = {"pos", "pos@attention", "pos@mlp"}
    assert served == {(tiny_bert.name, x) for x in names} | {
        ("experts", x) for x in names - {"pos@mlp"}
    }
    why = (
        "--sites mlp: experts: GraniteMoeModel: the output of its MLP cannot be changed "
        "(no module gives it)."
    )
    assert results.failed["experts · probes of mlp"] == why
    said = capsys.readouterr().err
    assert said.count(f"failed  probes of mlp: {why}") == 1
    with pytest.raises(UserError) as error:
        run(other, tmp_path / "alone", **{**about, "sites": "mlp"})
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sites": "mlps"}, "--sites mlps: give block, mid, attention, mlp or unnormed"),
        ({"sites": ""}, "--sites '': names nothing"),
        ({"sites": "mlp", "layers": "0"}, "--layers 0: not a block; --sites mlp needs layers from 1"),
        ({"sites": "mlp", "measurements": "geometry"}, "--sites mlp: applies to scores only; add scores"),
    ],
)  # fmt: skip
def test_sites_that_cannot_be_read(settings, message):
    with pytest.raises(UserError, match=message):
        validate(settings)


def test_names_of_transformer_lens_are_replaced_by_ours():
    names = ("resid_pre", "resid_mid", "attn_out", "mlp_out", "resid_post", "unnormed")
    ours = ("block", "mid", "attention", "mlp", "block", "unnormed")
    assert validate({"sites": ",".join(names)}).sites == validate({"sites": names}).sites == ours
    with pytest.raises(UserError, match="--sites mid: applies to scores only"):
        validate({"sites": "resid_mid", "measurements": "geometry"})


def test_chats_are_read_at_sites(tmp_path, capsys, short_schedule):
    """MLPs write the same of all tokens; with their probe, the commonest label."""
    tiny_chat = tmp_path / "tiny-chat"
    save("gpt2", tiny_chat)
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    (tiny_chat / "chat_template.jinja").write_text(template)
    model = AutoModel.from_pretrained(tiny_chat)
    with torch.no_grad():
        for block in model.h:
            block.mlp.c_proj.weight.zero_()
            block.mlp.c_proj.bias.copy_(torch.arange(16))
    model.save_pretrained(tiny_chat)
    rows = [
        {"chat": [{"role": "user", "content": f"the {animal} {i}"}], "kind": animal}
        for i in range(40)
        for animal in ("dog", "cat")
    ]
    path = tmp_path / "chats.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    about = {"corpus": str(path), "messages": "chat", "label": "kind", "positions": "last,user"}
    about |= {"limit": None, "probes": "linear"}
    alone = run(tiny_chat, tmp_path, **about)
    before = files_of(tmp_path)
    results = run(tiny_chat, tmp_path, sites="resid_post,mid,mlp_out,unnormed", **about)
    names = [f"kind@{x}{y}" for x in ("last", "user") for y in ("", "@mid", "@mlp", "@unnormed")]
    layers = {"": (0, 1, 2), "mid": (1, 2), "mlp": (1, 2), "unnormed": (2,)}
    assert [result.task.name for result in results.results] == names
    for position in ("last", "user"):
        at = {x.task.site: x for x in results.results if x.task.name.split("@")[1] == position}
        assert at[None].headline[2] > at["mlp"].headline[2] < at["mid"].headline[2]
        majority = pytest.approx(at["mlp"].baselines["majority"]["accuracy"])
        assert list(at["mlp"].headline.values()) == [majority, majority]
    for result in results.results:
        assert result.layers == layers[result.task.site or ""]
        assert not why_outdated(result)
    after = files_of(tmp_path)
    assert before.items() < after.items()
    assert len({x.key for x in results.results} - {x.key for x in alone.results}) == 6
    (shard,) = (tmp_path / "cache").rglob("layer-02-unnormed-user.npy")
    assert not [*shard.parent.glob("layer-01-unnormed*"), *shard.parent.glob("layer-00-mid*")]
    run(tiny_chat, tmp_path, sites="block,mid,mlp,unnormed", **about)
    assert files_of(tmp_path) == after
    capsys.readouterr()
    (of_mid, _) = run(tiny_chat, tmp_path, sites="mid,unnormed", **about, layers="0,1").results
    assert of_mid.task.name == "kind@last@mid"
    why = "--sites unnormed: tiny-chat has it at layer 2 alone; add it to --layers"
    assert capsys.readouterr().err.count(f"failed  probes of unnormed: {why}.") == 1
    with pytest.raises(UserError, match=why):
        run(tiny_chat, tmp_path / "alone", sites="unnormed", **about, layers="1")
    capsys.readouterr()
    given = {"model": tiny_chat, "corpus": path, "output": tmp_path / "c", "cache-dir": tmp_path}
    line = " --messages chat --label kind --positions last --sites unnormed --layers 1 --quick"
    command = " ".join(f"--{name} {value}" for name, value in given.items()) + line
    assert main(["run", *command.split(), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.count(f"failed  probes of unnormed: {why}.") == 1
    assert said.splitlines()[-1].startswith("error: ")


def test_sites_that_a_model_lacks_are_named(tiny_bert, tmp_path):
    message = r"--sites unnormed: .*: BertModel: it has no norm after its last block; read block"
    with pytest.raises(UserError, match=message):
        run(tiny_bert, tmp_path, sites="unnormed", tasks="pos", probes="linear")
    save("gpt-neox", tmp_path / "parallel")
    with pytest.raises(UserError, match="--sites mid: parallel: GPTNeoXModel: no state between"):
        run(tmp_path / "parallel", tmp_path, sites="mid", tasks="pos", probes="linear")


def test_layers_are_not_ranked_over_sites():
    scores = pd.DataFrame({"pos": [1, 2], "depth@mlp": [2, 1], "depth": [2, 3], "srl@mlp": [2, 1]})
    tasks, left_out = complete_tasks(scores)
    assert tasks == ["pos", "depth"]
    assert left_out == dict.fromkeys(["depth@mlp", "srl@mlp"], "it is read at another site")
    assert list(ranks(scores)["mean rank"]) == [2, 1]
    assert complete_tasks(scores[["depth@mlp", "srl@mlp"]]) == (["depth@mlp", "srl@mlp"], {})
