"""Runs whose units are computed by several processes, and measurements of two models."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from killing import ROOT, logged, small_corpus, wait_for, written
from plugged_in import TASK, measurement_file

from probes.cli.main import main
from probes.frames.frame import load
from probes.frames.record_status import why_outdated
from probes.measurements.plugins import load_file
from probes.run.config import RunConfig

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins")]


def flags(model, corpus, folder, *more):
    """A command line whose units take a fraction of a second each."""
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    line = "--probes linear --device cpu --threads 1"
    return ["--model", str(model), "--corpus", str(corpus), *line.split(), *places, *more]


@pytest.mark.slow
def test_any_number_of_workers_finds_the_same(tiny_bert, small_sample, tmp_path, write, capsys):
    task = write(TASK)
    norms = write(measurement_file("norms", "corpus"), "norms.py")
    asked = ["--include", f"{task},{norms}", "--tasks", "mine,agreement,pos"]
    asked += ["--measurements", "probes,norms", "--evidence", "standard"]
    tables = []
    for n in ("1", "2"):
        assert main(flags(tiny_bert, small_sample, tmp_path / n, *asked, "--workers", n, "-v")) == 0
        said = capsys.readouterr()
        tables.append(re.sub(rf"{tmp_path}/\d", "", said.out))
        records = sorted(x.name for x in (tmp_path / n / "results").rglob("*-????????.json"))
        lines = said.err.splitlines()
        # In whole lines, and preparations once for all workers.
        assert len([x for x in lines if x.startswith("done    ")]) == len(records)
        assert len([x for x in lines if x.startswith("corpus  ")]) <= 2  # once for each model
    assert tables[0] == tables[1]
    assert written(tmp_path / "2") == written(tmp_path / "1")
    assert {"agreement-linear-selectivity", "mine-linear-scores"} < {x[:-14] for x in records}
    done = logged(tmp_path / "2", "done")
    assert len(done) == len({event["result"] for event in done}) == len(records)

    again = [*flags(tiny_bert, small_sample, tmp_path / "2", *asked, "--workers", "2"), "-q"]
    script = f"import sys; from probes.cli.main import main; s = main({again!r}); "
    script += "sys.exit(s or 9 * ('torch' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
    assert len(logged(tmp_path / "2", "done")) == len(done)
    assert len(logged(tmp_path / "2", "start")) == 2

    assert main([*again, "--overwrite", "always"]) == 0
    anew = [event["result"] for event in logged(tmp_path / "2", "done")][len(done) :]
    assert len(anew) == len(set(anew)) == len(done)
    assert written(tmp_path / "2") == written(tmp_path / "1")


DYING = """\
import os
import signal
import sys
import time
from pathlib import Path

from probes import Example, task


def dying(sentence):
    "Ends its process if that is a helper; the first process waits until one has ended."
    place = Path(__file__).with_suffix(".died")
    if "probes.run.worker_main" in sys.orig_argv:
        place.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    while not place.exists():
        time.sleep(0.05)
    for i, tag in enumerate(sentence.upos):
        yield Example("noun" if tag == "NOUN" else "other", (i, i + 1), type=sentence.words[i])


for name in ("one", "other"):  # the first process has one of them, and a helper the other
    task(name, version=1, needs=["upos"], metric="accuracy")(dying)


@task("fails", version=1, needs=["upos"], metric="accuracy")
def fails(sentence):
    "Raises an error."
    raise KeyError("Number")
"""


def test_a_helper_that_is_killed_costs_nothing_and_what_fails_its_own_record(
    tiny_bert, small_sample, tmp_path, write, capsys
):
    path = write(DYING, "dying.py")
    asked = ["--include", str(path), "--tasks", "one,other,fails", "--quick"]
    assert main(flags(tiny_bert, small_sample, tmp_path, *asked, "--workers", "2")) == 1
    said = capsys.readouterr().err
    lost = "a worker was lost (killed by SIGKILL); another one makes its record"
    assert said.count(lost) == 1
    why = "the rule raised KeyError: 'Number'. Fix"
    failure = f"fails: Task 'fails', sentence 'train-0001': {why}"
    assert said.count(f"missing tiny-bert · {failure}") == said.count(f"failed  {failure}") == 1
    found = sorted(path.name for path in (tmp_path / "results").rglob("*-linear-*.json"))
    assert [name.split("-linear-")[0] for name in found] == ["one", "other"]
    # A process loads a model once, and no lock is left.
    loaded = [event.get("worker") for event in logged(tmp_path, "model")]
    assert len(loaded) == len(set(loaded))
    assert not list(tmp_path.rglob("*.lock"))

    assert main(flags(tiny_bert, small_sample, tmp_path / "alone", *asked)) == 1
    assert written(tmp_path / "results") == written(tmp_path / "alone" / "results")


SLEEPING = TASK.replace(
    "    for i",
    """\
    import time
    from pathlib import Path
    Path(__file__).with_suffix(".asleep").touch()
    time.sleep(600)
    for i""",
)


@pytest.mark.parametrize(
    "how",
    [
        "SIGTERM",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("Ctrl-C", "timeout", "SIGKILL")),
    ],
)
def test_no_worker_outlives_the_run(how, tiny_bert, small_sample, tmp_path, write):
    path = write(SLEEPING)
    asked = ["--include", str(path), "--tasks", "pos,mine", "--quick", "--workers", "2"]
    line = [sys.executable, "run_probes.py", *flags(tiny_bert, small_sample, tmp_path, *asked)]
    run = subprocess.Popen(
        line, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: path.with_suffix(".asleep").exists())
    wait_for(lambda: logged(tmp_path, "done"))
    time.sleep(1)  # the driver, which has been told of the record, reads it
    if how == "Ctrl-C":  # which the terminal sends to all processes
        os.killpg(run.pid, signal.SIGINT)
    elif how == "timeout":  # which sends it to the command, and then to its group
        run.send_signal(signal.SIGTERM)
        os.killpg(run.pid, signal.SIGTERM)
    else:
        run.send_signal(getattr(signal, how))
    _, err = run.communicate(timeout=120)
    wait_for(lambda: not alive(run.pid))
    assert "Traceback" not in err
    assert len(list((tmp_path / "results").rglob("pos-linear-scores-*.json"))) == 1
    if how == "SIGKILL":
        assert run.returncode == -signal.SIGKILL
        return
    assert run.returncode == (143 if how in ("SIGTERM", "timeout") else 130)
    assert [event["status"] for event in logged(tmp_path, "end")] == ["stopped"]
    assert err.endswith(
        "stopped; finished results are kept; run the same command again to continue\n"
    )
    assert "tables of what is done: python -m probes show " in err
    assert not list(tmp_path.rglob("*.lock"))


def alive(group):
    """Whether a process of the group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_error_that_the_user_can_fix_ends_the_run(tiny_bert, small_sample, tmp_path, capsys):
    assert main(flags(tiny_bert, small_sample, tmp_path, "--tasks", "pos", "--quick")) == 0
    (layer,) = (tmp_path / "cache").rglob("layer-01.npy")
    content = bytearray(layer.read_bytes())
    content[-1] ^= 1
    layer.write_bytes(content)
    asked = ["--tasks", "pos,depth,agreement", "--quick"]
    capsys.readouterr()
    ends = []
    for n in ("1", "2"):
        assert main(flags(tiny_bert, small_sample, tmp_path, *asked, "--workers", n)) == 2
        said = capsys.readouterr()
        assert "linear probe · test" in said.out
        ends.append(said.err.splitlines()[-1])
    assert str(layer) in ends[0]
    assert ends[1] == ends[0]
    ends = [json.loads(x.read_text().splitlines()[-1]) for x in tmp_path.rglob("*.jsonl")]
    assert sorted(end["status"] for end in ends) == ["done", "error", "error"]


def test_threads_are_shared_among_workers_unless_given(monkeypatch):
    monkeypatch.setattr("probes.run.config.available_cores", lambda: 8)
    assert RunConfig().threads_per_process is None
    found = [RunConfig(workers=n).threads_per_process for n in (2, 3, 8, 16)]
    assert found == [4, 2, 1, 1]
    assert RunConfig(workers=4, threads=5).threads_per_process == 5


PAIR = """
import numpy as np
from probes import Pivot, Row, measurement

def units(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

@measurement("words")
def words(context):
    "Number of words."
    assert not hasattr(context, "base")
    yield Row("words", len(context.rows("test")))

view = Pivot("beside the base", columns=("base_layer",))

@measurement("cosine", of="pair", after="words", shows=(view,))
def cosine(context):
    "Mean cosine of the same word in two models."
    for i in context.layers:
        for j in context.base.layers:
            both = units(context.words("test", i)), units(context.base.words("test", j))
            yield Row("cosine", (both[0] * both[1]).sum(1).mean(), i, axes={"base_layer": j})
"""


@pytest.fixture
def command(tiny_bert, tmp_path, write):
    """Runs a command line; its exit status."""
    path, corpus = write(PAIR, "pair.py"), small_corpus(tmp_path / "small")

    def command(*more, beside=()):
        places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
        line = ["--model", str(tiny_bert), *beside, "--corpus", str(corpus), "--include", str(path)]
        return main([*line, "--device", "cpu", "--threads", "1", *places, *more])

    load_file(path)
    return command


def records_of(folder):
    return {
        (record.model.name, record.measurement): record
        for record in load(folder / "results").records().values()
    }


def test_each_model_is_compared_with_the_first_one(command, tmp_path, capsys):
    assert command("--measurements", "words", "--project", "4") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "random:tiny-bert · small · cosine from tiny-bert · beside the base" in printed
    found = records_of(tmp_path)
    twin = [("random:tiny-bert", "cosine"), ("random:tiny-bert", "words")]
    assert sorted(found) == [*twin, ("tiny-bert", "words")]
    # They have nothing to do with the projection of probes.
    assert not any(map(why_outdated, found.values()))
    record = found["random:tiny-bert", "cosine"]
    assert (record.model.random_seed, record.base.random_seed) == (0, None)
    assert (len(record.rows), set(record.rows.axes["base_layer"])) == (9, {0, 1, 2})
    assert not np.allclose(record.rows.value, 1, atol=0.05)
    (path,) = (tmp_path / "results").rglob("cosine.csv")
    rows = pd.read_csv(path)
    assert rows["layer"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert rows["base_layer"].tolist() == [0, 1, 2] * 3
    assert rows["value"].tolist() == pytest.approx(record.rows.value, rel=1e-5)


def test_a_model_beside_its_equal_and_the_key_names_the_base(command, tiny_bert, tmp_path):
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    # Another name, and the same weights: every word's vectors are equal at every layer.
    assert command("--measurements", "cosine", beside=[str(copy)]) == 0
    found = records_of(tmp_path)
    same = [x.value for x in found["copy", "cosine"].rows if x.layer == x.axes["base_layer"]]
    assert same == pytest.approx([1, 1, 1], abs=1e-5)
    twin = found["random:tiny-bert", "cosine"]
    assert (twin.base.name, twin.model.name) == ("tiny-bert", "random:tiny-bert")
    assert twin.inputs != found["copy", "cosine"].inputs


def test_layers_are_added_on_both_sides_and_nothing_is_measured_twice(command, tmp_path):
    assert command("--measurements", "cosine", "--layers", "1") == 0
    (path,) = (tmp_path / "results").rglob("cosine-*.json")
    assert json.loads(path.read_bytes())["rows"]["axes"] == {"base_layer": [1]}
    assert command("--measurements", "cosine", "--layers", "2") == 0
    found = json.loads(path.read_bytes())
    assert list(found["extent"]) == ["1", "2"]
    assert found["rows"]["axes"] == {"base_layer": [1, 2, 1, 2]}
    before = path.stat().st_mtime_ns
    assert command("--measurements", "cosine", "--layers", "1,2") == 0
    assert path.stat().st_mtime_ns == before


def test_one_model_cannot_be_compared(command, tmp_path, capsys):
    assert command("--measurements", "cosine", "--twins", "0") == 2
    assert capsys.readouterr().err == (
        "error: --measurements cosine: it compares models; name two after --model, or leave the "
        "random twin to be measured.\n"
    )
    assert command("--measurements", "words", "--twins", "0") == 0
    assert [name for _, name in records_of(tmp_path)] == ["words"]
