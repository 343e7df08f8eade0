"""What is in the folder of one model and corpus besides records: tables, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probes.boards.layer_tables import interval_frame, layer_frames
from probes.boards.transferability import all_ranks
from probes.common.files import published
from probes.common.terminal import progress
from probes.measurements.measurement import CSV_FIELDS, get_measurement
from probes.records.csv_text import csv_line
from probes.records.record import Record
from probes.records.result import Result
from probes.records.titles import limit_of, short_digest
from probes.rendering.layers_md import layers_md


def write_tables(folder: Path, results: Sequence[Result]) -> list[Path]:
    """Write `layers.csv`, `layers.md`, `layers.png` and `transfer.csv` into `folder`."""
    names = ("layers.csv", "layers.md", "layers.png", "transfer.csv")
    paths = [folder / name for name in names]
    frames, wide = layer_frames(results), interval_frame(results)
    with published(paths[0]) as temporary:
        wide.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    with published(paths[3]) as temporary:
        all_ranks(frames).to_csv(temporary, float_format="%.6f", lineterminator="\n")
    text = layers_md(results)
    if paths[1].is_file() and paths[2].is_file() and paths[1].read_bytes() == text.encode():
        return paths
    # The picture shows what the text says and takes a second. It is drawn first, so that the text
    # is never newer than the picture.
    from probes.rendering.drawing.figures import draw_layers, no_room

    if why := no_room():
        progress.say(f"{paths[2]}: not drawn, since {why}")
        paths[2].unlink(missing_ok=True)
    else:
        draw_layers(paths[2], results)
    with published(paths[1]) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return paths


def numbers_path(folder: Path, name: str) -> Path:
    """The CSV file with the numbers of the measurement of the corpus that is called `name`."""
    return folder / f"{get_measurement(name).csv_name or name}.csv"


def write_numbers(folder: Path, record: Record) -> Path:
    """Write the numbers of a measurement of the corpus into its CSV file, a row for each.

    Why some are missing stands in the record, and in notes below its tables.
    """
    about = record.model.name, record.corpus.name, limit_of(record)
    key = short_digest(record.key)
    found = list(get_measurement(record.measurement).csv_lines(record))
    columns = found[0] if found else ("layer", *CSV_FIELDS)
    lines = [csv_line(("model", "corpus", "limit", *columns, "key"))]
    lines += [csv_line([*about, *line.values(), key]) for line in found]
    path = numbers_path(folder, record.measurement)
    with published(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8", newline="")
    return path
