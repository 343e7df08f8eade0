"""Files and folders: names, default places, checksums, atomic writes."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import os
import re
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from probes.common.errors import DiskError, UserError

_TEMPORARY = ".part-"
_STALE = 3600.0
"""A temporary file without a write for so many seconds comes from a killed run."""

_RESERVED = {"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(10))}


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_code(roots: Iterable[Path], pattern: str = "*.py") -> str:
    """SHA-256 of Python files, and of those in folders that have such names.

    Raises:
        OSError: one cannot be read.
    """
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob(pattern)) if root.is_dir() else [root]:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root.parent)}\n".encode())
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without byte-order mark and with newlines as line ends.

    Raises:
        UserError: the file cannot be read or is not UTF-8; the message names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return decoded(content, str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        UserError: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML ({error}); correct it.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: a number has thousands of digits, or brackets nest too deeply; correct it."
        ) from error


def decoded(content: bytes, file_name: str) -> str:
    """Decode UTF-8, without byte-order mark and with newlines as line ends.

    Args:
        file_name: name of the file in error messages.

    Raises:
        UserError: the content is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise UserError(
            f"{file_name}, line {line}: not UTF-8 (byte {content[error.start]:#04x} at offset "
            f"{error.start}{'; it looks like UTF-16' if utf16 else ''}); convert the file to UTF-8."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def folder_name(name: str) -> str:
    """A readable folder name, unique for each name on any file system.

    ``org/model`` becomes ``org--model``. If a name needs any other change, or has capital letters
    (some file systems ignore case), a short digest of the original is appended. Device names
    reserved by Windows get an underscore in front.
    """
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace("/", "--")).strip(".-")[:100] or "_"
    if slug.partition(".")[0].lower() in _RESERVED:
        slug = f"_{slug}"
    if slug.replace("--", "/") == name == name.lower():
        return slug
    return f"{slug}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def matching_files(folder: Path, *patterns: str) -> list[Path]:
    """Files below `folder` whose names match one of `patterns`, sorted; links are followed."""
    paths: list[Path] = []
    seen = {os.path.realpath(folder)}
    for parent, folders, names in os.walk(folder, followlinks=True):
        # A link to a folder above would recurse forever.
        folders[:] = [n for n in folders if os.path.realpath(Path(parent, n)) not in seen]
        seen.update(os.path.realpath(Path(parent, n)) for n in folders)
        paths += [
            Path(parent, name)
            for name in names
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        ]
    return sorted(path for path in paths if path.is_file())


@contextlib.contextmanager
def published(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path, and rename it to `path` on success.

    Another process sees the old file, the new file, or none, but never half a file.

    Raises:
        DiskError: the disk is full or the folder cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep_temporaries(path.parent)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f"{_TEMPORARY}{path.name[:40]}.", suffix=path.suffix
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            # The file was made for its owner alone, but others may share the folder.
            os.umask(mask := os.umask(0))
            temporary.chmod(0o666 & ~mask)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _sweep_temporaries(folder: Path) -> None:
    """Delete temporary files that killed runs left in `folder`."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError):  # another run deleted it first
            if time.time() - path.stat().st_mtime >= _STALE:
                path.unlink()


def require_writable(folder: Path) -> None:
    """Create `folder` if necessary and check that it can be written, before any work is done.

    Raises:
        UserError: it is a file, or cannot be created or written.
    """
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder.")
    with published(folder / ".writable"):
        pass
    (folder / ".writable").unlink(missing_ok=True)


def require_parent(path: Path) -> None:
    """Check that the folder of `path` exists.

    Raises:
        UserError: it does not.
    """
    if not path.absolute().parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; create it, or name another.")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a UserError that names `path`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "free some space or name another folder" if full else "name another folder"
        raise DiskError(
            f"{path}: cannot be written ({error.strerror or error}); {remedy}."
        ) from error


def default_cache() -> Path:
    """`PROBES_CACHE_DIR`, or `probes` in the user's cache folder."""
    if folder := os.environ.get("PROBES_CACHE_DIR"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "probes"


def default_data_dir() -> Path | None:
    """`PROBES_DATA_DIR`, if it is set."""
    folder = os.environ.get("PROBES_DATA_DIR")
    return Path(folder) if folder else None
