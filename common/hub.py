"""Snapshots of repositories on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from probes.common.errors import UserError

_TIMEOUT = 5.0
"""Seconds to wait for the hub's first answer."""


def cached(kind: Literal["model", "dataset"]) -> list[str]:
    """Names of the repositories in the local hub cache."""
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
    remedy: str,
) -> tuple[Path, str]:
    """The folder with a repository's files, downloaded if necessary, and its commit.

    Args:
        name: id on the hub.
        flag: how error messages refer to it, e.g. ``--model bert``.
        patterns: files to download; None for all.
        remedy: advice appended to error messages.

    Raises:
        UserError: the repository is unknown, gated, or cannot be downloaded.
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
        raise UserError(f"{flag}: neither a folder nor a valid hub id. {remedy}") from error
    except GatedRepoError as error:
        raise UserError(f"{flag}: gated on the hub; accept its terms there and log in.") from error
    except RevisionNotFoundError as error:
        raise UserError(f"{flag}: the hub has no such revision.") from error
    except RepositoryNotFoundError as error:
        raise UserError(f"{flag}: the hub has no public {kind} of this name. {remedy}") from error
    except LocalEntryNotFoundError as error:
        why = "not in the local hub cache" if offline else "not cached, and the hub is unreachable"
        raise UserError(f"{flag}: {why}. {remedy}") from error
    except (HfHubHTTPError, OSError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"{flag}: the download from the hub failed ({first}). {remedy}") from error
    return Path(folder), Path(folder).name
