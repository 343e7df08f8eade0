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


def layers_in(result):
    """What rows of scores say: by layer the fits of all seeds, and scores by label and group.

    Each fit has its metrics on `dev` and `test`, its `strength` and its `dev_loss`.
    """
    layers = []
    for layer in result.layers:
        fits = []
        for seed in range(result.extent[layer]):
            axes = {"seed": seed} if seed else {}
            fit = SimpleNamespace(seed=seed, dev={}, test={})
            for row in result.rows:
                if (row.layer, row.axes) != (layer, axes):
                    continue
                if row.metric in ("strength", "stopped", "dev_loss"):
                    setattr(fit, row.metric, row.value)
                else:
                    getattr(fit, row.split)[row.metric] = row.value
            fits.append(fit)
        of_layer = [row for row in result.rows if row.layer == layer]
        labels = {row.axes["label"]: {} for row in of_layer if "label" in row.axes}
        for row in of_layer:
            if "label" in row.axes:
                labels[row.axes["label"]] |= {row.metric: row.value, "n": row.n}
        groups = {row.axes["group"]: row for row in of_layer if "group" in row.axes}
        layers.append(SimpleNamespace(layer=layer, fits=fits, labels=labels, groups=groups))
    return layers


def mixes_in(rows):
    """What rows of localisation say.

    Returns:
        the estimates as rows; `mixes` with k, weights, strength, dev and test scores and the
        interval of the latter; and `sample_weights`, those of the mix of all layers on each sample.
    """
    last = max(row.layer for row in rows if row.layer is not None)

    def weights(k, **axes):
        found = [rows.at("mix_weight", k, "train", of=layer, **axes) for layer in range(k + 1)]
        return tuple(row.value for row in found)

    samples = sorted({row.axes["sample"] for row in rows if "sample" in row.axes})
    names = "total_gain", "expected_layer", "centre_of_gravity", "kl"
    return SimpleNamespace(
        **{name: rows.at(name) for name in names},
        mixes=[
            SimpleNamespace(
                k=k,
                weights=weights(k),
                strength=rows.at("mix_strength", k, "train").value,
                dev=rows.at("mix_score", k, "dev").value,
                test=rows.at("mix_score", k).value,
                interval=rows.at("mix_score", k).interval,
            )
            for k in range(last + 1)
        ],
        sample_weights=[weights(last), *(weights(last, sample=sample) for sample in samples)],
    )


def variance_in(rows):
    """Further scores that rows of training variance have, by layer: of seeds and of samples."""
    found = {}
    for row in rows:
        for axis in ("seed", "sample"):
            if axis in row.axes:
                found.setdefault(row.layer, {"seed": [], "sample": []})[axis].append(row.value)
    return found
