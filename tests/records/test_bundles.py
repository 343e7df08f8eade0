"""Bundles: packed, verified and merged without overwriting anything."""

import hashlib
import io
import json
import shutil
import stat
import zipfile

import numpy as np
import pytest
from board_by_hand import put
from results_by_hand import with_seeds

from probes.__main__ import main
from probes.boards.record_index import INDEX
from probes.measurements.joined_results import find_results, read_result
from probes.records.files import find_records, write_record
from probes.records.row import Rows


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    put(folder, "m", "pos", 9)
    put(folder, "m", "srl", 9)
    put(folder, "other", "pos", 99, provenance={"command": "run", "processor": "Z80"})
    return folder


@pytest.fixture
def bundle(results, tmp_path):
    path = tmp_path / "b.zip"
    assert main(["export", str(results), str(path)]) == 0
    return path


def imported(bundle, folder):
    return main(["import", str(bundle), "--output", str(folder)])


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("leaderboard.csv", INDEX)
    }


def rewritten(bundle, change):
    """The bundle with `change` applied to its files, by name."""
    with zipfile.ZipFile(bundle) as old:
        content = {name: old.read(name) for name in old.namelist()}
    change(content)
    with zipfile.ZipFile(bundle, "w") as new:
        for name, data in content.items():
            packed = zipfile.ZIP_STORED if name.endswith(".npz") else zipfile.ZIP_DEFLATED
            new.writestr(name, data, compress_type=packed)
    return bundle


def test_import_restores_what_was_exported(results, bundle, tmp_path):
    assert imported(bundle, tmp_path / "there") == 0
    assert files(tmp_path / "there") == files(results)
    with zipfile.ZipFile(bundle) as opened:
        manifest = json.loads(opened.read("manifest.json"))
    scores, variance = [r for r in manifest["results"] if r["model"]["name"] == "other"]
    assert (scores["measurement"], variance["measurement"]) == ("scores", "training_variance")
    assert scores["provenance"]["processor"] == "Z80"
    assert scores["extent"] == {"0": 1, "1": 1}
    assert scores["corpus"]["fingerprint"] == "f" * 64
    for path, result in find_results(tmp_path / "there").items():
        theirs = read_result(results / path.relative_to(tmp_path / "there"))
        assert result.found("training_variance") == theirs.found("training_variance") is not None
    assert (tmp_path / "there" / "leaderboard.csv").read_text().count("\n") == 7
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == [
        INDEX,
        "leaderboard.csv",
        "m",
        "other",
    ]


def test_equal_results_give_equal_bytes(results, bundle, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    assert main(["export", str(tmp_path / "copy"), str(tmp_path / "c.zip")]) == 0
    assert (tmp_path / "c.zip").read_bytes() == bundle.read_bytes()
    assert main(["export", str(results), str(bundle)]) == 2


def test_what_is_there_already_is_skipped(bundle, tmp_path, capsys):
    there = tmp_path / "there"
    imported(bundle, there)
    path = next(p for p, r in find_results(there).items() if r.model.name == "other")
    result = read_result(path)
    arrays = path.with_suffix(".npz")
    arrays.unlink()
    path.write_text(result.model_copy(update={"seconds": {"measure": 9.0}}).model_dump_json())
    before = files(there)
    capsys.readouterr()
    assert imported(bundle, there) == 0
    assert "added   0 results; 6 existed already" in capsys.readouterr().err
    after = files(there)
    # Predictions that were missing came; the record that was there stays.
    assert after.keys() - before.keys() == {str(arrays.relative_to(there))}
    assert all(after[name] == content for name, content in before.items())


@pytest.mark.parametrize("change", ["scores", "layers", "fits", "torn"])
def test_conflicts_are_reported_and_nothing_is_overwritten(bundle, tmp_path, capsys, change):
    there = tmp_path / "there"
    imported(bundle, there)
    path = next(p for p, r in find_results(there).items() if r.task.name == "srl")
    result = read_result(path)
    if change == "scores":
        text = path.read_text().replace("0.9775", "0.9")
    elif change == "layers":
        rows = Rows.of(row for row in result.rows if row.layer != 0)
        text = result.model_copy(update={"rows": rows, "extent": {1: 1}}).model_dump_json()
    elif change == "fits":
        text = with_seeds(result, 2).model_dump_json()
    else:
        text = path.read_text()[:100]
    path.write_text(text)
    shutil.rmtree(there / "other")
    before = files(there)
    capsys.readouterr()
    assert imported(bundle, there) == 2
    after = files(there)
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 3
    error = capsys.readouterr().err
    assert "not imported: m/c/srl-linear-" in error
    said = {
        "scores": "other numbers",
        "layers": "other layers",
        "fits": "another number of fits or draws",
        "torn": "cannot be read",
    }[change]
    assert said in error


def test_one_measurement_under_another_path_is_recognised(bundle, tmp_path, capsys):
    there = tmp_path / "there"
    imported(bundle, there)
    (there / "theirs").mkdir()
    (there / "m").rename(there / "theirs" / "m")
    capsys.readouterr()
    assert imported(bundle, there) == 0
    assert "added   0 results; 6 existed" in capsys.readouterr().err


def test_published_results_are_neither_packed_nor_touched(results, bundle, tmp_path, capsys):
    there = tmp_path / "there"
    shutil.copytree(results, there / "published")
    for arrays in (there / "published").rglob("*.npz"):
        arrays.unlink()
    before = files(there / "published")
    capsys.readouterr()
    assert imported(bundle, there) == 0
    assert "added   6 results; 0 existed" in capsys.readouterr().err
    assert files(there / "published") == before
    assert main(["export", str(there), str(tmp_path / "c.zip")]) == 0
    assert (tmp_path / "c.zip").read_bytes() == bundle.read_bytes()


def refused(bundle, tmp_path, capsys, said):
    there = tmp_path / "there"
    assert imported(bundle, there) == 2
    assert said in capsys.readouterr().err
    assert not any(there.iterdir())


@pytest.mark.parametrize(
    "name",
    ["../../evil-linear-00000000.json", "/etc/x/evil-linear-00000000.json", "a/../x-l-00000000.npz",
     "C:\\x\\y-l-00000000.json", "a/b/c/d-linear-00000000.json", "m/c/notes.txt", ".ssh/c/x-l-00000000.npz",
     "m/c/pos-linear-00000000.npz/", "m/c/x-linear-00000000.pkl", "m/c/x\n-linear-00000000.json"],
)  # fmt: skip
def test_names_that_are_not_results_are_refused(bundle, tmp_path, capsys, name):
    rewritten(bundle, lambda content: content.update({name: b"{}"}))
    refused(bundle, tmp_path, capsys, "is not the name of a result's file")


def test_links_are_refused(bundle, tmp_path, capsys):
    with zipfile.ZipFile(bundle, "a") as opened:
        entry = zipfile.ZipInfo("m/c/pos-linear-0000000a.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(entry, "/etc/passwd")
    refused(bundle, tmp_path, capsys, "is a link")


def test_bombs_are_refused(bundle, tmp_path, capsys):
    bomb = {"m/c/pos-linear-0000000a.json": b" " * 30_000_000}
    rewritten(bundle, lambda content: content.update(bomb))
    refused(bundle, tmp_path, capsys, "would unpack to 30,000,000 bytes")


def test_damage_is_noticed(bundle, tmp_path, capsys):
    def damage(content):
        name = next(n for n in content if n.endswith(".npz"))
        content[name] = content[name][:-1] + b"x"

    refused(rewritten(bundle, damage), tmp_path, capsys, "is damaged")


def test_files_that_are_not_in_the_manifest_are_refused(bundle, tmp_path, capsys):
    rewritten(bundle, lambda content: content.update({"m/c/pos-linear-0000000a.json": b"{}"}))
    refused(bundle, tmp_path, capsys, "not in both")


@pytest.mark.parametrize(
    ("field", "said"),
    [("schema_version", "schema 99, this version reads"), ("format", "format 99")],
)
def test_newer_bundles_are_refused(bundle, tmp_path, capsys, field, said):
    def renew(content):
        content["manifest.json"] = json.dumps(
            {**json.loads(content["manifest.json"]), field: 99, "suite_version": "9.1"}
        ).encode()

    rewritten(bundle, renew)
    refused(bundle, tmp_path, capsys, said)


@pytest.mark.parametrize("content", [b"", b"PK", b"[]", b"{}"])
def test_other_files_are_refused(tmp_path, capsys, content):
    path = tmp_path / "x.zip"
    if content.startswith((b"[", b"{")):
        with zipfile.ZipFile(path, "w") as opened:
            opened.writestr("manifest.json", content)
    else:
        path.write_bytes(content)
    refused(path, tmp_path, capsys, "x.zip: ")


def test_a_result_under_another_name_is_refused(results, tmp_path, capsys):
    path = next(iter(find_results(results)))
    renamed = path.with_name("depth-linear-00000000.json")
    path.rename(renamed)
    path.with_suffix(".npz").rename(renamed.with_suffix(".npz"))
    assert main(["export", str(results), str(tmp_path / "b.zip")]) == 0
    refused(tmp_path / "b.zip", tmp_path, capsys, "the file name does not match the result in it")


def test_two_results_of_one_name_are_not_packed(results, tmp_path, capsys):
    path, result = next(iter(find_results(results).items()))
    twin = result.model_copy(update={"model": result.model.model_copy(update={"name": "x"})})
    write_record(results / "again" / "/".join(path.parts[-3:]), twin, {})
    assert main(["export", str(results), str(tmp_path / "b.zip")]) == 2
    assert "a second result named" in capsys.readouterr().err


def test_other_numbers_of_evidence_are_a_conflict(bundle, tmp_path, capsys):
    there = tmp_path / "there"
    imported(bundle, there)
    path, record = next(
        (path, record)
        for path, record in find_records(there).items()
        if record.measurement == "training_variance" and record.model.name == "other"
    )
    others = [x._replace(value=0.5) if x.metric == "training_sd" else x for x in record.rows]
    write_record(path, record.model_copy(update={"rows": Rows.of(others)}), {})
    before = files(there)
    capsys.readouterr()
    assert imported(bundle, there) == 2
    assert files(there) == before
    error = capsys.readouterr().err
    assert f"not imported: other/c/{path.name}" in error
    assert "has other numbers" in error
    assert "added   0 results; 5 existed already" in error


def test_evidence_can_be_shared_without_its_scores_and_joins_them(results, tmp_path):
    (scores,) = [path for path, r in find_results(results).items() if r.model.name == "other"]
    moved = tmp_path / "scores" / "other" / "c"
    moved.mkdir(parents=True)
    shutil.copy(scores, moved)
    for path in (scores, scores.with_suffix(".npz")):
        path.unlink()
    assert main(["export", str(results / "other"), str(tmp_path / "e.zip")]) == 0
    assert read_result(moved / scores.name).evidence == {}
    assert imported(tmp_path / "e.zip", tmp_path / "scores") == 0
    assert read_result(moved / scores.name).row("training_variance", "training_sd").n == 4


def edited(results, change, *, which="pos"):
    """A bundle of results of which one was changed, beside which export would not have left it."""
    path = next(path for path, r in find_results(results).items() if r.task.name == which)
    content = json.loads(path.read_text())
    bundle = results.parent / "odd.zip"
    assert main(["export", str(results), str(bundle)]) == 0
    name = "/".join(path.parts[-3:])
    arrays = change(content, path.with_suffix(".npz").read_bytes())
    rewritten(bundle, lambda files: put_files(files, name, content, arrays))
    return bundle, name


def put_files(files, name, content, arrays):
    """Change a record and its arrays in a bundle, and the manifest accordingly."""
    files[name] = content if isinstance(content, bytes) else json.dumps(content).encode()
    if arrays is not None:
        files[name.replace(".json", ".npz")] = arrays
    manifest = json.loads(files.pop("manifest.json"))
    manifest["files"] = {
        x: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        for x, data in files.items()
    }
    files["manifest.json"] = json.dumps(manifest).encode()


def archive(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def lying_archive(name, shape):
    """An array whose header names another shape than there are numbers."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened, opened.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        file.write(bytes(80))
    return content.getvalue()


def scored(content, value, split):
    """Changes the score of layer 0."""
    rows = content["rows"]
    place = [*zip(rows["metric"], rows["layer"], rows["split"], strict=True)]
    rows["value"][place.index(("accuracy", 0, split))] = value


def of_rule(content, value):
    """Changes the score of a rule without vectors."""
    rows = content["rows"]
    rows["value"][rows["layer"].index(None)] = value


UNUSABLE = {
    "no rows": (lambda c, a: c.update(rows={}), "layer 0 has no accuracy on dev"),
    "impossible": (lambda c, a: scored(c, 1e308, "test"), "accuracy of layer 0 is"),
    "negative": (lambda c, a: scored(c, -0.1, "dev"), "accuracy of layer 0 is -0.1"),
    "of a rule": (lambda c, a: of_rule(c, 2.0), "accuracy is 2"),
    "no zip": (lambda c, a: b"nothing", "not readable"),
    "half": (lambda c, a: a[: len(a) // 2], "not readable"),
    "fewer": (lambda c, a: archive(gold=np.zeros(3)), "not readable (it lacks clusters"),
    "lying": (lambda c, a: lying_archive("gold", (10**13,)), "not readable"),
    "objects": (lambda c, a: archive(gold=np.array([{}], dtype=object)), "not readable"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_record_that_cannot_be_used_is_refused_by_name(kind, results, tmp_path, capsys):
    """It would block its place: the good bundle would look like a conflict."""
    change, said = UNUSABLE[kind]
    good = tmp_path / "good.zip"
    assert main(["export", str(results), str(good)]) == 0
    bundle, name = edited(results, change)
    capsys.readouterr()
    assert imported(bundle, tmp_path / "there") == 2
    error = capsys.readouterr().err
    assert f"error: {name.removesuffix('.json')}" in error or f"{bundle}: " in error
    assert said in error or "is not a zip file" in error
    assert "delete it" not in error
    assert not any((tmp_path / "there").iterdir())
    assert imported(good, tmp_path / "there") == 0
    assert "added   6 results" in capsys.readouterr().err


def test_export_leaves_out_and_names_what_import_would_refuse(results, tmp_path, capsys):
    path = next(path for path, r in find_results(results).items() if r.task.name == "srl")
    path.with_suffix(".npz").write_bytes(b"nothing")
    capsys.readouterr()
    assert main(["export", str(results), str(tmp_path / "b.zip")]) == 0
    error = capsys.readouterr().err
    assert f"left out {path.with_suffix('.npz')}: not readable" in error
    assert "5 records" in error
    assert imported(tmp_path / "b.zip", tmp_path / "there") == 0


def numbered(n):
    """So many bytes of text, which packs about tenfold."""
    return b",".join(b"%d" % i for i in range(n // 7))[:n]


@pytest.mark.parametrize("name", ["manifest.json", "m/c/pos-linear-scores-0000000a.json"])
def test_text_is_measured_before_it_is_unpacked(name, bundle, tmp_path, capsys, monkeypatch):
    """30 MB of JSON take a gigabyte, once it is parsed."""

    def never(*_, **__):
        raise AssertionError("it was unpacked")

    rewritten(bundle, lambda content: content.update({name: numbered(30_000_001)}))
    monkeypatch.setattr(zipfile.ZipFile, "read", never)
    monkeypatch.setattr(zipfile.ZipFile, "open", never)
    refused(bundle, tmp_path, capsys, f"b.zip: {name} would unpack to 30,000,001 bytes")


def test_arrays_unpack_to_no_more_than_arrays_do(results, tmp_path, capsys):
    """A thousandfold: 400 MB of nothing in an archive of 400 kB."""
    nothing = io.BytesIO()
    with zipfile.ZipFile(nothing, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("gold.npy", bytes(400_000_000))
    assert len(nothing.getvalue()) < 400_000
    bundle, name = edited(results, lambda *_: nothing.getvalue())
    most = 300 * len(nothing.getvalue())
    said = f"{name.replace('json', 'npz')} would unpack to more than {most:,} bytes"
    refused(bundle, tmp_path, capsys, said)
