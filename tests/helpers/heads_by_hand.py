"""Records of attention by hand: choices, and numbers of all heads."""

from __future__ import annotations

from itertools import chain

from corpus_records import corpus_record

from probes.records.row import Row, Rows

SENTENCES = 40
WORDS = 5
"""Of each sentence that count for a choice: 200 in all."""


def choice(feature, *, measure="relation", at=(1, 1), test=0.5, baseline=0.3, half=0.05, **more):
    """The rows of a chosen head: scores ± .01, a difference ± `half`, and p = .001.

    Args:
        half: None for no interval of the difference.
        more: `p`, `n_test`, `chance` and `direction`.
    """
    layer, head = at
    direction, n = more.get("direction", "dependent to head"), more.get("n_test", SENTENCES * WORDS)
    axes = {"head": head, "direction": direction, "chosen": "best on dev"}
    axes |= {"feature": feature} if feature else {}
    above = test - baseline
    ends = (None, None) if half is None else (above - half, above + half)

    def row(value, **of):
        return Row(measure, value, layer, value - 0.01, value + 0.01, n=n, axes={**axes, **of})

    return [
        row(test),
        row(baseline, baseline="offset -2"),
        row(more.get("chance", 0.1), baseline="chance"),
        Row(
            "above_baseline",
            above,
            layer,
            *ends,
            n=n,
            p=more.get("p", 0.001),
            axes={**axes, "measure": measure},
        ),
    ]


def numbers(measure, values, uniform, *, feature=None, half=0.01):
    """The rows of all heads, ± `half`, with the same uniform baseline for all heads of a layer."""
    of = {} if feature is None else {"feature": feature}
    rows = []
    for layer, (of_layer, base) in enumerate(zip(values, uniform, strict=False), start=1):
        rows.append(Row(measure, base, layer, axes={**of, "baseline": "uniform"}))
        for head, value in enumerate(of_layer, start=1):
            ends = (None, None) if half is None else (value - half, value + half)
            rows.append(Row(measure, value, layer, *ends, n=SENTENCES, axes={"head": head, **of}))
    return rows


def attention(choices=(), of_heads=(), patterns=None, *, n_layers=2, n_heads=2, **more):
    """A record of attention.

    Args:
        choices, of_heads: rows, see above.
        patterns: names of classes by layer and head; all heterogeneous if not given.
        more: `layers`, `random_seed` and whatever `corpus_record` takes.
    """
    layers = more.pop("layers", range(1, n_layers + 1))
    seed = more.pop("random_seed", None)
    classes = [
        Row("class", None, layer, axes={"head": head + 1, "feature": names[head]})
        for layer, names in zip(
            layers, patterns or [["heterogeneous"] * n_heads] * n_layers, strict=False
        )
        for head in range(n_heads)
    ]
    record = corpus_record("attention", {}, n_layers, result={"random_seed": seed}, **more)
    found = {
        "rows": Rows.of([*chain(*of_heads), *chain(*choices), *classes]),
        "facts": {"resampled": "sentences", "mean_map_texts": 0},
    }
    return record.model_copy(update=found)
