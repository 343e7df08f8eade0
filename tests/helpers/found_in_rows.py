"""Numbers of evidence, put together again from rows for tests."""

from __future__ import annotations

from types import SimpleNamespace

from probes.records.row import Row
from probes.statistics.replicates import Spread


def controls_in(found):
    """Selectivity from the rows of a record or of `Measured`.

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
    """Description lengths from the rows of a record or of `Measured`.

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


def variance_in(found):
    """Training variance from the rows of a record, of `Measured` or of a result.

    Returns:
        the `rows`; spreads over `seeds` and over `both`, and `sampling_sd`; p-values by layer; and
        by layer its `spread`, and the scores of its `reseeded` and `resampled` fits.
    """
    rows = list(getattr(found, "rows", found))
    pooled = {row.metric: row for row in rows if row.layer is None}

    def spread(row):
        return None if row.value is None else Spread(row.value, row.n)

    def scores(layer, axis):
        of_layer = [row for row in rows if row.layer == layer and axis in row.axes]
        assert [row.axes[axis] for row in of_layer] == list(range(1, len(of_layer) + 1))
        return [row.value for row in of_layer]

    return SimpleNamespace(
        rows=rows,
        seeds=spread(pooled["retraining_sd"]),
        both=spread(pooled["training_sd"]),
        sampling_sd=pooled["sampling_sd"].value,
        p_best={row.layer: row.value for row in rows if row.metric == "p_best"},
        layers={
            row.layer: SimpleNamespace(
                spread=spread(row),
                reseeded=scores(row.layer, "seed"),
                resampled=scores(row.layer, "sample"),
            )
            for row in rows
            if row.metric == "layer_training_sd"
        },
    )


def mixes_in(found):
    """Localisation from the rows of a record, of `Measured` or of a result.

    Returns:
        the four numbers of the model as a whole, each a row; by mix its `weights`, its L2
        `strength`, its row on `test` and its score on `dev`; and `sample_weights`, those of the mix
        of all layers, learnt on the whole split and on each sample.
    """
    rows = list(getattr(found, "rows", found))

    def of(metric, k, split, sample=None):
        return [
            row
            for row in rows
            if (row.metric, row.layer, row.split) == (metric, k, split)
            and row.axes.get("sample") == sample
        ]

    def weights(k, sample=None):
        every = of("mix_weight", k, "train", sample)
        assert [row.axes["of"] for row in every] == list(range(k + 1))
        return [row.value for row in every]

    last = max(row.layer for row in rows if row.metric == "mix_score")
    samples = sorted({row.axes["sample"] for row in rows if "sample" in row.axes})
    names = "total_gain", "expected_layer", "centre_of_gravity", "kl"
    return SimpleNamespace(
        **{name: next(row for row in rows if row.metric == name) for name in names},
        mixes=[
            SimpleNamespace(
                weights=weights(k),
                strength=of("mix_strength", k, "train")[0].value,
                test=of("mix_score", k, "test")[0],
                dev=of("mix_score", k, "dev")[0].value,
            )
            for k in range(last + 1)
        ],
        sample_weights=[weights(last), *(weights(last, sample) for sample in samples)],
    )
