"""Snapshots of repositories on the Hugging Face hub."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from probes.common.errors import UserError
from probes.common.terminal import progress

_TIMEOUT = 5.0
"""Seconds to wait for each answer of the hub."""

_silent_until = 0.0
"""Time until which a hub that did not answer is not asked again."""

_CAUSES = {
    "HFValidationError": "neither a folder nor a valid hub id. {remedy}",
    "GatedRepoError": "gated on the hub; accept its terms there and log in.",
    "RevisionNotFoundError": "the hub has no such revision.",
    "RepositoryNotFoundError": "the hub has no public {kind} of this name. {remedy}",
    "LocalEntryNotFoundError": "not in the local hub cache; {online} to download it. {remedy}",
    "ProxyError": "a proxy lets nothing through to {hub} ({why}). Check HTTPS_PROXY.",
    "login": "the network wants a login before it lets anything through to {hub} ({why}).",
    "denied": "the hub refuses access ({why}). Check your token and its rights.",
    "busy": "the hub is busy ({why}). Try again later.",
    "TimeoutException TimeoutError": "{hub} does not answer. {remedy}",
    "ConnectError": "{hub} cannot be reached ({why}). {remedy}",
    "NetworkError RemoteProtocolError": "the connection to the hub broke off ({why}). Try again.",
    "FileMetadataError HTTPError InvalidURL ValueError LookupError TypeError AttributeError": (
        "{hub} does not answer as a hub does ({why}). Check HF_ENDPOINT, proxies and logins."
    ),
    "Exception": "the download from the hub failed ({why}).",
}
"""Causes in words of errors of huggingface_hub and of its HTTP client, by names of classes.

The names suffice: that client is httpx or, in later versions, httpx2.
"""


def cached_repositories(kind: Literal["model", "dataset"]) -> list[str]:
    """Names of the repositories in the local hub cache."""
    constants = library("constants")
    folders = sorted(Path(constants.HF_HUB_CACHE).glob(f"{kind}s--*"))
    return [folder.name.removeprefix(f"{kind}s--").replace("--", "/") for folder in folders]


def snapshot(
    name: str,
    *,
    flag: str,
    kind: Literal["model", "dataset"],
    revision: str | None,
    offline: bool,
    patterns: Sequence[str] | None,
    remedy: str,
) -> tuple[Path, list[str]]:
    """The folder of a repository's commit, downloaded if necessary, and all file names on the hub.

    If the hub does not say which commit is meant, the local cache is used, and there are no names.

    Args:
        name: id on the hub.
        flag: how error messages refer to it, e.g. ``--model bert``.
        patterns: files to download; None for all.
        remedy: advice appended to error messages if the name may be wrong.

    Raises:
        UserError: the repository is unknown, gated, or cannot be downloaded.
    """
    constants = library("constants")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils._paths import filter_repo_objects

    allowed = None if patterns is None else list(patterns)
    args: dict[str, Any] = {"repo_type": kind, "allow_patterns": allowed, "etag_timeout": _TIMEOUT}
    local = offline or constants.HF_HUB_OFFLINE
    try:
        with _bounded_requests():
            try:
                commit, files = (revision, []) if local else _listing(name, kind, revision)
            except RevisionNotFoundError:
                raise  # the hub has answered, so the cache does not stand in for it
            except Exception as error:
                with suppress(LocalEntryNotFoundError):
                    args["local_files_only"] = True
                    folder = Path(snapshot_download(name, revision=revision, **args))
                    reason = _cause(error, kind).partition(". ")[0]
                    progress.say(f"{flag}: {reason}; the local cache has commit {folder.name[:12]}")
                    return folder, []
                raise
            folder = Path(snapshot_download(name, revision=commit, local_files_only=local, **args))
        for file in filter_repo_objects(files, allow_patterns=allowed):
            if not (folder / file).is_file():
                raise ValueError(f"it sends {file} as part of another commit than {commit}")
        if commit and commit != revision:
            # The commit's name, for runs without a network.
            reference = folder.parents[1] / "refs" / (revision or "main")
            with suppress(OSError):  # not every cache may be written to
                reference.parent.mkdir(parents=True, exist_ok=True)
                reference.write_text(commit)
        return folder, files
    except Exception as error:
        cause = _cause(error, kind, remedy, "drop --offline" if offline else "unset HF_HUB_OFFLINE")
        raise UserError(f"{flag}: {cause}".rstrip()) from error


def library(module: str) -> Any:
    """A module of huggingface_hub, which reads its variables when it is first imported.

    Raises:
        UserError: it cannot read one.
    """
    try:
        import_module("huggingface_hub.utils._http")
        return import_module(f"huggingface_hub.{module}")
    except ValueError as error:
        raise UserError(f"HF_ENDPOINT or another HF_ variable: {error}. Correct it.") from error


def _listing(name: str, kind: str, revision: str | None) -> tuple[str, list[str]]:
    """The commit that the hub has for a revision, and the names of its files."""
    from huggingface_hub import HfApi

    global _silent_until
    if time.monotonic() < _silent_until:
        raise TimeoutError
    try:
        info: Any = HfApi().repo_info(name, repo_type=kind, revision=revision, timeout=_TIMEOUT)
    except Exception as error:
        if "TimeoutException" in _error_names(error):
            _silent_until = time.monotonic() + 60
        raise
    # A proxy or a page for logins may answer instead of a hub.
    if not re.fullmatch("[0-9a-f]{40}", str(info.sha)):
        raise ValueError(f"the commit {info.sha!r:.60} is not 40 hexadecimal digits")
    return str(info.sha), [file.rfilename for file in info.siblings or ()]


@contextmanager
def _bounded_requests() -> Iterator[None]:
    """Bound the time of requests, and hide the library's messages and, if quiet, its bars."""
    utils: Any = import_module("huggingface_hub.utils")

    def bound(request: Any) -> None:
        seconds = request.extensions["timeout"]
        seconds |= {name: _TIMEOUT for name, limit in seconds.items() if limit is None}

    hooks = utils.get_session().event_hooks["request"]
    level, bars = utils.logging.get_verbosity(), not utils.are_progress_bars_disabled()
    hooks.append(bound)
    utils.logging.set_verbosity_error()
    if bars and (progress.quiet or progress.forward):
        utils.disable_progress_bars()
    try:
        yield
    finally:
        hooks.remove(bound)
        utils.logging.set_verbosity(level)
        if bars:
            utils.enable_progress_bars()


def _error_names(error: BaseException) -> set[str]:
    """Names of an error's classes, and a key of `_CAUSES` if its HTTP status says so."""
    code = getattr(getattr(error, "response", None), "status_code", 0)
    names = {**dict.fromkeys((401, 402, 403), "denied"), 407: "ProxyError", 501: "", 511: "login"}
    status = names.get(code, "busy" if code in (408, 429) or code >= 500 else "")
    return {status, *(cls.__name__ for cls in type(error).__mro__)}


def _cause(error: BaseException, kind: str, remedy: str = "", online: str = "") -> str:
    """Reason why the hub gave nothing, and what to do; `online` is the way to ask it."""
    constants = library("constants")
    # This error only adds that the cache has nothing either.
    while "LocalEntryNotFoundError" in _error_names(error) and error.__cause__:
        error = error.__cause__
    response = getattr(error, "response", None)
    text = (
        f"{response.status_code} {response.reason_phrase}" if response is not None else str(error)
    )
    reason = " ".join(text.split())[:200] or type(error).__name__
    cause = next(x for names, x in _CAUSES.items() if _error_names(error) & {*names.split()})
    words = {"why": reason, "kind": kind, "remedy": remedy, "online": online}
    return cause.format(hub=constants.ENDPOINT, **words)
