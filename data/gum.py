"""The Georgetown University Multilayer corpus (Zeldes 2017): how its files are put together.

The treebank's repository has a file for each document. The training file is made of those that dev
and test lack, in the order of their names.
"""

from __future__ import annotations

import re
from pathlib import Path

from probes.data.downloads import Members

COMMIT = "afb41ee9bca57991125814fa04d96a0e61470c8b"
"""UD release 2.16, GUM version 11."""

SUPERSEDED = "GUM_conversation_court"
"""An earlier state of the document that the release calls GUM_court_carpet."""

MEMBERS = Members(
    what="the documents of UD English-GUM",
    pattern=r"[^/]+/((?:not-to-release/sources/GUM_\w+|en_gum-ud-(?:dev|test))\.conllu)",
    digest="430a85ff18e5a49c27d1be087aae6e5de0b134c888d51b4ef4e39c823c51e917",
    folder=f"UD_English-GUM-{COMMIT}",
)


def extract_train(archive: Path, target: Path) -> None:
    """Write the training file from the repository's archive.

    Raises:
        UserError: the archive cannot be read, or has other content.
    """
    files = MEMBERS.read(archive)
    held_out = {
        name
        for split in ("dev", "test")
        for name in re.findall(rb"^# newdoc id = (\S+)", files[f"en_gum-ud-{split}.conllu"], re.M)
    }
    documents = {Path(path).stem.encode(): files[path] for path in sorted(files) if "/" in path}
    target.write_bytes(b"".join(text for name, text in documents.items() if name not in held_out))
