"""The `board` command: what it refuses, leaves off and writes, on published sums of EWT."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from probes.__main__ import main
from probes.boards.rankings import make_rankings, named_candidates
from probes.boards.submissions import place_of_submission, read_submission
from probes.data.splits import DROPPED
from probes.extraction.reading.windows import WINDOW_RULE
from probes.frames.joined_results import find_results
from probes.pages.board_site import _pages
from probes.probing.recomputed_records import require_recomputed
from probes.records.record import Inputs, record_key
from probes.records.record_files import name_of, read_arrays, read_record, write_record
from probes.records.row import Rows

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
MODEL, TWIN = "all-MiniLM-L6-v2-07db4e1f", "random-all-MiniLM-L6-v2-97a0bb3c"
NAME = "all-MiniLM-L6-v2"
POS, SRL = "pos-linear-scores", "srl-linear-scores"
VARIANCE, LAYERS = "pos-linear-training_variance", "pos-linear-localisation"


@pytest.fixture(autouse=True)
def no_pages(monkeypatch):
    """Pages of models are those of `report`, which take a while."""
    monkeypatch.setattr(
        "probes.pages.board_site.write_page", lambda own, path, *_, **__: path.write_text("")
    )


@pytest.fixture
def results_with_sums(tmp_path):
    """Two tasks of the model and one of its twin, on EWT, with sums."""
    for model, task in ((MODEL, "pos-linear"), (MODEL, "srl-linear"), (TWIN, "pos-linear")):
        place = tmp_path / "given" / model / "ewt"
        place.mkdir(parents=True, exist_ok=True)
        for path in (PUBLISHED / model / "ewt").glob(f"{task}-*"):
            shutil.copy(path, place)
    return tmp_path / "given"


def the(folder, name, model=MODEL):
    (path,) = (folder / model / "ewt").glob(f"{name}-????????.json")
    return path


def change_rows(path, give):
    """Replace each row of the record at `path` by what `give` makes of it, which may be nothing."""
    record = read_record(path)
    rows = [new for row in record.rows if (new := give(row))]
    assert rows != list(record.rows)
    arrays = read_arrays(path) if path.with_suffix(".npz").exists() else {}
    write_record(path, record.model_copy(update={"rows": Rows.of(rows)}), arrays)


def change(path, metric, layer, split="test", value=lambda x: x + 0.01):
    """Change the value of a row."""

    def changed(row):
        meant = (row.metric, row.layer, row.split, row.axes) == (metric, layer, split, {})
        return row._replace(value=value(row.value)) if meant else row

    change_rows(path, changed)


def update(path, part=None, **fields):
    """Give fields of a record, or of a part of it, other values."""
    content = json.loads(path.read_text())
    (content[part] if part else content).update(fields)
    path.write_text(json.dumps(content))


def counted(path, of, **counts):
    """Give counts of its examples other values."""
    update(path, "examples", **{of: json.loads(path.read_text())["examples"][of] | counts})


def change_sums(path, give):
    arrays = dict(read_arrays(path))
    arrays["sums"] = give(arrays["sums"].copy())
    write_record(path, read_record(path), arrays)


def refused(capsys, *arguments):
    """The one line that the command refuses with."""
    assert main(["board", *map(str, arguments)]) == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


@pytest.mark.slow
def test_everything_published_follows_from_its_sums(capsys):
    assert main(["board", str(PUBLISHED)]) == 0
    said = capsys.readouterr().err
    results = find_results(PUBLISHED).values()
    models = {(x.model.name, x.model.digest) for x in results}
    assert f"recomputed {len(results)} results of {len(models)} models" in said
    for line in said.splitlines():
        # Only scores, training variance and localisation follow from sums.
        assert "left off" not in line or line.endswith("cannot be checked from what is stored")


def swapped(sums):
    """The same scores from other documents: what two of them contribute is moved to one."""
    sums[3, 0] += sums[3, 1]
    sums[3, 1] = 0
    return sums


def one_more(sums):
    sums[3, 0, 0] += 1
    return sums


def moved_to_the_twin(path):
    """Move a record away from its scores."""
    for part in path.parent.glob(f"{path.stem}.*"):
        shutil.move(part, path.parents[2] / TWIN / "ewt")


def of_version_3(path):
    """Let all scores be on another version of the corpus."""
    for scores in path.parents[2].rglob("*-scores-*.json"):
        update(scores, "corpus", version="r3", fingerprint="0" * 64)


CONFUSABLE = ": the corpus {!r} looks like 'ewt'; call it by that name, or by one that nobody confuses with it."
UNKEYED = ".json: its key, name, site or view does not follow from what was measured"

ATTACKS = {
    "a score": (POS, lambda p: change(p, "accuracy", 3, value=lambda x: x + 0.001), ": pos, layer 3, accuracy: 0.95313995 is stored, but the sums give 0.95213995"),
    "a sum": (POS, lambda p: change_sums(p, one_more), ": pos, layer 3, accuracy: 0.95213995 is stored, but the sums give 0.9521798"),
    "sums of other documents": (POS, lambda p: change_sums(p, swapped), ": pos, layer 3, accuracy, lower end of the interval: "),
    "sums of too few numbers": (POS, lambda p: change_sums(p, lambda x: x[:, :, :1]), ".npz: these arrays do not give the scores in pos-linear-scores-"),
    **{f"sums of the shape {shape}, {record}": (record, lambda p, shape=shape: change_sums(p, lambda x: x[shape]), "do not give")
       for record in (POS, LAYERS) for shape in (np.s_[:, :0], np.s_[:0], np.s_[..., :0], np.s_[0], np.s_[0, 0, 0])},
    "no weights": (LAYERS, lambda p: change_rows(p, lambda x: None if "of" in x.axes else x), "has no weights of 7 layers; run it again."),
    "a p-value": (VARIANCE, lambda p: change(p, "p_best", 2, value=lambda x: 0.5), ": pos, layer 2, p_best: 0.5 is stored"),
    "an expected layer": (LAYERS, lambda p: change(p, "expected_layer", None), ": pos, expected_layer: "),
    "evidence apart from its scores": (LAYERS, moved_to_the_twin, ": is not beside the scores pos-linear-scores-"),
    "no facts": (POS, lambda p: update(p, facts={}), "probe_parameters is missing among its facts"),
    "a long label": (POS, lambda p: counted(p, "labels", **{"x" * 201: [0, 0, 0]}), "has more than 200 letters"),
    "fewer examples": (POS, lambda p: counted(p, "n", test=9), ": pos: 9 test examples are stated, but the sums give 25,094"),
    "too few documents for an interval": (POS, lambda p: update(p, "examples", clusters=19), ": pos: 19 documents are stated, but the sums give 316"),
    "another limit": (POS, lambda p: update(p, "corpus", limit=50, limited=True), ": pos: 12,544 train sentences are stated, but the sums give 50"),
    "a text of the name of another": (POS, lambda p: update(p, "corpus", fingerprint="0" * 64), ": fingerprint 00000000 of ewt r2.16, which elsewhere is 2ba84802"),
    "an unknown version of a known corpus": (POS, lambda p: update(p, "corpus", version="r2.16 ", fingerprint="0" * 64), ": the version 'ewt r2.16 ' looks like 'ewt r2.16'"),
    "a version that is not the card's": (POS, of_version_3, ": version 'r3' of ewt, of which the suite has r2.16"),
    "a corpus with a space": (POS, lambda p: update(p, "corpus", name=" ewt"), CONFUSABLE.format(" ewt")),
    "a corpus with a Cyrillic letter": (POS, lambda p: update(p, "corpus", name="\u0435wt"), CONFUSABLE.format("\u0435wt")),
    "a corpus in wide capitals": (POS, lambda p: update(p, "corpus", name="ＥＷＴ"), CONFUSABLE.format("ＥＷＴ")),
    "a model with a space": (SRL, lambda p: update(the(p.parents[2], POS), "model", name=f"{NAME} "), f": the model '{NAME}' looks like '{NAME} '"),
    "a model with an invisible letter": (SRL, lambda p: update(the(p.parents[2], POS), "model", name=f"{NAME}\u3164"), f": the model '{NAME}' looks like '{NAME}\u3164'"),
    "another view": (POS, lambda p: update(p, view="cut"), UNKEYED),
    "another site": (POS, lambda p: update(p, "task", site="mlp"), UNKEYED),
    "another name": (POS, lambda p: p.rename(p.with_name(f"{POS}-00000000.json")), f"-00000000{UNKEYED}"),
    "more unseen labels than examples": (POS, lambda p: update(p, "examples", unseen_test_labels={"X": 10**6}), ": pos: 1,000,000 test examples with labels that are not in train are stated"),
    "a larger group than all examples": (POS, lambda p: update(p, "examples", groups={"seen": 10**6}), ": pos: 1,000,000 test examples of the largest group are stated"),
    "arrays that are large when unpacked": (POS, lambda p: change_sums(p, lambda x: np.zeros(3 * 10**7)), ".npz: more than 20,000,000 bytes; export with --sums"),
}  # fmt: skip
"""What is wrong: the record that is refused, what is done to it or beside it, and the message."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_does_not_follow_from_the_sums_is_refused_with_its_cell(
    results_with_sums, capsys, attack
):
    record, act, said = ATTACKS[attack]
    act(the(results_with_sums, record))
    line = refused(capsys, results_with_sums)
    assert f"/{record}-" in line
    assert said in line


def test_so_is_a_file_that_is_too_large(results_with_sums, capsys, monkeypatch):
    path = the(results_with_sums, POS)
    size = path.with_suffix(".npz").stat().st_size
    others = [x.stat().st_size for x in results_with_sums.rglob("*") if x.is_file()]
    monkeypatch.setattr("probes.boards.submissions.MOST_BYTES", max(others))
    assert main(["board", str(results_with_sums)]) == 0
    monkeypatch.setattr("probes.boards.submissions.MOST_BYTES", size - 1)
    assert f"more than {size - 1:,} bytes; export with --sums" in refused(capsys, path.parent)


def test_a_group_of_tasks_of_which_nothing_can_be_ranked_is_shown_apart(
    results_with_sums, tmp_path
):
    path = the(results_with_sums, SRL)
    update(path, "corpus", notes={DROPPED: 0})
    assert main(["board", str(results_with_sums), "--site", str(tmp_path / "site")]) == 0
    rows = json.loads((tmp_path / "site" / "board.json").read_text(encoding="utf-8"))["rankings"]
    (srl,) = (x for x in rows if x["task"] == "srl")
    assert (srl["first"], srl["apart"]) == (None, "sentences dropped True, not False")


def test_what_has_no_sums_is_left_off_and_named(results_with_sums, tmp_path, capsys):
    the(results_with_sums, SRL).with_suffix(".npz").unlink()
    assert main(["board", str(results_with_sums), "--site", str(tmp_path / "site")]) == 0
    said = capsys.readouterr().err
    assert "left off 1 record of scores: no sums are stored beside the record" in said
    assert "left off 1 record of training_variance: it stands behind other scores" in said
    content = json.loads((tmp_path / "site" / "board.json").read_text(encoding="utf-8"))
    (scores,) = (x for x in content["left_off"] if x["measurement"] == "scores")
    assert content["claimed"] == ["model", "revision", "parameters", "layers", "encoders"]
    assert scores["file"] == f"{MODEL}/ewt/{the(results_with_sums, 'srl-linear-scores').name}"
    assert {row["task"] for row in content["rankings"]} == {"pos"}


def test_against_a_board_only_what_is_new_is_computed_again(
    results_with_sums, tmp_path, capsys, monkeypatch
):
    there, here = tmp_path / "there", tmp_path / "here"
    shutil.copytree(results_with_sums / MODEL, there / MODEL)
    shutil.copytree(there / MODEL, here / "M" / "r" / MODEL)
    computed = []
    monkeypatch.setattr(
        "probes.boards.submissions.require_recomputed",
        lambda result, path: computed.append(path) or require_recomputed(result, path),
    )
    assert main(["board", str(here), "--against", str(there)]) == 0
    said = capsys.readouterr().err
    assert "on the board already: 2 results" in said
    assert "recomputed" not in said
    assert computed == []
    shutil.copytree(results_with_sums / TWIN, here / TWIN)
    assert main(["board", str(here), "--against", str(there)]) == 0
    assert "recomputed 1 result of 1 model" in capsys.readouterr().err
    # Beside a model that somebody else submitted it would lower its rank.
    shutil.move(here / TWIN, here / "M" / "r")
    line = refused(capsys, here, "--against", there)
    assert "would count as a random twin of all-MiniLM-L6-v2, which is on the board" in line
    shutil.move(here / "M" / "r" / TWIN, here)
    # Other evidence, or other sums, behind the same scores are new.
    variance = the(here / "M" / "r", "srl-linear-training_variance")
    change(variance, "training_sd", None, value=lambda x: 2)
    assert "srl, training_sd" in refused(capsys, here, "--against", there)
    shutil.copytree(there / MODEL, here / "M" / "r" / MODEL, dirs_exist_ok=True)
    change_sums(the(here / "M" / "r", POS), swapped)
    assert "pos, layer 3, accuracy, " in refused(capsys, here, "--against", there)


def as_twin(path, name=f"random-1:{NAME}"):
    """Makes a record one of a random twin that is as good as its model."""
    update(path, "model", name=name, random_seed=1)


HOSTILE = {
    "a twin that is as good": {POS: as_twin},
    "one of another name": {POS: lambda path: as_twin(path, "mine")},
    "one beside a copy of its model": {"pos-linear-": None, SRL: as_twin},
    "other evidence": {VARIANCE: lambda path: change(path, "training_sd", None, value=lambda x: 9)},
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_submission_changes_nothing_that_is_said_of_others(
    results_with_sums, tmp_path, kind, nested
):
    def said(*folders):
        submission = read_submission(folders)
        return {
            (c.path, c.name): (c.score, c.floored, c.flags, [*c.result.evidence])
            for c in named_candidates(submission.results, place_of_submission)
        }

    before = said(results_with_sums)
    assert [x[1] for x in before.values()] == [False] * 3
    hostile = (results_with_sums if nested else tmp_path) / "zzz"
    for name, act in HOSTILE[kind].items():
        place = hostile / f"random-1-{kind}" / "ewt"
        place.mkdir(parents=True, exist_ok=True)
        for path in sorted((results_with_sums / MODEL / "ewt").glob(f"{name}*")):
            shutil.copy(path, place)
            if act and path.suffix == ".json":
                act(place / path.name)
    after = said(results_with_sums) if nested else said(results_with_sums, hostile)
    assert before.items() <= after.items()
    folders = [results_with_sums] if nested else [results_with_sums, hostile]
    pages = _pages(read_submission(folders).results).values()
    (page,) = (
        x for x in pages if x.name == NAME and any(path.parts[-3] == MODEL for path in x.results)
    )
    assert {path.parents[1].name for path in page.results} == {MODEL, TWIN}


@pytest.mark.parametrize("more", ["layers", "evidence"])
def test_what_is_on_the_board_gets_no_more_layers_or_evidence(
    results_with_sums, tmp_path, capsys, more
):
    there = shutil.copytree(results_with_sums, tmp_path / "there")
    path = the(there, SRL)
    if more == "evidence":
        the(there, "srl-linear-training_variance").unlink()
    else:
        change_rows(path, lambda row: None if row.layer == 6 else row)
        extent = json.loads(path.read_text())["extent"]
        update(path, extent={layer: n for layer, n in extent.items() if layer != "6"})
    line = refused(capsys, results_with_sums, "--against", there)
    assert "other layers or evidence than on the board for srl" in line


@pytest.mark.parametrize("of", ["file", "arrays", "folder"])
def test_links_are_no_part_of_a_board(results_with_sums, tmp_path, capsys, of):
    path = the(results_with_sums, POS)
    link = {"file": path, "arrays": path.with_suffix(".npz"), "folder": path.parent}[of]
    target = link.rename(tmp_path / "elsewhere")
    link.symlink_to(target)
    assert f"{link}: a link; a board takes files and folders alone" in refused(
        capsys, results_with_sums
    )


def test_another_score_at_the_same_revision_is_refused(results_with_sums, tmp_path, capsys):
    shutil.copytree(results_with_sums, tmp_path / "there")
    change(the(results_with_sums, SRL), "accuracy", 2, "dev")
    line = refused(capsys, results_with_sums, "--against", tmp_path / "there")
    assert "srl, layer 2, accuracy on dev: 0." in line
    assert (
        "on the board for the same revision of all-MiniLM-L6-v2; leave it out, or name another"
        in line
    )


def of_another_key(path, **corpus):
    """The same scores of the same model on the files of another corpus."""
    update(path, "corpus", digest="f" * 64, **corpus)
    record = read_record(path)
    inputs = Inputs(
        model=record.model.digest,
        corpus=record.corpus.digest,
        pooling=record.pooling,
        dtype=record.dtype,
        windows=WINDOW_RULE,
        task=record.task.name,
        task_version=record.task.version,
        kind=record.task.kind,
        probe=record.probe,
        project=record.project,
        plug_ins={},
    ).digest
    of = record.measurement, record.measurement_version, record.settings
    update(path, inputs=inputs, key=record_key(inputs, *of))
    moved = path.with_name(name_of(read_record(path)))
    path.with_suffix(".npz").rename(moved.with_suffix(".npz"))
    path.rename(moved)


TAKEOVERS = {
    "corpus": lambda path: update(path, "corpus", name="zzz"),
    "silver": lambda path: update(path, "corpus", silver=["upos"]),
    "model": lambda path: update(path, "model", causal=True),
    "encoder": lambda path: update(path, "model", n_layers=40),
    "twin": lambda path: update(path, "model", random_seed=3),
    "rows": lambda path: change_rows(
        path, lambda x: x._replace(value=0.99) if "baseline" in x.axes else x
    ),
    "inputs": of_another_key,
}


@pytest.fixture
def copied(results_with_sums, tmp_path):
    """A board; a submission that has all of it and a copy of a model's; the place of the copy."""
    there = shutil.copytree(results_with_sums, tmp_path / "there" / "honest").parent
    here = shutil.copytree(there, tmp_path / "here")
    place = here / "aaa" / MODEL / "ewt"
    place.mkdir(parents=True)
    for path in (there / "honest" / MODEL / "ewt").glob("pos-linear-*"):
        shutil.copy(path, place)
    return there, here, place


def test_a_copy_is_refused_and_one_that_took_longer_is_no_other_record(copied, tmp_path, capsys):
    there, here, _ = copied
    # An exact copy would be shown without the random twins of the other.
    assert "one of two copies" in refused(capsys, here, "--against", there)
    update(the(here / "aaa", POS), seconds={"probes": 1e6})
    # What the board has twice may stay.
    twice = shutil.copytree(here, tmp_path / "twice")
    assert main(["board", str(here), "--against", str(twice)]) == 0


@pytest.mark.parametrize("kind", TAKEOVERS)
def test_no_submission_takes_the_place_of_a_record_on_the_board(copied, tmp_path, capsys, kind):
    there, here, place = copied
    if kind == "inputs":
        # Behind scores of other inputs there is no evidence; on the board neither.
        for path in tmp_path.rglob("*pos-linear-[!s]*"):
            path.unlink()
    TAKEOVERS[kind](the(here / "aaa", POS))
    line = refused(capsys, here, "--against", there)
    assert f"{place}/{POS}-" in line
    assert "on the board" in line


def test_sentences_that_were_dropped_set_nothing_else_apart(results_with_sums, tmp_path):
    for number in range(3):
        place = tmp_path / "zzz" / f"made-up-{number}" / "ewt"
        place.mkdir(parents=True)
        scores = the(results_with_sums, POS)
        for path in (scores, scores.with_suffix(".npz")):
            shutil.copy(path, place)
        (path,) = place.glob("*.json")
        update(path, "model", name=f"made-up-{number}", revision=str(number), digest=str(number))
        of_another_key(path, fingerprint="ab" * 32, notes={DROPPED: 0})
    results = read_submission([results_with_sums, tmp_path / "zzz"]).results
    assert len(results) == 6
    (ranking,) = make_rankings(named_candidates(results, place_of_submission))
    assert {c.result.model.name for c, _ in ranking.apart} == {f"made-up-{n}" for n in range(3)}
    assert [c.name for c in ranking.tasks["pos"] if not c.random] == [NAME]


def test_the_files_of_the_site_have_the_numbers_of_the_records(results_with_sums, tmp_path, capsys):
    site = tmp_path / "site"
    assert main(["board", str(results_with_sums), "--site", str(site)]) == 0
    assert capsys.readouterr().out.strip() == str(site / "index.html")
    rows = json.loads((site / "board.json").read_text(encoding="utf-8"))["rankings"]
    own = [(x["group"], x["task"], x["model"], x["first"], x["last"], x["layer"]) for x in rows]
    assert own == [
        ("syntax", "pos", "all-MiniLM-L6-v2", 1, 1, 3),
        ("syntax", "pos", "random:all-MiniLM-L6-v2", None, None, 0),
        ("semantics", "srl", "all-MiniLM-L6-v2", 1, 1, 3),
    ]
    score = read_record(the(results_with_sums, POS)).rows.at("accuracy", 3)
    assert (rows[0]["score"], rows[0]["low"], rows[0]["high"]) == (
        score.value,
        score.low,
        score.high,
    )
    csv, parquet = (
        pd.read_csv(site / "leaderboard.csv"),
        pd.read_parquet(site / "leaderboard.parquet"),
    )
    assert len(csv) == len(parquet) == 3 * 7
    of_pos = csv[(csv.model == "all-MiniLM-L6-v2") & (csv.task == "pos") & (csv.layer == 3)]
    assert np.allclose(of_pos[["score", "low", "high"]], score[1:2] + score[3:5], atol=1e-6)
    assert sorted(path.name for path in (site / "models").iterdir()) == [f"{MODEL}.html"]
    # A page that is no longer needed goes, and a folder of something else is not touched.
    (site / "models" / "old.html").write_text("x")
    assert main(["board", str(results_with_sums), "--site", str(site)]) == 0
    assert not (site / "models" / "old.html").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    assert "name an empty folder" in refused(capsys, results_with_sums, "--site", other)


REPOSITORY = Path(__file__).parents[3] / "examples" / "results-repository"
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))


def steps(name):
    (path,) = (path for path in WORKFLOWS if path.stem == name)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [step for job in content["jobs"].values() for step in job["steps"]]


def command_of(name):
    """The arguments of the workflow's call of the suite."""
    (line,) = (x["run"] for x in steps(name) if x.get("run", "").startswith("python -m probes "))
    return line.split()[3:]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_of_the_template_have_no_more_rights_than_they_need(path):
    text = path.read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    assert content["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    assert "pull_request_target" not in text
    for step in steps(path.stem):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
    # "on" is a truth value to YAML.
    assert content[True] == (
        "pull_request" if path.stem == "check" else {"push": {"branches": ["main"]}}
    )


def test_the_workflows_check_a_submission_and_build_the_board(
    results_with_sums, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for place in ("board", "submission"):
        shutil.copytree(REPOSITORY, place)
        shutil.copytree(results_with_sums / TWIN, Path(place, "results", TWIN))
    export = ["export", str(results_with_sums / MODEL), "mine", "--sums"]
    assert main(export) == 0
    shutil.copytree("mine", "submission/results", dirs_exist_ok=True)
    assert main(command_of("check")) == 0
    said = capsys.readouterr().err
    assert "on the board already: 1 result" in said
    assert "recomputed 2 results of 1 model" in said
    # Merged, it is on the board, and a later submission cannot change it.
    shutil.copytree("submission/results", "board/results", dirs_exist_ok=True)
    shutil.copytree("submission/results", "results")
    assert main(command_of("board")) == 0
    assert Path("site", "index.html").exists()
    change(the(results_with_sums, SRL), "accuracy", 2, "dev")
    shutil.copytree(
        results_with_sums / MODEL, Path("submission", "results", MODEL), dirs_exist_ok=True
    )
    assert main(command_of("check")) == 2
    assert "on the board for the same revision" in capsys.readouterr().err
