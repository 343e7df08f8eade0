"""`leaderboard.csv`: tidy rows, one per model, corpus, task, probe and layer.

Scores give the rows, and evidence adds columns. Evidence on request, and what plug-ins measure, go
to `measurements.csv`, one row per number. Families that compare models add files of their own. All
are functions of the frame of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from probes.common.files import published
from probes.common.locks import SUFFIX, locked
from probes.frames.frame import RecordFrame, axes_by_text, frame_of, load, numbered
from probes.measurements.catalogue import family_modules
from probes.measurements.measurement import EVIDENCE
from probes.records.best_layer import best_layer_rows
from probes.records.record import Record
from probes.records.record_files import read_record
from probes.records.result import SCORES, Result
from probes.tables.table import csv_cell, csv_line

INTEGERS = ("random_seed", "project")
"""Columns of whole numbers that may be missing."""

COLUMNS = (
    "model", "revision", "random", "random_seed", "causal", "parameters", "layers", "hidden_size",
    "corpus", "corpus_version", "corpus_fingerprint", "task", "task_version", "plug_ins", "probe",
    "probe_spec", "probe_hidden", "layer", "pooling", "dtype", "project", "view", "metric",
    "dev_score", "score", "low", "high", "resampled", "best", "p_best", "majority", "type_majority",
    "control_metric", "selectivity", "selectivity_low", "selectivity_high", "added_bits",
    "added_bits_low", "added_bits_high", "added_points", "added_points_low", "added_points_high",
    "codelength", "compression", "compression_low", "compression_high", "expected_layer",
    "expected_layer_low", "expected_layer_high", "centre_of_gravity", "retraining_sd",
    "sampling_sd", "training_sd", "seeds", "evidence", "n_train", "n_dev", "n_test", "strength",
    "probe_parameters", "limited", "silver", "seconds", "key", "suite_version",
)  # fmt: skip
"""Columns of `leaderboard.csv`; docs/leaderboard.md says what each is."""

EVIDENCE_METRICS = (
    "p_best", "selectivity", "added_bits", "added_points", "codelength", "compression",
    "expected_layer", "centre_of_gravity", "retraining_sd", "sampling_sd", "training_sd",
)  # fmt: skip
"""Metrics of evidence that have columns of their names, and of the ends of their intervals."""

ORDER = ("corpus", "task", "probe", "view", "model", "revision", "key", "layer")

LONG_COLUMNS = (
    "model", "revision", "corpus", "limit", "task", "probe", "measurement", "layer", "axes",
    "metric", "split", "value", "low", "high", "key",
)  # fmt: skip
"""Columns of `measurements.csv`, which has the numbers that have no column in `leaderboard.csv`."""


def tidy(results: Iterable[Result]) -> pd.DataFrame:
    """One row per result and layer, with the columns `COLUMNS`."""
    lines = _leaderboard_of(results)
    plain = pd.DataFrame({name: _plain_values(lines[name]) for name in COLUMNS})
    return plain.astype(dict.fromkeys(INTEGERS, "Int64"))


def write_tidy(path: Path, results: Iterable[Result]) -> None:
    """Write these results as a file like `leaderboard.csv`."""
    _write_csv(path, _leaderboard_of(results).sort_values([*ORDER], kind="stable"))


def _leaderboard_of(results: Iterable[Result]) -> pd.DataFrame:
    records = [record for result in results for record in (result, *result.evidence.values())]
    return leaderboard_lines(frame_of(numbered(records)))


def write_leaderboard(output: Path, read: Callable[[Path], Record] = read_record) -> Path:
    """Rebuild `<output>/leaderboard.csv`, and the other files if anything belongs there.

    Args:
        read: reads a record that is not in the cache of the folder yet.
    """
    path = output / "leaderboard.csv"
    # Without the lock, of two runs that end together the one that read first may write last.
    with locked(path.with_suffix(SUFFIX)):
        frame = load(output, read=read, write=True)
        _write_csv(path, leaderboard_lines(frame).sort_values([*ORDER], kind="stable"))
        for name, columns, table in (
            ("measurements.csv", LONG_COLUMNS, other_measurements(frame)),
            *(
                (x.CSV_NAME, x.CSV_COLUMNS, x.csv_table(frame))
                for x in family_modules("comparison")
            ),
        ):
            # A file that is there and has lost its last row must not keep it.
            if len(table) or (output / name).exists():
                _write_csv(output / name, table[[*columns]])
    return path


def leaderboard_lines(frame: RecordFrame) -> pd.DataFrame:
    """One line per record of scores and layer, with the columns `COLUMNS`."""
    of_scores = frame.headers["measurement"] == SCORES
    rows = frame.long(of_scores, ["task_metric"])
    lines = frame.headers[of_scores].merge(_scores_by_layer(rows), on="path")
    for column, rule in (("majority", "majority"), ("type_majority", "type majority")):
        lines[column] = lines["path"].map(_scores_of_rule(rows, rule)).astype(float)
    lines = _with_evidence(lines, frame)
    return lines.rename(columns={"task_metric": "metric"}).reindex(columns=[*COLUMNS])


def _scores_by_layer(rows: pd.DataFrame) -> pd.DataFrame:
    """The score of each record and layer on test and dev, and the best layer by that on dev."""
    keys = ["path", "layer"]
    plain = rows[(rows["axes"] == "") & rows["layer"].notna()]
    plain = plain.drop_duplicates([*keys, "metric", "split"])
    headline = plain[plain["metric"] == plain["task_metric"]]
    test, dev = (headline[headline["split"] == split] for split in ("test", "dev"))
    strength = plain[(plain["metric"] == "strength") & (plain["split"] == "train")]
    lines = test.rename(columns={"value": "score", "fits": "seeds"})
    lines = lines.sort_values("layer", kind="stable")[[*keys, "score", "low", "high", "seeds"]]
    for name, source in (("dev_score", dev), ("strength", strength)):
        column = source[[*keys, "value"]].rename(columns={"value": name})
        lines = lines.merge(column, how="left", on=keys)
    best = best_layer_rows(lines, ["path"], "dev_score")
    return lines.assign(best=lines.index.isin(best.index))


def _scores_of_rule(rows: pd.DataFrame, rule: str) -> pd.Series:
    """Score of a rule without vectors, by path: a baseline of the task, or a reference."""
    by_text = axes_by_text(rows)
    scored = rows[rows["metric"] == rows["task_metric"]]
    rule_rows = []
    for axis in ("reference", "baseline"):
        of_rule = [text for text, axes in by_text.items() if axes.get(axis) == rule]
        rule_rows.append(scored[scored["axes"].isin(of_rule)])
    return pd.concat(rule_rows).drop_duplicates("path", keep="last").set_index("path")["value"]


def _with_evidence(lines: pd.DataFrame, frame: RecordFrame) -> pd.DataFrame:
    """The lines with the columns of the evidence that belongs to their scores."""
    headers = frame.headers[frame.headers["measurement"].isin(EVIDENCE)]
    headers = headers.sort_values(["n_measured", "n_fits"], kind="stable")
    headers = headers.drop_duplicates(["subject", "measurement"], keep="last")
    by_subject = headers.groupby("subject")["measurement"].agg(set)
    names = {of: " ".join(x for x in EVIDENCE if x in kinds) for of, kinds in by_subject.items()}
    lines = lines.assign(evidence=[names.get(subject, "") for subject in lines["subject"]])
    rows = frame.long(headers.index, ["subject"])
    rows = rows[(rows["axes"] == "") & rows["metric"].isin(EVIDENCE_METRICS)]
    # Each line with the numbers of its layer, and with those of all layers.
    line_rows = lines[["layer", "subject"]].assign(line=lines.index)
    line_rows = line_rows.merge(rows, on="subject", suffixes=("", "_of_row"))
    same = (line_rows["layer_of_row"] == line_rows["layer"]).fillna(True)
    line_rows = line_rows[same].drop_duplicates(["line", "metric"], keep="last")
    for column, end in (("value", ""), ("low", "_low"), ("high", "_high")):
        numbers = line_rows.pivot(index="line", columns="metric", values=column)
        lines = lines.join(numbers.add_suffix(end))
    return lines


def other_measurements(frame: RecordFrame) -> pd.DataFrame:
    """One line per number of what has no columns in `leaderboard.csv`."""
    is_other = ~frame.headers["measurement"].isin((SCORES, *EVIDENCE))
    rows = frame.long(is_other, [name for name in LONG_COLUMNS if name in frame.headers])
    by_text = axes_by_text(rows)
    texts = {text: " ".join(f"{x}={y}" for x, y in axes.items()) for text, axes in by_text.items()}
    return rows.assign(axes=rows["axes"].map(texts))


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    lines = zip(*(_texts(table[name]) for name in table), strict=True)
    with published(path) as temporary:
        text = csv_line(table) + "".join(f"{','.join(line)}\n" for line in lines)
        temporary.write_text(text, encoding="utf-8", newline="")


def _texts(column: pd.Series) -> list[str]:
    """Cells of a CSV file. Equal values are written once, since that is most of the time."""
    if column.dtype == object:  # 1 and True are equal, and different texts
        return [*map(csv_cell, _plain_values(column))]
    codes, distinct = pd.factorize(column)
    texts = [*map(csv_cell, _plain_values(pd.Series(distinct))), ""]
    return [texts[code] for code in codes]


def _plain_values(column: pd.Series) -> list[Any]:
    """Plain values; None for missing ones."""
    return column.astype(object).where(column.notna(), None).tolist()
