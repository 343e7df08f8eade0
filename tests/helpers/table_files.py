"""Tables in files, as users have them."""

import json

from datasets import Dataset


def write_rows(path, rows, **features):
    """Write rows in the format that the name of the file says; in CSV, lists have spaces.

    Args:
        features: of `datasets`, for Parquet.

    Returns:
        the path as text.
    """
    if path.suffix == ".parquet":
        Dataset.from_list(rows, **features).to_parquet(str(path))
        return str(path)
    if path.suffix == ".csv":
        cells = [[" ".join(x) if isinstance(x, list) else x for x in row.values()] for row in rows]
        quoted = [[str(cell).replace('"', '""') for cell in row] for row in cells]
        lines = [",".join(f'"{cell}"' for cell in row) for row in quoted]
        lines = [",".join(rows[0]), *lines]
    else:
        lines = [json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def write_splits(folder, rows, ending="jsonl", **features):
    """Write the same rows as train, dev and test; return the paths."""
    paths = (folder / f"my-{split}.{ending}" for split in ("train", "dev", "test"))
    return [write_rows(path, rows, **features) for path in paths]
