"""What attention found in numbers, for `heads.csv`."""

from __future__ import annotations

from collections.abc import Iterator

from probes.measurements.attention.payload import Findings
from probes.records.row import Place, Row


def numbers(found: Findings) -> Iterator[Row]:
    """A number for each layer, head, measure and feature."""
    for each in found.numbers:
        # A text that begins with a sign could be taken for a formula.
        feature = int(each.feature) if each.measure == "offset" else each.feature
        for row, layer in enumerate(found.layers):
            for place in range(found.heads):
                yield Row(
                    each.measure,
                    each.values[row][place],
                    layer,
                    each.low[row][place] if each.low else None,
                    each.high[row][place] if each.high else None,
                    each.split,
                    axes={"head": place + 1, "feature": feature, "direction": each.direction},
                )
    yield from _rest(found)


def _rest(found: Findings) -> Iterator[Row]:
    """Mixes of heads, and the class of each head."""
    if found.mixes:
        yield from _mixes(found)
    for row, layer in enumerate(found.layers):
        for place in range(found.heads):
            yield Row(
                "class",
                None,
                layer,
                axes={"head": place + 1, "feature": found.patterns[row][place]},
            )


def beside(found: Findings) -> Iterator[dict[str, Place]]:
    """The baseline of each number, and of heads that were chosen on dev chance and p-value."""
    chosen = {(x.measure, x.feature, x.direction, x.layer, x.head): x for x in found.choices}
    for each in found.numbers:
        of = each.measure, each.feature, each.direction
        for row, layer in enumerate(found.layers):
            for place in range(found.heads):
                choice = chosen.get((*of, layer, place + 1)) if each.split == "test" else None
                yield {
                    "baseline": each.baseline_of(row, place),
                    "baseline_kind": each.baseline_kind,
                    "chance": choice.chance if choice else None,
                    "p": choice.p if choice else None,
                    "chosen": "yes" if choice else "",
                    "n": each.n,
                }
    yield from ({} for _ in _rest(found))


def _mixes(found: Findings) -> Iterator[Row]:
    """UAS of mixes of the heads of each layer, and of all heads."""
    mixes = found.mixes
    assert mixes is not None
    layers = (*found.layers, None)
    dev, test = (*mixes.dev_layers, mixes.dev_every), (*mixes.layers, mixes.every)
    for layer, on_dev, on_test in zip(layers, dev, test, strict=True):
        feature = {"feature": "mix of heads"}
        yield Row("uas", on_dev, layer, split="dev", axes=feature)
        low, high = on_test.interval or (None, None)
        yield Row("uas", on_test.value, layer, low, high, axes=feature)
