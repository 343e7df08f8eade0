"""Records that cannot be used are named and stop nothing: neither commands nor later runs."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from board_by_hand import edited, place_of, put
from corpus_records import geometry, store_record
from heads_by_hand import attention, choice, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_runs import run, shortened_schedule

from probes.__main__ import main
from probes.common.errors import UserError
from probes.frames.record_validation import validated
from probes.records.record import SCHEMA_VERSION
from probes.records.record_files import read_record, write_record

pytestmark = pytest.mark.usefixtures("short_schedule")


def renamed(path, before, after):
    for file in (path, path.with_suffix(".npz")):
        if file.exists():
            file.rename(file.with_name(file.name.replace(before, after)))
    return path.with_name(path.name.replace(before, after))


def scores(folder, model):
    return put(folder, model, "pos", 20)


def evidence(folder, model):
    (path,) = scores(folder, model).parent.glob("*-training_variance-*")
    return path


def of_corpus(folder, model):
    return store_record(folder, geometry([0.1, 0.3], model=model, digest=f"{model} None"))


def heads(folder, model):
    """A record of attention with its arrays."""
    of_all = numbers("entropy", [[0.5, 0.5]] * 2, (0.9, 0.9))
    masses = [
        numbers("pattern", [[0.5, 0.5]] * 2, (0.2, 0.2), feature=feature)
        for feature in ("vertical", "diagonal")
    ]
    record = attention(
        [choice("", measure="uas")], [of_all, *masses], model=model, digest=f"{model} None"
    )
    path = store_record(folder, record.model_copy(update={"arrays": ("test_sums",)}))
    write_record(path, read_record(path), {"test_sums": np.full((1, 40), 0.5)})
    return path


def truncated(path):
    path.write_text(path.read_text()[:300])
    return path


def damaged(path):
    """Half of the arrays."""
    beside = path.with_suffix(".npz")
    beside.write_bytes(beside.read_bytes()[: beside.stat().st_size // 2])
    return path


def lost(path):
    path.with_suffix(".npz").unlink()
    return path


def cut(path):
    found = dict(np.load(path.with_suffix(".npz")))
    found["gold"] = found["gold"][:9]
    np.savez(path.with_suffix(".npz"), **found)
    return path


def unreadable(path):
    """As a file without permission, which the user of the tests may have after all."""
    path.unlink()
    path.mkdir()
    return path


def to_nowhere(path):
    path.unlink()
    path.symlink_to("nowhere")
    return path


def pipe(path):
    path.unlink()
    os.mkfifo(path)
    return path


def endless(path):
    path.unlink()
    path.symlink_to("/dev/zero")
    return path


def of_arrays(make, path):
    make(path.with_suffix(".npz"))
    return path


def with_name_twice(path):
    path.write_text(path.read_text().replace('"view":', '"view":"cut","view":', 1))
    return path


def first(content, column, value):
    """Changes a column of the test score of layer 0."""
    content["rows"][column][place_of(content, "accuracy", 0)] = value


def without_baselines(content):
    """The rows of rules are those without a layer, the last ones."""
    rows = content["rows"]
    n = rows["layer"].index(None)
    axes = rows.pop("axes")
    assert list(axes) == ["baseline"]
    for column in rows.values():
        del column[n:]


LEFT_OUT = {
    "truncated": lambda *of: truncated(scores(*of)),
    "not an object": lambda *of: edited(scores(*of), lambda c: c.clear()),
    "unreadable": lambda *of: unreadable(scores(*of)),
    "to nowhere": lambda *of: to_nowhere(scores(*of)),
    "pipe": lambda *of: pipe(scores(*of)),
    "device": lambda *of: endless(scores(*of)),
    "a name twice": lambda *of: with_name_twice(scores(*of)),
    "axes of another type": lambda *of: edited(scores(*of), lambda c: c["rows"].update(axes=5.0)),
    "of a corpus, as scores": lambda *of: edited(
        of_corpus(*of), lambda c: c.update(measurement="scores")
    ),
    "infinite size": lambda *of: edited(
        scores(*of), lambda c: c["provenance"].update(bytes_on_disk="inf")
    ),
    "impossible accuracy": lambda *of: edited(scores(*of), lambda c: first(c, "value", 1e308)),
    "infinite interval": lambda *of: edited(scores(*of), lambda c: first(c, "high", float("inf"))),
}
"""Records that cannot be read, which every command names that reads records of their kind."""

USED_AS_FAR_AS_KNOWN = {
    "unknown family": lambda *of: renamed(
        edited(scores(*of), lambda c: c["probe"].update(family="unheard")), "linear", "unheard"
    ),
    "unknown measurement": lambda *of: renamed(
        edited(of_corpus(*of), lambda c: c.update(measurement="unheard")), "geometry", "unheard"
    ),
    "unknown evidence": lambda *of: renamed(
        edited(evidence(*of), lambda c: c.update(measurement="unheard")),
        "training_variance",
        "unheard",
    ),
    "no baselines": lambda *of: edited(scores(*of), without_baselines),
    "lost arrays": lambda *of: lost(scores(*of)),
    "damaged arrays": lambda *of: damaged(scores(*of)),
    "arrays that do not fit": lambda *of: cut(scores(*of)),
    "arrays from a pipe": lambda *of: of_arrays(pipe, scores(*of)),
    "arrays from a device": lambda *of: of_arrays(endless, scores(*of)),
    "damaged arrays of heads": lambda *of: damaged(heads(*of)),
    "another schema": lambda *of: edited(scores(*of), lambda c: c.update(schema_version=99)),
}


def broken(folder, kinds):
    """A record of each of these kinds, each of another model."""
    return {kind: make(folder, f"odd-{n}") for n, (kind, make) in enumerate(kinds.items())}


def commands(folder, other):
    """Every command that reads folders of results."""
    results, to = str(folder), other / "out"
    to.mkdir()
    yield ["leaderboard", results, "--format", "csv"]
    yield ["report", results, "-o", str(to / "report.html")]
    yield ["claims", results]
    for by in ("group", "label", "training_variance"):
        yield ["show", results, "--by", by]
    yield ["heads", results]
    yield ["compare", "m1", "m2", "--results", results]
    for name in ("heatmap", "isotropy"):
        yield ["figure", name, results, "-o", str(to / "figure.svg")]
    yield ["export", results, str(to / "sums"), "--sums"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Results of two models, none of which is broken."""
    results = tmp_path_factory.mktemp("sound") / "results"
    with shortened_schedule():
        for model, wrong in (("m1", 9), ("m2", 60)):
            put(results, model, "pos", wrong)
            store_record(results, geometry([0.1, 0.2], model=model, digest=f"{model} None"))
            heads(results, model)
    return results


@pytest.fixture
def copied_results(sound, tmp_path):
    """A copy of the sound results."""
    return shutil.copytree(sound, tmp_path / "results")


@pytest.fixture
def ranked(copied_results, tmp_path, capsys):
    """The leaderboard of the sound results, by lines."""
    assert main(["export", str(copied_results), str(tmp_path / "sound"), "--sums"]) == 0
    assert "left out" not in capsys.readouterr().err
    assert main(["leaderboard", str(copied_results), "--format", "csv"]) == 0
    return capsys.readouterr().out.splitlines()


def test_what_cannot_be_read_is_named_and_stops_nothing(copied_results, ranked, tmp_path, capsys):
    paths = broken(copied_results, LEFT_OUT)
    for line in commands(copied_results, tmp_path):
        capsys.readouterr()
        assert main(line) == 0, (line, capsys.readouterr().err)
        found = capsys.readouterr()
        silent = {
            kind
            for kind, path in paths.items()
            if f"left out {path}: not a readable result (" not in found.err
            and f"left out {path}: there is no such file" not in found.err
        }
        if line[0] == "leaderboard":
            assert found.out.splitlines() == ranked
        # A record that is JSON is left out where it is used: not every command uses every kind.
        assert not silent or line[0] not in ("export", "report"), silent


JSON_VALUES = (None, True, 0, -1, 5.0, 1e308, 10**20, "", "x", [], [1], ["x"], {}, {"1": 1})

KINDS = {"scores": scores, "evidence": evidence, "corpus": of_corpus, "heads": heads}


def changed_records(content, place=()):
    """The content of a record with each part replaced by each JSON value."""
    for value in JSON_VALUES:
        changed = json.loads(json.dumps(content))
        part = changed
        for name in place[:-1]:
            part = part[name]
        if place:
            part[place[-1]] = value
        yield changed if place else value
    part = content
    for name in place:
        part = part[name]
    # Of a column, two numbers.
    names = [*part] if isinstance(part, dict | list) else []
    if isinstance(part, list):
        names = range(min(len(part), 2))
    for name in names:
        yield from changed_records(content, (*place, name))


@pytest.fixture(scope="module")
def changed_by_kind(tmp_path_factory):
    """Records of each kind, with its file."""
    folder = tmp_path_factory.mktemp("changed")
    with shortened_schedule():
        paths = {kind: make(folder / kind, "odd") for kind, make in KINDS.items()}
    return {kind: (x, [*changed_records(json.loads(x.read_text()))]) for kind, x in paths.items()}


def put_changed(folder, path, contents):
    """Write records like that at `path`, each with what lies beside it, as of other models."""
    for n, content in enumerate(contents):
        place = folder / f"odd-{n}" / path.parent.name
        shutil.copytree(path.parent, place)
        (place / path.name).write_text(json.dumps(content))


def stopped(folder, other):
    """Commands that do not read a folder to the end.

    A figure of measurements that may not stand together is refused.
    """
    for line in commands(folder, other):
        if main(line) not in (0, 2 * ("isotropy" in line)):
            yield line


def readable(path, contents, tmp_path):
    """Those that are not refused, and then with one line."""
    for content in contents:
        file = tmp_path / path.name
        file.write_text(json.dumps(content))
        try:
            validated(read_record(file), file)
        except UserError:
            continue
        yield content


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_a_record_with_any_value_is_read_or_refused_in_a_line(
    kind, data, changed_by_kind, tmp_path_factory
):
    path, contents = changed_by_kind[kind]
    content = data.draw(st.sampled_from(contents))
    assert len([*readable(path, [content], tmp_path_factory.mktemp("one"))]) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_records_with_any_value_stop_no_command(kind, changed_by_kind, copied_results, tmp_path):
    path, contents = changed_by_kind[kind]
    contents = [*readable(path, contents[::19], tmp_path)]
    put_changed(copied_results, path, contents)
    assert [*stopped(copied_results, tmp_path)] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_no_record_stops_a_command(kind, changed_by_kind, sound, tmp_path):
    path, contents = changed_by_kind[kind]
    contents = [*readable(path, contents, tmp_path)]
    for start in range(0, len(contents), 20):
        at = tmp_path / str(start)
        folder = shutil.copytree(sound, at / "results")
        put_changed(folder, path, contents[start : start + 20])
        assert [*stopped(folder, at)] == [], start


def test_what_is_unknown_or_lacks_arrays_stops_nothing(copied_results, ranked, tmp_path, capsys):
    paths = broken(copied_results, USED_AS_FAR_AS_KNOWN)
    said = []
    for line in commands(copied_results, tmp_path):
        capsys.readouterr()
        assert main(line) == 0, (line, capsys.readouterr().err)
        found = capsys.readouterr()
        said.append(found.err)
        if line[0] == "leaderboard":
            rows = [row for row in found.out.splitlines() if "odd" not in row]
            assert len(rows) == len(ranked)
    for kind, path in paths.items():
        if "arrays" in kind:
            assert any(str(path.with_suffix(".npz")) in each for each in said), kind
    assert any("left out 1 result of schema 99 in" in each for each in said)


def test_a_record_without_the_options_of_its_measurement_is_left_out(
    copied_results, tmp_path, capsys
):
    path = edited(of_corpus(copied_results, "odd"), lambda c: c.update(settings={}))
    assert main(["export", str(copied_results), str(tmp_path / "sound"), "--sums"]) == 0
    assert f"left out {path}: not a readable result (no option " in capsys.readouterr().err


@pytest.mark.parametrize("kinds", [LEFT_OUT, USED_AS_FAR_AS_KNOWN])
def test_a_run_writes_its_tables_beside_them(kinds, copied_results, tmp_path, tiny_bert):
    """They lie among the records of the model and corpus that are measured."""
    settings = {"tasks": ("chunking",), "probes": ("linear",), "twins": 0, "corpus": "sample"}
    (found,) = run(tiny_bert, tmp_path, **settings).results
    (own,) = copied_results.glob("tiny-bert*/sample*")
    for path in broken(copied_results, kinds).values():
        for file in (path, path.with_suffix(".npz")):
            if file.exists() or file.is_symlink():
                file.rename(own / file.name)
    (again,) = run(tiny_bert, tmp_path, **settings).results
    assert again.rows == found.rows
    rows = (copied_results / "leaderboard.csv").read_text().splitlines()
    assert sum('"tiny-bert"' in row for row in rows) == 3


def test_a_damaged_result_is_named(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (path,) = (tmp_path / "results").rglob("pos-linear-*.json")
    whole = path.read_text()
    path.write_text(whole[:1000])
    with pytest.raises(UserError, match=r"pos-linear-.*\.json: not a readable result"):
        run(tiny_bert, tmp_path, **settings)
    path.write_text(json.dumps({**json.loads(whole), "schema_version": 99}))
    with pytest.raises(UserError, match=f"result schema 99, this version reads {SCHEMA_VERSION}"):
        run(tiny_bert, tmp_path, **settings)


@pytest.mark.parametrize("damaged", [1, 2])
def test_damaged_predictions_cost_only_their_comparison(tiny_bert, tmp_path, capsys, damaged):
    settings = {"limit": 1, "probes": ("linear",), "twins": 1}
    run(tiny_bert, tmp_path, tasks=("depth",), **settings)
    paths = sorted((tmp_path / "results").rglob("depth-*.npz"))
    for path in paths[:damaged]:
        path.write_bytes(path.read_bytes()[:100])
    results = run(tiny_bert, tmp_path, tasks=("depth", "pos"), **settings)
    assert len(list(results.results)) == 4
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert board.groupby("task").model.nunique().to_dict() == {"depth": 2, "pos": 2}
    assert all(what.endswith("depth · linear in the comparison") for what in results.failed)
    whys = sorted(results.failed.values())
    assert len(whys) == damaged
    for path, why in zip(paths, whys, strict=False):
        assert why.startswith(f"{path}: not readable (")
    said = capsys.readouterr()
    assert " ".join(said.out.split()).count("(predictions not readable)") == (damaged == 1)
    assert said.err.count("in the comparison: ") == damaged
    later = run(tiny_bert, tmp_path, tasks=("depth", "agreement"), **settings)
    assert set(later.failed) == {
        *results.failed,
        "tiny-bert · agreement",
        "random:tiny-bert · agreement",
    }


def test_a_task_without_examples_does_not_stop_the_others(tiny_bert, tmp_path, capsys):
    settings = {"limit": 1, "probes": ("linear",)}
    for tasks in (("agreement", "depth"), ("depth", "agreement")):
        results = run(tiny_bert, tmp_path, tasks=tasks, **settings)
        assert [result.task.name for result in results.results] == ["depth"]
        ((what, why),) = results.failed.items()
        assert what == "tiny-bert · agreement"
        assert why.startswith("Task 'agreement' has no examples in the ")
        assert f"missing {what}: {why}" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"Task 'agreement' has no examples in the \w+ split"):
        run(tiny_bert, tmp_path, tasks=("agreement",), **settings)
    assert set(pd.read_csv(tmp_path / "results" / "leaderboard.csv").task) == {"depth"}
