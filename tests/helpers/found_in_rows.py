"""What the rows of evidence say, put together again for tests."""

from __future__ import annotations

from types import SimpleNamespace

from probes.records.row import Row


def controls_in(found):
    """What rows of selectivity say, those of a record or of `Found`.

    Returns:
        the control metric, types of train, the share of test types that are `seen`, draws of each
        layer (`common`), their spread `sd` and `df`, and by layer the score on the task, on each
        draw, and selectivity with its interval.
    """
    rows = {(row.metric, row.layer, row.axes.get("draw")): row for row in found.rows}
    metric = found.facts["unit"]
    spread = rows.get(("control_sd", None, None), Row("", None))
    n_draws = max(row.axes.get("draw", 0) for row in found.rows)
    return SimpleNamespace(
        metric=metric,
        types=rows["control_types", None, None].value,
        seen=rows["types_seen", None, None].value,
        common=n_draws,
        sd=spread.value,
        df=spread.n,
        layers=[
            SimpleNamespace(
                layer=layer,
                task=rows[metric, layer, None].value,
                controls=[rows[metric, layer, k].value for k in range(1, n_draws + 1)],
                value=row.value,
                interval=row.interval,
            )
            for (name, layer, _), row in rows.items()
            if name == "selectivity"
        ],
    )
