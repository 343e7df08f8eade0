"""Records in one file to share: a zip of their files, with a manifest."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probes import __version__
from probes.common.errors import UserError
from probes.common.files import published
from probes.records.files import Arrays, array_bytes, record_bytes
from probes.records.record import SCHEMA_VERSION, Record

FORMAT = 1

MANIFEST = "manifest.json"

MAX_FILE, MAX_TOTAL, MAX_FILES = 2**30, 2**34, 100_000
"""Limits on the bytes of a file, the bytes of an unpacked bundle, and the number of its files."""

MAX_TEXT = 30 * 10**6
"""Limit on the bytes of the manifest, and of a record's JSON: parsed, it takes many times as much
memory."""

MAX_RATIO = 300
"""Limit on the compression ratio: text is compressed 50-fold at most, a zip bomb 1,000-fold."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}"

_NAME = re.compile(rf"{_PART}/{_PART}/{_PART}-[0-9a-f]{{8}}\.(json|npz)")
"""`<model>/<corpus>/<task>-<probe>-<measurement>-<key>`: nothing that leads out of a folder."""

_CHUNK = 1 << 20


def bundle_name(path: Path) -> str:
    """Name of a file in a bundle: model, corpus, file."""
    return "/".join(path.absolute().parts[-3:])


def write_bundle(
    target: Path,
    records: Mapping[Path, Record],
    changed: Mapping[Path, tuple[Record, Arrays]] | None = None,
) -> int:
    """Pack records with their arrays; equal records give equal bytes.

    Args:
        changed: what to pack instead of the files at these paths.

    Returns:
        the number of files.

    Raises:
        UserError: two results have one name, or a file cannot be written.
    """
    contents: dict[str, bytes] = {}
    entries = []
    for path, record in records.items():
        name = bundle_name(path)
        if not _NAME.fullmatch(name):
            raise UserError(f"{path}: not in a folder MODEL/CORPUS, where runs write results.")
        if name in contents:
            raise UserError(f"{path}: a second result named {name}; export the folders one by one.")
        beside = path.with_suffix(".npz")
        if changed and path in changed:
            record, arrays = changed[path]
            contents[name] = record_bytes(record)
            if arrays:
                contents[bundle_name(beside)] = array_bytes(arrays)
        else:
            contents[name] = path.read_bytes()
            if beside.exists():
                contents[bundle_name(beside)] = beside.read_bytes()
        entries.append({"file": name, **_described(record)})
    manifest = {
        "format": FORMAT,
        "suite_version": __version__,
        "schema_version": SCHEMA_VERSION,
        "results": entries,
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            for name, content in sorted(contents.items())
        },
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False).encode()
    with published(target) as temporary, zipfile.ZipFile(temporary, "w") as bundle:
        for name, content in ((MANIFEST, text), *sorted(contents.items())):
            # A fixed time, so that the bytes depend on the results alone.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed = zipfile.ZIP_STORED if name.endswith(".npz") else zipfile.ZIP_DEFLATED
            bundle.writestr(entry, content, compress_type=packed)
    return len(contents)


def _described(record: Record) -> dict[str, Any]:
    """What the manifest says about a record."""
    task, probe = record.task, record.probe
    return {
        "measurement": record.measurement,
        "key": record.key,
        "model": record.model.model_dump(),
        "corpus": {
            name: getattr(record.corpus, name)
            for name in ("name", "version", "licence", "digest", "fingerprint", "limit")
        },
        "task": task and {"name": task.name, "version": task.version},
        "probe": probe and probe.family,
        "extent": record.extent,
        "suite_version": record.suite_version,
        "seconds": record.seconds,
        "provenance": record.provenance,
    }


def unpack(path: Path, folder: Path) -> list[str]:
    """Unpack a bundle into an empty folder and verify every file.

    Returns:
        the names of the JSON files of the results.

    Raises:
        UserError: it is not a bundle, too new, damaged, or unsafe to unpack.
    """
    try:
        with zipfile.ZipFile(path) as bundle:
            infos = bundle.infolist()
            _require_safe(path, infos)
            files = _manifest(path, bundle)
            names = {info.filename for info in infos} - {MANIFEST}
            if odd := sorted(names ^ files.keys()):
                raise UserError(f"{path}: {odd[0]} is in the manifest or the bundle, not in both.")
            for name in sorted(names):
                _extract(path, bundle, name, files[name], folder / name)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise UserError(f"{path}: not a readable bundle ({error}).") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: not a valid manifest ({error}).") from error
    results = sorted(name for name in names if name.endswith(".json"))
    if alone := sorted({str(Path(name).with_suffix(".json")) for name in names} - set(results)):
        raise UserError(f"{path}: predictions without their result {alone[0]}.")
    return results


def _require_safe(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Raise UserError unless names, kinds and sizes of all files are safe."""
    seen: set[str] = set()
    for info in infos:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if name != MANIFEST and not _NAME.fullmatch(name):
            raise UserError(f"{path}: {name[:200]!r} is not the name of a result's file.")
        if kind not in (0, stat.S_IFREG):
            raise UserError(f"{path}: {name} is a link or another special file.")
        if name.lower() in seen:
            raise UserError(f"{path}: it contains {name} twice.")
        seen.add(name.lower())
        most = MAX_FILE if name.endswith(".npz") else MAX_TEXT
        if info.file_size > min(most, MAX_RATIO * max(info.compress_size, 64)):
            raise UserError(f"{path}: {name} would unpack to {info.file_size:,} bytes.")
    if len(infos) > MAX_FILES or sum(info.file_size for info in infos) > MAX_TOTAL:
        raise UserError(f"{path}: too many or too large files.")


def _manifest(path: Path, bundle: zipfile.ZipFile) -> dict[str, Any]:
    """The files' digests and sizes."""
    try:
        manifest = json.loads(bundle.read(MANIFEST))
    except KeyError as error:
        raise UserError(f"{path}: no {MANIFEST}; it was not written by export.") from error
    for what, known in (("format", FORMAT), ("schema_version", SCHEMA_VERSION)):
        if manifest[what] != known:
            raise UserError(
                f"{path}: {what.replace('_version', '')} {manifest[what]}, this version reads "
                f"{known}; it was written by version {manifest.get('suite_version')} of the suite."
            )
    files: dict[str, Any] = manifest["files"]
    return files


def _extract(
    path: Path, bundle: zipfile.ZipFile, name: str, entry: Mapping[str, Any], target: Path
) -> None:
    """Unpack one file, not a byte more than the manifest says, and verify it."""
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with bundle.open(name) as source, target.open("xb") as file:
        while size <= entry["size"] and (chunk := source.read(_CHUNK)):
            size += len(chunk)
            digest.update(chunk)
            file.write(chunk)
    if size != entry["size"] or digest.hexdigest() != entry["sha256"]:
        raise UserError(f"{path}: {name} is damaged: it does not match the manifest.")
    if target.suffix == ".npz":
        # The archive of predictions is a zip of its own, which comparing models opens.
        with zipfile.ZipFile(target) as arrays:
            most = min(MAX_FILE, max(MAX_TEXT, MAX_RATIO * size))
            if sum(info.file_size for info in arrays.infolist()) > most:
                raise UserError(f"{path}: {name} would unpack to more than {most:,} bytes.")
