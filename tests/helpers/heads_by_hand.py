"""Records of attention by hand: choices, and numbers of all heads."""

from __future__ import annotations

import numpy as np
from corpus_records import corpus_record, estimate

from probes.measurements.attention.payload import Choice, Findings, HeadNumbers, MeanMaps, Split
from probes.records.values import Estimate

SENTENCES = 40
WORDS = 5
"""Of each sentence that count for a choice: 200 in all."""


def choice(feature, *, measure="relation", at=(1, 1), test=0.5, baseline=0.3, **more):
    """A chosen head with a difference of test and baseline ± .05 and p = .001.

    Args:
        more: `half` of the interval of the difference, None for no interval; fields of `Choice`.
    """
    half = more.pop("half", 0.05)
    value = test - baseline
    difference = Estimate(
        value=value, interval=None if half is None else (value - half, value + half)
    )
    fields = {
        "measure": measure,
        "feature": feature,
        "direction": "dependent to head",
        "layer": at[0],
        "head": at[1],
        "dev": test,
        "test": estimate(test),
        "baseline": estimate(baseline),
        "baseline_kind": "offset -2",
        "chance": 0.1,
        "difference": difference,
        "p": 0.001,
        "n_dev": SENTENCES * WORDS,
        "n_test": SENTENCES * WORDS,
    }
    return Choice(**{**fields, **more})


def numbers(measure, values, uniform, *, feature="", half=0.01):
    """A measure of every head, ± `half`, with the same uniform baseline for all heads of a layer."""
    grid = np.array(values)
    return HeadNumbers(
        measure=measure,
        feature=feature,
        direction="",
        split="test",
        n=SENTENCES,
        values=grid.tolist(),
        low=() if half is None else (grid - half).tolist(),
        high=() if half is None else (grid + half).tolist(),
        baseline=tuple((x,) for x in uniform),
        baseline_kind="uniform",
    )


def attention(choices=(), of_heads=(), patterns=None, *, n_layers=2, n_heads=2, **more):
    """A record of attention.

    Args:
        patterns: names of classes by layer and head; all heterogeneous if not given.
        more: fields of the payload; `model`, `random_seed` and whatever `corpus_record` takes.
    """
    layers = more.pop("layers", tuple(range(1, n_layers + 1)))
    seed = more.pop("random_seed", None)
    payload = {
        "layers": layers,
        "heads": n_heads,
        "segments": "one",
        "splits": {x: Split(texts=SENTENCES, words=999, too_long=0) for x in ("dev", "test")},
        "resampled": "sentences",
        "numbers": tuple(of_heads),
        "choices": tuple(choices),
        "patterns": patterns or [["heterogeneous"] * n_heads] * len(layers),
        "mean_maps": MeanMaps(tokens=16, texts=0, maps=()),
        "mixes": None,
        "clusters": None,
        "rare": {},
        "without_controls": 0,
        "rare_roles": {},
        "chains": {},
    }
    payload |= {name: more.pop(name) for name in list(more) if name in payload}
    return corpus_record(
        "attention", Findings(**payload), n_layers, result={"random_seed": seed}, **more
    )
