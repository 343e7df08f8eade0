"""Speed of our probes, relative to code that a user would write for the same stored vectors.

    python benchmarks/probe_speed.py --corpus ewt --cache-dir CACHE --data-dir DIR

The vectors of `--model` must be in the cache already (run `run_probes.py` once). Two peers fit one
layer after the other, without searching for hyperparameters:

- linear: scikit-learn's `LogisticRegression` of the same prior (lbfgs) on standardised fp32
  features, to equal convergence: on EWT its objective is above ours by a hundred-thousandth of it
  after 300 iterations (by a thousandth after 100);
- mlp: a PyTorch loop over a `DataLoader` with batches of 64: the same network, Adam, and as many
  passes per layer as our full fit.

Times run from mapped vectors to test scores. Each of `--rounds` times our fit of all layers, and
the peer's at each of `--layers`. The peer's time for all layers is the mean of the timed ones,
times the number of layers. With OMP_NUM_THREADS=1, times are processor seconds. Prints medians, and
the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import clock
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

from probes.common.arrays import Ints
from probes.common.files import default_cache, default_data_dir
from probes.compute.memory import default_budget
from probes.data.find import find_corpus
from probes.data.sentence import Corpus
from probes.examples.examples import Examples, collect_examples
from probes.extraction.reading.store import StoreKey
from probes.extraction.reading.vectors import Sharded, StoredVectors, layer_part
from probes.extraction.reading.views import View
from probes.measurements.context import TaskContext
from probes.measurements.measurement import NoOptions, as_measured
from probes.probing.scores import scores
from probes.records.header import ModelRecord
from probes.records.probe_spec import PROBES, ProbeSpec
from probes.records.row import Rows
from probes.tasks.builtin import tasks
from probes.training.dataset import ProbingData


def main() -> None:
    """Print a table per probe family."""
    options = parse()
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    examples = collect_examples(tasks.get("pos"), corpus, "masked")
    view = examples.view_of(corpus)
    vectors = checked_vectors(options, view)
    rows = {split: examples.rows(split, view, vectors)[0][:, 0] for split in examples.splits}
    labels = {split: examples.targets(split) for split in examples.splits}
    print(
        f"{options.model}, {options.corpus}, UPOS, {vectors.n_layers} layers · "
        f"{torch.get_num_threads()} threads · median of {options.rounds} rounds"
    )
    for family, peer in (("linear", scikit_learn), ("mlp", loader_loop)):
        if family not in options.probes:
            continue
        spec, ours, theirs = PROBES[family], [], []
        for _ in range(options.rounds):
            # Anew, without derived arrays of the last round.
            vectors = checked_vectors(options, view)
            layers = list(range(vectors.n_layers))
            start = clock()
            outcome = scores_of(corpus, examples, view, vectors, spec, layers)
            ours.append(clock() - start)
            start = clock()
            scores = {n: peer(vectors.layer(n), rows, labels, spec) for n in options.layers}
            per_layer = (clock() - start) / len(options.layers)
            theirs.append(per_layer * vectors.n_layers)
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        print(
            f"{family}: ours {statistics.median(ours):.1f} s, "
            f"peer {statistics.median(theirs):.1f} s, ratio {ratio:.1f}"
        )
        print("| layer | test, ours | peer | difference |\n| ---: | ---: | ---: | ---: |")
        for n, theirs_at in scores.items():
            ours_at = 100 * outcome[n]
            print(
                f"| {n} | {ours_at:.2f} | {theirs_at:.2f} | {ours_at - theirs_at:+.2f} |",
                flush=True,
            )


def scores_of(
    corpus: Corpus,
    examples: Examples,
    view: View,
    vectors: StoredVectors,
    spec: ProbeSpec,
    layers: Sequence[int],
) -> dict[int, float]:
    """Accuracy of one fit per layer, as in a run."""
    cpu = torch.device("cpu")
    data = ProbingData(examples, view, vectors, cpu, project=None)
    unread: dict[str, Any] = dict.fromkeys(("read", "read_changed", "sites"))
    context = TaskContext(
        corpus=corpus,
        model=ModelRecord.model_validate(vectors.manifest["model"]),
        extent=dict.fromkeys(layers, 1),
        view=view,
        stored=vectors,
        **unread,
        device=cpu,
        options=NoOptions(),
        title="scores",
        data=data,
        spec=spec,
        memory=default_budget(cpu),
    )
    rows = Rows.of(as_measured(scores(context)).rows)
    return {layer: row.value or 0.0 for layer in layers if (row := rows.at("accuracy", layer))}


def checked_vectors(options: argparse.Namespace, view: View) -> StoredVectors:
    """Stored vectors whose checksums are compared here, so that nobody's time includes them."""
    vectors = stored_vectors(options.cache_dir, options.model, view)
    for layer in range(vectors.n_layers):
        vectors.layer(layer)
    return vectors


def stored_vectors(cache: Path, model: str, view: View) -> StoredVectors:
    """The vectors of a view at all layers of the model."""
    for path in sorted((cache / "vectors").glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        if manifest["model"]["name"] == model and manifest["key"]["view"] == view.digest:
            vectors = StoredVectors(cache, StoreKey(**manifest["key"]), view)
            parts = [layer_part(n) for n in range(vectors.n_layers)]
            if not any(vectors.missing(shard, parts) for shard in range(vectors.n_shards)):
                return vectors
    sys.exit(f"{cache}: no vectors of {model}; run run_probes.py with the same folders first.")


def features_of(layer: Sharded, rows: Mapping[str, Ints]) -> dict[str, NDArray[np.float32]]:
    """Standardised fp32 features by split."""
    train = layer[rows["train"]].astype(np.float32)
    scaler = StandardScaler().fit(train)
    return {
        split: scaler.transform(layer[where].astype(np.float32)) for split, where in rows.items()
    }


def scikit_learn(
    layer: Sharded, rows: Mapping[str, Ints], labels: Mapping[str, Ints], spec: ProbeSpec
) -> float:
    """Test accuracy × 100 of a logistic regression."""
    features = features_of(layer, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 300 iterations do not reach its own tolerance
        model = LogisticRegression(C=1 / spec.l2[0], max_iter=300)
        model.fit(features["train"], labels["train"])
    return 100 * float((model.predict(features["test"]) == labels["test"]).mean())


def loader_loop(
    layer: Sharded, rows: Mapping[str, Ints], labels: Mapping[str, Ints], spec: ProbeSpec
) -> float:
    """Test accuracy × 100 of an MLP of the size in `spec`."""
    torch.manual_seed(0)
    features = {split: torch.from_numpy(x) for split, x in features_of(layer, rows).items()}
    n_classes = int(labels["train"].max()) + 1
    model = torch.nn.Sequential(
        torch.nn.Linear(features["train"].shape[1], spec.hidden),
        torch.nn.ReLU(),
        torch.nn.Linear(spec.hidden, n_classes),
    )
    data = TensorDataset(features["train"], torch.from_numpy(labels["train"]))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(spec.epochs):
        for x, y in loader:
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            adam.step()
    with torch.no_grad():
        predictions = model(features["test"]).argmax(1).numpy()
    return 100 * float((predictions == labels["test"]).mean())


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="ewt")
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--probes", type=lambda text: text.split(","), default=["linear", "mlp"])
    parser.add_argument(
        "--layers",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[0, 3, 6],
        help="layers at which the peers are timed (default: 0,3,6)",
    )
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
