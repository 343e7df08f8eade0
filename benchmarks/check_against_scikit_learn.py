"""How near is our linear probe to the optimum of its objective on the same vectors?

    python benchmarks/check_against_scikit_learn.py --results results --cache-dir CACHE \
        --corpus ewt --data-dir DIR --layers 0,3

For each linear result of one model on the corpus, at each of the layers, scikit-learn minimises the
same loss with the same weights and L2 strength in float64 until its gradient vanishes. Prints a
Markdown table, one row per task and layer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from probes.common.arrays import Ints
from probes.common.default_folders import default_cache, default_data_dir
from probes.data.find import find_corpus
from probes.examples.examples import Examples, collect_examples
from probes.examples.scoring import Scorer
from probes.extraction.encoding import word_vectors
from probes.extraction.vectors import Sharded, Vectors
from probes.extraction.views import ViewName
from probes.extraction.windows import Pooling
from probes.measurements.joined_results import find_results
from probes.statistics.gold import Predictions
from probes.tasks.builtin import tasks

Features = dict[str, NDArray[np.float64]]
"""Split → one vector per example."""


def main() -> None:
    """Print the table."""
    options = parse()
    corpus = find_corpus(options.corpus, data_dir=options.data_dir).load()
    print(
        "| task | layer | test, ours | scikit-learn | difference | examples "
        "| dev loss, ours | scikit-learn | ratio |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for result in find_results(options.results).values():
        wanted = result.corpus.name == options.corpus and result.probe.family == "linear"
        if not wanted or result.model.name != options.model:
            continue
        hiding: ViewName = "cut" if result.view == "cut" else "masked"
        examples = collect_examples(tasks.get(result.task.name), corpus, hiding)
        view = examples.view_of(corpus)
        cache, pooling = options.cache_dir, cast(Pooling, result.pooling)
        reading = word_vectors(cache, result.model, result.dtype, view, options.layers, pooling)
        vectors = Vectors(cache, reading.key, view)
        rows = {split: examples.rows(split, view, vectors) for split in examples.splits}
        for number in options.layers:
            features = spans(vectors.layer(number), rows)
            strength, loss = (
                row.value or 0.0
                for name, split in (("strength", "train"), ("dev_loss", "dev"))
                if (row := result.at(name, number, split))
            )
            dev_loss, predicted = optimum(examples, features, strength)
            (scores,) = Scorer(examples, "test").scores(predicted[None])
            ours, theirs = result.score(number), scores[result.task.metric]
            assert ours is not None  # an undefined score cannot be compared
            assert theirs is not None
            n = result.examples.n["test"]
            print(
                f"| {result.task.name} | {number} | {100 * ours:.2f} | {100 * theirs:.2f} | "
                f"{100 * (ours - theirs):+.2f} | {n * (ours - theirs):+.0f} of {n} | "
                f"{loss:.4f} | {dev_loss:.4f} | {loss / dev_loss:.4f} |",
                flush=True,
            )


def spans(layer: Sharded, rows: Mapping[str, Sequence[Ints]]) -> Features:
    """Standardised span means by split, with plain numpy and scikit-learn."""
    features = {}
    together = np.concatenate(layer.arrays)
    sums = np.concatenate([np.zeros((1, layer.shape[1])), np.cumsum(together, 0, np.float64)])
    for split, parts in rows.items():
        sides = []
        for part in parts:
            lengths = part[:, 1:] - part[:, :1]
            sides.append((sums[part[:, 1]] - sums[part[:, 0]]) / lengths)
        features[split] = np.concatenate(sides, axis=1)
    scaler = StandardScaler().fit(features["train"])
    return {split: scaler.transform(x) for split, x in features.items()}


def optimum(examples: Examples, features: Features, l2: float) -> tuple[float, Predictions]:
    """Dev loss and test predictions of scikit-learn's solution at an L2 strength."""
    train, dev = examples.targets("train"), examples.targets("dev")
    if not examples.classes:
        model = Ridge(alpha=l2 * len(train)).fit(features["train"], train)
        loss = 0.5 * np.mean((model.predict(features["dev"]) - dev) ** 2)
        return loss, model.predict(features["test"])
    balanced = examples.task.metric == "balanced_accuracy"
    count = np.bincount(train)
    weight = len(train) / (len(count) * count) if balanced else np.ones(len(count))
    # For two classes scikit-learn has one weight vector, the difference of our two: the same
    # penalty on it is half as strong.
    halved = 2 if len(examples.classes) == 2 else 1
    model = LogisticRegression(
        C=halved / (l2 * len(train)),
        max_iter=5000,
        tol=1e-6,
        class_weight="balanced" if balanced else None,
    ).fit(features["train"], train)
    seen = dev >= 0
    log_p = model.predict_log_proba(features["dev"][seen])
    loss = -np.average(log_p[np.arange(seen.sum()), dev[seen]], weights=weight[dev[seen]])
    return loss, model.predict(features["test"])


def parse() -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--cache-dir", type=Path, default=default_cache())
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--corpus", default="sample")
    parser.add_argument(
        "--layers", type=lambda text: [int(part) for part in text.split(",")], default=[0, 3]
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
