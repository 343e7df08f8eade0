"""Registered files: looked for below `--data-dir`, then in the cache, then downloaded.

Nothing is taken that has not the content that is registered. A download goes to a folder of
its own and is moved into place when it is whole and checked, so that one that breaks off leaves
nothing that could be taken for the file.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from probes.common.errors import UserError
from probes.common.files import below, published, sha256, writing
from probes.common.locks import locked
from probes.common.terminal import progress

RETRIES = 3
TIMEOUT = 30.0
"""Seconds without a byte after which a server is given up."""

PAUSE = 1.0
"""Seconds before the second attempt; before the third twice as long, and so on."""

_INCOMING = ".incoming"


@dataclass(frozen=True)
class Remote:
    """A file that can be downloaded.

    Attributes:
        name: under which it is kept.
        url: where it comes from.
        sha256: of what is kept.
        archive: where only a part of what is downloaded is kept.
    """

    name: str
    url: str
    sha256: str
    archive: Archive | None = None


@dataclass(frozen=True)
class Archive:
    """A download whose bytes are not promised, so that what is checked is the content.

    Attributes:
        pattern: names under which users may have it, whole or in part.
        names: names under which a mirror may have it, besides that of what is kept.
        check: reads it; raises UserError for other content.
        keep: reads it, checks it, and writes the part that is kept, always the same bytes.
    """

    pattern: str
    names: tuple[str, ...]
    check: Callable[[Path], object]
    keep: Callable[[Path, Path], object]


@dataclass(frozen=True)
class Shelf:
    """Where registered files are looked for.

    Attributes:
        data_dir: searched recursively; None for nowhere.
        cache_dir: downloads are kept in its folder `corpora`.
        offline: download nothing.
        mirror: address of a folder that holds the files under their names, used in place of
            their origins; what comes from it is checked all the same.
    """

    data_dir: Path | None
    cache_dir: Path
    offline: bool = False
    mirror: str = ""

    @property
    def folder(self) -> Path:
        """Where downloads are kept."""
        return self.cache_dir / "corpora"

    def look(self, remote: Remote) -> Path | None:
        """The file, if it is here; one of its name with other content is passed over, aloud.

        Raises:
            UserError: there is no such `data_dir`.
        """
        kept = self.folder / remote.name
        candidates = [kept] if kept.is_file() else []
        if self.data_dir is not None:
            if not self.data_dir.is_dir():
                raise UserError(f"--data-dir {self.data_dir}: there is no such folder.")
            names = [remote.name, *([remote.archive.pattern] if remote.archive else [])]
            candidates = [*below(self.data_dir, *names), *candidates]
        for path in candidates:
            why = _other(path, remote)
            if not why:
                return path
            progress.say(f"passed over {path}: {why}")
        return None

    def get(self, corpus: str, wanted: Mapping[str, Remote], terms: str) -> dict[str, Path]:
        """The files called `wanted`, downloading those that are not here.

        Args:
            corpus: what an error calls them.
            terms: licence and citation, shown before the first download.

        Raises:
            UserError: one is not here and cannot be downloaded.
        """
        found = {role: self.look(remote) for role, remote in wanted.items()}
        missing = [wanted[role] for role, path in found.items() if path is None]
        if missing and self.offline:
            places = f"below {self.data_dir} or " if self.data_dir else ""
            raise UserError(
                f"--corpus {corpus}: {', '.join(r.name for r in missing)} not found {places}in "
                f"{self.folder}; run `python -m probes fetch {corpus}` where there is a network, "
                "or name its folder with --data-dir (or PROBES_DATA_DIR)."
            )
        if missing:
            progress.insist(terms)
            self._download(missing)
        return {role: path or self.folder / wanted[role].name for role, path in found.items()}

    def _download(self, missing: list[Remote]) -> None:
        incoming = self.folder / _INCOMING
        with writing(incoming):
            incoming.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / ".lock", waiting="for another run to download"):
            try:
                for remote in missing:
                    path = self.folder / remote.name
                    # Another run may have brought it while this one waited.
                    if not (path.is_file() and sha256(path) == remote.sha256):
                        self._fetch(remote, incoming, path)
            finally:
                # What broke off, here or in a run that was killed; nobody else writes here now.
                shutil.rmtree(incoming, ignore_errors=True)

    def _fetch(self, remote: Remote, incoming: Path, path: Path) -> None:
        """Download one file, check it, move it into place."""
        import pooch

        # Its messages would repeat ours.
        pooch.get_logger().setLevel(logging.WARNING)
        urls = [remote.url]
        if self.mirror:
            names = (remote.name, *(remote.archive.names if remote.archive else ()))
            urls = [f"{self.mirror.rstrip('/')}/{quote(name)}" for name in names]
        with writing(path):
            for url in urls:
                progress.say(f"fetch   {url}")
                ready = _arrived(remote, url, incoming, last=url == urls[-1])
                if ready is not None:
                    with published(path) as temporary:
                        ready.replace(temporary)
                    return


def _arrived(remote: Remote, url: str, incoming: Path, last: bool) -> Path | None:
    """The file to keep, whole and checked; None for an address without it, unless it is the last.

    Raises:
        UserError: it does not arrive, or has other content, each time that it is asked for.
    """
    import pooch
    import requests

    arrived, kept = incoming / "arrived", incoming / "kept"
    known = None if remote.archive else remote.sha256
    for attempt in range(RETRIES + 1):
        with progress.bar(remote.name, total=0, unit="B", unit_scale=True) as bar:
            load = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=TIMEOUT)
            try:
                pooch.core.stream_download(url, arrived, known, load)
                if remote.archive is None:
                    return arrived
                remote.archive.keep(arrived, kept)
                return kept
            except requests.RequestException as error:
                response = error.response
                if not last and response is not None and response.status_code == 404:
                    return None
                if attempt == RETRIES:
                    raise UserError(_unreachable(remote, url, error)) from error
            except (ValueError, UserError) as error:
                if attempt == RETRIES:
                    raise UserError(
                        f"{url}: has not the registered content, {RETRIES + 1} times over; the "
                        "origin may have changed, or something on the way alters files. "
                        "Nothing was kept."
                    ) from error
        time.sleep(PAUSE * (attempt + 1))
    raise AssertionError("the last attempt returns or raises")


def _other(path: Path, remote: Remote) -> str:
    """In what a file is another than the registered one; empty if it is that."""
    found = sha256(path)
    if found == remote.sha256:
        return ""
    if remote.archive is None or path.name == remote.name:
        return f"its sha256 is {found}, not {remote.sha256}"
    try:
        remote.archive.check(path)
    except UserError as error:
        return str(error)
    return ""


def _unreachable(remote: Remote, url: str, error: Exception) -> str:
    why = " ".join(str(error).split())[:200]
    return (
        f"{url}: could not be downloaded ({type(error).__name__}: {why}). Try again, or get "
        f"{remote.name} elsewhere and name its folder with --data-dir (or PROBES_DATA_DIR)."
    )
