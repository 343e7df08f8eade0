"""The heads that are best on dev, scored on test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from probes.measurements.attention.averages import Heads
from probes.measurements.attention.gold import FEWEST_TESTED
from probes.measurements.attention.payload import Choice
from probes.measurements.attention.scored import Scored
from probes.measurements.attention.scoring import difference, estimate, p_values
from probes.statistics.partition import Partition


def chosen(
    scored: Sequence[Scored], heads: Heads, partition: Partition
) -> tuple[list[Choice], dict[str, NDArray[np.generic]]]:
    """The best heads on dev, scored on test.

    Returns:
        the choices, and what test sentences contribute to them: ``test_sums``, ``test_counts``,
        ``test_baseline_sums``, each (choices, sentences), in the order of the choices.
    """
    picked = [(x, x.best) for x in scored]
    pairs = [(x.test.of(cell), x.baseline("test", cell)) for x, cell in picked]
    tested = [place for place, (test, _) in enumerate(pairs) if test.n >= FEWEST_TESTED]
    p = dict(zip(tested, p_values([pairs[place] for place in tested], partition), strict=True))
    choices = []
    for place, ((x, cell), (test, baseline)) in enumerate(zip(picked, pairs, strict=True)):
        head, direction = divmod(cell, len(x.directions))
        layer, number = heads.named(head)
        choices.append(
            Choice(
                measure=x.measure,
                feature=x.feature,
                direction=x.directions[direction],
                layer=layer,
                head=number,
                dev=float(x.on_dev[cell]),
                test=estimate(test, partition),
                baseline=estimate(baseline, partition),
                baseline_kind=x.baseline_kind,
                difference=difference(test, baseline, partition),
                p=p.get(place),
                n_dev=x.dev.n,
                n_test=x.test.n,
            )
        )
    if not pairs:
        return [], {}
    return choices, {
        "test_sums": np.stack([test.sums[:, 0] for test, _ in pairs]).astype(np.float32),
        "test_counts": np.stack([test.counts for test, _ in pairs]).astype(np.float32),
        "test_baseline_sums": np.stack([x.sums[:, 0] for _, x in pairs]).astype(np.float32),
    }
