"""What does Ray cost, and does a cluster that loses a node find what one process finds?

    python benchmarks/ray_cluster.py                                    # times and overhead
    python benchmarks/ray_cluster.py --data-dir DIR --lose-a-node       # a sweep, also on EWT

Four models (all-MiniLM-L6-v2, its random twin, two random shapes) on `sample` without evidence: in
one process, in two, and on two nodes of one core each with caches of their own; each with one
thread. Then the time that Ray adds to a unit. With `--lose-a-node`, a sweep of the four models on
`sample` and a part of EWT, during which one of two nodes is killed; its leaderboard is compared
with that of a local sweep, times aside.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pandas as pd

from probes.__main__ import main as command
from probes.cli.main import main as run
from probes.common.default_folders import default_data_dir

PINGS = 300
"""Calls by which the time that Ray adds is measured."""

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print what was measured."""
    options = parse()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        models = ["all-MiniLM-L6-v2", *map(str, shapes(scratch / "models"))]
        if options.lose_a_node:
            lose_a_node(scratch, models, options)
        else:
            compare(scratch, models)


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument(
        "--limit", type=int, default=300, help="sentences of each split, in a sweep"
    )
    parser.add_argument("--lose-a-node", action="store_true", help="a sweep with a node killed")
    return parser.parse_args()


def shapes(folder: Path) -> Iterator[Path]:
    """Two models with random weights and the tokenizer of all-MiniLM-L6-v2."""
    import torch
    from transformers import AutoModel, AutoTokenizer, BertConfig

    from probes.extraction.model_files import find_model

    tokenizer = AutoTokenizer.from_pretrained(find_model("all-MiniLM-L6-v2", offline=True).folder)
    for layers, size in ((4, 256), (8, 128)):
        torch.manual_seed(layers)
        config = BertConfig(
            num_hidden_layers=layers,
            hidden_size=size,
            num_attention_heads=size // 32,
            intermediate_size=4 * size,
        )
        path = folder / f"bert-{layers}x{size}"
        AutoModel.from_config(config).save_pretrained(path)
        tokenizer.save_pretrained(path)
        yield path


def flags(models: Sequence[str], folder: Path) -> list[str]:
    """A run on `sample` with one thread for each worker; the first model alone has a twin."""
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    line = "--offline --evidence none --twins 0 --threads 1 -q"
    return ["--model", *models, f"random:{models[0]}", *line.split(), *places]


def compare(scratch: Path, models: Sequence[str]) -> None:
    """Print times of a run in one process, in two, and on two nodes."""
    seconds, boards = {}, {}
    for name, more in (("one process", []), ("two processes", ["--workers", "2"])):
        line = [*flags(models, scratch / name), *more]
        seconds[name], boards[name] = timed(line), board(scratch / name)
        told(name, seconds, boards)
    with cluster(scratch) as (made, started):
        print(f"Ray's two nodes start in {started:.1f} s")
        name, line = "two nodes", [*flags(models, scratch / "two nodes"), "--engine", "ray"]
        line += ["--address", made.address]
        seconds[name], boards[name] = timed(line), board(scratch / name)
        told(name, seconds, boards)
        each = overhead(made.address)
    print(f"Ray adds {1000 * each:.1f} ms to a unit: 2 % of one of {50 * each:.2f} s")


def told(name: str, seconds: dict[str, float], boards: dict[str, pd.DataFrame]) -> None:
    """Print the time of a run, beside that of one process."""
    same = boards[name].equals(boards["one process"])
    ratio = seconds["one process"] / seconds[name]
    print(
        f"{name}: {seconds[name]:.1f} s, {ratio:.2f} × one process; equal scores: {same}",
        flush=True,
    )


def timed(line: Sequence[str]) -> float:
    """Seconds that a run takes."""
    clock = time.perf_counter()
    if status := run(list(line)):
        sys.exit(f"{' '.join(line)}: exit status {status}")
    return time.perf_counter() - clock


def board(folder: Path) -> pd.DataFrame:
    """The leaderboard, times aside."""
    return pd.read_csv(folder / "results" / "leaderboard.csv").drop(columns="seconds")


@contextmanager
def cluster(scratch: Path) -> Iterator[tuple[Any, float]]:
    """Two nodes of one core, each with a cache of its own; and how long they take to start."""
    import ray
    from ray.cluster_utils import Cluster

    clock = time.perf_counter()
    own = [{"PROBES_CACHE_DIR": str(scratch / f"node-{n}")} for n in (1, 2)]
    head = {"num_cpus": 1, "include_dashboard": False, "env_vars": own[0]}
    made: Any = Cluster(initialize_head=True, head_node_args=head)
    made.second = made.add_node(num_cpus=1, env_vars=own[1])
    try:
        yield made, time.perf_counter() - clock
    finally:
        ray.shutdown()
        made.shutdown()


def overhead(address: str) -> float:
    """Seconds that it takes to hand a unit to a task, and to get its answer."""
    import ray

    from probes.engines.asked import Measure, UnitOutcome
    from probes.engines.cluster import connect

    def compute(asked: object) -> UnitOutcome:
        return UnitOutcome("done", files={".json": bytes(20_000), ".npz": bytes(100_000)})

    connect(address)
    remote: Any = ray.remote(num_cpus=0)(compute)
    unit = Measure("model", "task", "measurement", "linear", "key")
    ray.get(remote.remote(unit))
    clock = time.perf_counter()
    for _ in range(PINGS):
        ray.get(remote.remote(unit))
    return (time.perf_counter() - clock) / PINGS


def lose_a_node(scratch: Path, models: Sequence[str], options: argparse.Namespace) -> None:
    """Compare a sweep that loses a node half-way with a local one."""
    sweep = scratch / "sweep.toml"
    names = json.dumps([*models, f"random:{models[0]}"])
    sweep.write_text(
        f"model = {names}\noffline = true\nevidence = 'none'\ntwins = 0\nthreads = 1\n"
        f"data-dir = {json.dumps(str(options.data_dir))}\nlimit = {options.limit}\n"
        "[[run]]\ncorpus = 'sample'\n[[run]]\ncorpus = 'ewt'\n"
    )
    for name in ("local", "cluster"):
        places = ["--output", str(scratch / name / "results")]
        places += ["--cache-dir", str(scratch / name / "cache")]
        clock, line = time.perf_counter(), ["sweep", str(sweep), *places]
        if name == "local":
            status = command(line)
        else:
            with cluster(scratch) as (made, _):
                results, n_records = scratch / name / "results", len(records(scratch / "local"))
                thread = threading.Thread(
                    target=lose, args=(made, results, n_records // 2), daemon=True
                )
                thread.start()
                status = command([*line, "--engine", "ray", "--address", made.address])
                print(f"nodes left: {len(made.list_all_nodes())}")
        print(f"{name}: exit status {status}, {time.perf_counter() - clock:.1f} s")
    same = board(scratch / "local").equals(board(scratch / "cluster"))
    print(f"{len(records(scratch / 'cluster'))} records; equal leaderboards, times aside: {same}")


def records(folder: Path) -> list[Path]:
    """The records of scores below a folder."""
    return list(folder.rglob("*-scores-*.json"))


def lose(made: Any, results: Path, after: int) -> None:
    """Kill the second node once there are so many records."""
    while len(records(results)) < after:
        time.sleep(0.1)
    print(f"killing a node after {after} records", flush=True)
    made.remove_node(made.second, allow_graceful=False)


if __name__ == "__main__":
    main()
