"""Files of registered corpora: named in data cards, found on the disk, or downloaded.

Only files with the registered content are used. A download goes to a temporary folder and is moved
into place once it is complete and checked, so that an interrupted download leaves nothing that
could be mistaken for the file. Code hosts may repack an archive, so its bytes say nothing: the
content of its members is checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import lzma
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from probes.common.errors import UserError
from probes.common.files import matching_files, published, sha256, writing
from probes.common.terminal import progress

RETRIES = 3
TIMEOUT = 30.0
"""Seconds without data after which a download is aborted."""

PAUSE = 1.0
"""Seconds before the second attempt; twice as long before the third, and so on."""

_INCOMING = ".incoming"

_MOST_BYTES = 1 << 28
"""Largest size of an archive; no registered one is larger, however its host packs it."""

DATA_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Remote:
    """A file that can be downloaded.

    Attributes:
        name: file name under which it is stored.
        url: address of the download.
        sha256: digest of the stored file.
        size: number of bytes at which a download stops.
        archive: set if only some members of an archive are stored.
    """

    name: str
    url: str
    sha256: str
    size: int = _MOST_BYTES
    archive: Archive | None = None


def write_tar(members: Mapping[str, bytes], folder: str, target: Path) -> None:
    """Write members to a tar file, uncompressed, since compression differs between machines."""
    with tarfile.open(target, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(members):
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(members[path])
            tar.addfile(member, io.BytesIO(members[path]))


@dataclass(frozen=True)
class Archive:
    """A tar archive of which some members are read.

    Attributes:
        copies: pattern of the file names of copies that users may have, complete or partial.
        members: regular expression whose first group is the path of a member that is read.
        digest: output of ``sha256sum`` for these paths with ``./`` before them, in their order as
            bytes, given to ``sha256sum`` again.
        folder: folder of the members in the stored archive.
        mirrored: further file names to try on a mirror.
        identity: role of `digest` in the identity of the corpus; empty if it is not part of it.
        write: writes the members to the file that is stored.
    """

    copies: str
    members: str
    digest: str
    folder: str
    mirrored: Sequence[str] = ()
    identity: str = ""
    write: Callable[[Mapping[str, bytes], str, Path], None] = write_tar

    def read(self, archive: Path) -> dict[str, bytes]:
        """The content of the members by path.

        Raises:
            UserError: the archive cannot be read, or its members have other content.
        """
        members: dict[str, bytes] = {}
        size = 0
        try:
            with tarfile.open(archive, "r|*") as tar:
                for member in tar:
                    match = re.fullmatch(self.members, member.name)
                    if match is None or not member.isreg() or ".." in member.name.split("/"):
                        continue
                    size += member.size
                    if size > _MOST_BYTES:
                        raise UserError(f"{archive}: is larger than the registered archive.")
                    content = tar.extractfile(member)
                    assert content is not None  # it is a regular file
                    members[match[1]] = content.read()
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            raise UserError(f"{archive}: damaged archive ({error}); fetch it again.") from error
        if (digest := digest_of_members(members)) != self.digest:
            raise UserError(
                f"{archive}: the content of its {len(members)} files has the digest {digest}, not "
                f"the registered {self.digest}. Delete the file and fetch it again."
            )
        return members

    def extract(self, archive: Path, target: Path) -> None:
        """Store the members of an archive, as its host packs it, in the file `target`."""
        self.write(self.read(archive), self.folder, target)


def digest_of_members(members: Mapping[str, bytes]) -> str:
    """The digest of the members of an archive; see `Archive`."""
    lines = (
        f"{hashlib.sha256(members[path]).hexdigest()}  ./{path}\n".encode()
        for path in sorted(members, key=str.encode)
    )
    return hashlib.sha256(b"".join(lines)).hexdigest()


@cache
def read_card(name: str) -> dict[str, Any]:
    """The facts on the data card of a corpus: its front matter, and the BibTeX below.

    They are fields of `probes.data.registered.Registered`; ``further`` has names of cards. The
    front matter is JSON, which is valid YAML and needs no library.
    """
    text = (DATA_FOLDER / "cards" / f"{name}.md").read_text(encoding="utf-8")
    _, front, page = text.split("---\n", 2)
    facts = {"files": {}, **json.loads(front)}
    for key, kind in (("layers", frozenset), ("silver", frozenset), ("tasks", tuple)):
        facts[key] = kind(facts.get(key, ()))
    for file in facts["files"].values():
        if "archive" in file:
            file["archive"] = Archive(**file["archive"])
    facts["files"] = {role: Remote(**file) for role, file in facts["files"].items()}
    entries = re.findall(r"^```bibtex\n(.*?)^```", page, re.S | re.M)
    return {**facts, "citation": "\n\n".join(map(str.strip, entries))}


def read_members(name: str, path: Path) -> dict[str, bytes]:
    """The members of the archive of a corpus of the suite, by path."""
    archive: Archive
    (archive,) = (file.archive for file in read_card(name)["files"].values() if file.archive)
    return archive.read(path)


@dataclass(frozen=True)
class FileFinder:
    """Finds registered files, and downloads missing ones.

    Attributes:
        data_dir: searched recursively; None to search nowhere.
        cache_dir: its folder `corpora` stores downloads.
        offline: never download.
        mirror: address of a folder with the files under their names, used instead of their
            original addresses; its files are checked as well.
    """

    data_dir: Path | None
    cache_dir: Path
    offline: bool = False
    mirror: str = ""

    @property
    def folder(self) -> Path:
        """The folder that stores downloads."""
        return self.cache_dir / "corpora"

    def find(self, remote: Remote) -> Path | None:
        """The path of a file if it is available locally, else None.

        Files of the right name with other content are skipped with a message.

        Raises:
            UserError: `data_dir` does not exist.
        """
        stored = self.folder / remote.name
        candidates = [stored] if stored.is_file() else []
        if self.data_dir is not None:
            if not self.data_dir.is_dir():
                raise UserError(f"--data-dir {self.data_dir}: there is no such folder.")
            names = [remote.name, *([remote.archive.copies] if remote.archive else [])]
            candidates = [*matching_files(self.data_dir, *names), *candidates]
        for path in candidates:
            fault = _fault_of_file(path, remote)
            if not fault:
                return path
            progress.say(f"skipped {path}: {fault}")
        return None

    def get(self, corpus: str, remotes: Mapping[str, Remote], terms: str) -> dict[str, Path]:
        """The paths of the files `remotes`; those that are missing are downloaded.

        Args:
            corpus: name of the corpus in error messages.
            terms: licence and citation, shown before anything is downloaded.

        Raises:
            UserError: a file is missing and cannot be downloaded.
        """
        paths = {role: self.find(remote) for role, remote in remotes.items()}
        missing = [remotes[role] for role, path in paths.items() if path is None]
        if missing and self.offline:
            places = f"below {self.data_dir} or " if self.data_dir else ""
            raise UserError(
                f"--corpus {corpus}: {', '.join(r.name for r in missing)} not found {places}in "
                f"{self.folder}; drop --offline to download them, or run `python -m probes fetch "
                f"{corpus}` on a machine with a network and give its folder with --data-dir (or "
                "PROBES_DATA_DIR), which is searched with its subfolders."
            )
        if missing:
            progress.warn(terms)
            self._download(missing)
        return {role: path or self.folder / remotes[role].name for role, path in paths.items()}

    def _download(self, missing: list[Remote]) -> None:
        from probes.common.locks import locked

        incoming = self.folder / _INCOMING
        with writing(incoming):
            incoming.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / ".lock", waiting="for another run to download"):
            try:
                for remote in missing:
                    path = self.folder / remote.name
                    # Another run may have downloaded it in the meantime.
                    if not (path.is_file() and sha256(path) == remote.sha256):
                        self._fetch(remote, incoming, path)
            finally:
                # Left over from interrupted downloads; the lock keeps other runs from writing here.
                shutil.rmtree(incoming, ignore_errors=True)

    def _fetch(self, remote: Remote, incoming: Path, path: Path) -> None:
        """Download a file, check it and move it into place."""
        import pooch

        # pooch's messages would repeat ours.
        pooch.get_logger().setLevel(logging.WARNING)
        urls = [remote.url]
        if self.mirror:
            names = (remote.name, *(remote.archive.mirrored if remote.archive else ()))
            urls = [f"{self.mirror.rstrip('/')}/{quote(name)}" for name in names]
        with writing(path):
            for url in urls:
                progress.say(f"fetch   {url}")
                ready = _checked_download(remote, url, incoming, last=url == urls[-1])
                if ready is not None:
                    with published(path) as temporary:
                        ready.replace(temporary)
                    return


class _SizedFile(io.FileIO):
    """A file that takes no more than a number of bytes, whatever a server sends."""

    size = 0

    def write(self, content: Any) -> int:
        """Append bytes."""
        if self.tell() + len(content) > self.size:
            raise ValueError(f"more than {self.size} bytes are sent")
        return super().write(content)


def _checked_download(remote: Remote, url: str, incoming: Path, last: bool) -> Path | None:
    """The complete and checked file to store; None if this is not the last URL and lacks it."""
    import pooch
    import requests

    download, extracted = incoming / "download", incoming / "extracted"
    # Hosts repack archives, so `extract` checks their members instead.
    digest = None if remote.archive else remote.sha256

    def load(url: str, path: str, _: object) -> None:
        bar_of = progress.bar(remote.name, total=0, unit="B", unit_scale=True)
        with bar_of as bar, _SizedFile(path, "w") as file:
            file.size = remote.size
            fetch = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=TIMEOUT)
            fetch(url, file, None)

    for attempt in range(RETRIES + 1):
        try:
            pooch.core.stream_download(url, download, digest, load)
            if remote.archive is None:
                return download
            remote.archive.extract(download, extracted)
            return extracted
        except requests.RequestException as error:
            response = error.response
            # A mirror may have the file under the next of several names.
            if not last and response is not None and response.status_code == 404:
                return None
            if attempt == RETRIES:
                reason = " ".join(str(error).split())[:200]
                raise UserError(
                    f"{url}: could not be downloaded ({type(error).__name__}: {reason}). Try "
                    f"again, or get {remote.name} elsewhere and give its folder with "
                    "--data-dir (or PROBES_DATA_DIR)."
                ) from error
        except (ValueError, UserError) as error:
            if attempt == RETRIES:
                raise UserError(
                    f"{url}: the content differs from the registered one in all {RETRIES + 1} "
                    "attempts; the file may have changed, or a proxy alters it. Nothing was "
                    "stored."
                ) from error
        time.sleep(PAUSE * (attempt + 1))
    raise AssertionError("the last attempt returns or raises")


def _fault_of_file(path: Path, remote: Remote) -> str:
    """Difference of a file from the registered one, in words; empty if there is none."""
    digest = sha256(path)
    if digest == remote.sha256:
        return ""
    # Under another name it is a copy as its host packs it, with the bytes of any packing.
    if remote.archive is None or path.name == remote.name:
        return f"its SHA-256 is {digest}, not {remote.sha256}"
    try:
        remote.archive.read(path)
    except UserError as error:
        return str(error)
    return ""
