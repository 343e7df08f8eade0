"""What stands beside the results in a model's folder: tables and a picture, written anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from probes.boards import transferability
from probes.boards.layer_tables import layer_tables
from probes.common.files import published
from probes.records.result import Result
from probes.rendering.markdown import markdown


def write_tables(folder: Path, results: Sequence[Result]) -> list[Path]:
    """Write `layers.csv`, `layers.md`, `layers.png` and `transfer.csv` into `folder`."""
    names = ("layers.csv", "layers.md", "layers.png", "transfer.csv")
    paths = [folder / name for name in names]
    wide = pd.concat(
        [table.add_suffix(f" ({family})") for family, table in layer_tables(results).items()],
        axis=1,
    )
    with published(paths[0]) as temporary:
        wide.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    with published(paths[3]) as temporary:
        found = transferability.csv_table(layer_tables(results))
        found.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    text = markdown(results)
    if paths[1].is_file() and paths[2].is_file() and paths[1].read_bytes() == text.encode():
        return paths
    # The picture shows what the text says and takes a second; it is drawn first, so that the
    # text is never newer than the picture.
    from probes.rendering.heatmap import draw_heat_map

    with published(paths[2]) as temporary:
        draw_heat_map(temporary, results)
    with published(paths[1]) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return paths
