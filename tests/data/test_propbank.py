"""The reader of PropBank's skeletons, on tiny archives with literal lines."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from probes.common.errors import UserError
from probes.data.downloads import Members
from probes.data.propbank import MEMBERS, Skeleton, Tree, read_skeletons
from probes.data.sentence import Frame

FOLDER = "release-1/data/google/ewt/"
MEMBER = FOLDER + "reviews/00/007.xml.gold_skel"

GOOD = """\
google/ewt/reviews/00/007.xml 0 0 [WORD] PRP (TOP(S(NP*) - -         (ARG0*) (ARG0*)
google/ewt/reviews/00/007.xml 0 1 [WORD] VBD (VP*        give give.01 (V* *
google/ewt/reviews/00/007.xml 0 2 [WORD] RP  (PRT*)      - -         *) *
google/ewt/reviews/00/007.xml 0 3 [WORD] VBG (S(VP*))    try try.01   (ARG1*) (V*)
google/ewt/reviews/00/007.xml 0 4 [WORD] RB  (ADVP*))    - -         (C-V*) (R-ARGM-TMP*)
google/ewt/reviews/00/007.xml 0 5 [WORD] .   *))         - -         * *

google/ewt/reviews/00/007.xml 1 0 [WORD] UH  (TOP(INTJ*)) - -
"""


def archive(path: Path, members: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            tar.addfile(member, io.BytesIO(content.encode()))
    return path


def members_of(content_digest: str) -> Members:
    """The skeletons of an archive of this content."""
    return replace(MEMBERS, digest=content_digest)


def digest(members: dict[str, str]) -> str:
    """As `sha256sum` prints it, for members whose sorted order is the dictionary's."""
    lines = [
        f"{hashlib.sha256(content.encode()).hexdigest()}  ./{name.removeprefix(FOLDER)}\n"
        for name, content in members.items()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read(path: Path, content: str) -> dict[str, tuple[Skeleton, ...]]:
    members = {MEMBER: content}
    return read_skeletons(archive(path / "a.tar.gz", members), members_of(digest(members)))


def test_a_skeleton(tmp_path: Path) -> None:
    first, second = read(tmp_path, GOOD)["reviews-007"]
    assert first.tags == ("PRP", "VBD", "RP", "VBG", "RB", ".")
    verb_phrase = Tree(
        "VP",
        1,
        5,
        (
            1,
            Tree("PRT", 2, 3, (2,)),
            Tree("S", 3, 4, (Tree("VP", 3, 4, (3,)),)),
            Tree("ADVP", 4, 5, (4,)),
        ),
    )
    clause = Tree("S", 0, 6, (Tree("NP", 0, 1, (0,)), verb_phrase, 5))
    assert first.tree == Tree("TOP", 0, 6, (clause,))
    assert first.frames == (
        Frame("give.01", (1, 3), (("ARG0", (0, 1)), ("ARG1", (3, 4)), ("C-V", (4, 5)))),
        Frame("try.01", (3, 4), (("ARG0", (0, 1)), ("R-ARGM-TMP", (4, 5)))),
    )
    assert second == Skeleton(("UH",), Tree("TOP", 0, 1, (Tree("INTJ", 0, 1, (0,)),)), ())


@pytest.mark.parametrize(
    ("damage", "replacement", "message"),
    [
        ("(PRT*)      - -         *) *", "(PRT*)      - -         *)", "9 columns instead of 10"),
        ("0 2 [WORD]", "0 3 [WORD]", "word '3' instead of sentence 0, word 2"),
        ("1 0 [WORD]", "2 0 [WORD]", "sentence '2'"),
        ("(S(VP*))", "(S(VP*", r"\(S is not closed"),
        ("(S(VP*))", "(S(VP*))))))", "unmatched closing bracket at word 3"),
        ("(TOP(INTJ*))", "(TOP(INTJ*)", r"\(TOP is not closed"),
        ("(TOP(INTJ*))", "*", "not form a single tree"),
        ("(TOP(INTJ*))", "(TOP(INTJ))", "not valid bracketing"),
        ("try try.01", "try -", "1 predicates, but 2 columns"),
        ("(V*)", "(ARG2*)", "try.01 has 0 V brackets"),
        ("(V* *", "(V* (V*)", "try.01 has 2 V brackets"),
    ],
)
def test_damage_is_reported_with_member_and_line(
    tmp_path: Path, damage: str, replacement: str, message: str
) -> None:
    assert GOOD.count(damage) == 1
    with pytest.raises(UserError, match=message) as raised:
        read(tmp_path, GOOD.replace(damage, replacement))
    assert "reviews/00/007.xml.gold_skel, line " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_digest_that_does_not_match(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {MEMBER: GOOD})
    with pytest.raises(UserError) as raised:
        read_skeletons(path, members_of("0" * 64))
    message = str(raised.value)
    assert str(path) in message
    assert digest({MEMBER: GOOD}) in message
    assert "0" * 64 in message
    assert "fetch it again" in message


def test_only_regular_skeletons_of_ewt_are_read_and_nothing_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in (
            "../../etc/data/google/ewt/reviews/x.gold_skel",
            FOLDER + "../../../../evil.gold_skel",
            "/abs/data/google/ewt/reviews/x.gold_skel",
            "release-1/data/ontonotes/reviews/x.gold_skel",
            FOLDER + "reviews/00/007.xml.prop",
        ):
            member = tarfile.TarInfo(name)
            member.size = 7
            tar.addfile(member, io.BytesIO(b"garbage"))
        link = tarfile.TarInfo(FOLDER + "reviews/00/link.gold_skel")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        member = tarfile.TarInfo(MEMBER)
        member.size = len(GOOD)
        tar.addfile(member, io.BytesIO(GOOD.encode()))
    assert list(read_skeletons(path, members_of(digest({MEMBER: GOOD})))) == ["reviews-007"]
    assert list(tmp_path.iterdir()) == [path]


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    for content in (b"no archive", b"", gzip.compress(b"no tar" * 200)):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"a[.]tar[.]gz"):
            read_skeletons(path)


def test_an_archive_cut_short(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {MEMBER: GOOD * 50})
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(UserError, match="fetch it again"):
        read_skeletons(path)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    content = b"google \xff"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(MEMBER)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    line = f"{hashlib.sha256(content).hexdigest()}  ./reviews/00/007.xml.gold_skel\n"
    with pytest.raises(UserError, match="not UTF-8 at byte 7"):
        read_skeletons(path, members_of(hashlib.sha256(line.encode()).hexdigest()))


@pytest.mark.slow
@pytest.mark.real_data
def test_the_release(real_data: Path) -> None:
    skeletons = read_skeletons(next(real_data.rglob("propbank-release-*.tar.gz")))
    sentences = [skeleton for document in skeletons.values() for skeleton in document]
    frames = [frame for skeleton in sentences for frame in skeleton.frames]
    assert (len(skeletons), len(sentences), len(frames)) == (1145, 16579, 50262)
