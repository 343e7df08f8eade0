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


def code_in(found):
    """What rows of description length say, those of a record or of `Found`.

    Returns:
        the name of the code, `starts` of its blocks, bits of the uniform code and of the one
        without vectors, with its bits per label by block, and by layer bits with their interval,
        bits per label by block, and compression with its interval.
    """
    rows = list(found.rows)

    def of(metric, layer, baseline=None):
        return [
            row
            for row in rows
            if (row.metric, row.layer, row.axes.get("baseline")) == (metric, layer, baseline)
        ]

    def per_label(layer, baseline=None):
        return [row.value for row in of("bits_per_label", layer, baseline)]

    layers = [row.layer for row in rows if (row.metric, row.axes) == ("codelength", {})]
    return SimpleNamespace(
        code=found.facts["code"],
        starts=[row.axes["examples"] for row in of("bits_per_label", layers[0])],
        uniform_bits=of("codelength", None, "uniform code")[0].value,
        prior_bits=of("codelength", None, "labels alone")[0].value,
        prior_compression=of("compression", None, "labels alone")[0].value,
        prior_per_label=per_label(None, "labels alone"),
        layers=[
            SimpleNamespace(
                layer=layer,
                bits=of("codelength", layer)[0].value,
                interval=of("codelength", layer)[0].interval,
                per_label=per_label(layer),
                compression=of("compression", layer)[0].value,
                compression_interval=of("compression", layer)[0].interval,
            )
            for layer in layers
        ],
    )
