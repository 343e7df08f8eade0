"""How long `leaderboard.csv` takes to rebuild, imports aside: 50 models of 10 results each.

    python benchmarks/leaderboard_speed.py RESULT.json

The results are copies of the given one under other names; take a large one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from probes.boards.leaderboard_csv import write_leaderboard
from probes.measurements.joined_results import read_result

MODELS, RESULTS = 50, 10


def copies(path: Path, folder: Path) -> None:
    """Write the result under the names of many models and tasks, each with its own key."""
    result = read_result(path)
    for model in range(MODELS):
        for task in range(RESULTS):
            key = f"{model * RESULTS + task:064x}"
            named = result.model.model_copy(update={"name": f"model-{model}"})
            asked = result.task.model_copy(update={"name": f"task{task}"})
            update = {"key": key, "inputs": key, "model": named, "task": asked}
            copy = result.model_copy(update=update)
            place = (
                folder / f"model-{model}" / "corpus" / f"task{task}-linear-scores-{key[-8:]}.json"
            )
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(copy.model_dump_json(indent=1), encoding="utf-8")


def main() -> None:
    """Measure it three times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copies(options.result, folder)
        size = options.result.stat().st_size / 1000
        for _ in range(3):
            clock = time.perf_counter()
            rows = write_leaderboard(folder).read_text().count("\n") - 1
            seconds = time.perf_counter() - clock
            print(f"{MODELS * RESULTS} results of {size:.0f} kB, {rows:,} rows: {seconds:.2f} s")


if __name__ == "__main__":
    main()
