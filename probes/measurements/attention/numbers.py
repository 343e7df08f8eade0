"""What attention found in numbers, for `heads.csv`."""

from __future__ import annotations

from collections.abc import Iterator

from probes.measurements.attention.payload import Findings
from probes.measurements.measurement import Number


def numbers(found: Findings) -> Iterator[Number]:
    """A number for each layer, head, measure and feature, with its baseline.

    p-values are those of heads that were chosen on dev.
    """
    chosen = {(x.measure, x.feature, x.direction, x.layer, x.head): x for x in found.choices}
    for each in found.numbers:
        of = each.measure, each.feature, each.direction
        # A text that begins with a sign could be taken for a formula.
        feature = int(each.feature) if each.measure == "offset" else each.feature
        for row, layer in enumerate(found.layers):
            for place in range(found.heads):
                choice = chosen.get((*of, layer, place + 1)) if each.split == "test" else None
                yield Number(
                    each.measure,
                    each.values[row][place],
                    layer,
                    each.low[row][place] if each.low else None,
                    each.high[row][place] if each.high else None,
                    each.split,
                    {"head": place + 1, "feature": feature, "direction": each.direction},
                    {
                        "baseline": each.baseline_of(row, place),
                        "baseline_kind": each.baseline_kind,
                        "chance": choice.chance if choice else None,
                        "p": choice.p if choice else None,
                        "chosen": "yes" if choice else "",
                        "n": each.n,
                    },
                )
    if found.mixes:
        yield from _mixes(found)
    for row, layer in enumerate(found.layers):
        for place in range(found.heads):
            yield Number(
                "class",
                None,
                layer,
                axes={"head": place + 1, "feature": found.patterns[row][place]},
            )


def _mixes(found: Findings) -> Iterator[Number]:
    """UAS of mixes of the heads of each layer, and of all heads."""
    mixes = found.mixes
    assert mixes is not None
    layers = (*found.layers, None)
    dev, test = (*mixes.dev_layers, mixes.dev_every), (*mixes.layers, mixes.every)
    for layer, on_dev, on_test in zip(layers, dev, test, strict=True):
        feature = {"feature": "mix of heads"}
        yield Number("uas", on_dev, layer, split="dev", axes=feature)
        low, high = on_test.interval or (None, None)
        yield Number("uas", on_test.value, layer, low, high, axes=feature)
