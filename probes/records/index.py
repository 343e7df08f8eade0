"""What is there: the records of a folder of results, each read once."""

from __future__ import annotations

from pathlib import Path

from probes.records.files import file_state, read_record, read_records, record_paths
from probes.records.record import Record


class Index:
    """Records by their files; one is read again only when its file has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], Record]] = {}

    def read(self, path: Path) -> Record:
        """The record at `path`.

        Raises:
            UserError: it cannot be read.
            SchemaError: it has another schema.
        """
        state = file_state(path)
        known = self._known.get(path)
        if known is None or known[0] != state:
            known = self._known[path] = state, read_record(path)
        return known[1]

    def add(self, path: Path, record: Record) -> None:
        """Add a record that has just been written to `path`."""
        self._known[path] = file_state(path), record

    def below(self, folder: Path) -> dict[Path, Record]:
        """All records below a folder; see `probes.records.files.find_records`."""
        return read_records(record_paths(folder), self.read)
