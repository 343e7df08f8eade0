"""Registered files: looked for below `--data-dir`, then in the cache, then downloaded.

Nothing is taken that has not the content that is registered. A download goes to a folder of
its own and is moved into place when it is whole and checked, so that one that breaks off leaves
nothing that could be taken for the file.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from common.errors import UserError
from common.files import published, sha256, writing
from common.terminal import progress

RETRIES = 3
TIMEOUT = 30.0
"""Seconds without a byte after which a server is given up."""

_INCOMING = ".incoming"
_PARALLEL_RUN = "another run is downloading; waiting for it"


@dataclass(frozen=True)
class Remote:
    """A file that can be downloaded.

    Attributes:
        name: under which it is kept.
        url: where it comes from.
        sha256: of what is kept; None where only the content of an archive can be pinned.
        pattern: names under which users may have it; `name` if empty.
        keep: for an archive of which only a part is wanted: reads the download, checks its
            content and writes what is kept; raises UserError for other content.
    """

    name: str
    url: str
    sha256: str | None
    pattern: str = ""
    keep: Callable[[Path, Path], None] | None = None


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
        candidates: list[Path] = []
        if self.data_dir is not None:
            if not self.data_dir.is_dir():
                raise UserError(f"--data-dir {self.data_dir}: there is no such folder.")
            candidates = sorted(self.data_dir.rglob(remote.pattern or remote.name))
        kept = self.folder / remote.name
        for path in [*candidates, kept] if kept.is_file() else candidates:
            if remote.sha256 is None or (found := sha256(path)) == remote.sha256:
                return path
            progress.say(f"passed over {path}: its sha256 is {found}, not {remote.sha256}")
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
            progress.say(terms)
            self._download(missing)
        return {role: path or self.folder / wanted[role].name for role, path in found.items()}

    def _download(self, missing: list[Remote]) -> None:
        incoming = self.folder / _INCOMING
        with writing(incoming):
            incoming.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        if lock.is_locked:
            progress.say(_PARALLEL_RUN)
        with lock:
            for remote in missing:
                path = self.folder / remote.name
                # Another run may have brought it while this one waited.
                if not (path.is_file() and remote.sha256 in (None, sha256(path))):
                    self._fetch(remote, incoming, path)
            # What a killed run left behind; nobody else writes here under the lock.
            shutil.rmtree(incoming, ignore_errors=True)

    def _fetch(self, remote: Remote, incoming: Path, path: Path) -> None:
        """Download one file, check it, move it into place."""
        import pooch
        import requests

        # Its messages would repeat ours.
        pooch.get_logger().setLevel(logging.WARNING)
        url = f"{self.mirror.rstrip('/')}/{quote(remote.name)}" if self.mirror else remote.url
        progress.say(f"fetch   {url}")
        arrived = incoming / remote.name
        with progress.bar(remote.name, total=0, unit="B", unit_scale=True) as bar, writing(path):
            downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=TIMEOUT)
            try:
                pooch.core.stream_download(
                    url, arrived, remote.sha256, downloader, retry_if_failed=RETRIES
                )
            except requests.RequestException as error:
                raise UserError(_unreachable(remote, url, error)) from error
            except ValueError as error:  # other bytes, said by pooch with both digests
                raise UserError(
                    f"{url}: has not the registered content, {RETRIES + 1} times over "
                    f"(expected sha256 {remote.sha256}); the origin may have changed, or "
                    "something on the way alters files. Nothing was kept."
                ) from error
            with published(path) as temporary:
                if remote.keep is None:
                    arrived.replace(temporary)
                else:
                    remote.keep(arrived, temporary)
        arrived.unlink(missing_ok=True)


def _unreachable(remote: Remote, url: str, error: Exception) -> str:
    why = " ".join(str(error).split())[:200]
    return (
        f"{url}: could not be downloaded ({type(error).__name__}: {why}). Try again, or get "
        f"{remote.name} elsewhere and name its folder with --data-dir (or PROBES_DATA_DIR)."
    )
