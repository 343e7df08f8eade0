"""Files that are read from an archive without unpacking it, checked by their content.

Code hosts may repack an archive, so its bytes say nothing.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes.common.errors import UserError


@dataclass(frozen=True)
class Members:
    """Members of a registered tar archive.

    Attributes:
        what: what they are, in error messages.
        pattern: whose first group is the path of a member that is read.
        digest: output of ``sha256sum`` for these paths with ``./`` before them, in their order as
            bytes, given to ``sha256sum`` again.
        folder: where the paths lie in the archive that `extract` writes.
        most_bytes: a larger archive cannot be the registered one.
    """

    what: str
    pattern: str
    digest: str
    folder: str
    most_bytes: int = 1 << 28

    def read(self, archive: Path) -> dict[str, bytes]:
        """The content of the members by path.

        Raises:
            UserError: the archive cannot be read, or its members have other content.
        """
        members = self._found(archive)
        if (found := digest_of(members)) != self.digest:
            raise UserError(
                f"{archive}: not {self.what}: the content of its {len(members)} files has digest "
                f"{found} instead of {self.digest}. Delete the file and fetch it again."
            )
        return members

    def extract(self, archive: Path, target: Path) -> None:
        """Copy the members to a tar file, always with the same bytes.

        Args:
            archive: as its host packs it.
            target: the `.tar` to write, uncompressed, since compression differs between machines.

        Raises:
            UserError: see `read`.
        """
        members = self.read(archive)
        with tarfile.open(target, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(members):
                member = tarfile.TarInfo(f"{self.folder}/{path}")
                member.size = len(members[path])
                tar.addfile(member, io.BytesIO(members[path]))

    def _found(self, archive: Path) -> dict[str, bytes]:
        members: dict[str, bytes] = {}
        size = 0
        try:
            with tarfile.open(archive, "r|*") as tar:
                for member in tar:
                    match = re.fullmatch(self.pattern, member.name)
                    if match is None or not member.isreg() or ".." in member.name.split("/"):
                        continue
                    size += member.size
                    if size > self.most_bytes:
                        raise UserError(f"{archive}: is larger than {self.what}; fetch it again.")
                    content = tar.extractfile(member)
                    assert content is not None  # it is a regular file
                    members[match[1]] = content.read()
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{archive}: damaged archive ({error}); fetch it again.") from error
        except OSError as error:
            raise UserError(f"{archive}: cannot be read ({error}); fetch it again.") from error
        return members


def digest_of(members: Mapping[str, bytes]) -> str:
    """See `Members.digest`."""
    lines = (
        f"{hashlib.sha256(members[path]).hexdigest()}  ./{path}\n".encode()
        for path in sorted(members, key=str.encode)
    )
    return hashlib.sha256(b"".join(lines)).hexdigest()
