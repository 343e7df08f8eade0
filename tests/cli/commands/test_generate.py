"""`python -m probes generate`, against plain transformers."""

import json

import pandas as pd
import pytest
import torch
import transformers
from tiny_models import FAMILIES, build_config, save_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from probes.__main__ import main
from probes.cli.main import main as run_main
from probes.extraction.reading import greedy_answers

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|endoftext|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPTS = ["the boats", "who came?", "keep silent", "no", "the light of the harbour", "the birds"]
LIMIT = 16


def saved(folder, template=TEMPLATE, whole_words=True):
    """A tiny decoder whose generation_config.json asks for sampling and has two end tokens."""
    family = FAMILIES["qwen2"]
    torch.manual_seed(7)
    sizes = {"max_position_embeddings": 64, "hidden_size": 32, "num_hidden_layers": 3}
    config = build_config(family, family.tokenizer(), **sizes)
    model = transformers.Qwen2ForCausalLM(config).eval()
    save_tokenizer("qwen2", folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    model.generation_config.eos_token_id = None
    if whole_words:  # which the tokenizer divides as the model does
        words = {i for token, i in tokenizer.get_vocab().items() if token[0] == "Ġ"}
        model.generation_config.suppress_tokens = sorted({*range(config.vocab_size)} - words)
    long = [plain_answer(model, tokenizer, prompt)[1] for prompt in PROMPTS]
    ends = [tokenizer.eos_token_id, long[0][3], long[1][6]]
    settings = {"do_sample": True, "temperature": 0.3, "top_k": 5, "top_p": 0.9}
    model.generation_config.update(eos_token_id=ends, **settings)
    model.save_pretrained(folder)
    return folder


def plain_answer(model, tokenizer, prompt):
    """Tokens of a prompt and of its answer, by transformers alone."""
    if tokenizer.chat_template:
        chat = [{"role": "user", "content": prompt}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)
    else:
        ids = tokenizer(prompt)
    ids = torch.tensor([ids["input_ids"]])
    given = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0}
    written = model.generate(ids, do_sample=False, max_new_tokens=LIMIT, **given)[0].tolist()
    return ids[0].tolist(), written[ids.shape[1] :]


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "tiny-chat")


@pytest.fixture(scope="module")
def base_model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "tiny-base", template=None)


@pytest.fixture(scope="module")
def babbling_model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "tiny-babbler", whole_words=False)


def written(path, prompts=PROMPTS, **columns):
    rows = [{"prompt": x, "kind": f"k{i % 2}", "n": i} | columns for i, x in enumerate(prompts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def generate(model, corpus, output, *more):
    flags = ["--text", "prompt", "--max-new-tokens", str(LIMIT), "--device", "cpu"]
    place = ["--model", str(model), "--corpus", str(corpus), "-o", str(output)]
    return main(["generate", *place, *flags, *map(str, more)])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["chat_model", "base_model", "babbling_model"])
def test_answers_are_those_of_transformers(kind, request, tmp_path, capfd):
    folder = request.getfixturevalue(kind)
    output = tmp_path / "answers.jsonl"
    assert generate(folder, written(tmp_path / "prompts.jsonl"), output) == 0
    model, tokenizer = (x.from_pretrained(folder) for x in (AutoModelForCausalLM, AutoTokenizer))
    ends, ended, same = model.generation_config.eos_token_id, [], []
    for row, prompt in zip(lines(output), PROMPTS, strict=True):
        ids, answer = plain_answer(model, tokenizer, prompt)
        ended.append(answer[-1] in ends)
        answer = answer[:-1] if ended[-1] else answer
        whole = tokenizer.decode([*ids, *answer], skip_special_tokens=True)
        text = whole.removeprefix(tokenizer.decode(ids, skip_special_tokens=True))
        assert row["answer"] == text
        assert (row["prompt"], row["generation"]["ended"]) == (prompt, ended[-1])
        if kind != "base_model":
            said = {"role": "user", "content": prompt}
            assert row["messages"] == [said, {"role": "assistant", "content": text}]
            read = tokenizer.apply_chat_template(row["messages"], return_dict=True)["input_ids"]
        else:
            assert row["continued_text"] == prompt + text
            read = tokenizer(row["continued_text"])["input_ids"]
        # Prompt tokens are read again whatever the answer is.
        assert read[: len(ids)] == ids
        same.append(read[: len(ids) + len(answer)] == [*ids, *answer])
        assert row["generation"]["same_tokens"] is same[-1]
    assert len({row["answer"] for row in lines(output)}) >= len(PROMPTS) - 1
    assert (False in same) is (kind == "babbling_model")
    assert 0 < sum(ended) < len(PROMPTS)
    printed = capfd.readouterr()
    n_cut, n_other = len(PROMPTS) - sum(ended), len(PROMPTS) - sum(same)
    assert f"6 answers, {n_cut} cut at 16 tokens, {n_other} with other tokens" in printed.out
    assert "temperature" not in printed.err


def test_prompts_are_split_once(chat_model, tmp_path, monkeypatch):
    texts = []
    ids = greedy_answers.GreedyDecoder.ids
    monkeypatch.setattr(
        greedy_answers.GreedyDecoder,
        "ids",
        lambda self, text: texts.append(text) or ids(self, text),
    )
    assert generate(chat_model, written(tmp_path / "p.jsonl"), tmp_path / "a.jsonl") == 0
    assert len(texts) == 2 * len(PROMPTS)  # each prompt, and the prompt with its answer
    assert len({text.words for text in texts}) == len(texts)


def test_an_answer_does_not_depend_on_the_other_prompts(chat_model, tmp_path):
    def answers(name, prompts):
        output = tmp_path / f"{name}.jsonl"
        assert generate(chat_model, written(tmp_path / "p.jsonl", prompts), output) == 0
        return {row["prompt"]: row["answer"] for row in lines(output)}

    together = answers("together", PROMPTS)
    assert answers("reversed", PROMPTS[::-1]) == together
    for number, prompt in enumerate(PROMPTS[:3]):
        assert answers(f"{number}", [prompt]) == {prompt: together[prompt]}


def test_what_was_stopped_goes_on_and_ends_with_the_same_bytes(chat_model, tmp_path, monkeypatch):
    corpus, output = written(tmp_path / "p.jsonl"), tmp_path / "a.jsonl"
    assert generate(chat_model, corpus, tmp_path / "whole.jsonl") == 0
    whole, calls = (tmp_path / "whole.jsonl").read_bytes(), []
    answer = greedy_answers.GreedyDecoder.answer

    def counted(decoder, *given):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(given)
        return answer(decoder, *given)

    monkeypatch.setattr(greedy_answers.GreedyDecoder, "answer", counted)
    assert generate(chat_model, corpus, output) == 130
    assert output.read_bytes() == b"".join(whole.splitlines(keepends=True)[:3])
    # A disk may be full, or a process be killed, in the middle of a line.
    for cut in (7, 250):
        calls.clear()
        output.write_bytes(b"".join(whole.splitlines(True)[:3]) + whole.splitlines()[3][:cut])
        assert generate(chat_model, corpus, output) == 0
        assert len(calls) == 3
        assert output.read_bytes() == whole
    monkeypatch.setattr(greedy_answers, "GreedyDecoder", None)  # the model is not even loaded
    assert generate(chat_model, corpus, output) == 0
    assert not list(tmp_path.glob("*.lock"))


def test_answers_of_something_else_are_named(chat_model, base_model, tmp_path, capsys):
    corpus, output = written(tmp_path / "p.jsonl"), tmp_path / "a.jsonl"
    assert generate(chat_model, corpus, output) == 0
    before = output.read_bytes()
    other = written(tmp_path / "q.jsonl", ["the sea", *PROMPTS[1:]])
    shorter = written(tmp_path / "shorter.jsonl", [PROMPTS[0][:-1], *PROMPTS[1:]])
    few = written(tmp_path / "few.jsonl", PROMPTS[:2])
    for model, prompts, more, error in (
        (chat_model, corpus, ("--max-new-tokens", 3), "made with max_new_tokens 16, not 3; name"),
        (chat_model, corpus, ("--dtype", "bfloat16"), "made with dtype float32, not bfloat16;"),
        (base_model, corpus, (), "made with model tiny-chat, not tiny-base; name another -o"),
        (chat_model, other, (), "a.jsonl, line 1: is no answer to "),
        (chat_model, shorter, (), "a.jsonl, line 1: is no answer to "),
        (chat_model, few, (), "line 3: is no answer to a prompt: there are only 2; name another"),
    ):
        assert generate(model, prompts, output, *more) == 2
        assert error in capsys.readouterr().err
        assert output.read_bytes() == before
    output.write_text("notes without a line break")
    assert generate(chat_model, corpus, output) == 2
    assert "line 1: is no answer to" in capsys.readouterr().err
    assert output.read_text() == "notes without a line break"
    output.write_text(f"{before.splitlines()[0].decode()[:60]}\n")
    assert generate(chat_model, corpus, output) == 2
    assert "line 1: is no answer to" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_tables_are_read_and_answers_probed(chat_model, tmp_path, suffix):
    prompts = [f"{prompt} {i}" for i, prompt in enumerate(PROMPTS * 8)]
    frame = pd.DataFrame({"prompt": prompts, "n": range(48), "mood": ["sad", "glad"] * 24})
    corpus, output = tmp_path / f"p.{suffix}", tmp_path / "answers.jsonl"
    if suffix == "json":
        frame.to_json(corpus, orient="records")
    else:
        frame.to_parquet(corpus) if suffix == "parquet" else frame.to_csv(corpus, index=False)
    assert generate(chat_model, corpus, output, "--max-new-tokens", 3) == 0
    assert [row["prompt"] for row in lines(output)] == prompts
    assert lines(output)[5]["n"] == ("5" if suffix == "csv" else 5)
    columns = ["--messages", "messages", "--label", "mood", "--positions", "assistant"]
    places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
    given = ["--model", str(chat_model), "--corpus", str(output), *columns, *places]
    flags = ["--quick", "--probes", "mean-difference", "--device", "cpu", "-q"]
    assert run_main([*given, *flags]) == 0


def test_chats_keep_their_messages_and_tools(chat_model, tmp_path):
    chat = [{"role": "system", "content": "keep silent"}, {"role": "user", "content": "no"}]
    corpus, output = tmp_path / "p.jsonl", tmp_path / "a.jsonl"
    corpus.write_text(json.dumps({"messages": chat, "tools": [{"name": "f"}], "odd": "\ud800"}))
    flags = ["--messages", "messages", "--max-new-tokens", "2", "-o", str(output)]
    assert main(["generate", "--model", str(chat_model), "--corpus", str(corpus), *flags]) == 0
    (row,) = lines(output)
    assert row["messages"] == [*chat, {"role": "assistant", "content": row["answer"]}]
    assert (row["tools"], row["odd"]) == ([{"name": "f"}], "\ud800")
    shorter = {"messages": chat[:1], "tools": [{"name": "f"}], "odd": "\ud800"}
    corpus.write_text(json.dumps(shorter))
    command = ["generate", "--model", str(chat_model), "--corpus", str(corpus), *flags]
    assert main(command) == 2
    corpus.write_text(json.dumps({**shorter, "messages": chat}))
    assert main(command) == 0


SAYS = {"role": "user", "content": "no"}


@pytest.mark.parametrize(
    ("flags", "content", "error"),
    [
        ("--text p", {"q": "a"}, "no column for --text p; the columns are q (if"),
        ("--text p", {"p": " "}, "p.jsonl, line 1: p is empty; remove the row."),
        ("--text p", {"p": "a", "answer": 1}, "has a column answer, which would be overwritten"),
        ("--messages p", {"p": "a"}, "line 1: p is not a list of messages: 'a'; correct the row."),
        ("--messages p", {"p": [SAYS, {**SAYS, "role": "assistant"}]}, "p ends with an answer"),
        ("--text p", {"p": "<|im_start|>"}, "line 1: message 1 of a chat contains <|im_start|>"),
        ("--text p", {"p": "a " * 30}, "1 prompt of 1 (first: "),
        ("--text p --max-new-tokens 0", {"p": "a"}, "--max-new-tokens 0: give a number of at"),
        ("--text p --messages p", {"p": "a"}, "--messages: not allowed with argument --text"),
        ("", {"p": "a"}, "one of the arguments --messages --text is required"),
    ],
)
def test_bad_input_is_one_line(chat_model, tmp_path, capsys, flags, content, error):
    corpus, output = tmp_path / "p.jsonl", tmp_path / "a.jsonl"
    corpus.write_text(json.dumps(content))
    place = ["--model", str(chat_model), "--corpus", str(corpus), "-o", str(output)]
    assert main(["generate", *place, *flags.split()]) == 2
    printed = capsys.readouterr().err.splitlines()[-1]
    assert error in printed, printed
    assert not output.exists()


def test_models_that_cannot_answer_are_refused(base_model, tiny_bert, tmp_path, capsys):
    corpus = written(tmp_path / "p.jsonl", chat=[SAYS])
    for model, flags, error in (
        (tiny_bert, ("--text", "prompt"), "have no weights of a language-model head"),
        (base_model, ("--messages", "chat"), "this model's tokenizer has no chat template"),
    ):
        place = ["--model", str(model), "--corpus", str(corpus), "-o", str(tmp_path / "a.jsonl")]
        assert main(["generate", *place, *flags]) == 2
        assert error in capsys.readouterr().err
