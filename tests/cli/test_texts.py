"""Runs on labelled texts: tasks, metrics, what is recorded of them, and runs that are killed."""

import csv
import random
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from tiny_models import save
from tiny_readings import small_shards
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

import probes
from probes.common.errors import UserError
from probes.frames.record_status import why_outdated

LINE = "the old dog sees a cat near house she gave him some books and he read them"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """160 texts, of which those that are glad tell of birds; the last of each hundred are long."""
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("texts") / "moods.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "mood", "kind", "length", "who"])
        for i in range(160):
            words = rng.choices(LINE.split(), k=90 if i % 40 == 39 else rng.randint(2, 9))
            glad = rng.random() < 0.5
            words.insert(rng.randrange(len(words)), "birds" if glad else "sun")
            rare = "rare" if i % 8 == 0 else "common"
            row = ["  ".join(words), "glad" if glad else "sad", rare, len(words) / 10, f"w{i // 2}"]
            rows.writerow(row)
    return path


def run_on_texts(model, texts, folder, **settings):
    columns = {"corpus": str(texts), "text": "text", "label": "mood"}
    return run(model, folder, limit=None, probes="linear", **{**columns, **settings})


def test_tasks_metrics_and_what_is_recorded(tiny_bert, texts, tmp_path, capsys, short_schedule):
    found = run_on_texts(tiny_bert, texts, tmp_path, label="mood,kind,length", positions="mean,first",
                group="who")  # fmt: skip
    results = {result.task.name: result for result in found.results}
    names = [f"{label}@{x}" for label in ("mood", "kind", "length") for x in ("mean", "first")]
    assert list(results) == names
    said = capsys.readouterr()
    assert "128 / 16 / 16 texts" in said.err
    assert said.err.count("vectors plain view · 160 texts × 3 layers") == 1
    assert "4 longer than the window, pooled over several" in said.err
    assert "\nAUROC, best" in said.out
    mood, kind, length = (results[f"{name}@mean"] for name in ("mood", "kind", "length"))
    assert (mood.task.metric, mood.task.shape) == ("accuracy", "text")
    assert kind.task.metric == "balanced_accuracy"
    assert length.task.metric == "corpus_spearman"
    assert mood.encoding.texts_in_several_windows == 4
    assert mood.at("auroc", 1).value is not None
    assert length.at("auroc", 1) is None
    folder = tmp_path / "results" / "leaderboard.csv"
    assert "mood@first" in folder.read_text()


def test_a_data_frame_and_a_list_are_read_as_the_file_is(
    tiny_bert, texts, tmp_path, short_schedule
):
    (of_file,) = run_on_texts(tiny_bert, texts, tmp_path, group="who").results
    frame = pd.read_csv(texts)
    (of_frame,) = run_on_texts(tiny_bert, texts, tmp_path, corpus=frame, group="who").results
    assert of_frame.examples == of_file.examples
    assert of_frame.headline == of_file.headline
    pairs = list(zip(frame["text"], frame["mood"], strict=True))
    given = {"text": "text", "label": "label"}
    (of_list,) = run_on_texts(tiny_bert, texts, tmp_path, corpus=pairs, **given).results
    (ungrouped,) = run_on_texts(tiny_bert, texts, tmp_path).results
    assert (of_list.headline, of_list.task.name) == (ungrouped.headline, "label@mean")
    assert len({of_file.key, of_frame.key, of_list.key, ungrouped.key}) == 4
    frame.loc[::7, "mood"] = None
    (with_gaps,) = run_on_texts(tiny_bert, texts, tmp_path, corpus=frame).results
    assert sum(x["no label"] for x in with_gaps.examples.excluded.values()) == 23
    for corpus, given, says in (
        (frame, {"label": "moods"}, "the table in memory: no column for --label moods"),
        ([*pairs[:3], ("a text",)], {}, r"corpus\[3\] is \('a text',\), not a text with its label"),
        (frame, {"text": "", "label": ()}, "name its columns: text= and label= for texts"),
    ):
        with pytest.raises(UserError, match=says):
            run_on_texts(tiny_bert, texts, tmp_path, corpus=corpus, **given)


def test_the_first_token_of_a_model_that_reads_from_left_to_right_is_refused(texts, tmp_path):
    save("gpt2", tmp_path / "tiny-gpt2")
    with pytest.raises(UserError, match="its first token knows nothing of the text"):
        run_on_texts(tmp_path / "tiny-gpt2", texts, tmp_path, positions="first")


def test_nothing_is_encoded_again(tiny_bert, texts, tmp_path, monkeypatch, capsys, short_schedule):
    small_shards(monkeypatch, 200)
    run_on_texts(tiny_bert, texts, tmp_path)
    run_on_texts(tiny_bert, texts, tmp_path, label="mood,kind")
    assert "encoding" not in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    assert len(before) > 6
    run_on_texts(tiny_bert, texts, tmp_path, positions="mean,max")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    assert before.items() < after.items()
    assert all("max" in path.name for path in after.keys() - before.keys())


def test_positions_are_shown_and_texts_without_them_excluded(
    tiny_bert, texts, tmp_path, capsys, short_schedule
):
    asked = 'last:4,after:"a, b",match:(cat|house)'
    rows = pd.read_csv(texts)
    rows["text"] = ["dog a, b cat books near the sun", "she sees the old dog", *rows["text"][2:]]
    found = run_on_texts(tiny_bert, texts, tmp_path, corpus=rows, positions=f"{asked},after:dog")
    results = {result.task.name: result for result in found.results}
    assert 'mood@after:"a, b"' not in results  # one label is left
    said = capsys.readouterr().err
    with_cat = rows["text"].str.contains("cat|house")
    excluded = results['mood@match:"(cat|house)"'].examples.excluded
    assert sum(x["text without this position"] for x in excluded.values()) == sum(~with_cat)
    assert 'after:"dog" reads, in the first text, [CLS] dog [a] [UNK] b cat' in said
    n = [len(text.split()) for text in rows["text"]]
    assert sum(results["mood@last:4"].examples.n.values()) <= sum(x > 1 for x in n)


def test_the_mean_of_all_tokens_is_the_mean(
    tiny_bert, texts, tmp_path, monkeypatch, capsys, short_schedule
):
    small_shards(monkeypatch, 200)
    asked = {"label": "mood,length", "positions": "mean,all,all:last:2"}
    assert not run_on_texts(tiny_bert, texts, tmp_path, dry_run=True, **asked)
    told = re.search(r"160 texts, ([0-9.]+) MB", capsys.readouterr().out)[1]
    results = {x.task.name: x for x in run_on_texts(tiny_bert, texts, tmp_path, **asked).results}
    files = (tmp_path / "cache").rglob("*.npy")
    assert float(told) == round(sum(np.load(path).nbytes for path in files) / 1e6, 1) > 0
    for label in ("mood", "length"):
        mean, whole, end = (results[f"{label}@{x}"] for x in ("mean", "all", "all:last:2"))
        assert whole.examples == mean.examples
        for layer in range(3):
            for split in ("dev", "test"):
                assert whole.score(layer, split) == pytest.approx(
                    mean.score(layer, split), abs=1e-4
                )
        assert end.score(1) != mean.score(1)
    said = capsys.readouterr().err
    first = pd.read_csv(texts)["text"][0].split()
    assert len(first) > 2
    assert f"all reads, in the first text, [CLS] [{first[0]} … {first[-1]}] [SEP]\n" in said
    assert f"{first[-3]} [{first[-2]} {first[-1]}] [SEP]\n" in said


def test_lines_on_texts_speak_of_texts_and_name_the_column_of_groups(
    tiny_bert, texts, tmp_path, capsys, short_schedule
):
    rows = pd.read_csv(texts)
    rows["text"] = rows["text"].where(rows.index % 8 > 0, "the dog")
    for path, who in (("few", rows.index // 16), ("many", rows.index // 2 % 80)):
        rows.assign(who=who).to_csv(tmp_path / f"{path}.csv", index=False)
    (few,) = run_on_texts(tiny_bert, tmp_path / "few.csv", tmp_path, group="who").results
    said, table = capsys.readouterr()
    assert "        dev texts cut from all, by who: 16\n" in table
    assert "        test texts that also occur in train: 2\n" in table
    assert "few: 1 group (who) in test; with fewer than 20 " in table
    assert "no tests, since texts of one may be alike; put more into test\n" in table
    assert "sentences" not in table
    assert "No intervals and no tests: fewer than 20 test groups (who).\n" in said
    assert few.corpus.group == "who"
    assert few.corpus.notes["dev sentences cut from all, by document"] == 16
    run_on_texts(tiny_bert, tmp_path / "few.csv", tmp_path / "b")
    said, table = capsys.readouterr()
    assert "        test texts cut from all, by text: 16\n" in table
    assert "fewer than 20 test texts.\n" in said
    rows = rows.assign(split=["train", "dev", "test", "test"] * 40, who=[*range(80)] * 2)
    rows.to_csv(tmp_path / "many.csv", index=False)
    run_on_texts(tiny_bert, tmp_path / "many.csv", tmp_path, group="who")
    said, table = capsys.readouterr()
    assert "95 % interval over test groups (who);" in said
    assert "test document" not in said


def test_the_best_layer_is_named_if_it_has_no_star(
    tiny_bert, texts, tmp_path, capsys, short_schedule
):
    (result,) = run_on_texts(tiny_bert, texts, tmp_path, label="kind", twins=0).results
    best = result.best_number
    said = capsys.readouterr().out
    assert "★" not in said.partition("Best layer")[0]
    assert f"Best layer on dev, without ★ since not above the floor: kind@mean {best}.\n" in said


def test_chats_are_read_at_roles(tiny_chat, texts, tmp_path, capsys, short_schedule):
    rows = pd.read_csv(texts)
    rows["chat"] = [
        [{"role": "user", "content": text}, *[{"role": "assistant", "content": "a"}] * (i % 5 > 0)]
        for i, text in enumerate(rows.pop("text"))
    ]
    path = tmp_path / "chats.jsonl"
    rows.to_json(path, orient="records", lines=True)
    given = {"text": "", "messages": "chat", "positions": "last,user,assistant"}
    found = {x.task.name: x for x in run_on_texts(tiny_chat, path, tmp_path, **given).results}
    assert set(found) == {"mood@last", "mood@user", "mood@assistant"}
    said = capsys.readouterr().err
    assert re.search(r"last reads, in the first text, \S+ \S+ \S+ \[Ċ\]\n", said)
    assert re.search(r"user reads, .*\] <\|endoftext\|> Ċ <\|im_start\|>\n", said)
    assert [sum(x.examples.n.values()) for x in found.values()].count(160) == 2
    assert sum(found["mood@assistant"].examples.n.values()) == 128
    bags = run_on_texts(
        tiny_chat, path, tmp_path, **{**given, "positions": "all,all:user,all:assistant"}
    )
    said = capsys.readouterr().err
    assert re.search(
        r"all:user reads, .* er Ċ \[\S+ … \S+\] <\|endoftext\|> Ċ <\|im_start\|>\n", said
    )
    assert re.search(r"all:assistant reads, .* Ċ \[a\] <\|endoftext\|> Ċ\n", said)
    every, user, answers = bags.results
    assert every.examples.n == user.examples.n == found["mood@user"].examples.n
    assert answers.examples.n == found["mood@assistant"].examples.n
    assert answers.examples.excluded == found["mood@assistant"].examples.excluded
    # Each answer is one token.
    scores = [[x.score(layer) for layer in range(3)] for x in (answers, found["mood@assistant"])]
    assert scores[0] == scores[1]
    # The words are those of the texts, and of the answers.
    assert found["mood@user"].baselines["word n-grams"]["accuracy"] == 1
    rows["chat"] = ["<|im_start|>user\n a" for _ in rows["mood"]]
    rows.to_json(path, orient="records", lines=True)
    with pytest.raises(UserError, match=r"text 1 of train contains <\|im_start\|>.*--messages"):
        run_on_texts(tiny_chat, path, tmp_path, text="chat")
    (meant,) = run_on_texts(tiny_chat, path, tmp_path, text="chat", special_tokens=True).results
    assert meant.task.name == "mood@mean"
    with pytest.raises(UserError, match="line 1: chat is not a list of messages: "):
        run_on_texts(tiny_chat, path, tmp_path, text="", messages="chat")


def test_tools_dates_and_templates_in_memory_are_in_vectors_and_keys(
    tiny_chat, tmp_path, capsys, short_schedule
):
    """Labels depend on the tool that is called; only a template that writes calls tells them."""
    rows = []
    for i in range(80):
        tool, mood = ("dog", "glad") if i % 2 else ("cat", "sad")
        question = {"role": "user", "content": f"What is {i // 2}?"}
        call = {"role": "assistant", "content": None, "tool_calls": [{"name": tool}]}
        answer = {"role": "user", "content": "now?", "name": "Ann"}
        rows.append({"chat": [question, call, answer], "mood": mood})
    path = tmp_path / "calls.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    given = {"text": "", "messages": "chat", "positions": "mean", "twins": 0}
    deaf, _ = run_on_texts(tiny_chat, path, tmp_path, **{**given, "twins": 1}).results
    assert capsys.readouterr().err.count("does not write name (80), tool_calls (80)") == 1
    assert deaf.provenance["not written by the chat template"] == "name (80), tool_calls (80)"
    file = tiny_chat / "chat_template.jinja"
    folder = tmp_path / "tiny-chat"
    shutil.copytree(tiny_chat, folder)
    calls = "{% for call in m.tool_calls or [] %} {{ call.name }}{% endfor %}<|endoftext|>"
    heard = file.read_text().replace("{{ m.content }}<|endoftext|>", "{{ m.content }}" + calls)
    (folder / file.name).write_text(heard)
    (told,) = run_on_texts(folder, path, tmp_path, **given).results
    best = [max(x.at("accuracy", layer).value for layer in range(3)) for x in (deaf, told)]
    assert best == [0.5, 1]
    assert told.baselines["word n-grams"]["accuracy"] == 1
    assert (deaf.encoding.chats, told.encoding.chats) == ("", "")
    (folder / file.name).write_text("{{ strftime_now('%d') }}" + heard)
    (dated,) = run_on_texts(folder, path, tmp_path, **given).results
    assert dated.encoding.chats == "2024-07-26"
    assert not why_outdated(dated)
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    again = {"model": model, "tokenizer": tokenizer, "corpus": str(path), "label": "mood"}
    again |= {**given, "quick": True, "probes": "linear", "device": "cpu", "output": tmp_path / "r"}
    found = []
    for tokenizer.chat_template in (heard, "b" + heard, heard):
        found += probes.run_probes(**again, cache_dir=tmp_path / "cache").results
    assert not any(map(why_outdated, found))
    assert found[0].key == found[2].key != found[1].key
    assert found[0].model.digest == found[1].model.digest
    assert len({each.encoding.chats for each in found}) == 2


@pytest.fixture(scope="module")
def tiny_chat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny-chat"
    save("qwen3", folder)
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|endoftext|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return folder


def test_negatives_are_read_as_the_texts_are(tiny_chat, texts, tmp_path, short_schedule):
    table = pd.read_csv(texts)
    chat = [[{"role": "user", "content": x}] for x in table["text"]]
    marked = [f"<|im_start|>{x}" for x in table["text"]]
    labelled, negatives = tmp_path / "chats.jsonl", tmp_path / "others.jsonl"
    table.assign(chat=chat).to_json(labelled, orient="records", lines=True)
    others = pd.DataFrame({"chat": [*chat[:9], [{"role": "assistant", "content": "a"}]]})
    others.assign(text=marked[:10]).to_json(negatives, orient="records", lines=True)
    settings = {"metric": "auroc", "threshold_from": str(negatives), "layers": "1"}
    of_chats = {"text": "", "messages": "chat", "positions": "user"}
    (found,) = run_on_texts(tiny_chat, labelled, tmp_path, **of_chats, **settings).results
    rows = found.evidence["negatives_threshold"].rows
    assert {row.n for row in rows.with_metric("threshold")} == {9}
    says = r"^--threshold-from others: text 1 contains <\|im_start\|>"
    with pytest.raises(UserError, match=says):
        run_on_texts(tiny_chat, labelled, tmp_path, **settings)
    (meant,) = run_on_texts(tiny_chat, labelled, tmp_path, special_tokens=True, **settings).results
    assert "negatives_threshold" in meant.evidence
