"""Downloads from a local server: sound, broken off, altered, slow; and two runs at once."""

import hashlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from serving import altered, broken_off, missing, serving, slow, stalled

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.data import downloads
from probes.data.downloads import Archive, FileFinder, Remote
from probes.data.find import find_corpus
from probes.data.registered import corpora

CONTENT = b"word\n" * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
ROOT = Path(__file__).parents[2]


def remote(url, **changes):
    return {"file": Remote(**{"name": "f.txt", "url": f"{url}/f.txt", "sha256": DIGEST, **changes})}


def get(folder, url, **changes):
    """Download the file into a cache; return its path."""
    return FileFinder(None, folder).get("c", remote(url, **changes), "terms")["file"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(downloads, "TIMEOUT", 0.5)
    monkeypatch.setattr(downloads, "PAUSE", 0.0)


def left_behind(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.name != ".lock")


@pytest.mark.parametrize(
    ("answers", "requests"),
    [([], 1), ([missing, altered, broken_off], 4), ([stalled], 2), ([slow], 1)],
)
def test_a_file_arrives_whole_or_is_asked_for_again(tmp_path, answers, requests):
    with serving({"f.txt": CONTENT}, *answers) as (url, seen):
        path = get(tmp_path, url)
    assert path == tmp_path / "corpora" / "f.txt"
    assert path.read_bytes() == CONTENT
    assert seen["f.txt"] == requests
    assert left_behind(tmp_path) == ["f.txt"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (broken_off, "could not be downloaded"),
        (altered, "differs from the registered one in all 4 attempts"),
        (stalled, "could not be downloaded"),
        (missing, "404"),
    ],
)
def test_a_server_that_never_delivers_is_one_line_and_leaves_nothing(tmp_path, answer, message):
    with serving({"f.txt": CONTENT}, *[answer] * 4) as (url, seen):
        with pytest.raises(UserError) as caught:
            get(tmp_path, url)
        assert seen["f.txt"] == 4
    assert message in str(caught.value)
    assert f"{url}/f.txt" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "f.txt" not in left_behind(tmp_path)
    # And the next attempt begins afresh.
    with serving({"f.txt": CONTENT}) as (url, _):
        get(tmp_path, url)
    assert left_behind(tmp_path) == ["f.txt"]


def test_no_server_at_all_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"could not be downloaded \(ConnectionError"):
        get(tmp_path, "http://127.0.0.1:9")


def test_terms_are_shown_before_the_first_download_only(tmp_path, capsys):
    with serving({"f.txt": CONTENT}) as (url, seen):
        for _ in range(2):
            FileFinder(None, tmp_path).get("c", remote(url), "licence L, cite C")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["licence L, cite C", f"fetch   {url}/f.txt"]
    assert seen["f.txt"] == 1


def test_offline_downloads_nothing_and_says_what_to_do(tmp_path):
    finder = FileFinder(None, tmp_path, offline=True)
    message = r"f\.txt not found in .*python -m probes fetch c.*searched with its subfolders"
    with serving({"f.txt": CONTENT}) as (url, seen), pytest.raises(UserError, match=message):
        finder.get("c", remote(url), "terms")
    assert not seen


def test_a_damaged_file_in_the_cache_is_fetched_again_aloud(tmp_path, capsys):
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "f.txt").write_bytes(CONTENT[:-1])
    with serving({"f.txt": CONTENT}) as (url, _):
        get(tmp_path, url)
    assert (tmp_path / "corpora" / "f.txt").read_bytes() == CONTENT
    assert "skipped" in capsys.readouterr().err


def test_what_lies_below_data_dir_is_not_downloaded(tmp_path):
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "mine" / "deep" / "f.txt").write_bytes(CONTENT)
    finder = FileFinder(tmp_path / "mine", tmp_path / "cache")
    found = finder.get("c", remote("http://127.0.0.1:9"), "terms")
    assert found["file"] == tmp_path / "mine" / "deep" / "f.txt"
    with pytest.raises(UserError, match="no such folder"):
        FileFinder(tmp_path / "none", tmp_path).get("c", remote("http://x"), "terms")


MEMBERS = {"a/x.txt": b"one", "b.txt": b"two"}


def tarred(*extra, members=MEMBERS):
    """A compressed archive of members below release/, of others, of links and of ways out."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        link = tarfile.TarInfo("release/link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        content = {"README.md": b"", "release/../../evil.txt": b"", **dict.fromkeys(extra, b"more")}
        content |= {f"release/{name}": text for name, text in members.items()}
        for name, text in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return packed.getvalue()


# As sha256sum prints it.
LINES = "".join(f"{hashlib.sha256(x).hexdigest()}  ./{name}\n" for name, x in MEMBERS.items())
MEMBERS_DIGEST = hashlib.sha256(LINES.encode()).hexdigest()
ARCHIVE = Archive("f*.tar.gz", r"release/(.+\.txt)", MEMBERS_DIGEST, "kept", ("g.tar",))


def test_only_regular_members_are_read_and_what_is_stored_has_the_same_bytes(tmp_path):
    first, second, third = (tmp_path / name for name in ("1", "2", "3"))
    first.write_bytes(tarred())
    second.write_bytes(tarred("another.txt"))
    assert ARCHIVE.read(first) == ARCHIVE.read(second) == MEMBERS
    stored = []
    for path in (first, second):
        ARCHIVE.extract(path, third)
        stored.append(third.read_bytes())
        with tarfile.open(third, "r:") as tar:
            assert tar.getnames() == ["kept/a/x.txt", "kept/b.txt"]
    assert stored[0] == stored[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "damaged archive"),
        (b"", "damaged archive"),
        (tarred()[:-60], "content of its 0 files"),
        (tarred(members={"b.txt": b"two"}), r"content of its 1 files has the digest \w+, not the"),
    ],
)
def test_an_archive_of_other_content_is_named(tmp_path, content, message):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(UserError, match=rf"a\.tar: .*{message}.*fetch it again"):
        ARCHIVE.read(tmp_path / "a.tar")


def test_an_archive_of_other_content_is_asked_for_again(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "f1.tar.gz").write_bytes(tarred(members={"b.txt": b"three"}))
    (tmp_path / "stored").write_bytes(tarred())
    ARCHIVE.extract(tmp_path / "stored", tmp_path / "stored2")
    digest = sha256(tmp_path / "stored2")
    good = {"f.txt": tarred()}
    with serving(good, altered, broken_off) as (url, seen):
        wanted = remote(url, sha256=digest, archive=ARCHIVE)
        found = FileFinder(tmp_path / "mine", tmp_path / "c").get("c", wanted, "terms")
        assert seen["f.txt"] == 3
    assert "f1.tar.gz: the content of its 1 files" in capsys.readouterr().err
    # Only the members are kept.
    assert sha256(found["file"]) == digest
    assert left_behind(tmp_path / "c") == ["f.txt"]
    # One that was damaged since is fetched again.
    found["file"].write_bytes(b"par")
    with (
        serving(good, *[altered] * 4) as (url, _),
        pytest.raises(UserError, match="differs from the registered one in all 4 attempts"),
    ):
        get(tmp_path / "c", url, sha256=digest, archive=ARCHIVE)
    assert not (tmp_path / "c" / "corpora" / ".incoming").exists()
    # A mirror may have it under another name, and users a copy.
    with serving({"g.tar": tarred()}) as (url, seen):
        wanted = remote("http://127.0.0.1:9", sha256=digest, archive=ARCHIVE)
        FileFinder(None, tmp_path / "d", mirror=url).get("c", wanted, "terms")
    assert seen == {"f.txt": 1, "g.tar": 1}
    (tmp_path / "mine" / "f2.tar.gz").write_bytes(tarred())
    finder = FileFinder(tmp_path / "mine", tmp_path / "e")
    assert finder.find(wanted["file"]) == tmp_path / "mine" / "f2.tar.gz"


def test_gum_s_train_is_what_dev_and_test_lack_in_the_order_of_names(tmp_path):
    members = {
        "en_gum-ud-test.conllu": b"# newdoc id = GUM_b\nof the release\n\n",
        "en_gum-ud-dev.conllu": b"# newdoc id = GUM_d\nof the release\n\n",
    }
    sources = "not-to-release/sources/GUM_{}.conllu"
    members |= {sources.format(x): f"# newdoc id = GUM_{x}\n\n".encode() for x in "dcba"}
    corpora.get("gum").remotes["train"].archive.write(members, "", tmp_path / "train")
    text = (tmp_path / "train").read_bytes()
    assert text == b"# newdoc id = GUM_a\n\n# newdoc id = GUM_c\n\n"


def test_two_runs_at_once_download_once(tmp_path):
    spawn = multiprocessing.get_context("fork")
    with serving({"f.txt": CONTENT}, slow, slow) as (url, seen):
        runs = [spawn.Process(target=get, args=(tmp_path, url)) for _ in range(3)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        assert [run.exitcode for run in runs] == [0, 0, 0]
        assert seen["f.txt"] == 1
    assert left_behind(tmp_path) == ["f.txt"]


def test_a_download_killed_half_way_starts_again(tmp_path):
    code = (
        "import sys; from pathlib import Path; from probes.data.downloads import FileFinder, Remote\n"
        f"r = Remote('f.txt', sys.argv[1] + '/f.txt', {DIGEST!r})\n"
        "FileFinder(None, Path(sys.argv[2])).get('c', {'file': r}, 'terms')"
    )
    with serving({"f.txt": CONTENT}, slow) as (url, seen):
        run = subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path)], cwd=ROOT)
        while not (seen["f.txt"] and list(tmp_path.glob("corpora/.incoming/*"))):
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert not (tmp_path / "corpora" / "f.txt").exists()
        get(tmp_path, url)
        assert seen["f.txt"] == 2
    assert left_behind(tmp_path) == ["f.txt"]


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["ewt", "conll2000"])
def test_fetching_gives_what_data_dir_gives(real_data, tmp_path, name):
    expected = find_corpus(name, data_dir=real_data)
    files = {p.name: p.read_bytes() for p in real_data.rglob("*") if p.is_file()}
    with serving(files, broken_off, altered) as (url, _):
        fetched = find_corpus(name, data_dir=None, cache_dir=tmp_path, mirror=url)
    assert fetched.digest == expected.digest
    for role, (path,) in fetched.files.items():
        (other,) = expected.files[role]
        # Of the archive only the part that is read is kept; its content is checked on the way.
        assert role == "propbank" or path.read_bytes() == other.read_bytes()
    # The fetched folder serves elsewhere, without a network.
    moved = tmp_path / "moved"
    (tmp_path / "corpora").rename(moved)
    again = find_corpus(name, data_dir=moved, cache_dir=tmp_path, offline=True)
    assert again.digest == expected.digest


@pytest.mark.real_data
def test_the_kept_part_of_an_archive_has_the_same_bytes_whatever_the_archive(real_data, tmp_path):
    registered = corpora.get("ewt").remotes["propbank"]
    (whole,) = real_data.rglob(registered.archive.copies)
    registered.archive.extract(whole, tmp_path / "a")
    registered.archive.extract(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        assert sha256(tmp_path / name) == registered.sha256


def endless(handler, content):
    """The file, and then more and more."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    handler.wfile.write(content)
    for _ in range(1000):
        handler.wfile.write(bytes(1 << 16))


@pytest.mark.parametrize("archive", [None, ARCHIVE])
def test_a_download_stops_at_the_size_on_the_card(tmp_path, archive):
    sent = []
    answers = [lambda *of: sent.append(endless(*of))] * 4
    message = "differs from the registered one in all 4 attempts"
    with (
        serving({"f.txt": CONTENT}, *answers) as (url, seen),
        pytest.raises(UserError, match=message),
    ):
        get(tmp_path, url, size=len(CONTENT), archive=archive)
    assert seen["f.txt"] == 4
    assert not sent  # all connections were closed before the end
    assert left_behind(tmp_path) == []
    with serving({"f.txt": CONTENT}) as (url, _):  # not a byte less
        get(tmp_path, url, size=len(CONTENT))


def test_every_file_that_is_stored_as_it_comes_has_a_size_on_its_card():
    names = [path.stem for path in (downloads.DATA_FOLDER / "cards").glob("*.md")]
    files = [file for name in names for file in downloads.read_card(name)["files"].values()]
    assert {file.name for file in files} >= {"BLiMP.zip", "ud_ids.json", "clams-evalsets.tar"}
    for file in files:
        assert (file.size == downloads._MOST_BYTES) is (file.archive is not None), file.name
