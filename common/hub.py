"""Snapshots of repositories on the hub, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from probes.common.errors import UserError

_TIMEOUT = 5.0
"""Seconds to wait for the hub's first answer."""


def cached(kind: Literal["model", "dataset"]) -> list[str]:
    """Names of the repositories that the local hub cache holds."""
    from huggingface_hub import constants

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
    ways_out: str,
) -> tuple[Path, str]:
    """The folder of a repository's files, downloaded if need be, and its commit.

    Args:
        name: id on the hub.
        flag: what an error calls it, e.g. ``--model bert``.
        patterns: files to take; None for all.
        ways_out: what an error advises.

    Raises:
        UserError: it cannot be had.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    where = flag + (f" --revision {revision}" if revision else "")
    try:
        folder = snapshot_download(
            name,
            repo_type=kind,
            revision=revision,
            allow_patterns=None if patterns is None else list(patterns),
            local_files_only=offline,
            etag_timeout=_TIMEOUT,
        )
    except HFValidationError as error:
        raise UserError(f"{where}: neither a folder nor a valid hub id. {ways_out}") from error
    except GatedRepoError as error:
        raise UserError(f"{where}: gated on the hub; accept its terms and log in.") from error
    except RevisionNotFoundError as error:
        raise UserError(f"{where}: the hub has no such revision.") from error
    except RepositoryNotFoundError as error:
        raise UserError(
            f"{where}: the hub has no public {kind} of this name. {ways_out}"
        ) from error
    except LocalEntryNotFoundError as error:
        why = "not in the local hub cache" if offline else "not cached, and the hub is unreachable"
        raise UserError(f"{where}: {why}. {ways_out}") from error
    except (HfHubHTTPError, OSError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"{where}: the hub did not deliver it ({first}). {ways_out}") from error
    return Path(folder), Path(folder).name
